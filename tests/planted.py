"""Planted faults: what takes turns catches them within ten commits.

Of the files in `tests/tiers.py` TURNS, `.ci/run` runs a tenth with each commit, whatever has
changed. For each there is a fault here, in a text of the project, that does not concern all of the
file's cases. A copy of the repository gets the fault, and its file is run in all ten turns, one
after another; one of them at the least must fail.

    python -m tests.planted             every fault: about twenty minutes
    python -m tests.planted gpu wire    of files with one of these words in their name

A known fact (`tests/facts.py`) takes turns, too, but only as long as nothing that it depends on has
changed, so no fault can be planted under it; `facts.Recorder.missing` sees to that.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

from tests import tiers

ROOT = pathlib.Path(__file__).parents[1]


class Fault(NamedTuple):
    """A text that stands once in a file, and what is put in its place."""

    file: str
    old: str
    new: str


FAULTS = {
    "browser/test_learner.py": Fault(  # the page of all lessons does not say what is next
        "minigrad/course/contents.py", "Next: {one.id}", "Then: {one.id}"
    ),
    "compiler/test_convolutions.py": Fault(  # the two dilations change places
        "minigrad/compiler/cpu/schedule.py",
        "more = dict(i.attributes)",
        "more = {k: v._replace(dilation=v[3][::-1]) if k == 'window' else v"
        " for k, v in i.attributes.items()}",
    ),
    "compiler/test_equality.py": Fault(  # gradients of the last row of a table of vectors are lost
        "minigrad/compiler/cpu/schedule.py",
        "return getattr(kernel_calls, i.op)(*i.inputs, *i.outputs, **more)",
        "found = getattr(kernel_calls, i.op)(*i.inputs, *i.outputs, **more)\n"
        "    return found._replace(extent=found.extent - 1) if i.op == 'scatter_add' else found",
    ),
    "compiler/test_equality_dtypes.py": Fault(  # in columns, ints begin with the limit of int64
        "minigrad/compiler/cpu/kernel_lines.py",
        "start_value(*self.how_kind(k), self.real, t.kind)",
        "start_value(*self.how_kind(k), self.real)",
    ),
    "compiler/test_equality_random.py": Fault(  # memory is taken over that is read later
        "minigrad/compiler/fuse/inplace.py",
        "if self.last[value] != t:",
        "if self.last[value] < t:",
    ),
    "compiler/test_equality_values.py": Fault(  # argmin is argmax
        "minigrad/compiler/cpu/schedule.py",
        "more = dict(i.attributes)",
        "more = {k: v or k == 'is_max' for k, v in i.attributes.items()}",
    ),
    "compiler/test_ops.py": Fault(  # argmin is written down as argmax
        "minigrad/compiler/trace/trace.py",
        "axis=axis, is_max=is_max)",
        "axis=axis, is_max=True)",
    ),
    "compiler/test_resumed.py": Fault(  # steps are counted from 0 again
        "minigrad/optim/state.py", "if name in self:", 'if name in self and name != "step":'
    ),
    "devices/gpu/test_device_training.py": Fault(  # both numbers of a step are the first
        "minigrad/devices/gpu/updates.py",
        "factors[{len(own)} * k + {j}]",
        "factors[{len(own)} * k + {j and 0}]",
    ),
    "devices/gpu/test_texts_compile.py": Fault(  # rows are read an element at a time
        "minigrad/devices/gpu/reduce/reduce_launch.py", "return any(dense)", "return False"
    ),
    "ops/test_devices.py": Fault(  # of equals, the last one wins
        "minigrad/devices/source/gpu_scan.py",
        "return place < at\n    return",
        "return place > at\n    return",
    ),
    "readers/test_readers.py": Fault(  # a number may stand for an array of no axes
        "minigrad/course/l04_accumulation/unbroadcasting.py",
        "if type(got) in (int, float):",
        "if type(got) is bool:",
    ),
    "simt/test_machine_random.py": Fault(  # a lane that left a loop by `continue` is lost
        "minigrad/simt/language/loops.py",
        "            f.loop[1] = union(f.loop[1], m)",
        "            f.loop[1] = m",
    ),
    "test_random_programs.py": Fault(  # the gradient of one function is off by a thousandth
        "minigrad/ops/unary.py", "return dy * e.cos(x)\n", "return dy * e.cos(x) * 1.001\n"
    ),
}


def turns_that_fail(name, fault):
    """Return the turns, 0 to 9, in which a file's tests catch a fault."""
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder) / "planted"
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        )
        for path in filter(None, listed.stdout.split("\0")):
            (there / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, there / path)
        text = (there / fault.file).read_text(encoding="utf-8")
        (there / fault.file).write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        return [turn for turn in range(tiers.N_TURNS) if _fails(there, name, turn)]


def _fails(folder, name, turn):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", f"tests/{name}", "--turn", str(turn)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},  # also for the processes that tests start
        capture_output=True,
        text=True,
    )
    if run.returncode not in (0, 1, 5):  # 5: no case of the file has this turn
        raise RuntimeError(run.stdout + run.stderr)
    return run.returncode == 1


def main(arguments=None):
    """Plant what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.planted",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="such as equality")
    options = parser.parse_args(arguments)
    missed = 0
    for name, fault in FAULTS.items():
        if options.words and not any(word in name for word in options.words):
            continue
        turns = turns_that_fail(name, fault)
        missed += not turns
        told = "turns " + ", ".join(map(str, turns)) if turns else "MISSED"
        sys.stdout.write(f"{name:40} {fault.file:42} {told}\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
