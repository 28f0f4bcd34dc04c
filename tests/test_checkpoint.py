"""Checkpoints: what was saved comes back, bit for bit; what does not fit changes nothing."""

import os
import pathlib
import pickle
import re
import signal
import struct
import subprocess
import sys
import time
import warnings
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import nn, optim
from minigrad.array.dtypes import DTYPES
from minigrad.data import batches
from minigrad.errors import ArgumentTypeError, DTypeError, MinigradError, StateError
from tests.optim.reference import FEW


def network(dropout=0.2):
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 3)
    )


class Run:
    """A small training run: model, optimizer, schedule, data."""

    def __init__(self, optimizer="Adam", seed=0, is_compiled=False):
        mg.manual_seed(seed)
        self.model = network()
        self.optimizer = FEW[optimizer].make(self.model)
        self.schedule = optim.WarmupCosine(self.optimizer, warmup=3, steps=20)
        random = np.random.default_rng(1)
        self.x = random.standard_normal((24, 6)).astype(np.float32)
        self.y = random.integers(0, 3, 24)
        self.losses = []
        self.step = mg.compile(self.one_step) if is_compiled else self.one_step

    @property
    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def one_step(self, x, y):
        self.optimizer.zero_grad()
        loss = mg.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def epochs(self, first, last):
        for epoch in range(first, last):
            for x, y in batches(self.x, self.y, batch_size=8, seed=epoch):
                self.losses.append(self.step(mg.variable(x), mg.variable(y)).item())
                self.schedule.step()
        return self

    def everything(self):
        found = {f"model/{k}": v.numpy().tobytes() for k, v in self.model.state_dict().items()}
        for name, slots in self.optimizer.state_dict()["state"].items():
            found |= {f"{name}/{slot}": v.numpy().tobytes() for slot, v in slots.items()}
        return found | {"schedule": self.schedule.state_dict(), "rng": mg.get_rng_state()}


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", FEW)
def test_resumed_run_equals_the_uninterrupted_one_bit_for_bit(name, is_compiled, tmp_path):
    path = tmp_path / "run.safetensors"
    whole = Run(name, is_compiled=is_compiled).epochs(0, 4)
    wanted = whole.everything()
    first = Run(name, is_compiled=is_compiled).epochs(0, 2)
    mg.save(path, **first.parts, epoch=2)
    resumed = Run(name, seed=7, is_compiled=is_compiled)  # starts elsewhere
    resumed.epochs(0, 1)
    resumed.losses.clear()
    epoch = mg.load(path, **resumed.parts)["epoch"]
    resumed.epochs(epoch, 4)
    assert resumed.everything() == wanted
    assert first.losses + resumed.losses == whole.losses


def test_load_without_parts_returns_every_state(tmp_path):
    run, path = Run().epochs(0, 1), tmp_path / "run.safetensors"
    generator = mg.Generator(3)
    mg.rand((5,), generator=generator)
    best = mg.variable([[1.5, 2.5]])
    mg.save(path, **run.parts, generator=generator, best=best, note={"loss": [1.0, 2]}, step=4)
    found = mg.load(path)
    other = Run(seed=1)
    other.model.load_state_dict(found["model"])
    other.optimizer.load_state_dict(found["optimizer"])
    other.schedule.load_state_dict(found["schedule"])
    mg.set_rng_state(mg.get_rng_state())
    mine, its = run.everything(), other.everything()
    assert {k: v for k, v in mine.items() if k != "rng"} == {
        k: v for k, v in its.items() if k != "rng"
    }
    assert found["best"].tolist() == [[1.5, 2.5]]
    assert found["note"] == {"loss": [1.0, 2]}
    assert found["step"] == 4
    fresh = mg.Generator()
    mg.load(path, generator=fresh)
    assert mg.rand((3,), generator=fresh).tolist() == mg.rand((3,), generator=generator).tolist()


def test_several_models_stand_in_one_file(tmp_path):
    path = tmp_path / "two.safetensors"
    actor, critic = nn.Linear(2, 3), nn.Linear(2, 1)
    mg.save(path, actor=actor, critic=critic)
    new_actor, new_critic = nn.Linear(2, 3), nn.Linear(2, 1)
    mg.load(path, actor=new_actor, critic=new_critic)
    assert new_actor.weight.tolist() == actor.weight.tolist()
    assert new_critic.weight.tolist() == critic.weight.tolist()


class Pair(nn.Module):
    def __init__(self, order):
        super().__init__()
        for name in order:
            setattr(self, name, nn.Linear(2, 2))

    def forward(self, x):
        return self.a(x) * self.b(x)


def test_several_optimizers_stand_in_one_file(tmp_path):
    """Each part has memory of its own until the file is written."""
    runs = {f"run{k}": Run(seed=k).epochs(0, k) for k in (1, 2, 3)}
    mg.save(tmp_path / "all.safetensors", **{name: run.optimizer for name, run in runs.items()})
    for name, run in runs.items():
        other = Run(seed=9)
        mg.load(tmp_path / "all.safetensors", **{name: other.optimizer})
        wanted = run.optimizer.state_dict()["state"]
        found = other.optimizer.state_dict()["state"]
        assert wanted.keys() == found.keys()
        for key, slots in wanted.items():
            for slot, x in slots.items():
                np.testing.assert_array_equal(found[key][slot].numpy(), x.numpy(), f"{key}.{slot}")


def test_state_follows_names_into_a_model_declared_in_another_order(tmp_path):
    path = tmp_path / "run.safetensors"
    ab, ba = Pair("ab"), Pair("ba")
    one, other = optim.Adam(ab, learning_rate=0.1), optim.Adam(ba, learning_rate=0.1)
    (ab(mg.ones((1, 2))) * mg.variable([[1.0, 5.0]])).sum().backward()
    one.step()
    mg.save(path, model=ab, optimizer=one)
    mg.load(path, model=ba, optimizer=other)
    moments = [dict(o.named_parameters()) for o in (one, other)]
    for name in moments[0]:
        mine, its = one.state_dict()["state"][name], other.state_dict()["state"][name]
        assert {k: v.tolist() for k, v in mine.items()} == {k: v.tolist() for k, v in its.items()}
        assert moments[0][name].tolist() == moments[1][name].tolist()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 3), max_size=4),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_arrays_of_every_dtype_shape_and_layout_come_back(tmp_path, dtype, shape, turned, seed):
    values = np.random.default_rng(seed).integers(0, 2, shape).astype(dtype.numpy)
    values = values.T if turned else values[..., ::-1] if values.ndim else values
    path = tmp_path / "x.safetensors"
    mg.save(path, x=values, v=mg.variable(values))
    found = mg.load(path)
    for name in ("x", "v"):
        assert found[name].dtype == mg.variable(values).dtype
        np.testing.assert_array_equal(found[name].numpy(), values)


class Named(NamedTuple):
    a: int
    b: list


def same(a, b):
    """Whether two values are of the same types, and equal, all through; nan equals nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same([*a.items()], [*b.items()])
    return a == b or a != a


KEYS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.tuples(inner, inner),
    max_leaves=3,
)
TREES = st.recursive(
    KEYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS | st.sampled_from(["", "of"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TREES)
def test_values_come_back_with_the_types_of_all_that_is_in_them(tmp_path, value):
    mg.save(tmp_path / "x", value=value)
    assert same(mg.load(tmp_path / "x")["value"], value)


def test_what_comes_back_as_a_plain_type(tmp_path):
    given = {"n": np.int64(3), "x": np.float32(0.5), "b": np.bool_(True), "t": Named(1, [2])}
    mg.save(tmp_path / "x", found=OrderedDict(given), size=mg.ones((2, 3)).size)
    found = mg.load(tmp_path / "x")
    assert same(found, {"found": {"n": 3, "x": 0.5, "b": True, "t": (1, [2])}, "size": 6})


def nested(deep):
    value = []
    for _ in range(deep):
        value = [value]
    return value


ITSELF = {"a": []}
ITSELF["a"].append(ITSELF)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, {2, 3}]}, "thing['a'][1]"),
        ({"a": (0, b"x")}, "thing['a'][1]"),
        ({3: {"x": mg.ones((2,))}}, "thing[3]['x']"),
        ([np.zeros(2)], "thing[0]"),
        ([1j], "thing[0]"),
        ({frozenset(): 1}, "thing[frozenset()]"),
        ([10**5000], "thing[0]"),
        (nested(2000), "thing[0][0][0]..."),
        (ITSELF, "thing['a'][0]['a']..."),
    ],
)
def test_value_that_cannot_come_back_is_refused_with_its_place(value, place, tmp_path):
    with pytest.raises(ArgumentTypeError, match=re.escape(place)):
        mg.save(tmp_path / "x", thing=value)
    assert not (tmp_path / "x").exists()


def test_special_values_keep_their_bits(tmp_path):
    bits = np.array([0x7FC00001, 0x7F800000, 0x80000000, 1], np.uint32).view(np.float32)
    mg.save(tmp_path / "x", x=bits)
    assert mg.load(tmp_path / "x")["x"].numpy().tobytes() == bits.tobytes()


def test_weights_are_a_file_that_other_libraries_read_and_write(tmp_path):
    from safetensors.numpy import load_file, save_file

    model, path = nn.Linear(3, 2), tmp_path / "weights.safetensors"
    mg.save(path, model=model)
    found = load_file(path)  # as torch.nn.Linear(3, 2).load_state_dict takes them
    assert {k: v.shape for k, v in found.items()} == {"weight": (2, 3), "bias": (2,)}
    save_file({"weight": np.ones((2, 3), np.float32), "bias": np.zeros(2, np.float32)}, path)
    mg.load(path, model=model)
    assert model.weight.tolist() == [[1.0] * 3] * 2


# -- what does not fit -----------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    run = Run().epochs(0, 1)
    path = tmp_path / "run.safetensors"
    mg.save(path, **run.parts, step=1)
    return path


def refused(path, match, **parts):
    """The StateError of a load that has changed nothing."""
    run = Run(seed=3)
    before = run.everything()
    parts = {k: getattr(run, k) if v is None else v for k, v in parts.items()}
    with pytest.raises(StateError, match=match) as error:
        mg.load(path, **parts)
    assert run.everything() == before
    return str(error.value)


def test_all_reasons_stand_in_one_error_and_nothing_changes(saved):
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(6, 8)

    other = Other()
    text = refused(saved, "missing: a.weight", model=other)
    assert "unexpected: 0.weight" in text
    model = network()
    model[0] = nn.Linear(6, 9)
    optimizer = optim.SGD(model, learning_rate=0.1)
    before = model[4].weight.tolist()
    text = refused(saved, "does not fit", model=model, optimizer=optimizer, schedule=None)
    assert re.search(r"0.weight: shape \(8, 6\), the model has \(9, 6\)", text)
    assert "another algorithm" in text
    assert model[4].weight.tolist() == before


def test_part_that_is_not_there_or_is_something_else(saved):
    assert "it has model, optimizer, schedule, step" in refused(
        saved, "wanted actor", actor=network()
    )
    refused(saved, "optimizer was wanted as a module", optimizer=network())
    refused(saved, "step was wanted as a module", step=network())
    with pytest.raises(ArgumentTypeError, match="leave it out"):
        mg.load(saved, step=3)


@pytest.mark.parametrize("keep", [0, 4, 20, 200, -1])
def test_truncated_file(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    refused(saved, "no complete safetensors file", model=None)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_header_is_an_error_of_ours_or_no_error(saved, seed):
    data = bytearray(saved.read_bytes())
    random = np.random.default_rng(seed)
    (size,) = struct.unpack("<Q", data[:8])
    for _ in range(3):
        data[random.integers(0, 8 + size)] = random.integers(256)
    saved.write_bytes(data)
    run = Run()
    before = run.everything()
    try:
        with warnings.catch_warnings(action="ignore"):
            mg.load(saved, **run.parts)
    except MinigradError:
        assert run.everything() == before


def test_pickle_is_not_read(tmp_path):
    path = tmp_path / "p"

    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was read",))

    path.write_bytes(pickle.dumps(Bomb()))
    refused(path, "a pickle is not read", model=None)


def test_files_that_are_not_there_or_cannot_be_written(tmp_path):
    refused(tmp_path / "none", "there is no such file", model=None)
    refused(tmp_path, "wanted a checkpoint", model=None)
    folder = tmp_path / "no" / "such" / "folder"
    for path, says in ((folder, "make its folder first"), (tmp_path, "is as it was")):
        with pytest.raises(StateError, match=says):
            mg.save(path, step=1)
    assert list(tmp_path.iterdir()) == []


def test_newer_format_is_refused(saved):
    data = saved.read_bytes()
    assert data.count(b'{\\"format\\": 2,') == 1
    saved.write_bytes(data.replace(b'{\\"format\\": 2,', b'{\\"format\\": 9,'))
    refused(saved, "has format 9", model=None)


def test_dtype_that_minigrad_lacks(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "bytes.safetensors"
    save_file({"weight": np.ones((2, 3), np.int8)}, path)
    refused(path, "weight is int8", model=nn.Linear(3, 2))
    with pytest.raises(DTypeError, match="complex128"):
        mg.save(path, x=np.ones(2, complex))


def test_the_order_of_torch_save_is_told_what_is_right():
    with pytest.raises(ArgumentTypeError, match=r"mg.save\('run.safetensors', model=model"):
        mg.save(network().state_dict(), "x")  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("part", [object(), {1, 2}, lambda x: x, {"model": network()}, b"x"])
def test_part_that_cannot_be_saved(part, tmp_path):
    with pytest.raises(ArgumentTypeError, match="as thing"):
        mg.save(tmp_path / "x", thing=part)
    assert not (tmp_path / "x").exists()
    with pytest.raises(ArgumentTypeError, match="by name"):
        mg.save(tmp_path / "x")


def test_names_that_nothing_is_updated_under_are_told(saved):
    run = Run()
    fewer = optim.Adam(run.model[0], learning_rate=0.01, betas=(0.8, 0.99))
    with pytest.warns(UserWarning, match="left out what optimizer updates nothing under"):
        mg.load(saved, optimizer=fewer)


def test_without_the_package_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MinigradError, match=r"minigrad\[checkpoint\]"):
        mg.save(tmp_path / "x", step=1)


# -- killed while it writes ------------------------------------------------------------------------

WRITER = """
import sys, numpy as np, minigrad as mg
for k in range(10**6):
    mg.save(sys.argv[1], x=np.full(200_000, float(k)), k=k)
    print(k, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_killed_at_any_moment_the_file_is_whole(tmp_path):
    path = tmp_path / "x.safetensors"
    for k in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=pathlib.Path(mg.__file__).parents[1],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.003 * k)
        writer.kill()
        writer.communicate()
        found = mg.load(path)
        np.testing.assert_array_equal(found["x"].numpy(), float(found["k"]))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_example_that_is_killed_goes_on_and_ends_as_if_it_had_not_been(tmp_path):
    root = pathlib.Path(mg.__file__).parents[1]
    command = [sys.executable, "-u", str(root / "examples" / "digits.py"), "--epochs", "4"]

    def start(checkpoint, plot):
        return subprocess.Popen(
            [*command, "--checkpoint", checkpoint, "--plot", plot],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    start("whole", "whole.png").communicate()
    killed = start("run", "run.png")
    deadline = time.monotonic() + 60
    while not (tmp_path / "run").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    done = len(mg.load(tmp_path / "run")["losses"])
    assert 1 <= done <= 4
    again = start("run", "run.png")
    out, _ = again.communicate()
    assert "held-out accuracy" in out
    whole, run = mg.load(tmp_path / "whole"), mg.load(tmp_path / "run")
    assert run["losses"] == whole["losses"]
    for name, value in whole["model"].items():
        assert run["model"][name].tolist() == value.tolist()
