"""Wrong arguments of the structural functions: the error, its text, and that nothing is written."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors

IMAGES, KERNELS = mg.zeros((2, 4, 6, 5)), mg.zeros((6, 4, 3, 3))
TABLE = mg.zeros((3, 2))
MATRIX = mg.variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
INTS = mg.variable([[1, 2, 3], [4, 5, 6]])
BAD = {
    "index beyond": (lambda: MATRIX[2], errors.BoundsError, "from -2 to 1 along axis 0"),
    "index below": (lambda: MATRIX[:, -4], errors.BoundsError, "-4"),
    "index array": (lambda: MATRIX[[0, 1], [0, 7]], errors.BoundsError, "7 at 1 of the index"),
    "too many": (lambda: MATRIX[0, 0, 0], errors.BoundsError, "at most 2 indices"),
    "two ellipses": (lambda: MATRIX[..., ...], errors.BoundsError, "one ellipsis"),
    "float index": (lambda: MATRIX[1.0], errors.ArgumentTypeError, "ints or bools"),
    "float variable": (lambda: MATRIX[MATRIX], errors.ArgumentTypeError, "to('int64')"),
    "text index": (lambda: MATRIX["a"], errors.ArgumentTypeError, "str"),
    "slice step": (lambda: MATRIX[::0], errors.ArgumentError, "other than 0"),
    "slice of text": (lambda: MATRIX["a":], errors.ArgumentTypeError, "slice"),
    "mask shape": (lambda: MATRIX[[True, False, True]], errors.ShapeError, "mask of shape (2,)"),
    "index shapes": (lambda: MATRIX[[0, 1], [0, 1, 2]], errors.ShapeError, "broadcast"),
    "set shape": (lambda: MATRIX.__setitem__(0, [1.0, 2.0]), errors.ShapeError, "(3,)"),
    "set beyond": (lambda: MATRIX.__setitem__(5, 0.0), errors.BoundsError, "5"),
    "set rank": (lambda: MATRIX.__setitem__(0, mg.ones((2, 3))), errors.ShapeError, "(2, 3)"),
    "embedding": (lambda: mg.embedding(TABLE, [[0, 1], [3, 0]]), errors.BoundsError, "3 at (1, 0)"),
    "embedding negative": (lambda: mg.embedding(TABLE, [-1]), errors.BoundsError, "-1"),
    "embedding floats": (lambda: mg.embedding(TABLE, [0.5]), errors.ArgumentTypeError, "ints"),
    "embedding rank": (lambda: mg.embedding(mg.zeros((3,)), [0]), errors.ShapeError, "(n, d)"),
    "embedding swapped": (lambda: mg.embedding([0], TABLE), errors.ArgumentTypeError, "swap"),
    "one_hot": (lambda: mg.one_hot([0, 4], 4), errors.BoundsError, "0 to 3"),
    "one_hot classes": (lambda: mg.one_hot([0], 0), errors.ArgumentError, "classes"),
    "gather rank": (lambda: mg.gather(MATRIX, [0], 0), errors.ShapeError, "axes"),
    "gather bounds": (lambda: mg.gather(MATRIX, [[2, 0, 0]], 0), errors.BoundsError, "2 at (0, 0)"),
    "gather size": (lambda: mg.gather(MATRIX, [[0] * 4], 0), errors.ShapeError, "no larger"),
    "scatter_add source": (
        lambda: mg.scatter_add(MATRIX, [[0, 1, 0]], mg.zeros((1, 2)), 0),
        errors.ShapeError,
        "index's shape",
    ),
    "scatter_add dtype": (
        lambda: mg.scatter_add(MATRIX, [[0]], mg.zeros((1, 1), "float64"), 0),
        errors.DTypeError,
        "float32",
    ),
    "flip axis": (lambda: mg.flip(MATRIX, 2), errors.ShapeError, "-2 to 1"),
    "tril": (lambda: mg.tril(mg.zeros((3,))), errors.ShapeError, "two axes"),
    "concatenate none": (lambda: mg.concatenate([]), errors.ArgumentError, "at least one"),
    "concatenate one": (lambda: mg.concatenate(MATRIX), errors.ArgumentTypeError, "list"),
    "concatenate shapes": (
        lambda: mg.concatenate([MATRIX, mg.zeros((2, 2))]),
        errors.ShapeError,
        "(2, 3) and, at 1, (2, 2)",
    ),
    "concatenate rank": (lambda: mg.concatenate([MATRIX, MATRIX[0]]), errors.ShapeError, "(3,)"),
    "concatenate scalars": (lambda: mg.concatenate([mg.zeros(())]), errors.ShapeError, "stack"),
    "concatenate axis": (lambda: mg.concatenate([MATRIX], 2), errors.ShapeError, "axis"),
    "stack shapes": (lambda: mg.stack([MATRIX, MATRIX[0]]), errors.ShapeError, "equal shapes"),
    "split": (lambda: mg.split(MATRIX, sections=0), errors.ArgumentError, "section"),
    "split type": (lambda: mg.split(MATRIX, sections=1.5), errors.ArgumentTypeError, "1.5"),
    "pad pairs": (lambda: mg.pad(MATRIX, ((1, 1),)), errors.ShapeError, "2 pairs"),
    "pad negative": (lambda: mg.pad(MATRIX, -1), errors.ArgumentError, "at least 0"),
    "pad type": (lambda: mg.pad(MATRIX, "ab"), errors.ArgumentTypeError, "pairs"),
    "pad value": (lambda: mg.pad(INTS, 1, 0.5), errors.DTypeError, "int64"),
    "repeat counts": (lambda: mg.repeat(MATRIX, [1, 2], axis=1), errors.ShapeError, "3 counts"),
    "repeat negative": (lambda: mg.repeat(MATRIX, -1), errors.ArgumentError, "at least 0"),
    "repeat type": (lambda: mg.repeat(MATRIX, 1.5), errors.ArgumentTypeError, "1.5"),
    "einsum count": (lambda: mg.einsum("ij,jk", MATRIX), errors.ArgumentError, "2 operands"),
    "einsum rank": (lambda: mg.einsum("ijk", MATRIX), errors.ShapeError, "(2, 3)"),
    "einsum sizes": (lambda: mg.einsum("ij,jk", MATRIX, MATRIX), errors.ShapeError, "'j'"),
    "einsum result": (lambda: mg.einsum("ij->ik", MATRIX), errors.ArgumentError, "'ik'"),
    "einsum letters": (lambda: mg.einsum("i1", MATRIX), errors.ArgumentError, "letters"),
    "einsum type": (lambda: mg.einsum(MATRIX), errors.ArgumentTypeError, "equation"),
    "diagonal": (
        lambda: mg.diagonal(MATRIX, axis1=1, axis2=-1), errors.ShapeError, "different axes",
    ),
    "conv rank": (lambda: mg.conv2d(IMAGES[0], KERNELS), errors.ShapeError, "(b, c, h, w)"),
    "conv channels": (lambda: mg.conv2d(IMAGES[:, :3], KERNELS), errors.ShapeError, "3 channels"),
    "conv groups": (lambda: mg.conv2d(IMAGES, KERNELS, groups=3), errors.ArgumentError, "3 of 4"),
    "conv groups type": (lambda: mg.conv2d(IMAGES, KERNELS, groups=0), errors.ArgumentError, "0"),
    "conv stride": (lambda: mg.conv2d(IMAGES, KERNELS, stride=0), errors.ArgumentError, "stride"),
    "conv padding": (lambda: mg.conv2d(IMAGES, KERNELS, padding=-1), errors.ArgumentError, "-1"),
    "conv dilation": (lambda: mg.conv2d(IMAGES, KERNELS, dilation=0), errors.ArgumentError, "1"),
    "conv stride type": (
        lambda: mg.conv2d(IMAGES, KERNELS, stride=1.5), errors.ArgumentTypeError, "1.5",
    ),
    "conv size": (lambda: mg.conv2d(IMAGES, KERNELS, dilation=4), errors.ShapeError, "at least"),
    "conv bias": (lambda: mg.conv2d(IMAGES, KERNELS, mg.zeros((4,))), errors.ShapeError, "(6,)"),
    "conv dtypes": (
        lambda: mg.conv2d(IMAGES, KERNELS.to("float64")), errors.DTypeError, "float64",
    ),
    "conv ints": (
        lambda: mg.conv2d(IMAGES.to("int64"), KERNELS.to("int64")), errors.DTypeError, "floats",
    ),
    "conv1d stride": (
        lambda: mg.conv1d(mg.zeros((1, 1, 5)), mg.zeros((1, 1, 2)), stride=(1, 2)),
        errors.ArgumentError,
        "one int",
    ),
    "conv1d rank": (lambda: mg.conv1d(IMAGES, KERNELS), errors.ShapeError, "(b, c, w)"),
    "pool rank": (lambda: mg.max_pool2d(MATRIX, 2), errors.ShapeError, "images"),
    "pool size": (lambda: mg.max_pool2d(IMAGES, 7), errors.ShapeError, "at least once"),
    "pool padding": (lambda: mg.avg_pool2d(IMAGES, 2, padding=2), errors.ArgumentError, "half"),
    "pool ints": (lambda: mg.max_pool2d(IMAGES.to("int64"), 2), errors.DTypeError, "floats"),
    "pool kernel": (lambda: mg.max_pool2d(IMAGES, 0), errors.ArgumentError, "kernel"),
    "batch_norm rank": (lambda: mg.batch_norm(MATRIX[0]), errors.ShapeError, "(3,)"),
    "batch_norm weight": (
        lambda: mg.batch_norm(MATRIX, weight=mg.ones((2,))), errors.ShapeError, "weight",
    ),
    "batch_norm one": (lambda: mg.batch_norm(MATRIX[:1]), errors.ShapeError, "one"),
    "batch_norm half": (
        lambda: mg.batch_norm(MATRIX, running_mean=mg.zeros((3,)), training=True),
        errors.ArgumentError, "neither",
    ),
    "batch_norm ints": (lambda: mg.batch_norm(INTS), errors.DTypeError, "floats"),
    "batch_norm int weight": (
        lambda: mg.batch_norm(MATRIX, weight=mg.variable([1, 1, 1])), errors.DTypeError, "weight",
    ),
    "batch_norm momentum": (
        lambda: mg.batch_norm(MATRIX, momentum=2.0), errors.ArgumentError, "2.0",
    ),
    "dropout p": (lambda: mg.dropout(MATRIX, 1.5), errors.ArgumentError, "1.5"),
    "dropout ints": (lambda: mg.dropout(INTS, 0.5), errors.DTypeError, "floats"),
    "attention shapes": (
        lambda: mg.scaled_dot_product_attention(MATRIX, MATRIX[:, :2], MATRIX),
        errors.ShapeError,
        "(..., m, d)",
    ),
    "attention both": (
        lambda: mg.scaled_dot_product_attention(
            MATRIX, MATRIX, MATRIX, mask=mg.ones((2, 2), "bool"), is_causal=True
        ),
        errors.ArgumentError,
        "not both",
    ),
    "attention mask": (
        lambda: mg.scaled_dot_product_attention(MATRIX, MATRIX, MATRIX, mask=[[1, 0], [0, 1]]),
        errors.DTypeError,
        "bools or floats",
    ),
    "attention ints": (
        lambda: mg.scaled_dot_product_attention(INTS, INTS, INTS), errors.DTypeError, "floats",
    ),
    "cross_entropy ints": (lambda: mg.cross_entropy(INTS, [0, 1]), errors.DTypeError, "float"),
    "randint": (lambda: mg.randint(3, 3, (2,)), errors.ArgumentError, "low < high"),
    "rand dtype": (lambda: mg.rand((2,), dtype="int64"), errors.DTypeError, "float"),
    "cumsum axis": (lambda: mg.cumsum(MATRIX, 2), errors.ShapeError, "axis"),
    "argmax of nothing": (lambda: mg.zeros((0, 3)).argmax(), errors.ShapeError, "at least one"),
    "linear": (lambda: mg.linear(MATRIX, mg.zeros((4, 2))), errors.ShapeError, "(n, k)"),
    "expand": (lambda: MATRIX.expand(3, 3), errors.ShapeError, "broadcast"),
    "reshape": (lambda: MATRIX.reshape(4, -1), errors.ShapeError, "6 elements"),
    "permute": (lambda: MATRIX.permute(0, 0), errors.ShapeError, "each of 2 axes once"),
    "squeeze": (lambda: mg.squeeze(MATRIX, 0), errors.ShapeError, "size 1"),
    "rank": (lambda: mg.zeros((1,) * 8)[None], errors.ShapeError, "at most 8 axes"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_argument_raises_a_clear_error_and_writes_nothing(name):
    function, kind, text = BAD[name]
    before = MATRIX.numpy().copy(), MATRIX.version
    with pytest.raises(kind) as caught:
        function()
    assert type(caught.value) is kind
    message = str(caught.value)
    assert text in message
    assert "test_arguments.py" in message, "the message names the user's line"
    np.testing.assert_array_equal(MATRIX.numpy(), before[0])
    assert MATRIX.version == before[1]


def test_batch_norm_that_raises_leaves_running_values():
    mean, var = mg.zeros((3,)), mg.ones((3,))
    with pytest.raises(errors.ShapeError):
        mg.batch_norm(mg.zeros((1, 3)), running_mean=mean, running_var=var, training=True)
    assert mean.tolist() == [0.0, 0.0, 0.0]
    assert var.tolist() == [1.0, 1.0, 1.0]
