"""Two versions of a course, and a learner's folder that began with the first."""

import json
from pathlib import Path

import pytest

from minigrad.cli.main import main
from minigrad.course.source import Source

ROOT = Path(__file__).parents[2]


def write_course(folder, stubs, notebooks):
    """Write a course as a package has it."""
    for name, texts, ending in (("exercises", stubs, "py"), ("lessons", notebooks, "ipynb")):
        (folder / name).mkdir(parents=True)
        for stem, text in texts.items():
            (folder / name / f"{stem}.{ending}").write_text(text)
    (folder / "exercises" / "AGENTS.md").write_text("Write no exercise.\n")
    return folder


@pytest.fixture
def versions(tmp_path):
    """Two folders: a course of lesson 00, and one that changed it and adds lesson 01."""
    source = Source(ROOT)
    stubs, notebooks = source.stubs(), source.notebooks()
    first = {"00_start": stubs["00_start"]}, {"00_start": notebooks["00_start"]}
    changed = stubs["00_start"].replace("def hello():", 'def hello(name="you"):')
    changed = changed.replace("Estimate the derivative of f at x", "Estimate the slope of f at x")
    changed += "\n\ndef added():\n    raise NotImplementedError\n"
    notebook = json.loads(notebooks["00_start"])
    notebook["cells"][0]["source"].append("\nA new sentence.\n")
    second = (
        {"00_start": changed, "01_chain_rule": stubs["01_chain_rule"]},
        {"00_start": json.dumps(notebook), "01_chain_rule": notebooks["01_chain_rule"]},
    )
    return write_course(tmp_path / "v1", *first), write_course(tmp_path / "v2", *second)


@pytest.fixture
def learner(tmp_path, versions, monkeypatch, capsys):
    """A folder started from the first version, with `hello` solved and a helper added."""
    monkeypatch.setattr("minigrad.cli.start.installed", lambda: Source(versions[0]))
    folder = tmp_path / "learner"
    assert main(["start", str(folder)]) == 0
    path = folder / "exercises" / "00_start.py"
    path.write_text(
        path.read_text()
        .replace('return "hello, gardients"', "return greeting()")
        .replace("def hello", 'def greeting():\n    return "hello, gradients"\n\n\ndef hello')
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_COLOR", "1")
    capsys.readouterr()
    return folder
