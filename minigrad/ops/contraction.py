"""einsum, made of permute, reshape, matmul and sum; diagonals."""

import functools
import operator

from minigrad.arguments import short
from minigrad.array.layout import normalize_axis, size_of
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentError, ArgumentTypeError, ShapeError
from minigrad.formulas.expression import call
from minigrad.ops.base import Structural
from minigrad.ops.names import remembered
from minigrad.ops.operands import as_variable, variables
from minigrad.tape.variable import filled


def _without(shape, a, b):
    return tuple(n for d, n in enumerate(shape) if d not in (a, b))


def _diagonal_view(x, a, b):
    n = min(x.shape[a], x.shape[b])
    shape = (*_without(x.shape, a, b), n)
    return x.view(shape, (*_without(x.strides, a, b), x.strides[a] + x.strides[b]))


class Diagonal(Structural):
    """Elements whose indices along two axes are equal, as the last axis; a view.

    (..., m, ..., n, ...), a, b -> (..., min(m, n)).
    """

    samples = [((3, 4), 0, 1), ((3, 2, 3), 0, 2)]
    is_view = True

    def forward(x, a, b):
        return _diagonal_view(x, a, b)

    gradients = (lambda dy, x_shape, a, b: DiagonalAdjoint.apply(dy, x_shape, a, b),)
    array_gradients = "same"


class DiagonalAdjoint(Structural):
    """Zeros of a shape with x on the diagonal of two axes.  (..., n), shape, a, b -> shape."""

    samples = [((3,), (3, 4), 0, 1), ((2, 3), (3, 2, 3), 0, 2)]

    def forward(x, shape, a, b):
        out = filled(x, 0, shape)
        if x.size:
            device_of(x).copy(x, _diagonal_view(out, a, b))
        return out

    gradients = (lambda dy, a, b: Diagonal.apply(dy, a, b),)
    array_gradients = "same"


def diagonal(x, *, axis1=0, axis2=1):
    """Takes the elements whose indices along two axes are equal, as the last axis; a view.

    (..., m, ..., n, ...) -> (..., min(m, n)).
    """
    x = as_variable(x, "diagonal")
    a, b = (normalize_axis("diagonal", axis, x.ndim) for axis in (axis1, axis2))
    if a == b:
        raise ShapeError("diagonal: wanted two different axes", f"{axis1} and {axis2}")
    return Diagonal.apply(x, a, b)


@functools.lru_cache(1024)
def _labels(equation, shapes):
    """Returns ([labels of each operand], labels of the result).

    Labels are letters, and ints for the axes of `...`.
    """
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ArgumentError(
            f"einsum: wanted {len(terms)} operands, as the equation {equation!r} names",
            f"{len(shapes)}",
        )
    labels = []
    for term, shape in zip(terms, shapes, strict=True):
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise ArgumentError(
                "einsum: wanted letters, one per axis, and at most one ... per term", short(term)
            )
        left = len(shape) - len(letters)
        if left < 0 or (left and "..." not in term):
            raise ShapeError(
                f"einsum: wanted an operand with one axis per letter of {term!r}", f"{shape}"
            )
        before, _, after = term.partition("...")
        labels.append([*before, *range(-left, 0), *after])
    everything = [label for term in labels for label in term]
    dots = sorted({label for label in everything if isinstance(label, int)})
    if not arrow:
        once = {label for label in everything if everything.count(label) == 1}
        return labels, dots + sorted(label for label in once if isinstance(label, str))
    letters = result.replace("...", "", 1)
    wrong = [c for k, c in enumerate(letters) if c not in everything or c in letters[:k]]
    if wrong or (dots and "..." not in result):
        raise ArgumentError(
            "einsum: wanted a result of letters that the operands have, each once, and ... if they "
            "have it",
            short(result),
        )
    before, _, after = result.partition("...")
    return labels, [*before, *dots, *after] if "..." in result else list(letters)


def _sizes(equation, shapes, labels):
    """Returns {label: size}. Axes of `...` broadcast; other sizes of a label must agree."""
    sizes = {}
    for shape, term in zip(shapes, labels, strict=True):
        for label, n in zip(term, shape, strict=True):
            known = sizes.setdefault(label, n)
            if isinstance(label, int) and 1 in (known, n):
                sizes[label] = max(known, n) if 0 not in (known, n) else 0
            elif known != n:
                raise ShapeError(
                    f"einsum {equation!r}: wanted one size for {label!r}", f"{known} and {n}"
                )
    return sizes


def _diagonals(x, labels):
    """Takes the diagonal of each repeated label; returns (x, labels)."""
    while len(set(labels)) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        a = labels.index(label)
        b = labels.index(label, a + 1)
        x = Diagonal.apply(x, a, b)
        labels = [c for k, c in enumerate(labels) if k not in (a, b)] + [label]
    return x, labels


def _summed(x, labels, needed):
    """Sums x over the labels that are no longer needed; returns (x, labels)."""
    axes = tuple(d for d, label in enumerate(labels) if label not in needed)
    if not axes:
        return x, labels
    return call("sum", x, axes, False), [label for label in labels if label in needed]


def _arranged(x, labels, order):
    """Returns x with its axes in an order; labels that it lacks become axes of size 1."""
    x = _permuted(x, labels, [label for label in order if label in labels])
    shape, at = [], iter(x.shape)
    for label in order:
        shape.append(next(at) if label in labels else 1)
    return x if len(labels) == len(order) else call("reshape", x, tuple(shape))


def _product(first, second, needed, sizes):
    """Multiplies two terms and sums over shared labels that are not `needed`.

    Returns (x, labels).
    """
    (a, left), (b, right) = first, second
    shared = [label for label in left if label in right]
    summed = [label for label in shared if label not in needed]
    batch = [label for label in shared if label in needed]
    rows = [label for label in left if label not in shared]
    columns = [label for label in right if label not in shared]
    out = [*batch, *rows, *columns]
    if not summed:
        return _arranged(a, left, out) * _arranged(b, right, out), out
    a = _permuted(a, left, (*batch, *rows, *summed))
    b = _permuted(b, right, (*batch, *summed, *columns))
    m, k, n = (size_of([sizes[label] for label in group]) for group in (rows, summed, columns))
    a = _reshaped(a, (*a.shape[: len(batch)], m, k))
    b = _reshaped(b, (*b.shape[: len(batch)], k, n))
    y = call("matmul", a, b)
    shape = (*y.shape[: len(batch)], *[sizes[label] for label in (*rows, *columns)])
    return _reshaped(y, shape), out


def _permuted(x, labels, order):
    """Returns x, whose axes have `labels`, with its axes in another order."""
    if all(map(operator.eq, labels, order)):
        return x
    return call("permute", x, tuple([labels.index(label) for label in order]))


def _reshaped(x, shape):
    return x if x.shape == shape else call("reshape", x, shape)


def einsum(equation, *operands):
    """Einstein summation: multiplies operands and sums over the letters that the result lacks.

    einsum('bik,bkj->bij', a, b) is a batched matrix product. A letter that occurs twice in one term
    takes the diagonal. `...` stands for any axes, which broadcast. Without `->` the result has the
    letters that occur once, in alphabetical order. It contracts the pair of operands with the
    smallest product first.

    Raises:
        ArgumentError: the equation is invalid, or does not name as many operands.
        ShapeError: an operand does not have one axis per letter, or sizes of a letter differ.

    >>> import minigrad as mg
    >>> mg.einsum("ij,j->i", mg.variable([[1.0, 2.0], [3.0, 4.0]]), mg.ones((2,))).tolist()
    [3.0, 7.0]
    """
    if not isinstance(equation, str):
        raise ArgumentTypeError("einsum: wanted an equation such as 'ij,jk->ik'", short(equation))
    if not operands:
        raise ArgumentError("einsum: wanted at least one operand", "none")
    return contraction(operands, equation)


@functools.partial(remembered, form="xs")
def contraction(operands, equation):
    """The result of einsum for operands, not all of them Variables, and an equation."""
    operands = variables("einsum", *operands)
    shapes = tuple([x.shape for x in operands])
    labels, result = _labels(equation, shapes)
    sizes = _sizes(equation, shapes, labels)
    terms = []
    for k, (x, term) in enumerate(zip(operands, labels, strict=True)):
        x, term = _diagonals(x, term)
        others = {label for j, other in enumerate(labels) if j != k for label in other}
        terms.append(_summed(x, term, others | set(result)))
    while len(terms) > 1:
        i, j = _cheapest(terms, result, sizes)
        second, first = terms.pop(j), terms.pop(i)
        terms.append(_product(first, second, _needed(terms, result), sizes))
    x, term = terms[0]
    if x is not operands[0]:  # otherwise return a view, not the operand itself
        return _permuted(x, term, result)
    return call("permute", x, tuple([term.index(label) for label in result]))


def _needed(terms, result):
    return {label for _, term in terms for label in term} | set(result)


def _cheapest(terms, result, sizes):
    """Returns the pair of terms with the smallest product."""

    def cost(pair):
        others = [term for k, term in enumerate(terms) if k not in pair]
        mine = {label for k in pair for label in terms[k][1]} & _needed(others, result)
        return size_of(sizes[label] for label in mine)

    pairs = [(i, j) for j in range(len(terms)) for i in range(j)]
    return min(pairs, key=cost)


def outer(a, b):
    """Multiplies all pairs of elements.  (m,), (n,) -> (m, n).

    >>> import minigrad as mg
    >>> mg.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    a, b = variables("outer", a, b)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError("outer: wanted (m,) and (n,)", f"{a.shape} and {b.shape}")
    return call("unsqueeze", a, 1) * b


functions = (einsum, diagonal, outer)
