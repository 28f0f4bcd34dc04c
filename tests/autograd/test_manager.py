"""GradManager: spans, attachment, callbacks, groups."""

import gc
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import (
    ArgumentTypeError,
    DTypeError,
    GradientError,
    GraphFreedError,
    ShapeError,
)
from minigrad.tape.groups import ParameterGroup, join


def leaf(*values, **kwargs):
    return mg.variable(np.array(values, np.float32), **kwargs)


def test_backward_in_span_writes_attached_only():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0, requires_grad=True)
    gm = mg.GradManager([a])
    with gm:
        gm.backward((a * b).sum())
    assert a.grad.tolist() == [3.0, 4.0]
    assert b.grad is None


def test_backward_twice_accumulates_until_zeroed():
    a = leaf(2.0)
    gm = mg.GradManager(a)
    for _ in range(2):
        with gm:
            gm.backward((a * a).sum())
    assert a.grad.tolist() == [8.0]
    a.grad = None
    with gm:
        gm.backward((a * a).sum())
    assert a.grad.tolist() == [4.0]


def test_held_grad_shows_next_gradient_and_clone_keeps_it():
    a = leaf(2.0)
    gm = mg.GradManager(a)
    with gm:
        gm.backward((a * a).sum())
    held, kept = a.grad, a.grad.clone()
    a.grad = None
    with gm:
        gm.backward((a * 3.0).sum())
    assert held.tolist() == [3.0]
    assert kept.tolist() == [4.0]


def test_loss_from_before_the_span_raises():
    a = leaf(2.0, requires_grad=True)
    outside = (a * a).sum()
    gm = mg.GradManager(a)
    with gm, pytest.raises(GradientError, match="inside this span"):
        gm.backward(outside)


def test_backward_without_record_raises():
    a = leaf(2.0)
    gm = mg.GradManager(a)
    with pytest.raises(GradientError, match="not recording"):
        gm.backward((a * a).sum())


def test_record_twice_raises_and_release_ends_it():
    gm = mg.GradManager(leaf(1.0))
    gm.record()
    with pytest.raises(GradientError, match="already"):
        gm.record()
    gm.release()
    gm.record().release()


def test_leaving_the_block_frees_what_the_span_saved():
    a = leaf(2.0)
    gm = mg.GradManager(a)
    gc.collect()
    before = mg.memory.stats()["saved_bytes"]
    with gm:
        loss = (a * a).sum()
    assert mg.memory.stats()["saved_bytes"] == before
    with pytest.raises(GraphFreedError):
        loss.backward()


def test_computation_before_attach_gives_no_gradient():
    a = leaf(2.0)
    gm = mg.GradManager()
    with gm:
        early = a * 3.0
        gm.attach(a)
        gm.backward((early * a).sum())
    assert a.grad.tolist() == [6.0]  # d(6 a)/da: the product before attach was a constant


def test_inner_loss_counts_as_made_in_the_outer():
    a = leaf(2.0)
    outer, inner = mg.GradManager(a), mg.GradManager(a)
    with outer:
        with inner:
            loss = (a * a).sum()
            inner.backward(loss * 1.0)
        with pytest.raises(GraphFreedError):
            outer.backward(loss)  # the inner span's leaving freed it


def test_keep_empty_grad_decides_between_none_and_zeros():
    for keep, expected in ((False, None), (True, [0.0, 0.0])):
        a, b = leaf(1.0), leaf(1.0, 2.0)
        gm = mg.GradManager([a, b], keep_empty_grad=keep)
        with gm:
            gm.backward((a * a).sum())
        assert (b.grad if b.grad is None else b.grad.tolist()) == expected


def test_callbacks_see_this_pass_alone_and_replace():
    a = leaf(2.0)
    seen = []

    def double(p, g):
        seen.append((p is a, g.tolist()))
        return g * 2.0

    gm = mg.GradManager(a, callbacks=double)
    gm.attach(a, callbacks=double)  # the same one again: runs once
    for _ in range(2):
        with gm:
            gm.backward((a * a).sum())
    assert seen == [(True, [4.0])] * 2
    assert a.grad.tolist() == [16.0]


def test_exception_in_callback_leaves_grads():
    a, b = leaf(2.0), leaf(3.0)

    def fail(p, g):
        raise RuntimeError("no")

    gm = mg.GradManager(a)
    gm.attach(b, callbacks=fail)
    with gm, pytest.raises(RuntimeError, match="no"):
        gm.backward((a * b).sum())
    assert a.grad is None
    assert b.grad is None


def test_whole_group_callback_gets_flat_gradient_once():
    a, b, c = leaf(1.0, 2.0), leaf(3.0), leaf(5.0)
    calls = []

    def scale(group, flat):
        calls.append((type(group), flat.shape))
        return flat * 0.5

    scale.whole_group = True
    gm = mg.GradManager([a, b, c], callbacks=scale)
    with gm:
        gm.backward((a.sum() * b).sum())
    assert calls == [(ParameterGroup, a.group[0].flat.shape)]
    assert a.grad.tolist() == [1.5, 1.5]
    assert b.grad.tolist() == [1.5]
    assert c.grad is None


@pytest.mark.parametrize(
    ("result", "error"), [(1.0, ArgumentTypeError), (mg.zeros((3,)), ShapeError)]
)
def test_wrong_callback_result_raises(result, error):
    a = leaf(1.0)
    gm = mg.GradManager(a, callbacks=lambda p, g: result)
    with gm, pytest.raises(error, match="callback"):
        gm.backward((a * a).sum())


def test_attach_checks_what_it_gets():
    gm = mg.GradManager()
    with pytest.raises(DTypeError):
        gm.attach(mg.variable([1, 2]))
    with pytest.raises(ArgumentTypeError):
        gm.attach([1.0])
    a = leaf(1.0, requires_grad=True)
    with pytest.raises(GradientError, match="leaves"):
        gm.attach(a * a)


def test_non_scalar_loss_needs_dy():
    a = leaf(1.0, 2.0)
    gm = mg.GradManager(a)
    with gm:
        with pytest.raises(GradientError, match="dy"):
            gm.backward(a * a)
        gm.backward(a * a, leaf(1.0, 10.0))
    assert a.grad.tolist() == [2.0, 40.0]


def test_two_losses_in_one_backward():
    a = leaf(2.0)
    gm = mg.GradManager(a)
    with gm:
        gm.backward([(a * a).sum(), (a * 3.0).sum()])
    assert a.grad.tolist() == [7.0]


def test_spans_are_per_thread():
    a = leaf(2.0)
    gm = mg.GradManager(a)
    outcome = []

    def other():
        b = leaf(3.0, requires_grad=True)
        outcome.append((b * b).sum())

    with gm:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with pytest.raises(GradientError):
            gm.backward(outcome[0])


def test_groups_are_shared_and_grow():
    a, b, c = (leaf(float(k), 1.0, requires_grad=True) for k in range(3))
    groups = join([a, b])
    (group,) = groups.values()
    assert join([a]) == {}  # already in one
    (a * b).sum().backward()
    before = a.grad.tolist()
    join([c], groups)
    assert c.group[0] is group
    assert a.grad.tolist() == before
    assert mg.memory.shares_storage(a.grad, b.grad)
    assert not mg.memory.is_alias(a.grad, b.grad)
    (a * c).sum().backward()
    assert c.grad.tolist() == a.tolist()


def test_frozen_parameter_is_skipped():
    class Frozen(mg.Variable):
        __slots__ = ()
        is_parameter = True

    a = Frozen(leaf(1.0).array)
    gm = mg.GradManager(a)
    assert not a.requires_grad
    assert gm.attached[0] is a
