"""Formats sizes, shapes and names."""

from minigrad.array.dtypes import float32


def format_bytes(nbytes):
    """Formats bytes with a unit that keeps the number short.

    >>> format_bytes(100), format_bytes(4096), format_bytes(3 * 2**20 + 2**19)
    ('100 B', '4.0 KiB', '3.5 MiB')
    """
    if nbytes < 1024:
        return f"{nbytes} B"
    size, unit = float(nbytes), "B"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, bigger
    return f"{size:.1f} {unit}"


def format_shape(shape, dtype):
    """Formats a shape, and the dtype if it is not float32.

    >>> from minigrad.array.dtypes import float32, int64
    >>> format_shape((2, 3), float32), format_shape((), int64)
    ('(2, 3)', '() int64')
    """
    return str(tuple(shape)) if dtype is float32 else f"{tuple(shape)} {dtype}"


def plural(count, one, many=None):
    """Formats a count with its noun.

    >>> plural(1, "leaf", "leaves"), plural(2, "leaf", "leaves")
    ('1 leaf', '2 leaves')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def joined_name(names):
    """Joins names into one: parts that differ become their range, or a star.

    >>> joined_name(["layers.0.weight", "layers.1.weight", "layers.2.weight"])
    'layers.0..2.weight'
    >>> joined_name(["a.weight", "b.weight"])
    '*.weight'
    """
    distinct = list(dict.fromkeys(n for n in names if n))
    if len(distinct) < 2:
        return distinct[0] if distinct else ""
    parts = [n.split(".") for n in distinct]
    if len({len(p) for p in parts}) > 1:
        return f"{distinct[0]}, ..., {distinct[-1]}"
    out = []
    for column in zip(*parts, strict=True):
        if len(set(column)) == 1:
            out.append(column[0])
        elif all(c.isdigit() for c in column):
            out.append(f"{min(map(int, column))}..{max(map(int, column))}")
        else:
            out.append("*")
    return ".".join(out)
