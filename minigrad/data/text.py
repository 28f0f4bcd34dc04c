"""Loads the text that ships with minigrad."""

from importlib.resources import files

from minigrad.hints import teaching


@teaching
def load_text() -> str:
    """Returns 211,028 characters of English prose about Python, ASCII, 94 of them different.

    These are texts that Python's own ``help()`` shows, such as that of ``help("for")``, one after
    the other.

    Source: Python 3.11's ``pydoc_data.topics``, Python Software Foundation (PSF licence 2; see
    NOTICE); made by ``tools/make_text.py``.

    >>> text = load_text()
    >>> len(text), len(set(text)), text[:22]
    (211028, 94, 'The "assert" statement')
    """
    return files("minigrad.data").joinpath("text.txt").read_text(encoding="ascii")
