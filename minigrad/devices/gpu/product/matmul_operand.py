"""The text that copies one operand of a matrix product to shared memory, step by step."""

SECTOR = 32  # fewest bytes that global memory moves


class ProductOperand:
    """The lines that copy one operand's step to shared memory.

    Attributes:
        name: a or b.
        across: its size in the tile along the axis that is not k.
        axis: that axis, m or n.
        whole: whether to read it in vectors of four along its axis of stride 1; sizes, other
            strides and the address are multiples of four.
    """

    # The axis of stride 1 is known when the kernel runs: neighbours in a warp read neighbours.

    def __init__(self, name, tile, across, axis, whole, kind):
        self.name, self.across, self.axis, self.whole, self.kind = name, across, axis, whole, kind
        self.depth, self.threads, self.pitch = tile.depth, tile.threads, across + 4
        each = 4 if whole else 1
        self.sector = SECTOR // int(kind[1:])
        self.beside = tile.threads * self.sector // tile.depth  # threads for a sector of each row
        self.count = across * tile.depth // each // tile.threads
        assert self.count * each * tile.threads == across * tile.depth
        assert tile.depth % self.sector == 0, "a step has whole sectors"
        assert tile.threads * each >= max(across, tile.depth), "a copy of a thread is one row"

    def values(self, p):
        """Return the names of the values that a thread's p-th copy holds in registers."""
        return [f"{self.name}_{p}_{e}" for e in range(4 if self.whole else 1)]

    def along_k(self, each):
        """Return a thread's (row, place along k, rows to its next copy); neighbours lie along k.

        each: elements per access. A warp reads one sector of each row. Its elements go to as many
        rows of the shared tile, and each row begins four elements of banks after the last one, so
        the warp uses every bank once. With more of k, two of its lanes would share a bank.
        """
        lanes = self.sector // each
        row = f"I4(t % {self.beside} // {lanes})"
        deep = f"I4(t % {lanes} * {each} + t // {self.beside} * {self.sector})"
        return row, deep, self.beside // lanes

    def places(self):
        """Return the lines before the loop: which elements of a step this thread copies."""
        a, axis, t = self.name, self.axis, self.threads
        along, other = (4, 1) if self.whole else (1, 1)
        rows, (row, deep, step) = self.across // along, self.along_k(along)
        lines = [
            f"{a}_shared = cuda.shared.array({2 * self.depth * self.pitch}, {self.kind}, 16)",
            f"{a}_is_along_k = {a}_k == 1",
            f"if {a}_is_along_k:",
            f"    {a}_row, {a}_deep = {row}, {deep}",
            f"    {a}_row_step, {a}_deep_step, {a}_last = I4({step}), I4(0), {axis} - {other}",
            "else:",
            f"    {a}_row, {a}_deep = I4(t % {rows} * {along}), I4(t // {rows})",
            f"    {a}_row_step, {a}_deep_step, {a}_last = I4(0), I4({t // rows}), {axis} - {along}",
        ]
        for p in range(self.count):
            row, deep = f"{a}_row", f"{a}_deep"
            if p:
                row, deep = f"({row} + {p} * {a}_row_step)", f"({deep} + {p} * {a}_deep_step)"
            lines += [
                f"{a}_deep_{p} = I4({deep})",
                f"{a}_to_{p} = I4({deep} * {self.pitch} + {row})",
                f"{a}_from_{p} = min({axis}_first + {row}, {a}_last) * {a}_{axis}",
                f"{a}_from_{p} += {a}_start + fold * {a}_fold + I8(deep + {a}_deep_{p}) * {a}_k",
            ]
        return lines

    def following(self):
        """Return the lines that advance to the next step."""
        a, copies = self.name, range(self.count)
        return [
            *(f"{a}_from_{p} += {self.depth} * {a}_k" for p in copies),
            "if deep >= length:",
            *(f"    {a}_from_{p} += {a}_fold - steps * {self.depth} * {a}_k" for p in copies),
        ]

    def fetch(self):
        """Return the lines that load the step at k = `deep` from global memory to registers."""
        a, lines = self.name, []
        for p in range(self.count):
            values = ", ".join(self.values(p))
            place = f"{a}_from_{p}"
            zeros = ", ".join([f"{self.kind}(0)"] * len(self.values(p)))
            lines += [
                f"if deep + {a}_deep_{p} < length:",
                f"    {values} = " + (f"load4({a}, {place})" if self.whole else f"{a}[{place}]"),
                "else:",
                f"    {values} = {zeros}",
            ]
        return lines

    def keep(self, buffer):
        """Return the lines that store registers to shared memory."""
        a, size, lines = self.name, self.depth * self.pitch, []
        for p in range(self.count):
            v = self.values(p)
            lines.append(f"place = U4({a}_to_{p} + {buffer} * {size})")
            if not self.whole:
                lines.append(f"{a}_shared[place] = {v[0]}")
                continue
            lines += [
                f"if {a}_is_along_k:",
                *(f"    {a}_shared[U4(place + {e * self.pitch})] = {v[e]}" for e in range(4)),
                "else:",
                f"    store4({a}_shared, place, {', '.join(v)})",
            ]
        return lines
