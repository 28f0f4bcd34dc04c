"""A run that was saved and resumed gives the numbers of one that was not, bit for bit.

In the resumed run everything is new: model, optimizer, schedule and compiled step.
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from tests.optim.reference import FEW


class Run:
    """A model, its optimizer and its step. order: 'last' or 'first', where gradients are zeroed."""

    def __init__(self, name, order="last", kind="step"):
        model = self.model = nn.Sequential(
            nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 5)
        )
        optimizer = self.optimizer = FEW[name].make(model)
        self.schedule = optim.ExponentialDecay(optimizer, 0.9)

        def step(x, y):
            if order == "first":
                optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if order == "last":
                optimizer.zero_grad()
            return loss

        net = mg.compile(model)

        def outside(x, y):
            loss = mg.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        self.step = mg.compile(step) if kind == "step" else outside

    def train(self, first, stop):
        losses = []
        for k in range(first, stop):
            random = np.random.default_rng(k)
            x = mg.variable(random.normal(size=(9, 12)).astype("f4"))
            y = mg.variable(random.integers(0, 5, 9))
            losses.append(self.step(x, y).item())
            if k % 2:
                self.schedule.step()
        return losses

    def save(self):
        parts = self.model, self.optimizer, self.schedule
        return [x.state_dict() for x in parts], mg.get_rng_state()

    def load(self, saved):
        states, random = saved
        for x, found in zip((self.model, self.optimizer, self.schedule), states, strict=True):
            x.load_state_dict(found)
        mg.set_rng_state(random)

    def bits(self):
        arrays = {**self.model.state_dict()}
        return {name: np.asarray(a).tobytes() for name, a in arrays.items()}


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize(("order", "kind"), [("last", "step"), ("first", "step"), ("", "outside")])
def test_a_resumed_run_is_the_same_bit_for_bit(name, order, kind):
    mg.manual_seed(0)
    run = Run(name, order, kind)
    run.train(0, 5)
    saved = run.save()
    wanted = run.train(5, 12), run.bits(), mg.get_rng_state()

    mg.manual_seed(1)
    again = Run(name, order, kind)
    again.load(saved)
    assert (again.train(5, 12), again.bits(), mg.get_rng_state()) == wanted
