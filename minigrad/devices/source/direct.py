"""Convolution without unfolded windows: stride 1, one group, float32; needs sums.py and tiles.py.

Each image is copied to planes (hp, wp) with a border of zeros. Sums run over whole planes of pitch
wp, so a vector may span two rows. The few columns beyond ow are computed and dropped.
"""

# pyright: reportUndefinedVariable=false

TILE = I8(8 * WIDE)
PIXELS = I8(1024)  # roughly how many windows are computed per copy to the output


@exact_jit
def bordered(x, out, c, h, w, hp, wp, ph, pw):
    """Copy x (c, h, w) into out (c, hp, wp) within a border that is zero already."""
    for k in range(c):
        for i in range(h):
            target = (k * hp + i + ph) * wp + pw
            copied(moved(out, target), moved(x, (k * h + i) * w), w)


@exact_jit
def find_taps(taps, c, kh, kw, hp, wp, dh, dw):
    """Write the places in the planes of the first window's elements (channel, ki, kj)."""
    t = 0
    for channel in range(c):
        for i in range(kh):
            for j in range(kw):
                taps[t] = (channel * hp + i * dh) * wp + j * dw
                t += 1


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def pack_f4(w_at, out_at, bias_at, o, c, kh, kw, s_o, s_c, s_i, s_j, start, stop):
    """Pack blocks start to stop - 1 of 4 kernels: 4 biases, (c, kh, kw, 4); zeros beyond o.

    w has strides; bias_at is 0 if there is no bias.
    """
    w, bias, out = f4_at(w_at), f4_at(bias_at), f4_at(out_at)
    size = 4 * (1 + c * kh * kw)
    zeroed(moved(out, start * size), (stop - start) * size)
    for channel in range(4 * start, min(4 * stop, o)):
        here = channel // 4 * size + channel % 4
        if bias_at != 0:
            out[here] = bias[channel]
        for m in range(c):
            for i in range(kh):
                for j in range(kw):
                    here += 4
                    out[here] = w[channel * s_o + m * s_c + i * s_i + j * s_j]


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def convolve_f4(
    x_at, packed_at, out_at, scratch_at, c, h, w, o, oh, ow, kh, kw, ph, pw, dh, dw, start, stop
):
    """Convolve images start to stop - 1 with kernels from pack_f4."""
    x, packed, out, taps = f4_at(x_at), f4_at(packed_at), f4_at(out_at), i8_at(scratch_at)
    hp, wp, count = oh + (kh - 1) * dh, ow + (kw - 1) * dw, c * kh * kw
    planes = f4_at(scratch_at + 8 * count)
    find_taps(taps, c, kh, kw, hp, wp, dh, dw)
    band = max(I8(1), PIXELS // wp)
    pitch = band * wp + TILE
    sums = moved(planes, c * hp * wp + TILE + wp)
    zeroed(planes, c * hp * wp + TILE + wp)
    for n in range(start, stop):
        bordered(moved(x, n * c * h * w), planes, c, h, w, hp, wp, ph, pw)
        for first in range(0, oh, band):
            past = min(oh, first + band)
            for block in range((o + 3) // 4):
                kernels = moved(packed, block * 4 * (1 + count))
                for q in range(first * wp, past * wp, TILE):
                    place = moved(sums, q - first * wp)
                    sums_of_windows(moved(planes, q), taps, kernels, place, count, pitch)
                for k in range(min(4, o - 4 * block)):
                    for i in range(first, past):
                        source = k * pitch + (i - first) * wp
                        target = ((n * o + 4 * block + k) * oh + i) * ow
                        copied(moved(out, target), moved(sums, source), ow)


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def correlate_f4(
    g_at, x_at, total_at, scratch_at,
    c, h, w, o, oh, ow, kh, kw, ph, pw, dh, dw, step, start, stop,
):  # fmt: skip
    """Sum g times x's windows over images start to stop - 1 into total (o, c, kh, kw).

    `step` images are copied at a time, and so are g's lines, with zeros beyond ow. So a NaN or
    infinity in x can reach sums it does not belong to. After SUMMED such steps, the sums are added
    to float64 totals at the end of the scratch memory.
    """
    g, x, total, places = f4_at(g_at), f4_at(x_at), f4_at(total_at), i8_at(scratch_at)
    hp, wp = oh + (kh - 1) * dh, ow + (kw - 1) * dw
    taps, vectors, channels = c * kh * kw, (oh * wp + 7) // 8, 4 * ((o + 3) // 4)
    planes = f4_at(scratch_at + 8 * taps)
    find_taps(places, c, kh, kw, hp, wp, dh, dw)
    x_image, g_plane = c * hp * wp, 8 * vectors
    rising = moved(planes, step * x_image + 16 + wp)
    sums = moved(rising, step * channels * g_plane)
    zeroed(planes, step * x_image + 16 + wp)  # read past the end, times 0: must not be NaN
    zeroed(rising, step * channels * g_plane)
    zeroed(total, o * taps)
    used = 2 * taps + step * (x_image + channels * g_plane) + 16 + wp + 16
    totals = f8_at(scratch_at + 4 * ((used + 15) // 16 * 16))
    is_long = stop - start > SUMMED * step
    if is_long:
        for e in range(o * taps):
            totals[e] = F8(0)
    left = SUMMED
    for n in range(start, stop, step):
        count = min(step, stop - n)
        if left == 0:
            left = SUMMED
            for e in range(o * taps):
                totals[e] += F8(total[e])
                total[e] = F4(0)
        left -= 1
        for k in range(count):
            image = moved(x, (n + k) * c * h * w)
            bordered(image, moved(planes, k * x_image), c, h, w, hp, wp, ph, pw)
            for m in range(o):
                source, target = ((n + k) * o + m) * oh * ow, (k * channels + m) * g_plane
                for i in range(oh):
                    copied(moved(rising, target + i * wp), moved(g, source + i * ow), ow)
        for first in range(0, o, 4):
            from_g = moved(rising, first * g_plane)
            for t in range(0, taps, 3):
                a, b, d = places[t], places[min(t + 1, taps - 1)], places[min(t + 2, taps - 1)]
                sums_of_pixels(
                    from_g, planes, sums, g_plane, a, b, d,
                    count, channels * g_plane, x_image, vectors,
                )  # fmt: skip
                for m in range(min(4, o - first)):
                    for s in range(min(3, taps - t)):
                        total[(first + m) * taps + t + s] += sums[m * 3 + s]
    if is_long:
        for e in range(o * taps):
            total[e] = F4(totals[e] + F8(total[e]))
