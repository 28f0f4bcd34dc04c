"""The checks of `python -m benchmarks.gpu`: they tell right from wrong; kernels compiled ahead."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.gpu import ahead, check


@pytest.mark.parametrize(
    ("got", "wanted", "is_right"),
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True),
        ([1.0, np.nan], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0, np.nan], False),
        ([1.0, np.inf], [1.0, -np.inf], False),
        ([1.0, 3e38], [1.0, np.inf], False),
        ([1.0 + 1e-4], [1.0], True),
        ([1.0 + 3e-4], [1.0], False),
        ([1000.1], [1000.0], True),
        ([1.0], [[1.0]], False),
        (np.array([3], np.int64), [3], True),
        (np.array([3], np.int64), [4], False),
        (np.array([True]), [False], False),
    ],
)
def test_comparisons_tell_right_from_wrong(got, wanted, is_right):
    found = check.Checked("numbers")
    got = np.asarray(got)
    got = got.astype(np.float32) if got.dtype.kind == "f" else got
    found.compare("these", got, wanted, "float32")
    assert found.count == 1
    assert (found.failures == []) is is_right


def test_memory_that_is_let_go_badly_is_a_failure(monkeypatch):
    class Theirs:
        def __init__(self, x):
            self.data = x.to("cpu").numpy().copy()

        def __iadd__(self, number):
            self.data += number
            return self

        def __isub__(self, number):
            return self.__iadd__(-number)

        def __dlpack__(self, **options):
            return self.data.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.data.__dlpack_device__()

        def __del__(self):
            raise RuntimeError("a stream is gone")

    cuda = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=Theirs, cuda=cuda))
    monkeypatch.setitem(sys.modules, "cupy", None)
    found = check.exchange("simt")
    assert found.count == 2
    assert [line.split(":")[0] for line in found.failures] == [
        "torch, written there",  # a copy: nothing is shared here
        "torch, back",
        "torch, let go",
    ]


def test_larger_arrays_and_training_are_right_on_the_simulator(monkeypatch):
    names = ("layer norm", "place of the largest", "matmul, batches")
    monkeypatch.setattr(check, "LARGE", {name: check.LARGE[name] for name in names})
    found = check.large("simt")
    assert (found.count, found.failures) == (3, [])


def test_parts_compiled_ahead_are_those_of_the_checks(monkeypatch):
    ran = []
    for name in ahead.WHOLE:
        monkeypatch.setitem(ahead.WHOLE, name, lambda device, name=name: ran.append(name))
    monkeypatch.setattr(check, "operations", lambda device, names: ran.extend(names))
    for part in ahead.parts():
        ahead.run_part("simt", part)
    assert set(ran) == {*ahead.WHOLE, *check.checked_ops()}
    assert set(ran[:2]) == set(ahead.WHOLE), "the longest are begun first"
    assert ahead.parts(["tanh"])[2:] == ["tanh"]


def test_what_fails_ahead_is_left_to_the_checks(monkeypatch):
    def fails(device, names):
        raise RuntimeError("a fault")

    monkeypatch.setattr(check, "operations", fails)
    ahead.run_part("simt", "tanh")


def test_processes_leave_their_kernels_where_the_checks_find_them(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(ahead, "parts", lambda names: ["neg", "no such op"])
    ahead.compile_all("simt", processes=2)
    kept = [path.read_text(encoding="utf-8") for path in tmp_path.glob("minigrad_kernel_*.py")]
    assert any("def kernel(" in text for text in kept)
