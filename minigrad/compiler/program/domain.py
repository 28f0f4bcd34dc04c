"""Domains: loop nests as tuples of sizes, and their refinement to a common one.

A domain is the sizes of a nest, outermost first, without sizes of 1. A loop over (6, 4) visits the
same elements in the same order as one over (2, 3, 4) or (24,). An operand is described by its
strides over the domain.
"""

from minigrad.array.layout import expand_strides


def without_ones(shape, strides):
    """Return (sizes, strides) without the axes of size 1.

    >>> without_ones((3, 1, 4), (4, 4, 1))
    ((3, 4), (4, 1))
    """
    kept = [k for k, n in enumerate(shape) if n != 1]
    return tuple(shape[k] for k in kept), tuple(strides[k] for k in kept)


def seen_as(ref, shape):
    """Return the strides of a Ref broadcast to a shape, without axes of size 1."""
    strides = expand_strides(ref.shape, ref.strides, shape)
    return tuple(s for n, s in zip(shape, strides, strict=True) if n != 1)


def boundaries(dims):
    """Return the products of the trailing sizes: where a nest can be split.

    >>> sorted(boundaries((2, 3, 4)))
    [4, 12, 24]
    """
    products, product = set(), 1
    for n in reversed(dims):
        product *= n
        products.add(product)
    return products


def refine(a, b):
    """Return the coarsest domain that both can be split into, or None.

    >>> refine((6, 4), (2, 12)), refine((4, 6), (6, 4))
    ((2, 3, 4), None)
    """
    if a == b:
        return a
    cuts = sorted(boundaries(a) | boundaries(b))
    dims, before = [], 1
    for cut in cuts:
        if cut % before:
            return None
        dims.append(cut // before)
        before = cut
    return tuple(reversed(dims))


def spread(dims, strides, finer):
    """Return the strides of an operand over a finer domain."""
    if dims == finer:
        return strides
    out, k = [], len(finer)
    for n, s in zip(reversed(dims), reversed(strides), strict=True):
        left = n
        while left != 1:
            k -= 1
            out.append(s)
            s, left = s * finer[k], left // finer[k]
    return tuple(reversed(out))


def rows_of(dims, columns):
    """Return how many leading axes remain if the others make up `columns` elements, or None.

    >>> rows_of((2, 3, 4), 12), rows_of((2, 3, 4), 6)
    (1, None)
    """
    k, product = len(dims), 1
    while product < columns and k:
        k -= 1
        product *= dims[k]
    return k if product == columns else None
