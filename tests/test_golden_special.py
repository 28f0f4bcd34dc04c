"""Values, gradients and their gradients at special values against what PyTorch computed.

`tests/golden/special.py` makes the numbers; `special_cases.py` says where minigrad differs and why.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from tests.golden import special_cases

HERE = Path(__file__).parent / "golden"
GOLDEN = json.loads((HERE / "special.json").read_text(encoding="utf-8"))


def computed(name, order):
    """Lists of ndarrays: the outputs, or the gradients of the inputs; zeros where there is none."""
    columns, function = special_cases.CASES[name]
    inputs = [mg.variable(np.array(c, float), requires_grad=True) for c in columns]
    y = function(mg, *inputs)
    if order == "value":
        return [y.numpy()]
    with_graph = order == "second"
    found = [None] * len(inputs)
    if y.requires_grad:
        found = mg.gradients(y, inputs, mg.full(y.shape, 1.25, "float64"), create_graph=with_graph)
    if with_graph:
        outs = [g for g in found if g is not None and g.requires_grad]
        halves = [mg.full(g.shape, 0.5, "float64") for g in outs]
        found = mg.gradients(outs, inputs, halves) if outs else [None] * len(inputs)
    return [
        np.zeros(x.shape) if g is None else g.numpy() for g, x in zip(found, inputs, strict=True)
    ]


def differences(name, order):
    """The places, (which array, index), where minigrad and PyTorch differ."""
    wanted = GOLDEN[name][order]
    wanted = [wanted] if order == "value" else wanted
    places = []
    for k, (a, b) in enumerate(zip(computed(name, order), np.array(wanted, float), strict=True)):
        close = np.isclose(a, b, 1e-6, 1e-15, equal_nan=True)
        places += [(k, *map(int, place)) for place in np.argwhere(~close)]
    return places


@pytest.mark.parametrize("name", special_cases.CASES)
def test_special_values_equal_golden_to_second_order(name):
    for order in GOLDEN[name]:
        why = {(name, order), (name, "*")} & set(special_cases.DIFFERENT)
        if not why:
            assert differences(name, order) == [], order


@pytest.mark.parametrize("name", sorted({name for name, _ in special_cases.DIFFERENT}))
def test_what_differs_on_purpose_still_does(name):
    orders = [order for case, order in special_cases.DIFFERENT if case == name]
    for order in orders:
        assert any(differences(name, o) for o in GOLDEN[name] if order in (o, "*"))
