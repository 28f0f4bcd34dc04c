"""Random and mutated files for the grader: `python -m tests.grader.fuzz 10000` grades so many.

Each is a stub or random text that a few operations have changed. None is an answer, so none earns a
point; the grader never ends, and no row is lost.
"""

import csv
import random
import sys
import tempfile
from pathlib import Path

from minigrad.cli.main import main as minigrad
from minigrad.course.source import installed

STEM = "00_start"
STUB = installed().stubs()[STEM].encode()
AT_ONCE = 25  # submissions in a class
PIECES = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\f", b"\t", b"\x1b[2J", b"\xe2\x80\xae",
    b"\xed\xa0\x80", b"\xf0\x9f\x8d\x95", b"'''", b'"""', b"\\\n", b"#", b"(", b"]", b"{", b":",
    b"@", b"# -*- coding: utf-16 -*-\n", b"# coding: nothing\n", b"# coding: rot13\n", b"return\n",
    b"yield\n", b"await x\n", b"async def f():\n", b"class A(A): pass\n", b"import exercise\n",
    b"from __future__ import barry_as_FLUFL\n", b"raise SystemExit(0)\n", b"del hello\n",
    b"hello = 3\n", b"def hello(*a, **k): return k\n", b"1/0\n", b"exit()\n", b"lambda: (yield)\n",
    b"print('x' * 9999)\n", b"=1+1", b"::error::x\n", b"\xc2\xa0", b"\xef\xbc\x9d",
)  # fmt: skip


def nested(rng):
    """Return a text that is deep, long or large."""
    n = rng.choice((10, 90, 110, 1000, 20_000))
    return rng.choice((
        b"(" * n + b")" * n, b"[" * n, b"-" * n + b"1", b"x." * n + b"x", b"1+" * n + b"1",
        b"x" * n, b"9" * n, b"'" + b"a" * n + b"'", b"\n" * n, b"#" * n, b"(),\n" * n,
        b"if 1:\n" + b"".join(b" " * k + b"if 1:\n" for k in range(1, min(n, 120))),
        b"".join(b"def f%d(): pass\n" % k for k in range(min(n, 2000))),
    ))  # fmt: skip


def mutated(text, rng):
    """Return a text changed at one place."""
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    kind = rng.randrange(9)
    if kind == 0:
        return text[:a] + bytes([rng.randrange(256)]) + text[a + 1 :]
    if kind == 1:
        return text[:a] + text[min(b, a + 200) :]
    if kind == 2:
        return text[:b] + text[a:b] + text[b:]
    if kind == 3:
        return text[:a] + rng.choice(PIECES) + text[a:]
    if kind == 4:
        return text[:a]
    if kind == 5:
        return text[:a] + nested(rng) + text[a:]
    if kind == 6:
        lines = text.splitlines(keepends=True)
        rng.shuffle(lines)
        return b"".join(lines)
    if kind == 7:
        return text.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-7", "utf-32")))
    return rng.choice(PIECES) + text


def submission(rng):
    """Return the bytes of a file."""
    start = rng.randrange(6)
    if start == 0:
        return rng.randbytes(rng.randrange(3000))
    if start == 1:
        return "".join(chr(rng.randrange(0xD800)) for _ in range(rng.randrange(800))).encode()
    text = STUB
    for _ in range(rng.randrange(1, 6)):
        text = mutated(text, rng)
    return text


def name(rng, number):
    """Return the name of a folder, odd now and then."""
    odd = "".join(rng.choice("aé王.-_ '\"$;=&|<>*?[]{}\\\n\t\x1b\u202e,") for _ in range(6))
    return rng.choice((f"student{number}", f"{number}{odd}", f"{odd}{number}", f".{number}"))


def grade(seed, n, folder):
    """Grade n files of a seed, each in a class; return what went wrong, in words."""
    rng, wrong = random.Random(seed), []
    for first in range(0, n, AT_ONCE):
        handed, table = folder / f"class{first}", folder / f"{first}.csv"
        texts = {}
        for number in range(first, min(first + AT_ONCE, n)):
            who = name(rng, number)
            texts[who] = submission(rng)
            (handed / who).mkdir(parents=True)
            (handed / who / f"{STEM}.py").write_bytes(texts[who])
        status = minigrad(
            ["grade", "--unsafe", str(handed), "--csv", str(table), "--seed", str(seed)]
        )
        with open(table, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        if status != 1:
            wrong.append(f"seed {seed}, from {first}: exit {status}")
        if len(rows) != len(texts):
            wrong.append(f"seed {seed}, from {first}: {len(rows)} rows for {len(texts)}")
        wrong += [
            f"seed {seed}, from {first}: {row}"
            for row in rows
            if row["status"] != "graded" or row["points"] != "0"
        ]
    return wrong


def main():
    """Grade as many files as the first argument says; print what went wrong."""
    n, seed = int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])
    with tempfile.TemporaryDirectory() as folder:
        wrong = grade(seed, n, Path(folder))
    sys.stderr.write("\n".join([*wrong, f"{n:,} files, {len(wrong)} went wrong"]) + "\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
