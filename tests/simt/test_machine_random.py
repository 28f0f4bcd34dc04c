"""Random kernels with divergent control flow: the machine does what thread after thread does."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minigrad import simt
from tests.simt.programs import both, define, run_blocks

NAMES = ("a", "b", "c", "d")
X = np.array([3, -7, 0, 12, 5, -1, 8, 2, -4, 9, 6, 1, -2], np.int64)
HELPERS = """
def helper(p, q):
    if p > q:
        return p - q
    for k in range(q % 5):
        if k == p % 3:
            return k * 10
        p += k
    return p * 2 - q


def pair(p, q):
    if (p + q) % 2 == 0:
        return p, q
    return q, p + 1
"""


class Writer:
    """Draws the lines of a kernel; all values stay within 1000 of 0."""

    def __init__(self, draw, returns=True):
        self.draw, self.lines, self.loops, self.returns = draw, [], 0, returns

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def atom(self):
        return self.pick(*NAMES, "i", "0", "1", "2", "5", "-3", "y[i]", "x[i % 13]")

    def value(self, depth=0):
        kind = self.draw(st.integers(0, 9)) if depth < 2 else 0
        if kind <= 3:
            return self.atom()
        if kind <= 6:
            sign = self.pick("+", "-", "*", "&", "|", "^")
            return f"(({self.value(depth + 1)} {sign} {self.value(depth + 1)}) % 1000)"
        if kind == 7:
            parts = self.value(depth + 1), self.condition(depth + 1), self.value(depth + 1)
            return f"({parts[0]} if {parts[1]} else {parts[2]})"
        if kind == 8:
            return f"(helper({self.value(depth + 1)}, {self.value(depth + 1)}) % 1000)"
        return self.pick(
            f"x[{self.value(depth + 1)} % 13]",
            f"abs({self.value(depth + 1)})",
            f"min({self.atom()}, {self.atom()}, 9)",
            f"({self.atom()} // 3)",
        )

    def condition(self, depth=0):
        kind = self.draw(st.integers(0, 6)) if depth < 2 else 0
        sign = self.pick("<", "<=", ">", ">=", "==", "!=")
        if kind <= 2:
            return f"{self.value(depth + 1)} {sign} {self.value(depth + 1)}"
        if kind == 3:
            return f"({self.condition(depth + 1)} and {self.condition(depth + 1)})"
        if kind == 4:
            # what stands right of the `and` would be out of bounds in the other threads
            return f"(0 <= a and a < 13 {self.pick('and', 'or')} not {self.condition(depth + 1)})"
        if kind == 5:
            return f"(0 <= b < 13 and x[b] {sign} {self.value(depth + 1)})"
        return f"({self.condition(depth + 1)} or i % {self.pick('2', '3', '7')} == 1)"

    def body(self, pad, depth, loop):
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(pad, depth, loop)

    def statement(self, pad, depth, loop):
        add = self.lines.append
        kinds = ["set", "set", "add", "swap", "store"]
        kinds += ["if", "if", "while", "for", "pair"] if depth < 3 else []
        kinds += ["break", "continue"] if loop else []
        kinds += ["return"] if depth and self.returns else []
        kind = self.pick(*kinds)
        if kind == "set":
            add(f"{pad}{self.pick(*NAMES)} = {self.value()}")
        elif kind == "add":
            add(f"{pad}{self.pick(*NAMES)} {self.pick('+', '-')}= {self.value()} % 50")
        elif kind == "swap":
            add(f"{pad}a, {self.pick('b', 'c', 'd')} = {self.value()}, a")
        elif kind == "pair":
            add(f"{pad}c, d = pair({self.value()}, {self.value()})")
        elif kind == "store":
            add(f"{pad}y[i] {self.pick('', '+')}= {self.value()}")
        elif kind == "if":
            add(f"{pad}if {self.condition()}:")
            self.body(pad + "    ", depth + 1, loop)
            if self.pick(True, False):
                add(f"{pad}elif {self.condition()}:")
                self.body(pad + "    ", depth + 1, loop)
            if self.pick(True, False):
                add(f"{pad}else:")
                self.body(pad + "    ", depth + 1, loop)
        elif kind in ("while", "for"):
            self.loop(pad, depth, kind)
        elif kind == "return":
            add(f"{pad}if {self.condition()}:")
            add(f"{pad}    y[i] = {self.value()}")
            add(f"{pad}    return")
        else:
            add(f"{pad}if {self.condition()}:")
            add(f"{pad}    {kind}")

    def loop(self, pad, depth, kind):
        self.loops += 1
        name, add = f"k{self.loops}", self.lines.append
        if kind == "while":
            add(f"{pad}{name} = 0")
            add(f"{pad}while {name} < {self.pick('3', 'i % 4', 'a % 5')} and {self.condition()}:")
            add(f"{pad}    {name} += 1")
        else:
            bounds = self.pick(
                "3",
                f"{self.value()} % 5",
                "i % 3, 4",
                "a % 4, -2, -2",
                "i % 2, 9, i % 3 + 1",
                "5 - i % 4, i % 3, -1",
                "b % 3",
            )
            add(f"{pad}for {name} in range({bounds}):")
        self.body(pad + "    ", depth + 1, True)
        if self.pick(True, False, False):
            add(f"{pad}else:")
            add(f"{pad}    d = {self.value()}")
        add(f"{pad}c = (c + d) % 777")


@st.composite
def kernels(draw):
    writer = Writer(draw)
    for _ in range(draw(st.integers(2, 5))):
        writer.statement("    ", 0, False)
    text = HELPERS + "\n\ndef kernel(x, y, out):\n    i = cuda.grid(1)\n"
    if draw(st.booleans()):
        text += "    if i >= 37:\n        return\n"
    text += "    a = i % 11\n    b = x[i % 13]\n    c = 4\n    d = 1 - i\n"
    text += "\n".join(writer.lines) + "\n"
    for k, name in enumerate(NAMES):
        text += f"    out[i, {k}] = {name}\n"
    return text


@settings(
    max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(kernels())
def test_random_kernels(text):
    y, out = np.arange(40, dtype=np.int64), np.full((40, 4), -9999, np.int64)
    both(text, 4, 10, [X.copy(), y, out])


@st.composite
def block_kernels(draw):
    """Phases of divergent code, between barriers that all threads of a block reach together."""
    text = HELPERS + "\n\ndef kernel(x, y, out):\n    i = cuda.grid(1)\n    t = cuda.threadIdx.x\n"
    text += "    s = cuda.shared.array(10, np.int64)\n"
    text += "    a = i % 11\n    b = x[i % 13]\n    c = 4\n    d = 1 - i\n    s[t] = i\n"
    pad = "    "
    if draw(st.booleans()):
        text += "    cuda.syncthreads()\n    for r in range(cuda.blockIdx.x % 3):\n"
        pad = "        "
    for _ in range(draw(st.integers(1, 3))):
        writer = Writer(draw, returns=False)
        writer.loops = text.count("\n") * 10  # names of counters that no other phase has
        writer.statement(pad, 1, False)
        text += "\n".join(writer.lines) + f"\n{pad}cuda.syncthreads()\n"
        step = draw(st.integers(1, 9))
        text += f"{pad}b = (s[(t * 3 + {step}) % 10] + s[9 - t]) % 1000\n"
        text += f"{pad}cuda.syncthreads()\n{pad}s[t] = {draw(st.sampled_from(NAMES))}\n"
    text += "    cuda.syncthreads()\n"
    for k, name in enumerate(("a", "b", "c + d", "s[(t + 1) % 10]")):
        text += f"    out[i, {k}] = {name}\n"
    return text


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(block_kernels())
def test_random_kernels_with_barriers(text):
    y, out = np.arange(40, dtype=np.int64), np.full((40, 4), -9999, np.int64)
    theirs = [X.copy(), y.copy(), out.copy()]
    run_blocks(text, 4, 10, theirs)
    simt.launch(define(text)["kernel"], 4, 10, [X.copy(), y, out])
    np.testing.assert_array_equal(out, theirs[2], err_msg=text)
    np.testing.assert_array_equal(y, theirs[1], err_msg=text)
