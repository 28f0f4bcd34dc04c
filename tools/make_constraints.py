"""Make constraints.txt: one version of each package, for every Python that minigrad supports.

Needs uv (`pip install uv`). Run it after a change of the dependencies in pyproject.toml, or to
move all pins forward; with --check it writes nothing and only proves that the pins resolve, from
wheels alone, on each Python and platform below:

    python tools/make_constraints.py
    python tools/make_constraints.py --check
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "constraints.txt"
EXTRAS = ["--extra", "lab", "--extra", "test"]
OLDEST = "3.11.0"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PLATFORMS = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]

# A newest version that does not install on the oldest Python makes uv offer two; one is wanted.
HELD_BACK = ["soupsieve<4"]


def uv_compile(*arguments: str, text: str = "") -> str:
    """Run `uv pip compile` on pyproject.toml and return what it prints."""
    command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    run = subprocess.run(
        [*command, *EXTRAS, *arguments, "pyproject.toml"],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        sys.exit(f"uv could not resolve {' '.join(arguments)}:\n{run.stderr}")
    return run.stdout


def make() -> str:
    """Resolve once for all Pythons and platforms; the text of constraints.txt."""
    resolved = uv_compile(
        "--universal",
        "--python-version",
        OLDEST,
        "--fork-strategy",
        "fewest",
        "--constraints",
        "-",
        text="\n".join(HELD_BACK),
    )
    pins = re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", resolved, flags=re.MULTILINE)
    names = [name for name, _ in pins]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        sys.exit(f"no single version of {', '.join(doubled)} fits every Python: see HELD_BACK")
    return "".join(f"{name}=={version}\n" for name, version in pins)


def check() -> None:
    """Prove that the pins resolve from wheels on each Python and platform."""
    for python in PYTHONS:
        for platform in PLATFORMS:
            uv_compile(
                *("--python-version", python, "--python-platform", platform),
                *("--only-binary", ":all:", "--constraints", str(TARGET)),
            )
            print(f"resolves: Python {python}, {platform}")


def main() -> None:
    """Write the pins unless asked only to check them; check them in any case."""
    parser = argparse.ArgumentParser(description="Make or check constraints.txt.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        TARGET.write_text(make(), encoding="utf-8", newline="\n")
    check()


if __name__ == "__main__":
    main()
