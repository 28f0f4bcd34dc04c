"""In-place writes among views and recorded values: refused with an error, or right; never wrong."""

import gc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import errors
from minigrad.array.array import views_shown


class Twin:
    """A value and its derivative along one direction; views of both are views of the same bytes."""

    def __init__(self, value, slope):
        # results lie in C order, as the engine's do: it decides whether reshape() is a view
        self.value, self.slope = np.array(value, order="C"), np.array(slope, order="C")

    def view(self, show):
        shown = object.__new__(Twin)
        shown.value, shown.slope = show(self.value), show(self.slope)
        return shown


def leaf(values):
    return mg.variable(np.asarray(values, np.float64), requires_grad=True)


VIEWS = {
    "transpose": (lambda x: x.T, lambda a: a.T),
    "reshape": (lambda x: x.reshape(-1), lambda a: a.reshape(-1)),
    "row": (lambda x: x[0], lambda a: a[0, ...]),
    "rest": (lambda x: x[1:], lambda a: a[1:]),
    "every other": (lambda x: x[::-2], lambda a: a[::-2]),
}


def write(what, x, y):
    if what == "add_":
        x.add_(y)
    elif what == "mul_":
        x.mul_(y)
    elif what == "copy_":
        x.copy_(y)
    elif what == "setitem":
        x[0] = y[0]
    elif what == "scale":
        x *= 1.5
    else:
        x.fill_(0.25)


def write_twin(what, x, y):
    if what == "add_":
        x.value += y.value
        x.slope += y.slope
    elif what == "mul_":
        slope = x.slope * y.value + x.value * y.slope
        x.value *= y.value
        x.slope[...] = slope
    elif what == "copy_":
        value, slope = y.value.copy(), y.slope.copy()
        x.value[...], x.slope[...] = value, slope
    elif what == "setitem":
        value, slope = y.value[0].copy(), y.slope[0].copy()
        x.value[0], x.slope[0] = value, slope
    elif what == "scale":
        x.value *= 1.5
        x.slope *= 1.5
    else:
        x.value[...], x.slope[...] = 0.25, 0.0


@st.composite
def programs(draw):
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["view", "view", "write", "write", "mul", "tanh", "sin", "clone", "drop", "new",
                     "constant"]
                ),
                st.integers(0, 99),
                st.integers(0, 99),
                st.integers(0, 99),
            ),
            min_size=3,
            max_size=14,
        )
    )  # fmt: skip
    return steps, draw(st.integers(0, 2**31))


def run(steps, rng):
    """A scalar that depends on everything left, and its derivative; errors pass through."""
    w = leaf(rng.uniform(0.5, 1.5, size=(3, 2)))
    direction = rng.normal(size=(3, 2))
    twin = Twin(w.detach().numpy().copy(), direction.copy())
    mine, twins = [w * 1.0], [Twin(twin.value * 1.0, twin.slope * 1.0)]
    for what, i, j, k in steps:
        i, j = i % len(mine), j % len(mine)
        x, t = mine[i], twins[i]
        if what == "view":
            name = list(VIEWS)[k % len(VIEWS)]
            if x.ndim == 0 or (x.shape[0] < 2 and name in ("rest", "row")):
                continue
            mine.append(VIEWS[name][0](x))
            shown = t.view(VIEWS[name][1])
            twins.append(shown)
            shares = np.shares_memory(shown.value, t.value)
            assert mg.memory.shares_storage(x, mine[-1]) == shares
        elif what == "write":
            action = ["add_", "mul_", "copy_", "setitem", "scale", "scale", "fill_"][k % 7]
            y, u = mine[j], twins[j]
            if action in ("add_", "mul_", "copy_", "setitem") and (
                x.shape != y.shape or not x.ndim
            ):
                continue
            write(action, x, y)
            write_twin(action, t, u)
        elif what == "mul":
            y, u = mine[j], twins[j]
            if x.shape != y.shape:
                continue
            mine.append(x * y)
            twins.append(Twin(t.value * u.value, t.value * u.slope + t.slope * u.value))
        elif what in ("tanh", "sin"):
            mine.append(getattr(x, what)())
            value = getattr(np, what)(t.value)
            slope = (1 - value**2 if what == "tanh" else np.cos(t.value)) * t.slope
            twins.append(Twin(value, slope))
        elif what == "clone":
            mine.append(x.clone())
            twins.append(Twin(t.value.copy(), t.slope.copy()))
        elif what == "constant":
            value = rng.uniform(0.5, 1.5, size=(3, 2))
            mine.append(mg.variable(value))
            twins.append(Twin(value, np.zeros((3, 2))))
        elif what == "new":
            mine.append(w * 2.0)
            twins.append(Twin(twin.value * 2.0, twin.slope * 2.0))
        elif len(mine) > 1:
            del mine[i], twins[i]
        del x, t
    for v, t in zip(mine, twins, strict=True):
        np.testing.assert_allclose(v.detach().numpy(), t.value, rtol=1e-12)
    total, slope = None, 0.0
    for v, t in zip(mine, twins, strict=True):
        u = rng.normal(size=v.shape)
        part = (v * mg.variable(u)).sum()
        total = part if total is None else total + part
        slope += float(np.sum(u * t.slope))
    if total.requires_grad:
        total.backward()
    got = 0.0 if w.grad is None else float(np.sum(w.grad.numpy() * direction))
    return got, slope


def test_in_place_programs_are_refused_or_right():
    seen = Counter()

    @settings(max_examples=400, deadline=None)
    @given(programs())
    def check(program):
        steps, seed = program
        try:
            got, slope = run(steps, np.random.default_rng(seed))
        except (errors.InPlaceError, errors.SavedValueModifiedError) as error:
            note(str(error))
            seen[type(error).__name__] += 1
            return
        seen["right"] += 1
        assert got == pytest.approx(slope, rel=1e-9, abs=1e-9)

    check()
    assert min(seen["right"], seen["InPlaceError"]) > 20  # both kinds were met


def test_a_view_of_a_constant_is_refused_when_its_base_starts_to_need_gradients():
    base, w = mg.variable([1.0, 2.0]), leaf([3.0, 4.0])
    view = base.reshape(2, 1)
    with pytest.raises(errors.InPlaceError, match="a view of this Variable is alive"):
        base.mul_(w.to("float32"))
    assert base.tolist() == [1.0, 2.0]
    assert not base.requires_grad
    del view
    base.mul_(w.to("float32"))
    base.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("write", "advice"),
    [
        (lambda x: x[1:].mul_(2.0), r"try: x\[i\] = x\[i\] \* y in one line"),
        (lambda x: x[1].add_(2.0), r"try: x\[i\] = x\[i\] \+ y in one line"),
        (lambda x: x[1:].fill_(2.0), r"try: x\[i\] = y in one line"),
    ],
)
def test_a_recorded_write_to_a_view_names_what_works(write, advice):
    w = leaf([3.0, 4.0])
    x = w * 1.0
    with pytest.raises(errors.InPlaceError, match=advice):
        write(x)
    with pytest.raises(errors.InPlaceError, match="the base is a leaf"):
        write(w)
    x[1:] = x[1:] * 2.0  # the advice
    x.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_recorded_writes_do_not_search_the_heap(monkeypatch):
    monkeypatch.setattr(gc, "get_referrers", lambda *objects: pytest.fail("searched"))
    w = leaf([3.0, 4.0])
    total = w * 1.0
    for _ in range(3):
        view = total.reshape(2, 1)
        del view
        total += w
    total += total[:]
    total[1:] = total[:-1]
    total.sum().backward()
    assert w.grad.tolist() == [16.0, 0.0]


def test_only_variables_that_live_count_as_views():
    h = leaf([3.0, 4.0]) * 1.0
    views = [h[0], h[1:].detach(), h.reshape(2, 1)]
    while views:
        with pytest.raises(errors.InPlaceError, match="a view of this Variable is alive"):
            h.mul_(2.0)
        views.pop()
    h.mul_(2.0)
    assert not views_shown(h.array)


def test_a_view_that_an_operand_shows_may_live_in_other_variables():
    h = leaf([3.0, 4.0]) * 1.0
    view = h[:]
    same, other = view.detach(), h[:]
    with pytest.raises(errors.InPlaceError, match="a view of this Variable is alive"):
        h.add_(view)
    del other
    h.add_(view)
    assert h.tolist() == same.tolist() == [6.0, 8.0]


def test_a_view_that_the_collector_does_not_show_counts():
    h = leaf([3.0, 4.0]) * 1.0
    view = h[:]
    gc.freeze()  # as servers do before they fork
    try:
        with pytest.raises(errors.InPlaceError, match="a view of this Variable is alive"):
            h.mul_(2.0)
    finally:
        gc.unfreeze()
    assert view.tolist() == [3.0, 4.0]


def test_a_write_to_its_own_transpose_is_copied_first():
    x = mg.variable(np.arange(9.0).reshape(3, 3))
    x.copy_(x.T)
    assert x.numpy().tolist() == np.arange(9.0).reshape(3, 3).T.tolist()
    x = mg.variable(np.arange(5.0))
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]


def test_writes_to_empty_arrays_of_any_shape_are_fine():
    for shape in ((3, 0), (0, 3), (2, 0, 2)):
        x = mg.zeros(shape)
        x += 1.0
        x[...] = 2.0
        assert (x.shape, x.version) == (shape, 2)
