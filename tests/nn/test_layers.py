"""Layers: what they compute, against formulas in NumPy; their shapes, messages and defaults."""

import inspect
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn

F8 = "float64"


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def values(p):
    return p.detach().numpy()


def test_linear_is_x_times_weight_transposed_plus_bias():
    layer, x = nn.Linear(4, 3, dtype=F8), random(2, 5, 4)
    y = layer(mg.variable(x)).numpy()
    np.testing.assert_allclose(y, x @ values(layer.weight).T + values(layer.bias), rtol=1e-12)
    plain = nn.Linear(4, 3, bias=False, dtype=F8)
    assert plain.bias is None
    np.testing.assert_allclose(plain(mg.variable(x)).numpy(), x @ values(plain.weight).T)


def test_linear_of_the_wrong_width_raises_with_advice():
    with pytest.raises(errors.ShapeError, match=r"wanted x \(\.\.\., 64\)") as caught:
        nn.Linear(64, 10)(mg.zeros((5, 8, 8)))
    assert "Flatten" in str(caught.value)
    with pytest.raises(errors.ShapeError, match="exchanged"):
        nn.Linear(4, 2)(mg.zeros((4, 3)))


def test_embedding_picks_rows_and_sums_their_gradients():
    layer = nn.Embedding(5, 3, dtype=F8)
    indices = mg.variable([[0, 4], [4, 2]])
    y = layer(indices)
    np.testing.assert_array_equal(y.numpy(), values(layer.weight)[[[0, 4], [4, 2]]])
    y.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy()[:, 0], [1, 0, 1, 0, 2])


def test_embedding_padding_is_zero_and_takes_no_gradient():
    layer = nn.Embedding(5, 3, padding_index=4)
    y = layer(mg.variable([0, 4, 4]))
    assert y.numpy()[1].tolist() == [0.0, 0.0, 0.0]
    y.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy()[:, 0], [1, 0, 0, 0, 0])
    with pytest.raises(errors.ArgumentError, match="below 5"):
        nn.Embedding(5, 3, padding_index=5)


def windows(x, size, stride):
    """(batch, channels, h', w', size, size) of x."""
    views = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
    return views[:, :, ::stride, ::stride]


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_conv2d_is_a_sum_over_windows(stride, padding):
    layer = nn.Conv2d(2, 3, 3, stride=stride, padding=padding, dtype=F8)
    x = random(2, 2, 6, 5)
    padded = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    expected = np.einsum("bchwij,ocij->bohw", windows(padded, 3, stride), values(layer.weight))
    expected += values(layer.bias)[:, None, None]
    np.testing.assert_allclose(layer(mg.variable(x)).numpy(), expected, rtol=1e-10, atol=1e-12)


def test_conv1d_with_groups_keeps_groups_apart():
    layer = nn.Conv1d(4, 4, 3, groups=2, bias=False, dtype=F8)
    assert layer.weight.shape == (4, 2, 3)
    x = random(1, 4, 7)
    y = layer(mg.variable(x)).numpy()
    x[:, 2:] = 0.0
    np.testing.assert_allclose(layer(mg.variable(x)).numpy()[:, :2], y[:, :2])


@pytest.mark.parametrize(
    ("make", "x", "message"),
    [
        (lambda: nn.Conv2d(3, 4, 3), (8, 8, 3), "unsqueeze"),
        (lambda: nn.Conv2d(3, 4, 3), (2, 8, 8, 3), "channels come second"),
        (lambda: nn.Conv1d(3, 4, 3), (2, 4, 9), "with 3 channels"),
        (lambda: nn.BatchNorm2d(3), (2, 4, 5, 5), "with 3 channels"),
        (lambda: nn.LayerNorm(3), (2, 4), "features last"),
        (lambda: nn.RMSNorm(3), (2, 4), "features last"),
        (lambda: nn.MultiHeadAttention(4, 2), (3, 4), "add a batch axis"),
    ],
)
def test_input_of_the_wrong_shape_raises(make, x, message):
    with pytest.raises(errors.ShapeError, match=message):
        make()(mg.zeros(x))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: nn.Linear(0, 3), errors.ArgumentError, "inputs of at least 1"),
        (lambda: nn.Linear(2.5, 3), errors.ArgumentTypeError, "an int for inputs"),
        (lambda: nn.Linear(True, 3), errors.ArgumentTypeError, "an int for inputs"),
        (lambda: nn.Conv2d(3, 4, 0), errors.ArgumentError, "size of at least 1"),
        (lambda: nn.Conv2d(3, 4, (1, 2, 3)), errors.ArgumentError, "one int or two"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), errors.ArgumentError, "groups divides"),
        (lambda: nn.Dropout(1.0), errors.ArgumentError, "below 1"),
        (lambda: nn.Dropout("a"), errors.ArgumentTypeError, "a number for p"),
        (lambda: nn.MultiHeadAttention(5, 2), errors.ArgumentError, "heads divides"),
        (lambda: nn.Conv2d(3, 4, kernel_size=3), errors.ArgumentTypeError, "size="),
        (lambda: nn.Linear(in_features=3, outputs=2), errors.ArgumentTypeError, "inputs="),
    ],
)
def test_layer_with_wrong_arguments_raises(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize(
    "layer",
    [nn.Linear(3, 2), nn.Conv2d(1, 1, 1), nn.LayerNorm(3), nn.RMSNorm(3), nn.BatchNorm1d(3),
     nn.Embedding(3, 2), nn.MultiHeadAttention(4, 2), nn.Flatten()],
    ids=repr,
)  # fmt: skip
def test_input_that_is_no_variable_raises(layer):
    with pytest.raises(errors.ArgumentTypeError, match=r"mg\.variable\(x\)"):
        layer([[1.0, 2.0, 3.0]])


def test_input_from_numpy_is_taken():
    layer = nn.Linear(3, 2)
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(layer(x).numpy(), layer(mg.variable(x)).numpy())
    with pytest.raises(errors.DTypeError):
        layer(np.ones((4, 3)))


def test_pools_take_the_largest_and_the_mean():
    x = random(2, 3, 6, 4)
    y = windows(x, 2, 2)
    np.testing.assert_array_equal(nn.MaxPool2d(2)(mg.variable(x)).numpy(), y.max((4, 5)))
    np.testing.assert_allclose(nn.AvgPool2d(2)(mg.variable(x)).numpy(), y.mean((4, 5)))
    assert nn.MaxPool2d(3, stride=1, padding=1)(mg.variable(x)).shape == x.shape


def test_layer_norm_and_rms_norm_normalise_rows():
    x = random(3, 8)
    centred = x - x.mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.LayerNorm(8, dtype=F8)(mg.variable(x)).numpy(), expected)
    expected = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.RMSNorm(8, dtype=F8)(mg.variable(x)).numpy(), expected)


@pytest.mark.parametrize(
    ("layer", "shape", "axes"),
    [(nn.BatchNorm1d, (6, 3), 0), (nn.BatchNorm1d, (6, 3, 4), (0, 2)),
     (nn.BatchNorm2d, (4, 3, 2, 5), (0, 2, 3))],
)  # fmt: skip
def test_batch_norm_in_training_and_evaluation(layer, shape, axes):
    norm, x = layer(3, dtype=F8), random(*shape) * 2 + 1
    to = (1, 3) + (1,) * (len(shape) - 2)
    mean, var = x.mean(axes), x.var(axes)
    expected = (x - mean.reshape(to)) / np.sqrt(var.reshape(to) + 1e-5)
    np.testing.assert_allclose(norm(mg.variable(x)).numpy(), expected, rtol=1e-9, atol=1e-12)
    n = x.size // 3
    running_mean, running_var = 0.1 * mean, 0.9 + 0.1 * var * n / (n - 1)
    np.testing.assert_allclose(norm.running_mean.numpy(), running_mean)
    np.testing.assert_allclose(norm.running_var.numpy(), running_var)
    expected = (x - running_mean.reshape(to)) / np.sqrt(running_var.reshape(to) + 1e-5)
    y = norm.eval()(mg.variable(x)).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(norm.running_mean.numpy(), running_mean)


def test_dropout_keeps_the_mean_in_training_and_x_in_evaluation():
    mg.manual_seed(0)
    layer, x = nn.Dropout(0.25), mg.ones((200, 200))
    y = layer(x).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)}
    assert abs(y.mean() - 1.0) < 0.02
    np.testing.assert_array_equal(layer.eval()(x).numpy(), x.numpy())


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
        (nn.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
        (nn.GELU(), lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
        (
            nn.GELU("tanh"),
            lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
        (nn.SiLU(), lambda x: x / (1 + np.exp(-x))),
        (nn.Tanh(), np.tanh),
        (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
        (nn.Softplus(), lambda x: np.log1p(np.exp(x))),
        (nn.Softmax(0), lambda x: np.exp(x) / np.exp(x).sum(0)),
        (nn.Flatten(), lambda x: x),
    ],
    ids=lambda v: repr(v) if isinstance(v, nn.Module) else "",
)
def test_activation_equals_its_formula(layer, expected):
    x = random(4, 5)
    np.testing.assert_allclose(layer(mg.variable(x)).numpy(), expected(x), rtol=1e-10, atol=1e-12)


def test_flatten_keeps_the_batch_axis():
    assert nn.Flatten()(mg.zeros((2, 3, 4))).shape == (2, 12)
    assert nn.Flatten()(mg.zeros((0, 3, 4))).shape == (0, 12)


def attention(layer, x, causal):
    """Multi-head attention, one head at a time."""
    q, k, v = (
        x @ values(m.weight).T + values(m.bias) for m in (layer.query, layer.key, layer.value)
    )
    width = x.shape[-1] // layer.heads
    heads = []
    for h in range(layer.heads):
        part = slice(h * width, (h + 1) * width)
        scores = q[..., part] @ k[..., part].swapaxes(-1, -2) / math.sqrt(width)
        if causal:
            scores = np.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        heads.append(weights / weights.sum(-1, keepdims=True) @ v[..., part])
    y = np.concatenate(heads, -1)
    return y @ values(layer.output.weight).T + values(layer.output.bias)


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_attention_equals_one_head_after_the_other(causal):
    layer, x = nn.MultiHeadAttention(6, 3, causal=causal, dtype=F8), random(2, 5, 6)
    y = layer(mg.variable(x)).numpy()
    np.testing.assert_allclose(y, attention(layer, x, causal), rtol=1e-9, atol=1e-12)


def test_causal_block_does_not_look_ahead():
    block = nn.TransformerBlock(8, 2, causal=True)
    x = random(1, 6, 8).astype("f4")
    before = block(mg.variable(x)).numpy()
    x[:, 4:] += 1.0
    after = block(mg.variable(x)).numpy()
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert np.abs(before[:, 4:] - after[:, 4:]).max() > 0.1


def test_transformer_block_is_pre_norm():
    block, x = nn.TransformerBlock(4, 2, hidden=8, dtype=F8), mg.variable(random(1, 3, 4))
    middle = x + block.attention(block.attention_norm(x))
    expected = middle + block.mlp(block.mlp_norm(middle))
    np.testing.assert_array_equal(block(x).numpy(), expected.numpy())
    assert block.mlp[0].weight.shape == (8, 4)


def test_attention_takes_a_mask_and_another_source():
    layer = nn.MultiHeadAttention(4, 2)
    x, source = mg.randn((2, 3, 4)), mg.randn((2, 5, 4))
    assert layer(x, source).shape == (2, 3, 4)
    mask = mg.variable(np.arange(5) < 2)
    np.testing.assert_allclose(
        layer(x, source, mask=mask).numpy(), layer(x, source[:, :2]).numpy(), rtol=1e-5, atol=1e-6
    )


LAYERS = [
    (lambda: nn.Linear(4, 3), (2, 4)), (lambda: nn.Conv1d(2, 3, 2), (2, 2, 5)),
    (lambda: nn.Conv2d(2, 3, 2), (2, 2, 5, 5)), (lambda: nn.LayerNorm(4), (3, 4)),
    (lambda: nn.RMSNorm(4), (3, 4)), (lambda: nn.BatchNorm1d(4), (5, 4)),
    (lambda: nn.BatchNorm2d(2), (3, 2, 4, 4)), (lambda: nn.MultiHeadAttention(4, 2), (2, 3, 4)),
    (lambda: nn.TransformerBlock(4, 2), (2, 3, 4)),
]  # fmt: skip


def test_every_layer_with_parameters_of_its_own_stands_in_the_table():
    stand = {type(make()) for make, _ in LAYERS} | {nn.Embedding}  # whose input is an index
    layers = [v for v in vars(nn).values() if isinstance(v, type) and issubclass(v, nn.Module)]
    own = {layer for layer in layers if "Parameter(" in inspect.getsource(layer)}
    assert own - {nn.Module} <= stand


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_every_parameter_of_a_layer_gets_a_gradient(make, shape):
    layer = make()
    y = layer(mg.variable(random(*shape).astype("f4")))
    (y * mg.variable(random(*y.shape, seed=1).astype("f4"))).sum().backward()
    for name, p in layer.named_parameters():
        assert p.grad is not None, name
        assert p.grad.shape == p.shape


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_every_layer_takes_an_empty_batch_in_evaluation(make, shape):
    layer = make().valid()
    expected = layer(mg.zeros(shape)).shape
    assert layer(mg.zeros((0, *shape[1:]))).shape == (0, *expected[1:])
