"""Writes in place by the short way and by the long one: equal values, versions and errors."""

from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.tape.modes import watch

WRITES = """
x += 1.0
x -= y
x *= 3
x /= 0.0
x += x
x -= 0.1 * y
x *= float("nan")
x += float("inf")
x += 2**60
x += True
x += np.float32(2)
x += np.ones((3, 4), np.float32)
x += y[0]
x -= y[::-1]
x.copy_(y[:, ::-1])
x += y.T.reshape(3, 4)
x += y.to("float64")
x += mg.ones((2,))
x += "a"
x.copy_(y)
x.fill_(2)
x.fill_(1e39)
x.zero_()
x.T.copy_(y.T)
x[0] += 1.0
x[1] = y[2]
x[1] += x[2]
x[:, 1] = x[:, 2]
x[::-1] = x
x[1:] = x[:-1]
x[0, 1] = 5
x[0, 1] = 2**70
x[0, 1] = None
x[..., -1] = 7.0
x[:, None] = 3.0
x[None] = y
x[1:1] = 4.0
x[3] = 1.0
x[0, 0, 0] = 1.0
x[[0, 1]] = 4.0
x[x > 0] = 0.0
x[0] = y
x["a"] = 1.0
x[0][1] = 8.0
x.T[0] = 6.0
x.expand(2, 3, 4)[0] = 1.0
x[0].expand(2, 4).copy_(mg.ones((2, 4)))
z = x.clone(); z += 1.0
z = x.clone(); x -= z
z = x.clone(); z.copy_(x); z -= x; x *= z
s = x[0, 0].clone(); s += 1.0; s.sub_(s.clone())
e = mg.ones((0, 3)); e += e.clone(); e *= 2.0
k += k.clone()
k /= k.clone()
x.add_()
x.copy_(None)
h += h.clone(); h *= 0.1
z = x[1]; z *= 2.0; x += z[0]
z = mg.variable(x.numpy()); z[0] = 9.0
k += 1
k[0] = 5
k[1] = 2.5
h[0] = 1.0
h += h
x += k
w += 1.0
w[0] = 1.0
with mg.no_grad(): w -= 0.1 * y
with mg.no_grad(): w[0] = 1.0
with mg.no_grad(): x += w
with mg.no_grad(): w.T[0] += y[:, 0]
x += w; x += 1.0
v = w * 1.0; v += 1.0
v = w[0]; v += 1.0
v = (w * 2.0)[0]; x[0] = v
v = w * w; v += 1.0; v.sum().backward()
v = w.exp(); u = v.detach(); u += 1.0; v.sum().backward()
v = w.exp(); v[0] = 0.0; v.sum().backward()
with mg.inference(): x += 1.0
with mg.inference(): v = x * 1.0; v += 1.0; v[0] = 2.0
with mg.inference(): v = x * 1.0\nv += 1.0
""".strip().splitlines()


def after(line):
    """Return the values and versions after a line, or the error's text, without its own places."""
    rng = np.random.default_rng(1)
    names: dict[str, Any] = {n: mg.variable(rng.normal(size=(3, 4)).astype("f4")) for n in "xyw"}
    names |= {"mg": mg, "np": np}
    names |= {"k": mg.variable([1, 2, 3]), "h": mg.variable([1.0, 2.0]).to("float16")}
    names["w"].requires_grad_()
    error = None
    for _ in range(3):  # the first binds the kernel
        try:
            exec(line.replace("\\n", "\n"), names)
        except Exception as raised:
            error = type(raised), str(raised)
    found = {n: v for n, v in names.items() if isinstance(v, mg.Variable)}
    return error, {
        n: (v.tolist(), v.array.version, v.requires_grad, type(v)) for n, v in found.items()
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", WRITES)
def test_both_ways_give_the_same(line):
    short = after(line)
    watch(+1)
    try:
        long = after(line)
    finally:
        watch(-1)
    np.testing.assert_equal(short, long)


@pytest.mark.parametrize(
    "line",
    ["x += 1.0", "x -= y", "x[0] = 1", "x[1:, 2] = 0.5", "x[0] = y[1]", "x[1] += 2.0", "x.zero_()"],
)
def test_plain_writes_go_the_short_way(line, monkeypatch):
    for name in ("inplace._write", "indexing.set_item"):
        monkeypatch.setattr(f"minigrad.ops.{name}", _refuse)
    exec(line, {"x": mg.ones((3, 4)), "y": mg.ones((3, 4))})


@pytest.mark.parametrize(
    "line", ["x += 1.0", "x /= 3", "x -= y", "x.copy_(y)", "x.fill_(2)", "x.zero_()"]
)
def test_a_whole_array_is_written_at_once(line, monkeypatch):
    names = {"x": mg.ones((3, 4)), "y": mg.ones((3, 4))}
    exec(line, names)  # binds the kernel
    monkeypatch.setattr("minigrad.ops.inplace.is_written", _refuse)
    exec(line, names)
    assert names["x"].array.version == 2


def _refuse(*_):
    raise AssertionError("the short way was not taken")


def test_a_write_to_a_clone_leaves_the_other():
    x = mg.ones((3, 4))
    y = x.clone()
    for _ in range(2):
        x += 1.0
        y[0] = 5.0
    assert x.tolist() == [[3.0] * 4] * 3
    assert y.tolist() == [[5.0] * 4, [1.0] * 4, [1.0] * 4]


def test_memory_of_numpy_goes_the_long_way():
    a = np.ones((3, 4), np.float32)
    x = mg.from_numpy(a)
    y = mg.from_numpy(a)
    x[0] = y[1]
    x += y
    np.testing.assert_array_equal(a, np.full((3, 4), 2.0))


@pytest.mark.parametrize("device", ["numpy", "simt"])
def test_other_devices_go_the_long_way(device):
    x = mg.ones((3, 4)).to(device)
    x += 1.0
    x[0] = 5.0
    assert x.to("cpu").tolist() == [[5.0] * 4, [2.0] * 4, [2.0] * 4]
