"""Make minigrad/data/text.txt from the texts that Python's `help()` shows.

Needs Python 3.11, whose texts these are:

    python3.11 tools/make_text.py
"""

import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "minigrad" / "data" / "text.txt"
# Mostly prose; left out are the longest, and tables of methods.
TOPICS = """
    assert assignment async attribute-access augassign binary booleans calls class comparisons
    context-managers continue customization del dict exceptions execmodel for function global if
    import in lambda naming numeric-types objects operator-summary raise return sequence-types
    shifting slicings strings subscriptions try types while with yield
""".split()  # noqa: SIM905
PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "...", "—": "-", "–": "-"})


def main() -> None:
    """Write the topics one after the other, in ASCII."""
    if sys.version_info[:2] != (3, 11):
        sys.exit(f"wanted Python 3.11, got {sys.version.split()[0]}")
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name].strip() for name in TOPICS).translate(PLAIN)
    text = text.encode("ascii", "ignore").decode() + "\n"
    TARGET.write_text(text, encoding="ascii", newline="\n")
    print(f"{TARGET.name}: {len(text):,} characters, {len(set(text))} different ones")


if __name__ == "__main__":
    main()
