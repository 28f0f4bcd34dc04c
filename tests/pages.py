"""Pages of docs/ that are generated: prose with holes, and what the tests find out to fill them."""

import sys


def filled(prose, **holes):
    """The prose with each `{name}`, which it has once, replaced by a value or what one gives."""
    for name, value in holes.items():
        hole = f"{{{name}}}"
        assert prose.count(hole) == 1, hole
        prose = prose.replace(hole, str(value() if callable(value) else value))
    return prose


def write_or_print(path, text):
    """With --write on the command line writes the page, else prints it."""
    if "--write" in sys.argv[1:]:
        path.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
