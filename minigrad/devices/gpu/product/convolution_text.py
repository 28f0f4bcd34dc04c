"""The text of convolution kernels: products with windows that are never stored.

The second operand of such a product is the matrix of unfolded windows. A block reads its elements
from the images when it needs them. One axis counts taps (channel, ki, kj), the other counts pixels
of the output. A table holds each tap's offset from a window's first element, and its offsets down
and right.
"""

from minigrad.devices.gpu.product.matmul_operand import ProductOperand
from minigrad.devices.gpu.product.matmul_text import ARGUMENTS, assembled

POINTERS = ("a", "b", "added", "out", "taps")
WINDOW = ("h", "w", "ow", "sh", "sw", "ph", "pw")
WINDOW_ARGUMENTS = (*POINTERS, *ARGUMENTS[4:], *WINDOW)
ROWS = 8  # bit of mode: the sums begin with added[row], a bias per row


def signature(code):
    """Return the types of WINDOW_ARGUMENTS for an element code: f4 or f8."""
    return " ".join([f"{code}*"] * 4 + ["i4*"] + ["i8"] * (len(WINDOW_ARGUMENTS) - 5))


class _Pixels(ProductOperand):
    """Windows as (taps, pixels): k counts taps; a thread copies several taps of one pixel."""

    def places(self):
        """Return the lines before the loop: see ProductOperand."""
        n = self.across
        lines = [
            f"b_shared = cuda.shared.array({2 * self.depth * self.pitch}, {self.kind}, 16)",
            f"b_row, b_deep = I4(t % {n}), I4(t // {n})",
            "pixel = I4(min(n_first + b_row, n - 1))",
            "line = I4(pixel // I4(ow))",
            "top = I4(line * sh - ph)",
            "edge = I4((pixel - line * ow) * sw - pw)",
            "b_start += top * w + edge",
            "below, beyond = I4(h), I4(w)",
        ]
        for p in range(self.count):
            deep = f"(b_deep + {p * self.threads // n})"
            lines += [f"b_deep_{p} = I4{deep}", f"b_to_{p} = I4({deep} * {self.pitch} + b_row)"]
        return lines

    def following(self):
        """Return no lines: there is only one fold."""
        return []

    def fetch(self):
        """Return the lines that load the step at k = `deep` from the images to registers."""
        lines = []
        for p in range(self.count):
            lines += [
                f"b_{p}_0 = {self.kind}(0)",
                f"tap = I4(deep + b_deep_{p})",
                "if tap < length:",
                "    i, j = I4(top + taps[3 * tap + 1]), I4(edge + taps[3 * tap + 2])",
                "    if i >= 0 and i < below and j >= 0 and j < beyond:",
                f"        b_{p}_0 = b[b_start + taps[3 * tap]]",
            ]
        return lines


class _Taps(ProductOperand):
    """Windows as (pixels, taps): k counts pixels; a thread copies several taps of one pixel."""

    def places(self):
        """Return the lines before the loop: see ProductOperand."""
        row, deep, step = self.along_k(1)
        lines = [
            f"b_shared = cuda.shared.array({2 * self.depth * self.pitch}, {self.kind}, 16)",
            f"b_row, b_deep = {row}, {deep}",
            "below, beyond = I4(h), I4(w)",
        ]
        for p in range(self.count):
            row = f"(b_row + {p * step})"
            lines += [
                f"b_to_{p} = I4(b_deep * {self.pitch} + {row})",
                f"tap = 3 * I4(min(n_first + {row}, n - 1))",
                f"from_{p}, down_{p}, right_{p} = taps[tap], taps[tap + 1], taps[tap + 2]",
            ]
        return [*lines, "b_from = b_start + fold * b_fold"]

    def following(self):
        """Return the lines that advance to the next step."""
        return ["if deep >= length:", "    b_from += b_fold"]

    def fetch(self):
        """Return the lines that load the step at k = `deep` from the images to registers."""
        lines = [
            "pixel = I4(deep + b_deep)",
            "line = I4(pixel // I4(ow))",
            "top, edge = I4(line * sh - ph), I4((pixel - line * ow) * sw - pw)",
            "b_at = b_from + top * w + edge",
        ]
        for p in range(self.count):
            lines += [
                f"b_{p}_0 = {self.kind}(0)",
                f"i, j = I4(top + down_{p}), I4(edge + right_{p})",
                "if pixel < length and i >= 0 and i < below and j >= 0 and j < beyond:",
                f"    b_{p}_0 = b[b_at + from_{p}]",
            ]
        return lines


def text(tile, code, what):
    """Return the text for a Tile. what: 'output', kernels times windows; 'kernels', their gradient.

    output: out (o, pixels) = added[row] + the sum over taps of a (o, taps) times the windows of an
    image, z counts images. kernels: out (o, taps) = the sum over images (folds) and pixels of
    a (o, pixels) times the windows.
    """
    kind = code.upper()
    a = ProductOperand("a", tile, tile.rows, "m", False, kind)
    b = {"output": _Pixels, "kernels": _Taps}[what]("b", tile, tile.columns, "n", False, kind)
    sums = []
    for i in range(tile.tall):
        row = f"m_first + own_m + {i // 4 * 16 + i % 4}"
        sums += [
            f"start = {kind}(0)",
            f"if mode & {ROWS}:",
            f"    start = added[min({row}, m - 1)]",
        ]
        sums += [f"c{i}_{j} = start" for j in range(tile.wide)]
    return assembled(tile, a, b, sums, WINDOW_ARGUMENTS, f"windows of images, for {what}")
