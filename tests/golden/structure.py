"""Golden cases: shapes, indexing, joining, products."""

import numpy as np
import torch
from case import case, distinct, fixed, integers, normal
from torch.nn import functional


def shapes():
    """Operations that move values."""
    x = {"x": normal(2, 3, 4)}
    yield case("reshape", "reshape", x, lambda x: x.reshape(4, 6), ["$x", (4, 6)])
    yield case("reshape_free", "reshape", x, lambda x: x.reshape(6, -1), ["$x", (6, -1)])
    yield case("transpose", "transpose", x, lambda x: x.permute(2, 1, 0))
    yield case("permute", "permute", x, lambda x: x.permute(1, 2, 0), ["$x", (1, 2, 0)])
    yield case(
        "expand", "expand", {"x": normal(3, 1)}, lambda x: x.expand(2, 3, 4), ["$x", (2, 3, 4)]
    )
    one = {"x": normal(1, 3, 1)}
    yield case("squeeze", "squeeze", one, torch.squeeze)
    yield case("squeeze_axis", "squeeze", one, lambda x: x.squeeze(-1), axis=-1)
    yield case("unsqueeze", "unsqueeze", x, lambda x: x.unsqueeze(1), ["$x", 1])
    yield case("flatten", "flatten", x, torch.flatten)
    yield case("flatten_from_1", "flatten", x, lambda x: torch.flatten(x, 1), ["$x", 1])
    yield case("flip", "flip", x, lambda x: x.flip(1), axis=1)
    yield case("flip_two", "flip", x, lambda x: x.flip(0, 2), axis=(0, 2))
    yield case("repeat", "repeat", x, lambda x: x.repeat_interleave(3, 1), ["$x", 3], axis=1)
    flat = {"x": normal(2, 3)}
    yield case(
        "pad", "pad", flat, lambda x: functional.pad(x, (2, 0, 1, 1)), ["$x", ((1, 1), (2, 0))]
    )
    yield case(
        "pad_value",
        "pad",
        flat,
        lambda x: functional.pad(x, (1, 2, 0, 3), value=1.5),
        ["$x", ((0, 3), (1, 2)), 1.5],
    )


def moving():
    """Rolling, sorting, running products, filling, normalising."""
    x = {"x": normal(2, 3, 4)}
    yield case("roll", "roll", x, lambda x: x.roll(5), ["$x", 5])
    yield case("roll_axis", "roll", x, lambda x: x.roll(-1, 2), ["$x", -1], axis=2)
    both = {"axis": (0, 2)}
    yield case("roll_two", "roll", x, lambda x: x.roll((1, 2), (0, 2)), ["$x", (1, 2)], **both)
    few = {"x": distinct(3, 7)}
    yield case("sort", "sort", few, lambda x: x.sort()[0])
    down = {"axis": 0, "descending": True}
    yield case("sort_down", "sort", few, lambda x: x.sort(0, True)[0], **down)
    yield case("argsort", "argsort", few, torch.argsort, constant=("x",))
    ties = {"x": fixed([[2, 1, 2, 1, 3], [0, 0, 0, 5, 5]])}
    yield case("argsort_ties", "argsort", ties, lambda x: torch.argsort(x, stable=True))
    yield case(
        "argsort_ties_down",
        "argsort",
        ties,
        lambda x: torch.argsort(x, descending=True, stable=True),
        descending=True,
    )
    yield case("topk", "topk", few, lambda x: x.topk(3)[0], ["$x", 3], which=0)
    small = {"axis": 0, "largest": False, "which": 0}
    yield case("topk_small", "topk", few, lambda x: x.topk(2, 0, False)[0], ["$x", 2], **small)
    yield case(
        "topk_places", "topk", few, lambda x: x.topk(3)[1], ["$x", 3], constant=("x",), which=1
    )
    yield case("cumprod", "cumprod", few, lambda x: x.cumprod(1), axis=1)
    zeros = {"x": fixed([[2.0, 0.0, 3.0, 0.0, 4.0], [1.0, 2.0, 0.0, 5.0, -1.0]])}
    yield case("cumprod_zeros", "cumprod", zeros, lambda x: x.cumprod(1), axis=1)
    yield case(
        "index_add",
        "index_add",
        {"x": normal(3, 4, 2), "index": integers(0, 4, 5), "source": normal(3, 5, 2)},
        lambda x, index, source: x.index_add(1, index, source),
        axis=1,
    )
    mask = fixed([[True, False, True], [False, False, True]])
    filled = {"x": normal(2, 3), "mask": mask}
    yield case("masked_fill", "masked_fill", filled, lambda x, m: x.masked_fill(m, 0.5),
        ["$x", "$mask", 0.5])  # fmt: skip
    value = {**filled, "value": fixed(1.5)}
    yield case("masked_fill_value", "masked_fill", value, lambda x, m, v: x.masked_fill(m, v))
    rows = {"x": normal(3, 4)}
    yield case("normalize", "normalize", rows, functional.normalize, axis=1)
    yield case(
        "normalize_small", "normalize", rows, lambda x: functional.normalize(x, dim=0, eps=4.0),
        axis=0, eps=4.0,
    )  # fmt: skip


def equations():
    """Systems of equations, least squares, Cholesky factors."""
    square, two = {"a": normal(3, 3)}, {"b": normal(3, 2)}
    yield case("solve", "linalg.solve", {**square, **two}, torch.linalg.solve)
    yield case("solve_vector", "linalg.solve", {**square, "b": normal(3)}, torch.linalg.solve)
    many = {"a": normal(2, 1, 3, 3), "b": normal(4, 3, 2)}
    yield case("solve_batched", "linalg.solve", many, torch.linalg.solve)
    for name, (m, n) in {"tall": (5, 3), "wide": (2, 4)}.items():
        given = {"a": normal(m, n), "b": normal(m, 2)}
        yield case(f"lstsq_{name}", "linalg.lstsq", given, by_pseudo_inverse, which=0)
    yield case("cholesky", "linalg.cholesky", {"a": definite(4)}, torch.linalg.cholesky)
    yield case("cholesky_batched", "linalg.cholesky", {"a": definite(3, 2)}, torch.linalg.cholesky)


def by_pseudo_inverse(a, b):
    """The least squares solution, with PyTorch's gradient of pinv."""
    return torch.linalg.pinv(a) @ b


def definite(n, *outer):
    """Positive definite matrices."""

    def draw(rng):
        a = normal(*outer, n, n)(rng)
        return a @ np.swapaxes(a, -1, -2) + np.eye(n)

    return draw


def indexing():
    """Basic and advanced reading. An index is written as the manifest says (see make.py)."""
    x, i = {"x": normal(4, 3, 5)}, integers(0, 4, 6)
    read = "operator.getitem"

    def at(name, index, reference, **more):
        return case(f"getitem_{name}", read, {**x, **more}, reference, ["$x", index])

    yield at("integer", 2, lambda x: x[2])
    yield at("negative", [-1, "...", -2], lambda x: x[-1, ..., -2])
    yield at("slice", [{"slice": [1, 3, None]}], lambda x: x[1:3])
    yield at("step", ["...", {"slice": [None, None, 2]}], lambda x: x[..., ::2])
    yield at("newaxis", [0, None, {"slice": [1, None, None]}], lambda x: x[0, None, 1:])
    yield at("rows", "$i", lambda x, i: x[i], i=i)
    yield at("pairs", ["$i", "$j"], lambda x, i, j: x[i, j], i=i, j=integers(0, 3, 6))
    yield at(
        "mixed",
        [{"slice": [None, None, None]}, "$j", {"slice": [0, 4, 3]}],
        lambda x, j: x[:, j, 0:4:3],
        j=integers(0, 3, 2, 2),
    )
    yield case(
        "gather",
        "gather",
        {**x, "index": integers(0, 3, 4, 2, 5)},
        lambda x, index: torch.gather(x, 1, index),
        axis=1,
    )
    yield case(
        "scatter_add",
        "scatter_add",
        {"x": normal(3, 5), "index": integers(0, 3, 4, 5), "values": normal(4, 5)},
        lambda x, index, values: torch.scatter_add(x, 0, index, values),
        axis=0,
    )
    yield case(
        "embedding",
        "embedding",
        {"indices": integers(0, 7, 2, 5), "table": normal(7, 3)},
        functional.embedding,
        ["$table", "$indices"],
    )
    yield case(
        "one_hot",
        "one_hot",
        {"indices": integers(0, 5, 2, 3)},
        lambda indices: functional.one_hot(indices, 5),
        ["$indices", 5],
    )


def joining():
    """Several inputs into one, one into several."""
    parts = {"a": normal(2, 3), "b": normal(2, 1), "c": normal(2, 2)}
    yield case(
        "concatenate",
        "concatenate",
        parts,
        lambda *xs: torch.cat(xs, 1),
        [["$a", "$b", "$c"]],
        axis=1,
    )
    equal = {"a": normal(2, 3), "b": normal(2, 3)}
    for axis in (0, -1):
        yield case(
            f"stack_{axis}",
            "stack",
            equal,
            lambda *xs, axis=axis: torch.stack(xs, axis),
            [["$a", "$b"]],
            axis=axis,
        )
    yield case(
        "concatenate_same_twice",
        "concatenate",
        {"a": normal(2, 3)},
        lambda a: torch.cat([a, a]),
        [["$a", "$a"]],
    )
    x = {"x": normal(6, 4)}
    yield case("split_equal", "split", x, lambda x: torch.tensor_split(x, 3), ["$x"], sections=3)
    yield case(
        "split_at",
        "split",
        x,
        lambda x: torch.tensor_split(x, (1, 3), 1),
        ["$x"],
        sections=[1, 3],
        axis=1,
    )


def products():
    """Matrix products of every rank, contractions, the linear layer."""
    pairs = {
        "matrices": ((3, 4), (4, 2)),
        "vectors": ((4,), (4,)),
        "matrix_vector": ((3, 4), (4,)),
        "vector_matrix": ((4,), (4, 3)),
        "batched": ((2, 3, 4), (2, 4, 5)),
        "broadcast": ((2, 1, 3, 4), (3, 4, 2)),
        "batched_matrix": ((2, 3, 4), (4, 2)),
        "batched_vector": ((2, 3, 4), (4,)),
        "outer": ((3, 1), (1, 4)),
    }
    for name, (a, b) in pairs.items():
        yield case(f"matmul_{name}", "matmul", {"a": normal(*a), "b": normal(*b)}, torch.matmul)
    yield case(
        "matmul_operator",
        "operator.matmul",
        {"a": normal(2, 3), "b": normal(3, 2)},
        torch.matmul,
    )
    contractions = {
        "product": ("ij,jk->ik", (3, 4), (4, 2)),
        "outer": ("i,j->ij", (3,), (4,)),
        "trace": ("ii->", (4, 4)),
        "diagonal": ("bii->bi", (2, 3, 3)),
        "transpose": ("abc->cab", (2, 3, 4)),
        "row_sums": ("ij->i", (3, 4)),
        "attention": ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
        "three": ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
        "bilinear": ("bi,oij,bj->bo", (2, 3), (2, 3, 4), (2, 4)),
        "implicit": ("ij,jk", (2, 3), (3, 2)),
    }
    for name, (equation, *operands) in contractions.items():
        inputs = {"abc"[k]: normal(*shape) for k, shape in enumerate(operands)}
        yield case(
            f"einsum_{name}",
            "einsum",
            inputs,
            lambda *xs, equation=equation: torch.einsum(equation, *xs),
            [equation, *("$" + key for key in inputs)],
        )
    layer = {"x": normal(5, 3), "w": normal(2, 3), "b": normal(2)}
    yield case("linear", "linear", layer, functional.linear)
    yield case("linear_batched", "linear", {**layer, "x": normal(2, 4, 3)}, functional.linear)
    without = {"x": layer["x"], "w": layer["w"]}
    yield case("linear_without_bias", "linear", without, functional.linear)


CASES = [*shapes(), *moving(), *equations(), *indexing(), *joining(), *products()]
