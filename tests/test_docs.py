"""The documents say what is so."""

import functools
import re
import statistics
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from minigrad.devices.gpu import compiler
from minigrad.devices.gpu.reduce import reduce_launch
from minigrad.devices.gpu.rows import row_launch
from minigrad.formulas import sums

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks" / "results").glob("*.md")),
]
BLOCK = r"(?ms)^ *```.*?^ *```$"  # of code


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def code_after(heading):
    """The first block of Python under a heading of the README."""
    section = read("README.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)[1]


def run(code, folder):
    """Run code in a process of its own and return what it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_script_has_twelve_lines_and_reads_97_of_100_digits(tmp_path):
    script = code_after("Try it")
    assert len(script.splitlines()) == 12
    assert float(run(script, tmp_path)) >= 0.97


def test_readme_script_with_five_seeds_reads_97_of_100_digits_in_the_median(tmp_path):
    script = code_after("Try it")
    assert script.count("seed=1)") == 1
    seeded = [
        script.replace("seed=1)", f"seed={seed})").replace("\n", f"\nmg.manual_seed({seed})\n", 1)
        for seed in range(5)
    ]
    assert statistics.median(float(run(one, tmp_path)) for one in seeded) >= 0.97


def test_readme_kernel_has_the_race_that_its_comment_says(tmp_path):
    path = tmp_path / "reverse.py"
    path.write_text(code_after("CUDA kernels, on any laptop"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "DataRaceError" in done.stderr
    for line in ("tile[here] = x[here]", "out[here] = tile[63 - here]", "cuda.syncthreads()"):
        assert line in done.stderr, done.stderr


def test_readme_script_runs_in_the_simulator_as_the_readme_says(tmp_path):
    first, *rest = code_after("Try it").splitlines()
    code = textwrap.indent("\n".join(rest), "    ").replace("range(30)", "range(1)")
    assert code.count(").numpy()") == code.count("batches(x, y,") == 1
    code = code.replace(").numpy()", ').to("cpu").numpy()').replace("(x, y,", "(x[:320], y[:320],")
    said = run(f'{first}\nwith mg.device("simt"):\n{code}\n    print(loss.device)', tmp_path)
    accuracy, device = said.split()
    assert float(accuracy) > 0.3  # by chance 0.1; ten steps do not take it far
    assert device == "simt"


@functools.cache
def anchors(page):
    """The names by which links lead to the headings of a page."""
    text = re.sub(BLOCK, "", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)|[^\w -]", "", heading) for heading in headings]
    return {heading.strip().lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings_that_exist(page):
    prose = re.sub(f"{BLOCK}|`[^`]*`", "", page.read_text(encoding="utf-8"))
    missing = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        target, _, heading = link.partition("#")
        path = page.parent / target if target else page
        if "://" not in link and not (path.exists() and (not heading or heading in anchors(path))):
            missing.append(link)
    assert missing == []


def test_index_has_every_page():
    index = read("docs/README.md")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    pages = {page for page in pages if not page.startswith(("decisions/", "generated/api/"))}
    assert {page for page in pages if f"]({page})" not in index} == {"README.md"}
    assert "](decisions)" in index
    assert "](generated/api/README.md)" in index


def test_readme_is_short():
    assert len(read("README.md").splitlines()) <= 120


def test_readme_has_one_place_for_the_benchmarks():
    text = read("README.md")
    assert text.count("<!-- benchmarks:start -->") == 1
    assert text.count("<!-- benchmarks:end -->") == 1


def contracts():
    return tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]


def test_architecture_shows_the_layers_that_the_linter_holds():
    section = read("docs/architecture.md").split("## Layers")[1].split("\n## ")[0]
    layers, stages = re.findall(r"```\n(.*?)```", section, flags=re.DOTALL)
    shown = [set(re.findall(r"\w+", re.split(r"\s{2,}", line)[0])) for line in layers.splitlines()]
    assert shown == [set(re.findall(r"\w+", layer)) for layer in contracts()[0]["layers"]]
    lines = [line.split(maxsplit=1) for line in stages.replace("\n  ", " ").splitlines()]
    assert {name: " ".join(order.split()) for name, order in lines} == {
        contract["containers"][0].removeprefix("minigrad."): " > ".join(contract["layers"])
        for contract in contracts()[1:]
        if contract["type"] == "layers"
    }


def test_files_that_the_prose_names_exist():
    folders = ("", "minigrad", "minigrad/devices", "minigrad/compiler")
    named = {
        (page.relative_to(ROOT).as_posix(), name)
        for page in PAGES
        for name in re.findall(r"`((?:[\w.-]+/)+[\w-]+\.\w+)[`:]", page.read_text(encoding="utf-8"))
        if "NN_" not in name  # of any lesson
    }
    assert len(named) > 50
    missing = [x for x in named if not any((ROOT / folder / x[1]).exists() for folder in folders)]
    assert missing == []


def test_numerics_names_the_sizes_of_blocks_that_the_code_has():
    page = read("docs/numerics.md")
    piece = int(re.search(r"^PIECE = (\d+)", read("minigrad/devices/source/blas.py"), re.M)[1])
    for number, what in (
        (sums.BLOCK, "an accumulator takes at most {} numbers"),
        (sums.DENSE, "use blocks of {}"),
        (sums.COLUMNS, "with at most {} elements"),
        (4 * piece, "more than {} terms"),
        (piece, "pieces of {} terms"),
        (reduce_launch.ENOUGH, "n / {} numbers"),
        (row_launch.MOST_TEAMS, "n / {} rows"),
        (sums.MET, "more than {} numbers meet"),
    ):
        assert what.format(f"{number:,}") in page.replace("\n  ", " "), what


def test_decisions_are_numbered_without_gaps_and_have_their_four_parts():
    found = sorted((ROOT / "docs" / "decisions").iterdir())
    assert [int(path.name[:4]) for path in found] == list(range(1, len(found) + 1))
    for path in found:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(path.name[:4])}. "), path.name
        parts = re.findall(r"^\*\*(\w+)\.\*\*", text, flags=re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences", "Alternatives"], path.name


def test_readme_shows_imports_as_the_linter_holds_them():
    block = re.search(r"```\n(  cli .*?)```", read("README.md"), flags=re.DOTALL)[1]
    rows = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()]
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    shown = [layer for names, *_ in rows for layer in names.split(" > ")]
    assert shown == [layer for layer in contracts[0]["layers"] if layer in shown]


def test_semantics_numbers_its_promises_without_gaps():
    numbers = re.findall(r"^(\d+)\. \*\*", read("docs/semantics.md"), flags=re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, 54))


def test_pages_run_modules_that_exist():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    modules = set(re.findall(r"python -m ([a-z_.0-9]+\w)", pages)) - {"mpi4py", "pytest", "ruff"}
    assert {"benchmarks.gpu", "tests.pages"} <= modules
    runnable = {
        name
        for name in modules
        for path in (ROOT / name.replace(".", "/"),)
        if path.with_suffix(".py").exists() or (path / "__main__.py").exists()
    }
    assert modules - runnable == set()


def test_installations_name_extras_that_exist():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES) + compiler.INSTALL
    named = set(",".join(re.findall(r"(?:minigrad|\.)\[([a-z0-9,-]+)\]", pages)).split(","))
    assert {"cuda", "cuda12", "lab"} <= named
    assert named <= set(tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"])


def test_architecture_lists_the_environment_variables_that_are_read():
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "minigrad").rglob("*.py"))
    known = set(re.findall(r"\"(MINIGRAD_\w+)\"", "".join(sources)))
    table = re.findall(r"^\| `(MINIGRAD_\w+)", read("docs/architecture.md"), flags=re.MULTILINE)
    assert set(table) == known
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"MINIGRAD_\w+", pages)) == known
