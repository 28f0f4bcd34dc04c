"""Windows over the last two axes of x (images, channels, h, w): as windows.py does on the CPU.

See there for the names of sizes. Columns are (images, channels * kh * kw, oh * ow), with strides
`image` and `row`. Threads share planes, or rows of columns, as in gpu_rows.py. One thread writes
each element and sums what belongs to it.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def unfold(x, out, images, c, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, row, image):
    """Write the windows of x to out as columns, 0 where they overhang; copy elements of a size."""
    taps = c * kh * kw
    for line in range(first_row(), images * taps, step_of_rows()):
        n = line // taps
        tap = I4(line - n * taps)
        channel = I4(tap // I4(kh * kw))
        tap = I4(tap - channel * I4(kh * kw))
        ki = I4(tap // I4(kw))
        kj = I4(tap - ki * I4(kw))
        source, target = (n * c + channel) * h * w, n * image + (line - n * taps) * row
        for q in range(first_along(), oh * ow, step_along()):
            oi = I4(I4(q) // I4(ow))
            i = oi * sh - ph + ki * dh
            j = (q - oi * ow) * sw - pw + kj * dw
            value = T(0)
            if i >= 0 and i < h and j >= 0 and j < w:
                value = x[source + i * w + j]
            out[target + q] = value


@exact_jit
def fold(columns, out, images, c, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, row, image):
    """Sum columns into out at the places they were unfolded from, in the order of ki and kj."""
    for plane in range(first_row(), images * c, step_of_rows()):
        n = plane // c
        source = n * image + (plane - n * c) * kh * kw * row
        for q in range(first_along(), h * w, step_along()):
            i = I4(I4(q) // I4(w))
            j = I4(q - i * w)
            total = T(0)
            for ki in range(kh):
                down = I4(i + ph - ki * dh)
                oi = I4(down // I4(sh))
                if down >= 0 and oi < oh and oi * sh == down:
                    for kj in range(kw):
                        right = I4(j + pw - kj * dw)
                        oj = I4(right // I4(sw))
                        if right >= 0 and oj < ow and oj * sw == right:
                            total += columns[source + (ki * kw + kj) * row + oi * ow + oj]
            out[plane * h * w + q] = total


@exact_jit
def largest(x, out, images, c, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw):
    """Write the place in the flattened x of each window's first largest element, or NaN, to out."""
    for plane in range(first_row(), images * c, step_of_rows()):
        for q in range(first_along(), oh * ow, step_along()):
            oi = I4(I4(q) // I4(ow))
            top, left = oi * sh - ph, (q - oi * ow) * sw - pw
            place, best = I8(-1), T(0)
            for ki in range(kh):
                i = top + ki * dh
                if i >= 0 and i < h:
                    for kj in range(kw):
                        j = left + kj * dw
                        if j >= 0 and j < w:
                            here = (plane * h + i) * w + j
                            value = x[here]
                            if place < 0 or (not (value <= best) and best == best):
                                place, best = here, value
            out[plane * oh * ow + q] = place
