"""Turns Numba's errors, matched on their English texts, into one sentence and one thing to try."""

from __future__ import annotations

import re
from collections.abc import Callable

KINDS = {
    "NumbaError", "TypingError", "LoweringError", "CompilerError", "UnsupportedError",
    "UnsupportedBytecodeError", "RequireLiteralValue", "NumbaTypeError", "NumbaValueError",
}  # fmt: skip
VERBS = {
    "setitem": "writing {2} at {1} of {0}",
    "getitem": "taking {1} of {0}",
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "truediv": "{0} / {1}",
    "matmul": "{0} @ {1}",
}

OPCODES = {
    "IMPORT_NAME": "an import",
    "LOAD_BUILD_CLASS": "a class",
    "STORE_GLOBAL": "an assignment to a global name",
}


def in_words(numba_type: str) -> str:
    """Return a Numba type in plain words."""
    text = numba_type.strip()
    if match := re.fullmatch(r"(?:Array|array)\((\w+), (\d+)d, .*\)", text):
        article = "an" if match[1].startswith("int") else "a"
        return f"{article} {match[1]} array of {match[2]} dimension{'s' * (match[2] != '1')}"
    if match := re.match(r"Module\(<module '([\w.]+)'", text):
        return f"the module {match[1]}"
    text = re.sub(r"Literal\[str\]\(.*?\)|unicode_type", "a text", text)
    text = re.sub(r"Literal\[(\w+)\]\((.*?)\)", r"the \1 \2", text)
    text = re.sub(r"(reflected list|LiteralList)\(.*\)", "a list", text)
    return {"none": "None", "boolean": "a bool", "int64": "an int", "float64": "a float"}.get(
        text, text
    )


def arguments_of(text: str) -> list[str]:
    """Split a list such as `array(float64, 1d, C), int64` at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _no_implementation(match: re.Match) -> str:
    name, given = match[1], [in_words(part) for part in arguments_of(match[2])]
    if name in VERBS and len(given) >= VERBS[name].count("{"):
        return f"compiled code cannot do this: {VERBS[name].format(*given)}"
    return f"compiled code has no {name} for {' and '.join(given) or 'these arguments'}"


def _unify(match: re.Match) -> str:
    name = match[3].partition(".")[0]
    first, second = in_words(match[1]), in_words(match[2])
    return f"{name} would be {first} on one path and {second} on another"


def _returns(match: re.Match) -> str:
    return (
        f"it returns {' in one place and '.join(map(in_words, arguments_of(match[1])))} in another"
    )


def _opcode(match: re.Match) -> str:
    kind = OPCODES.get(match[1], f"what Python calls {match[1]}")
    return f"Numba does not compile {kind} inside a function"


def _fixed(text: str) -> Callable[[re.Match], str]:
    return lambda match: text.format(*match.groups())


ONE_TYPE = "In compiled code a name has one type. Start it with a value of the type it ends with."
ROWS: tuple[tuple[str, Callable[[re.Match], str], str], ...] = (
    (r"Cannot unify (.{1,200}?) and (.{1,200}?) for '([^']{1,200})'", _unify, ONE_TYPE),
    (
        r"Can't unify return type from the following types: ([^\n]{1,300})",
        _returns,
        "All returns give the same type: an array without elements, say, where there is nothing.",
    ),
    (
        r"Cannot infer the type of variable '(\w+)[^']*'.{0,40}?, have imprecise type: (\w+)",
        _fixed("nothing says what the {1} called {0} will hold"),
        "Fill an array of known type and length, or let the list begin with its first value.",
    ),
    (
        r"Cannot infer the type of variable '\$\d*build_list",
        _fixed("nothing says what an empty list will hold"),
        "np.empty(0) is an array of floats without elements. A list needs a first value.",
    ),
    (
        r"The use of a (?:reflected )?(\w+)\(.{1,200}?, assigned to variable '(\w+)' in globals",
        _fixed("the {0} {1} is a global, and compiled code takes globals for constants"),
        "Pass it as an argument, or make it a tuple, which nobody can change.",
    ),
    (
        r"non-precise type array\(pyobject",
        _fixed("an argument is an array of Python objects, not of numbers"),
        "Give it a dtype: np.array(rows, dtype=float). Are its rows of different lengths, or does "
        "an int need more than 64 bits?",
    ),
    (
        r"Cannot modify readonly array",
        _fixed("this writes to an array that compiled code may only read"),
        "A global array is a constant there, and np.broadcast_to gives no memory of its own: pass "
        "an array, or make a copy.",
    ),
    (
        r"ist\(type\(CPUDispatcher",
        _fixed("a list of compiled functions, which compiled code cannot go through"),
        "Each function is a type of its own. Let one call the next, or write out what they do.",
    ),
    (
        r"(reshape|ravel|view)\(\) supports contiguous array only",
        _fixed("{}() of an array that may have any strides"),
        "Only an array in one piece is a row of numbers. Index it along each of its axes: x[i, j].",
    ),
    (
        r"Exception matching is limited to",
        _fixed("compiled code cannot tell one kind of error from another in except"),
        "Ask before instead, such as whether a divisor is 0. (`except Exception:` is known.)",
    ),
    (
        r"Use of unsupported opcode \((\w+)\)",
        _opcode,
        "Keep it outside of the compiled function.",
    ),
    (
        r"Unknown attribute '(\w+)' of type (.+)",
        lambda match: f"{in_words(match[2])} has nothing called {match[1]} in compiled code",
        "Is it NumPy's name? Not all of them are there: write it with loops and + - * /.",
    ),
    (
        r"Use of unsupported NumPy function '([\w.]+)'",
        _fixed("{}, which Numba cannot compile"),
        "Write what it does with loops, or call it outside the compiled function.",
    ),
    (
        r"NameError: name '(\w+)' is not defined",
        _fixed("the name {} is not defined"),
        "Is it spelled as it was defined, and defined before the function is called?",
    ),
    (
        r"Untyped global name '(\w+)': Cannot determine Numba type of <class 'function'>",
        _fixed("{} is an ordinary Python function, and compiled code calls only compiled ones"),
        "Decorate that function with @njit too.",
    ),
    (
        r"Untyped global name '(\w+)': Cannot determine Numba type of <class '([^']+)'>",
        lambda match: (
            f"{match[1]}, of type {match[2].rpartition('.')[2]}, cannot be used in compiled code"
        ),
        "Pass the numbers and arrays that you need as arguments.",
    ),
    (
        r"Cannot determine Numba type of <class '(?:\w+\.)*(?:<locals>\.)?(\w+)'>",
        _fixed("an argument of type {}, which compiled code does not know"),
        "Numbers, arrays and tuples of them can be passed.",
    ),
    (
        r"got an unexpected keyword argument '(\w+)'",
        _fixed("compiled code does not take the argument {} here"),
        "Not all of NumPy's arguments are there: write that part with loops or indexing.",
    ),
    (
        r"function literal_list_banned_(\w+) ",  # Numba's internal name for what it refuses
        _fixed("compiled code changes no list of values of different types: .{}()"),
        "Give all values of a list one type, such as float; or fill an array.",
    ),
    (
        r"No implementation of function Function\(<[\w-]{1,40}(?: function)? '?(\w{1,80})'?"
        r".{0,200}?\) found for signature:\s{1,20}>>> \w{1,80}\((.{0,400}?)\)\s*?\n",
        _no_implementation,
        "Look at the types: is one a text, None, a float as an index, an array for a number?",
    ),
    (
        r"The '(.{1,200}?):?' construct is not supported",
        _fixed("Numba does not compile this construct: {}"),
        "Keep it outside of the compiled function.",
    ),
    (
        r"Unsupported context manager in use",
        _fixed("Numba does not compile this with block"),
        "Keep it outside of the compiled function.",
    ),
    (
        r"Illegal IR, del found",
        _fixed("Numba does not compile del"),
        "Leave it out: compiled code frees by itself.",
    ),
    (
        r"(?s)^(.*?)\.?\s*Raised from",
        _fixed("Numba does not compile this: {}"),
        "Say it in simpler Python: numbers, arrays, loops.",
    ),
)

# Numba's errors that are plain TypeErrors, ImportErrors and NotImplementedErrors.
ROWS_OF_OTHER_KINDS: tuple[tuple[str, Callable[[re.Match], str], str], ...] = (
    (
        r"cannot reflect element of reflected container|reflected list\(reflected list",
        _fixed("a list of lists went into compiled code"),
        "Compiled code wants one block of numbers: np.array(rows).",
    ),
    (
        r"cannot cache function '\w+': no locator",
        _fixed("cache=True for a function that stands in no file"),
        "What exec makes has no file to lie beside. Leave cache out.",
    ),
    (
        r"scipy .* is required for linear algebra",
        _fixed("@ and np.linalg in compiled code need SciPy, which is not installed"),
        "Write the sums as loops: that is what this is about.",
    ),
    (
        r"unsupported keyword arguments when calling Function\(<(?:ufunc|function) '?(\w{1,80})",
        _fixed("Numba's {} does not take an argument that is given by name"),
        "Leave it out, and write a loop with an if for what it did.",
    ),
    (
        r"cannot convert native (.{1,200}?) to Python object",
        _fixed("the compiled function returns what Python cannot take: {}"),
        "Return numbers, arrays or tuples of them.",
    ),
)


def explain_numba(text: str, kinds: list[str]) -> tuple[str, str] | None:
    """Return (what happened, what to try) for an error's full text, None if it is not Numba's.

    Args:
        text: all that the error says.
        kinds: the names of the error's classes, the most derived first.
    """
    is_numba = bool(KINDS & set(kinds))
    for pattern, said, attempt in (*ROWS_OF_OTHER_KINDS, *(ROWS if is_numba else ())):
        if match := re.search(pattern, text):
            return said(match), attempt
    if not is_numba:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    outer = ("Failed in nopython", "- Resolution failure")  # what is wrong comes below them
    lines = [line for line in lines if not line.startswith(outer)]
    said = lines[0][:160] if lines else "no reason given"
    return f"Numba could not compile it: {said}", "Say it in simpler Python: numbers and loops."
