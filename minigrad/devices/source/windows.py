"""Windows over the last two axes of x (images, channels, h, w): for convolution and pooling.

Windows have kh x kw elements, dh and dw apart. There are oh x ow windows, sh and sw apart, over x
with a border of ph and pw. Element (ki, kj) of the window at (oi, oj) lies in row
oi * sh - ph + ki * dh and column oj * sw - pw + kj * dw. Columns are (images, channels * kh *
kw, oh * ow), with strides `row` and `image`. A plane is one channel of one image, in C order.
T: a float.
"""

# pyright: reportUndefinedVariable=false

_COLUMNS = "void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)"


@exact_jit
def first_inside(offset, step):
    """Return the first o with o * step + offset >= 0."""
    return I8(0) if offset >= 0 else (-offset + step - 1) // step


@exact_jit
def past_inside(offset, step, size, count):
    """Return one past the last o < count with o * step + offset < size, or 0."""
    left = size - offset
    return I8(0) if left <= 0 else min(count, (left + step - 1) // step)


@exact_jit
def shifted_plane(x, out, source, target, h, w, down, right, zero):
    """Write a plane shifted by whole rows and columns: one copy, then zeros at the overhang."""
    size, shift = h * w, down * w + right
    low = min(size, max(I8(0), -shift))
    high = max(low, min(size, size - shift))
    for t in range(low):
        out[target + t] = zero
    for t in range(low, high):
        out[target + t] = x[source + t + shift]
    for t in range(high, size):
        out[target + t] = zero
    first, last = (max(I8(0), w - right), w) if right > 0 else (I8(0), min(w, -right))
    for i in range(h):
        for j in range(first, last):
            out[target + i * w + j] = zero


@lazy(_COLUMNS)
def unfold_T(
    x_at, out_at, c, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, row, image, start, stop
):
    """Write the windows of planes start to stop - 1 as columns, 0 where they overhang."""
    x, out = T_at(x_at), T_at(out_at)
    for p in range(start, stop):
        n, channel = p // c, p % c
        for ki in range(kh):
            for kj in range(kw):
                base = ((channel * kh + ki) * kw + kj) * row + n * image
                if sh == 1 and sw == 1 and oh == h and ow == w:  # a window at every place
                    down, right = ki * dh - ph, kj * dw - pw
                    shifted_plane(x, out, p * h * w, base, h, w, down, right, T(0))
                    continue
                shift = kj * dw - pw
                low = min(first_inside(shift, sw), ow)
                high = max(low, past_inside(shift, sw, w, ow))
                for oi in range(oh):
                    i, target = oi * sh - ph + ki * dh, base + oi * ow
                    if i < 0 or i >= h:
                        for oj in range(ow):
                            out[target + oj] = T(0)
                        continue
                    source = (p * h + i) * w + shift
                    for oj in range(low):
                        out[target + oj] = T(0)
                    if sw == 1:
                        for oj in range(low, high):
                            out[target + oj] = x[source + oj]
                    else:
                        for oj in range(low, high):
                            out[target + oj] = x[source + oj * sw]
                    for oj in range(high, ow):
                        out[target + oj] = T(0)


@lazy(_COLUMNS)
def fold_T(
    columns_at, out_at, c, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, row, image, start, stop
):
    """Sum columns at the places they were unfolded from: the adjoint of unfold."""
    columns, out = T_at(columns_at), T_at(out_at)
    for p in range(start, stop):
        n, channel = p // c, p % c
        for i in range(p * h * w, (p + 1) * h * w):
            out[i] = T(0)
        for ki in range(kh):
            for kj in range(kw):
                base = ((channel * kh + ki) * kw + kj) * row + n * image
                shift = kj * dw - pw
                low = min(first_inside(shift, sw), ow)
                high = max(low, past_inside(shift, sw, w, ow))
                for oi in range(oh):
                    i, source = oi * sh - ph + ki * dh, base + oi * ow
                    if i < 0 or i >= h:
                        continue
                    target = (p * h + i) * w + shift
                    if sw == 1:
                        for oj in range(low, high):
                            out[target + oj] += columns[source + oj]
                    else:
                        for oj in range(low, high):
                            out[target + oj * sw] += columns[source + oj]


_PLACES = "void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)"


@exact_jit
def larger(here, value, place, best):
    """Return (place, best) after one more element: the first of equals stays, NaN is largest."""
    wins = (not (value <= best)) & (best == best)
    return (here if wins else place), (value if wins else best)


@restrict_jit
def pair_places(x, out, first, row, target, ow, sw):
    """Find the largest of each 2 x 2 window in a line inside the plane, by vector code.

    A line is short, so comparing pointers would cost more than the line. Places count from the
    window's first element, in 32 bits like float32, so vectors need no conversion.
    """
    below = I4(row)
    for oj in range(ow):
        here = first + oj * sw
        place, best = I4(0), x[here]
        place, best = larger(I4(1), x[here + 1], place, best)
        place, best = larger(below, x[here + row], place, best)
        place, best = larger(I4(below + I4(1)), x[here + row + 1], place, best)
        out[target + oj] = here + I8(place)


@lazy(_PLACES)
def largest_T(x_at, out_at, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, start, stop):
    """Write the index in flattened x of each window's first largest element, NaN included."""
    x, out = T_at(x_at), i8_at(out_at)
    for p in range(start, stop):
        if kh == 2 and kw == 2 and dh == 1 and dw == 1 and ph == 0 and pw == 0:
            for oi in range(oh):
                first, target = (p * h + oi * sh) * w, (p * oh + oi) * ow
                if sw == 2:
                    pair_places(x, out, first, w, target, ow, 2)
                else:
                    pair_places(x, out, first, w, target, ow, sw)
            continue
        for oi in range(oh):
            top, left = oi * sh - ph, -pw
            first = first_inside(top, dh)
            past = past_inside(top, dh, h, kh)
            for oj in range(ow):
                low, high = I8(0), kw
                if left < 0 or left + (kw - 1) * dw >= w:  # rare: a division is slow
                    low, high = first_inside(left, dw), past_inside(left, dw, w, kw)
                here = (p * h + top + first * dh) * w + left + low * dw
                place, best = here, x[here]
                for ki in range(first, past):
                    row = (p * h + top + ki * dh) * w + left
                    for kj in range(low, high):
                        here = row + kj * dw
                        place, best = larger(here, x[here], place, best)
                out[(p * oh + oi) * ow + oj] = place
                left += sw
