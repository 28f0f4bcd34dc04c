"""Calls that mean one thing in NumPy or PyTorch and another elsewhere: said, or refused with both.

Values are those of PyTorch and NumPy, written out by hand.
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn

X = mg.variable([[1.0, 2.0, 6.0], [4.0, 8.0, 9.0]])
CUBE = mg.variable(np.arange(24, dtype="f4").reshape(2, 3, 4))
W, B = mg.ones((3,)), mg.zeros((3,))
REFUSED = {  # call as PyTorch or NumPy has it -> what the advice has to show
    "sum of two axes": (lambda: CUBE.sum(1, 2), ["axis=(1, 2)"]),
    "mean of two axes": (lambda: CUBE.mean(0, 1), ["axis=(1, 2)"]),
    "logsumexp of two axes": (lambda: mg.logsumexp(CUBE, 0, 1), ["axis=(1, 2)"]),
    "any with an int": (lambda: CUBE.any(0, 1), ["axis=(1, 2)"]),
    "argmax of axes": (lambda: mg.argmax(CUBE, (0, 1)), []),
    "argmin of axes": (lambda: CUBE.argmin((0, 1)), []),
    "cumsum of axes": (lambda: mg.cumsum(CUBE, (0, 1)), []),
    "an axis that is a bool": (lambda: CUBE.sum(True), []),
    "norm 1": (lambda: mg.norm(X, 1), ["axis=1", "abs().sum"]),
    "norm 1 of a method": (lambda: X.norm(1), ["axis=1"]),
    "split": (lambda: mg.split(X, 3), ["sections=3", "sizes=3"]),
    "split at": (lambda: mg.split(X, [1, 1]), ["sections=3", "sizes=3"]),
    "var": (lambda: X.var(), ["ddof=0", "ddof=1"]),
    "std": (lambda: mg.std(X), ["ddof=0", "ddof=1"]),
    "var along": (lambda: X.var(0), ["ddof=0"]),
    "var unbiased": (lambda: X.var(0, True), ["ddof=1"]),
    "std unbiased": (lambda: X.std(unbiased=False), ["ddof=0"]),
    "max along": (lambda: X.max(1), ["max(axis=1)", "argmax(axis=1)"]),
    "max of two": (lambda: mg.max(X, X), ["maximum"]),
    "min along": (lambda: mg.min(X, 0), ["min(axis=1)", "argmin(axis=1)"]),
    "repeat": (lambda: mg.repeat(X, 2, 1), ["concatenate", "axis=0"]),
    "pad": (lambda: mg.pad(X, (1, 2)), ["(0, 0), (1, 2)", "* x.ndim"]),
    "diagonal": (lambda: mg.diagonal(CUBE, -1), ["axis1=0"]),
    "layer_norm": (lambda: mg.layer_norm(X, (3,), W), ["layer_norm(x, weight, bias)"]),
    "rms_norm": (lambda: mg.rms_norm(X, (3,)), ["rms_norm(x, weight)"]),
    "batch_norm": (lambda: mg.batch_norm(X, B, W, W, B), ["running_mean=", "weight="]),
    "batch_norm default": (
        lambda: mg.batch_norm(X, running_mean=B, running_var=W),
        ["training=True", "training=False"],
    ),
    "transpose": (lambda: X.transpose(0, 1), ["permute"]),
    "eye": (lambda: mg.eye(2, 3), []),
    "zeros": (lambda: mg.zeros(2, 3), ["zeros((2, 3))"]),
    "randint": (lambda: mg.randint(10, (2,)), []),
    "gather": (lambda: mg.gather(X, 0, mg.variable([[0]])), []),
    "huber": (lambda: mg.huber(X, X, "mean"), []),
    "gradients": (lambda: mg.gradients(X, X, None, True), ["create_graph="]),
    "gradcheck": (lambda: mg.debug.gradcheck(mg.exp, [X], 1e-6), ["eps="]),
    "attention dropout": (lambda: nn.MultiHeadAttention(4, 2, 0.1), []),
    "attention mask": (
        lambda: nn.MultiHeadAttention(4, 2)(CUBE, CUBE, CUBE, X), [],
    ),
    "attn_mask": (lambda: nn.MultiHeadAttention(4, 2)(CUBE, attn_mask=X), ["mask=~attn_mask"]),
    "key_padding_mask": (
        lambda: nn.MultiHeadAttention(4, 2)(CUBE, key_padding_mask=X), ["mask=~padding"],
    ),
    "sdpa dropout": (
        lambda: mg.scaled_dot_product_attention(CUBE, CUBE, CUBE, None, 0.0), [],
    ),
    "dropout in place": (lambda: mg.dropout(X, 0.5, True, True), []),
    "optimizer's dampening": (
        lambda: mg.optim.SGD([nn.Parameter([1.0])], 0.1, 0.9, 0.0), [],
    ),
    "amsgrad": (
        lambda: mg.optim.Adam([nn.Parameter([1.0])], 1e-3, (0.9, 0.99), 1e-8, 0.0, True), [],
    ),
    "plateau's mode": (
        lambda: mg.optim.ReduceOnPlateau(mg.optim.SGD([nn.Parameter([1.0])]), "min"), [],
    ),
    "cross_entropy's size_average": (
        lambda: mg.cross_entropy(X, [0, 1], None, None), ["ignore_index="],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_with_two_meanings_is_refused_and_both_are_shown(name):
    call, shown = REFUSED[name]
    with pytest.raises(errors.MinigradError) as caught:
        call()
    for text in shown:
        assert text in str(caught.value)


def test_var_and_std_divide_as_is_said():
    values = X.numpy()
    for ddof in (0, 1):
        for axis in (None, 0, (0, 1)):
            kept = {"axis": axis, "keepdims": True}
            want = np.var(values, ddof=ddof, **kept)
            np.testing.assert_allclose(X.var(ddof=ddof, **kept).numpy(), want, rtol=1e-6)
            np.testing.assert_allclose(
                mg.std(X, correction=ddof, **kept).numpy(), np.sqrt(want), rtol=1e-6
            )
    with pytest.raises(errors.ShapeError, match="more than 2 elements"):
        X.var(0, ddof=2)
    with pytest.raises(errors.ArgumentError, match="one"):
        X.var(ddof=0, correction=1)


def test_the_gradient_of_var_with_ddof_equals_differences():
    x = mg.variable(np.linspace(-1, 2, 6).reshape(2, 3), requires_grad=True)
    assert mg.debug.gradcheck(lambda x: mg.var(x, 1, ddof=1), [x])
    assert mg.debug.gradgradcheck(lambda x: mg.std(x, ddof=1), [x])


def test_split_by_sections_and_by_sizes():
    x = mg.arange(7)
    assert [p.tolist() for p in mg.split(x, sections=3)] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [p.tolist() for p in mg.split(x, sizes=3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [p.tolist() for p in mg.split(x, sizes=[1, 0, 6])] == [[0], [], [1, 2, 3, 4, 5, 6]]
    assert [p.shape for p in mg.split(CUBE, sizes=2, axis=1)] == [(2, 2, 4), (2, 1, 4)]
    for sizes in ([1, 2], [8], [-1, 8], 0, "a", [True, 6]):
        with pytest.raises(errors.MinigradError):
            mg.split(x, sizes=sizes)


def images_and_labels(shape, labels):
    rng = np.random.default_rng(0)
    logits = mg.variable(rng.normal(size=shape), requires_grad=True)
    return logits, mg.variable(rng.integers(0, 3, labels))


def by_hand(logits, labels, axis):
    """The mean over all places, in NumPy."""
    x = np.moveaxis(logits.numpy(), axis, -1)
    log = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return -np.take_along_axis(log, labels.numpy()[..., None], -1).mean()


@pytest.mark.parametrize(
    ("shape", "labels", "axis", "said"),
    [
        ((4, 3, 5), (4, 5), 1, None),  # as in PyTorch: the second
        ((4, 5, 3), (4, 5), 2, None),  # the last
        ((4, 3, 5, 6), (4, 5, 6), 1, None),
        ((4, 5, 6, 3), (4, 5, 6), 3, None),
        ((4, 3, 3), (4, 3), 1, 1),  # both fit
        ((4, 3, 3), (4, 3), 2, -1),
        ((3, 4), (4,), 0, 0),
        ((4, 3), (4,), 1, None),
    ],
)
def test_cross_entropy_finds_the_axis_of_the_classes_or_is_told(shape, labels, axis, said):
    logits, target = images_and_labels(shape, labels)
    keywords = {} if said is None else {"axis": said}
    loss = mg.cross_entropy(logits, target, **keywords)
    assert loss.item() == pytest.approx(by_hand(logits.detach(), target, axis), rel=1e-12)
    assert mg.debug.gradcheck(lambda x: mg.cross_entropy(x, target, **keywords), [logits])
    none = mg.cross_entropy(logits, target, reduction="none", ignore_index=2, **keywords)
    assert none.shape == target.shape
    assert (none.numpy()[target.numpy() == 2] == 0.0).all()
    one = mg.one_hot(target, 3, "float64")
    moved = mg.variable(np.moveaxis(one.numpy(), -1, axis))
    of_shares = mg.cross_entropy(logits, moved, axis=axis)
    assert of_shares.item() == pytest.approx(loss.item(), rel=1e-12)


def test_cross_entropy_refuses_where_two_axes_fit():
    logits, target = images_and_labels((4, 3, 3), (4, 3))
    with pytest.raises(errors.ArgumentTypeError, match="axis=1 or axis=-1"):
        mg.cross_entropy(logits, target)
    with pytest.raises(errors.ArgumentTypeError, match="axis=1 or axis=-1"):
        mg.cross_entropy(logits, mg.softmax(logits.detach()))
    with pytest.raises(errors.ShapeError, match="classes last"):
        mg.cross_entropy(mg.zeros((4, 3, 5)), mg.zeros((4, 4), "int64"))


def test_what_stayed_means_what_it_meant():
    assert X.max(axis=1).tolist() == [6.0, 9.0]
    assert X.sum(0, True).shape == (1, 3)
    assert mg.norm(X, axis=0, keepdims=True).shape == (1, 3)
    assert mg.repeat(X, 2, axis=1).shape == (2, 6)
    assert mg.pad(mg.arange(2), (1, 2)).shape == (5,)
    assert mg.pad(X, [(0, 0), (1, 2)]).shape == (2, 6)
    assert mg.cumsum(X).shape == (6,)
