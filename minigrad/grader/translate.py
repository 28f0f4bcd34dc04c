"""Turns what a learner's code raised into one plain sentence and one thing to try."""

from __future__ import annotations

import re
from textwrap import shorten

from minigrad.grader.translate_numba import explain_numba
from minigrad.grader.translate_numpy import explain_numpy

PLAIN = (
    "The engine is closed while grading: an exercise is plain Python and NumPy. This part of "
    "minigrad is yours to write."
)


def is_stub(raised: dict) -> bool:
    """Return whether a stub's own line raised; Numba raises NotImplementedError, too."""
    line = raised["frames"][-1][2] if raised["frames"] else "raise"
    return "NotImplementedError" in raised["kinds"] and line.startswith("raise")


def explain_raised(raised: dict, odd: str = "") -> tuple[str, str, str]:
    """Return (key, got, attempt) for the worker's description of an exception.

    `got` is one sentence; the error's full text stays in `raised["full"]`. `odd` replaces the Try
    line that would fit any error of this kind.
    """
    kind, text = raised["type"], raised["text"]
    kinds = raised["kinds"]
    said = f"{kind}: {text}" if text else kind
    if notes := raised.get("notes"):
        said += f"; {notes}"
    if kind == "AnswerUsed":
        return "answer_used", text, "That name is closed here: write it from what is below it."
    if "TabError" in kinds:
        attempt = "These lines begin with tabs and others with spaces. Make all of them spaces."
        return "syntax", said, attempt
    if "SyntaxError" in kinds:
        return "syntax", said, "Python cannot read this line; the cause is often just before it."
    if is_stub(raised):
        return "other_stub", said, "This part is still a stub; write it first."
    if "ImportError" in kinds and "minigrad" in text:
        return "imports_minigrad", f"an import that is closed here: {text}", PLAIN
    if "AttributeError" in kinds and text.startswith("module 'minigrad'"):
        return "imports_minigrad", f"minigrad is empty while an exercise is graded ({said})", PLAIN
    if missing := "ImportError" in kinds and re.match(r"No module named '([^']*)'", text):
        attempt = "An exercise is graded with Python, NumPy and Numba alone: write it without "
        return "import", f"{missing[1]} cannot be imported ({said})", f"{attempt}{missing[1]}."
    if kind == "BdbQuit" or ("EOFError" in kinds and text.startswith("breakpoint()")):
        said = "a debugger cannot be used here: nobody can type into a graded process"
        return (
            "input",
            said,
            "Take it out. A debugger works in a notebook, where you call the function yourself.",
        )
    if "EOFError" in kinds and ("nobody can type" in text or "EOF when reading" in text):
        return "input", said, "Nobody can type while it is graded: all input is in arguments."
    if "SystemExit" in kinds:
        return "exit", "SystemExit: the code asked Python to stop", "Return instead of exiting."
    if "MemoryError" in kinds:
        return (
            "memory",
            said,
            "It asked for more than 2 GB. Is a size wrong, or a loop without end?",
        )
    if "RecursionError" in kinds:
        return "recursion", said, "The function calls itself without end, or too deep: use a loop."
    if "PermissionError" in kinds and " while an exercise is graded" in text:
        return "closed", text, "What this exercise needs is in its arguments and its docstring."
    if "PermissionError" in kinds and "no other process" in text:
        return "closed", text, "Leave other processes alone."
    if "PermissionError" in kinds and re.match(r"\[Errno (1|13|18)\]", text):  # a wall (walls.py)
        attempt = "A graded file reads and writes in its own folder only, and starts nothing."
        return "closed", re.sub(r"'[^']*/minigrad-worker-[^/']*", "'.", said), attempt
    if "OSError" in kinds and "File too large" in text:
        return "output", "more than 1 MB of printing", "Is a print inside a loop that never ends?"
    if explained := explain_numba(raised.get("said") or text, kinds):
        return "numba", *explained
    if explained := explain_numpy(text):
        own_words = shorten(said, 170, placeholder=" …")  # the words to search the web for
        return "raised", f"{own_words}\nThat is: {explained[0]}", explained[1]
    if "NameError" in kinds and "'np' is not defined" in text:
        return "raised", said, "NumPy comes with a line of its own: import numpy as np"
    if "NoneType" in text and {"AttributeError", "TypeError"} & set(kinds):
        return (
            "raised",
            said,
            "Something on this line is None: which one, and what does None mean there?",
        )
    if re.match(r"(max|min)\(\) (arg is an empty|iterable argument is empty)", text):
        return "raised", said, "For which inputs is there nothing to choose from? What holds then?"
    if "TypeError" in kinds and re.search(r"missing \d+ required positional .*'self'", text):
        attempt = "Python hands over self to a function that stands in a class. What stands there?"
        return "raised", said, attempt
    if "KeyError" in kinds and re.fullmatch(r"\d{9,}", text):
        attempt = "A key this long comes from id(…). Of what, and when did it get its entry?"
        return "raised", said, attempt
    if raised["frames"] and raised["frames"][-1][2].startswith("raise "):
        return (
            "raised",
            said,
            (
                "Your own line raises it. Is its condition meant for the input above, or has a "
                "step before gone another way?"
            ),
        )
    attempt = {
        "StopIteration": "next() found nothing. For which inputs is nothing left, or nothing fits?",
        "NameError": "Is the name spelled as it was defined, and defined before this line?",
        "TypeError": "Compare the types and the number of arguments with the docstring.",
        "FloatingPointError": "NumPy goes on here, unless it is told not to. Which line makes an "
        "error of it, and what is the result without?",
        "ZeroDivisionError": "Which divisor can be 0 for the input above?",
        "OverflowError": "A number is too large for its type; a float ends at 1.8e308. Which step "
        "makes it, and does what is asked for need one that large?",
        "KeyError": "Which key does this line ask for, and which keys are there?",
        "AttributeError": "What is the thing before the dot on this line, and what does it have?",
        "IndexError": "How long is the sequence, and what is the index on this line?",
        "ValueError": "Print the shapes and values on this line; one is not what you think.",
    }
    for name in kinds:
        if name in attempt:
            return "raised", said, odd or attempt[name]
    return "raised", said, odd or "Print what this line works on and run it again."
