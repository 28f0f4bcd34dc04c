"""Golden cases: convolution, pooling, losses, normalisation, attention."""

import torch
from case import case, distinct, fixed, normal, positive, probabilities, unit
from torch.nn import functional


def convolutions():
    """Every option alone and together, odd sizes so that a window does not fit at the edge."""
    options = {
        "": (6, {}),
        "_stride": (7, {"stride": 2}),
        "_padding": (6, {"padding": 1}),
        "_dilation": (8, {"dilation": 2}),
        "_together": (8, {"stride": 2, "padding": 2, "dilation": 2}),
    }
    for name, (size, keywords) in options.items():
        yield case(
            f"conv1d{name}",
            "conv1d",
            {"x": normal(2, 4, size), "w": normal(3, 4, 3), "b": normal(3)},
            lambda x, w, b, k=keywords: functional.conv1d(x, w, b, **k),
            **keywords,
        )
        yield case(
            f"conv2d{name}",
            "conv2d",
            {"x": normal(2, 2, size, size - 1), "w": normal(3, 2, 3, 2), "b": normal(3)},
            lambda x, w, b, k=keywords: functional.conv2d(x, w, b, **k),
            **keywords,
        )
    more = {
        "groups": ((2, 4, 5, 5), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
        "depthwise": ((1, 3, 5, 5), (3, 1, 3, 3), {"groups": 3, "stride": 2}),
        "pairs": (
            (1, 2, 7, 6),
            (2, 2, 3, 2),
            {"stride": (2, 1), "padding": (0, 1), "dilation": (1, 2)},
        ),
        "pointwise": ((2, 3, 4, 4), (5, 3, 1, 1), {}),
    }
    for name, (x, w, keywords) in more.items():
        yield case(
            f"conv2d_{name}",
            "conv2d",
            {"x": normal(*x), "w": normal(*w)},
            lambda x, w, k=keywords: functional.conv2d(x, w, **k),
            **keywords,
        )
    yield case(
        "conv1d_groups",
        "conv1d",
        {"x": normal(2, 4, 7), "w": normal(4, 2, 3)},
        lambda x, w: functional.conv1d(x, w, groups=2, padding=1),
        groups=2,
        padding=1,
    )


def pools():
    """Windows that tile, overlap, overhang and are padded."""
    options = {
        "": ((2, 2, 6, 4), 2, {}),
        "_overlap": ((1, 2, 7, 6), 3, {"stride": 2}),
        "_padding": ((1, 2, 5, 5), 3, {"stride": 2, "padding": 1}),
        "_pair": ((1, 2, 6, 7), (2, 3), {"stride": (2, 1)}),
        "_overhang": ((1, 1, 5, 5), 2, {}),
    }
    for name, (shape, size, keywords) in options.items():
        for op in ("max_pool2d", "avg_pool2d"):
            yield case(
                f"{op}{name}",
                op,
                {"x": distinct(*shape)},
                lambda x, op=op, size=size, k=keywords: getattr(functional, op)(x, size, **k),
                ["$x", size],
                **keywords,
            )


def classification():
    """Cross entropy with every option, over class indices and over probabilities."""
    labels = {"logits": normal(6, 4), "labels": fixed([0, 3, 1, 2, 2, 0])}
    options = {
        "": {},
        "_sum": {"reduction": "sum"},
        "_none": {"reduction": "none"},
        "_smoothing": {"label_smoothing": 0.25},
        "_ignore": {"ignore_index": 2},
        "_ignore_smoothing": {"ignore_index": 2, "label_smoothing": 0.125},
    }
    for name, keywords in options.items():
        yield case(
            f"cross_entropy{name}",
            "cross_entropy",
            labels,
            lambda x, y, k=keywords: functional.cross_entropy(x, y, **k),
            **keywords,
        )
        yield case(
            f"cross_entropy_weights{name}",
            "cross_entropy",
            {**labels, "weights": positive(4)},
            lambda x, y, w, k=keywords: functional.cross_entropy(x, y, w, **k),
            ["$logits", "$labels"],
            ["weights"],
            weight="$weights",
            **keywords,
        )
    wide = {"logits": fixed([[500.0, 0.0, -500.0], [3.0, 2.0, 1.0]]), "labels": fixed([2, 0])}
    yield case("cross_entropy_wide", "cross_entropy", wide, functional.cross_entropy)
    soft = {"logits": normal(5, 4), "targets": probabilities(5, 4)}
    yield case(
        "cross_entropy_probabilities",
        "cross_entropy",
        soft,
        functional.cross_entropy,
        constant=["targets"],
    )
    yield case(
        "cross_entropy_probabilities_weights_smoothing",
        "cross_entropy",
        {**soft, "weights": positive(4)},
        lambda x, y, w: functional.cross_entropy(x, y, w, label_smoothing=0.25),
        ["$logits", "$targets"],
        ["targets", "weights"],
        weight="$weights",
        label_smoothing=0.25,
    )


def regression():
    """The other losses."""
    pair = {"x": normal(4, 3), "target": normal(4, 3)}
    for name, keywords in {"": {}, "_sum": {"reduction": "sum"}}.items():
        yield case(
            f"mse{name}",
            "mse",
            pair,
            lambda x, t, k=keywords: functional.mse_loss(x, t, **k),
            **keywords,
        )
    for delta in (1.0, 0.5):
        yield case(
            f"huber_{delta}",
            "huber",
            pair,
            lambda x, t, delta=delta: functional.huber_loss(x, t, delta=delta),
            delta=delta,
        )
    truth = {"logits": normal(4, 3), "targets": unit(4, 3)}
    yield case(
        "bce_with_logits",
        "bce_with_logits",
        truth,
        functional.binary_cross_entropy_with_logits,
        constant=["targets"],
    )
    yield case(
        "bce_with_logits_wide",
        "bce_with_logits",
        {"logits": fixed([-200.0, -20.0, 20.0, 200.0]), "targets": fixed([1.0, 0.0, 1.0, 0.25])},
        functional.binary_cross_entropy_with_logits,
        constant=["targets"],
    )


def normalisation():
    """Over the last axis, and over the batch."""
    x = {"x": normal(2, 3, 8)}
    scaled = {**x, "weight": positive(8), "bias": normal(8)}
    yield case(
        "layer_norm", "layer_norm", scaled, lambda x, w, b: functional.layer_norm(x, (8,), w, b)
    )
    yield case(
        "layer_norm_eps",
        "layer_norm",
        scaled,
        lambda x, w, b: functional.layer_norm(x, (8,), w, b, 0.25),
        eps=0.25,
    )
    yield case(
        "rms_norm",
        "rms_norm",
        {**x, "weight": positive(8)},
        lambda x, w: functional.rms_norm(x, (8,), w, 1e-5),
        eps=1e-5,
    )
    for suffix, shape in (("_rows", (6, 3)), ("_images", (4, 3, 2, 5))):
        inputs = {
            "x": normal(*shape),
            "weight": positive(3),
            "bias": normal(3),
            "mean": normal(3),
            "variance": positive(3),
        }
        for training in (True, False):
            yield case(
                f"batch_norm{suffix}_{'training' if training else 'evaluation'}",
                "batch_norm",
                inputs,
                lambda x, w, b, m, v, training=training: functional.batch_norm(
                    x, m.clone(), v.clone(), w, b, training
                ),
                ["$x"],
                ["mean", "variance"],
                weight="$weight",
                bias="$bias",
                running_mean="$mean",
                running_var="$variance",
                training=training,
            )


def attention():
    """Plain, causal, and with other lengths of queries and keys."""
    op = "scaled_dot_product_attention"
    reference = functional.scaled_dot_product_attention
    same = {"q": normal(2, 2, 5, 4), "k": normal(2, 2, 5, 4), "v": normal(2, 2, 5, 3)}
    yield case("attention", op, same, reference)
    yield case(
        "attention_causal",
        op,
        same,
        lambda q, k, v: reference(q, k, v, is_causal=True),
        is_causal=True,
    )
    other = {"q": normal(2, 3, 4), "k": normal(2, 6, 4), "v": normal(2, 6, 4)}
    yield case("attention_lengths", op, other, reference)
    mask = {"mask": fixed(torch.ones(3, 6, dtype=torch.bool).tril(2).numpy())}
    yield case(
        "attention_mask",
        op,
        {**other, **mask},
        reference,
        ["$q", "$k", "$v"],
        mask="$mask",
    )


CASES = [
    *convolutions(),
    *pools(),
    *classification(),
    *regression(),
    *normalisation(),
    *attention(),
]
