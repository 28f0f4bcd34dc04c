"""The card: twenty errors of Numba's that people meet, each with a program that provokes it.

What an error means, and what to do, comes from the table that explains errors in checks
(`minigrad.grader.translate_numba`). Here are the programs, and the words to search for.
"""

from __future__ import annotations

from dataclasses import dataclass

from minigrad.grader.translate_numba import explain_numba


@dataclass(frozen=True)
class Entry:
    """One error.

    Attributes:
        title: the mistake, in a few words.
        program: a few lines that provoke it; `np`, `njit` and `x`, a float64 array (3,), are there.
        says: Numba's own words, as far as they tell it from other errors.
    """

    title: str
    program: str
    says: str

    @property
    def explained(self) -> tuple[str, str]:
        """Return what it means, and what to do."""
        found = explain_numba(f"{self.says}\n", ["NumbaError"])
        assert found is not None
        return found


def compiled(body: str, before: str = "", call: str = "f(x)") -> str:
    """Return a program that compiles a function with this body and calls it."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{before}@njit\ndef f(x):\n{lines}{call}"


SIGNATURE = "No implementation of function Function(<built-in function {0}>) found for signature: "
CARD = (
    Entry(
        "A name with two types",
        compiled("total = 0\nfor i in range(3):\n    total = total + x\nreturn total"),
        "Cannot unify Literal[int](0) and array(float64, 1d, C) for 'total.2'",
    ),
    Entry(
        "Two types returned",
        compiled("if len(x) == 0:\n    return 0.0\nreturn 2.0 * x"),
        "Can't unify return type from the following types: array(float64, 1d, C), float64",
    ),
    Entry(
        "A name that is not there",
        compiled("return x + offset"),
        "NameError: name 'offset' is not defined",
    ),
    Entry(
        "An ordinary function called",
        compiled("return square(x[0])", "def square(v):\n    return v * v\n"),
        "Untyped global name 'square': Cannot determine Numba type of <class 'function'>",
    ),
    Entry(
        "A dict as a global",
        compiled("return settings['rate'] * x", "settings = {'rate': 0.1}\n"),
        "Untyped global name 'settings': Cannot determine Numba type of <class 'dict'>",
    ),
    Entry(
        "A list as a global",
        compiled("return rates[0] * x", "rates = [0.1, 0.2]\n"),
        "The use of a reflected list(float64)<iv=None> type, assigned to variable 'rates' in "
        "globals, is not supported",
    ),
    Entry(
        "An object as an argument",
        compiled("return x.value", "class Box:\n    value = 1.0\n", "f(Box())"),
        "Cannot determine Numba type of <class '__main__.Box'>",
    ),
    Entry(
        "An array of objects",
        compiled("return x[0]", call="f(np.array([[1], [2, 3]], dtype=object))"),
        "non-precise type array(pyobject, 1d, C)",
    ),
    Entry(
        "A list of lists as an argument",
        compiled("return x[0][0]", call="f([[1.0], [2.0]])"),
        "cannot reflect element of reflected container: reflected list(reflected list(float64)",
    ),
    Entry(
        "A list that stays empty",
        compiled("found = []\nreturn found"),
        "Cannot infer the type of variable 'found', have imprecise type: list(undefined)",
    ),
    Entry(
        "A float as an index",
        compiled("return x[len(x) / 2]"),
        SIGNATURE.format("getitem") + ">>> getitem(array(float64, 1d, C), float64)",
    ),
    Entry(
        "A text written into an array",
        compiled("x[0] = 'a'\nreturn x"),
        SIGNATURE.format("setitem")
        + ">>> setitem(array(float64, 1d, C), Literal[int](0), Literal[str](a))",
    ),
    Entry(
        "An array that may only be read",
        compiled("table[0] = x[0]\nreturn x", "table = np.zeros(3)\n"),
        "Cannot modify readonly array of type: readonly array(float64, 1d, C)",
    ),
    Entry(
        "An argument that NumPy has, and Numba not",
        compiled("return x.sum(axis=0, keepdims=True)"),
        "got an unexpected keyword argument 'keepdims'",
    ),
    Entry(
        "A function that NumPy has, and Numba not",
        compiled("return np.einsum('i,i', x, x)"),
        "Use of unsupported NumPy function 'numpy.einsum' or unsupported use of the function",
    ),
    Entry(
        "A method that is not there",
        compiled("return x.rolling(2)"),
        "Unknown attribute 'rolling' of type array(float64, 1d, C)",
    ),
    Entry(
        "An except for one kind of error",
        compiled("try:\n    return 1.0 / x[0]\nexcept ZeroDivisionError:\n    return 0.0"),
        "Exception matching is limited to <class 'Exception'>",
    ),
    Entry(
        "A number formatted",
        compiled("return f'{x[0]:.2f}'"),
        "format spec in f-strings not supported yet. Raised from",
    ),
    Entry(
        "A with block",
        compiled("with open('a') as file:\n    return x"),
        "The 'with (context manager) as (variable):' construct is not supported",
    ),
    Entry(
        "An import inside",
        compiled("import math\nreturn math.sin(x[0])"),
        "Use of unsupported opcode (IMPORT_NAME) found",
    ),
)


class Table:
    """The card as a table that notebooks show and that can be searched as text."""

    def _repr_markdown_(self) -> str:
        return markdown()


def markdown() -> str:
    """Return the card as Markdown: for each error what provokes it, says it, means it, mends it."""
    parts = []
    for number, entry in enumerate(CARD, 1):
        means, attempt = entry.explained
        parts.append(
            f"**{number}. {entry.title}**\n\n```python\n{entry.program}\n```\n\n"
            f"- Numba says: `{entry.says.strip()}`\n"
            f"- That is: {means}.\n"
            f"- Try: {attempt}\n"
        )
    return "\n".join(parts)
