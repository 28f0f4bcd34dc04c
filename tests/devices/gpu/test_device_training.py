"""Training on the simulated GPU: losses, parameters and optimizer state are those of the CPU."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.backend import device_named
from tests.optim.reference import FEW

DEVICE = "simt"


@pytest.fixture(autouse=True)
def watched(monkeypatch):
    """The simulator looks for data races and the like in all that runs."""
    monkeypatch.setattr(device_named(DEVICE), "watch", True)


def digits_model():
    """The MLP of the lessons, with the same first values each time."""
    mg.manual_seed(3)
    return mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.ReLU(), mg.nn.Linear(32, 10))


def batch(k, device):
    """32 digits of the data set: (n, 64) float32 and (n,) int64."""
    images, labels = mg.data.load_digits()
    rows = slice(32 * k, 32 * k + 32)
    x = images[rows].reshape(32, 64).astype(np.float32)
    return mg.variable(x, device=device), mg.variable(labels[rows].astype(np.int64), device=device)


def trained(device, make, steps=4):
    """(losses, norms of gradients, values of parameters, optimizer) after some steps."""
    model = digits_model().to(device)
    optimizer, gm = make(model), mg.GradManager(model.parameters())
    losses, norms = [], []
    for k in range(steps):
        x, labels = batch(k, device)
        with gm:
            loss = mg.cross_entropy(model(x), labels)
            gm.backward(loss)
        norms.append(mg.optim.clip_grad_norm_(model, 1.0))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, norms, model, optimizer


def close(a, b):
    """Whether Variables of two devices are equal within the rounding of some steps in float32."""
    a, b = (v.detach().to("cpu").numpy() for v in (a, b))
    np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-5 * max(0.1, np.abs(a).max(initial=0.0)))


@pytest.mark.parametrize("name", FEW)
def test_steps_of_the_digits_model_equal_those_of_the_cpu(name):
    make = FEW[name].make
    losses, norms, model, optimizer = trained("cpu", make)
    there_losses, there_norms, there, its = trained(DEVICE, make)
    np.testing.assert_allclose(there_losses, losses, rtol=1e-5)
    np.testing.assert_allclose(there_norms, norms, rtol=1e-5)
    for (p_name, p), q in zip(model.named_parameters(), there.parameters(), strict=True):
        assert q.device == DEVICE, p_name
        close(p, q)
    state, its_state = optimizer.state_dict()["state"], its.state_dict()["state"]
    assert state.keys() == its_state.keys()
    for p_name, kept in state.items():
        assert kept.keys() == its_state[p_name].keys()
        for key, value in kept.items():
            assert its_state[p_name][key].device == DEVICE
            close(value, its_state[p_name][key])


def test_numbers_of_an_optimizer_are_on_the_host_whatever_the_default_device():
    with mg.device(DEVICE):
        optimizer = mg.optim.Adam(mg.nn.Linear(2, 2), 0.5)
    (group,) = optimizer.groups
    assert group.learning_rate_array.device == "cpu"
    assert optimizer.learning_rate == group.learning_rate == 0.5


def test_gradients_lie_in_one_flat_buffer_on_the_device():
    model = digits_model().to(DEVICE)
    gm = mg.GradManager(model.parameters())
    x, labels = batch(0, DEVICE)
    with gm:
        gm.backward(mg.cross_entropy(model(x), labels))
    groups = {id(p.group[0]): p.group[0] for p in model.parameters()}
    (group,) = groups.values()
    assert group.flat.device == DEVICE
    for p in model.parameters():
        assert p.grad.array.storage is group.flat
        assert p.grad.device == DEVICE


def test_callback_of_a_whole_group_sees_the_flat_gradient_on_the_device():
    seen = []

    def halve(group, flat):
        seen.append(flat.device)
        return flat * 0.5

    halve.whole_group = True
    p = mg.ones((3,), device=DEVICE).requires_grad_()
    gm = mg.GradManager([p], callbacks=halve)
    with gm:
        gm.backward((p * 4.0).sum())
    assert seen == [DEVICE]
    assert p.grad.tolist() == [2.0, 2.0, 2.0]


def test_optimizer_state_follows_a_model_that_moves():
    results = []
    for places in (["cpu"] * 4, ["cpu", DEVICE, DEVICE, "cpu"]):
        model = digits_model()
        optimizer = mg.optim.Adam(model, 0.01)
        for k, place in enumerate(places):
            model.to(place)
            x, labels = batch(k, place)
            mg.cross_entropy(model(x), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            kept = [v.device for state in optimizer.state.values() for v in state.values()]
            assert set(kept) == {place}
        results.append(list(model.parameters()))
    for p, q in zip(*results, strict=True):
        close(p, q)


def test_parameters_that_are_reached_later_get_state_then():
    results = []
    for place in ("cpu", DEVICE):
        model = digits_model().to(place)
        optimizer = mg.optim.Adam(model, 0.01)
        x, labels = batch(0, place)
        mg.cross_entropy(model[2](mg.ones((32, 32), device=place)), labels).backward()
        for _ in range(2):
            optimizer.step()
            optimizer.zero_grad()
            mg.cross_entropy(model(x), labels).backward()
        results.append(list(model.parameters()))
    for p, q in zip(*results, strict=True):
        close(p, q)


def test_model_with_parts_on_two_devices_trains_in_one_optimizer():
    first, second = digits_model(), digits_model()
    second[2].to(DEVICE)
    results = []
    for model, place in ((first, "cpu"), (second, DEVICE)):
        optimizer = mg.optim.Adam(model, 0.01)
        for k in range(2):
            x, labels = batch(k, "cpu")
            hidden = model[1](model[0](x)).to(place)
            mg.cross_entropy(model[2](hidden), labels.to(place)).backward()
            norms = mg.optim.clip_grad_norm_(model, 1.0)
            optimizer.step()
            optimizer.zero_grad()
        results.append((norms, list(model.parameters())))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    for p, q in zip(results[0][1], results[1][1], strict=True):
        close(p, q)


def test_state_dicts_go_from_device_to_device():
    make = FEW["Adam"].make
    _, _, model, optimizer = trained(DEVICE, make, steps=1)
    fresh = digits_model()
    again = make(fresh)
    fresh.load_state_dict(model.state_dict())
    again.load_state_dict(optimizer.state_dict())
    for one in (fresh, model):
        x, labels = batch(5, one[0].weight.device)
        mg.cross_entropy(one(x), labels).backward()
    optimizer.step()
    again.step()
    for p, q in zip(fresh.parameters(), model.parameters(), strict=True):
        assert (p.device, q.device) == ("cpu", DEVICE)
        close(p, q)


def test_clipping_by_value_by_parameter_and_of_parameters():
    for clip, want in (
        (lambda p: mg.optim.clip_grad_value_([p], 2.0), [2.0, -2.0]),
        (lambda p: mg.optim.clip_grad_norm_per_param_([p], 2.5), [1.5, -2.0]),
        (lambda p: mg.optim.clip_grad_norm_([p], 2.5), [1.5, -2.0]),
    ):
        p = mg.nn.Parameter(mg.variable([1.0, 5.0], device=DEVICE))
        p.grad = mg.variable([3.0, -4.0], device=DEVICE)
        clip(p)
        np.testing.assert_allclose(p.grad.tolist(), want, rtol=1e-6)
    mg.optim.clip_params_([p], 0.0, 2.0)
    assert p.tolist() == [1.0, 2.0]
    p.grad = mg.variable([float("nan"), 1.0], device=DEVICE)
    with pytest.raises(mg.errors.NonFiniteError, match="finite gradients"):
        mg.optim.clip_grad_norm_([p], 1.0)
    p.grad = mg.variable([3e30, 4e30], device=DEVICE)  # squares beyond float32
    assert mg.optim.clip_grad_norm_([p], 5.0) == pytest.approx(5e30, rel=1e-6)
    np.testing.assert_allclose(p.grad.tolist(), [3.0, 4.0], rtol=1e-5)


def test_running_statistics_and_buffers_move_with_the_model():
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.BatchNorm1d(3), mg.nn.Dropout(0.0))
    data = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    twin = mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.BatchNorm1d(3), mg.nn.Dropout(0.0))
    twin.load_state_dict(model.state_dict())
    twin.to(DEVICE)
    assert {b.device for b in twin.buffers()} == {DEVICE}
    close(model(mg.variable(data)), twin(mg.variable(data, device=DEVICE)))
    for b, c in zip(model.buffers(), twin.buffers(), strict=True):
        close(b, c)
    counted = mg.nn.Module()
    counted.steps = mg.nn.Buffer([3])
    assert counted.to(DEVICE).steps.device == DEVICE  # ints move too, though their dtype stays
    assert counted.to("float64").steps.dtype == "int64"
    view, frozen = twin.valid(), twin.clone()
    assert {p.device for p in (*view.parameters(), *frozen.parameters())} == {DEVICE}
    close(model.valid()(mg.variable(data)), view(mg.variable(data, device=DEVICE)))


def small_cnn():
    """Convolutions, batch statistics, pooling, dropout: inputs (4, 1, 8, 8)."""
    return mg.nn.Sequential(
        mg.nn.Conv2d(1, 4, 3, padding=1), mg.nn.BatchNorm2d(4), mg.nn.ReLU(), mg.nn.MaxPool2d(2),
        mg.nn.Conv2d(4, 6, 3, stride=2, padding=1), mg.nn.SiLU(), mg.nn.Flatten(),
        mg.nn.Dropout(0.3), mg.nn.Linear(24, 10),
    )  # fmt: skip


class Language(mg.nn.Module):
    """Embedding, two blocks of causal attention, norm: ids (2, 5) -> logits (10, 12)."""

    def __init__(self):
        self.ids = mg.nn.Embedding(12, 8)
        self.blocks = mg.nn.Sequential(
            *(mg.nn.TransformerBlock(8, heads=2, causal=True) for _ in range(2))
        )
        self.norm, self.head = mg.nn.RMSNorm(8), mg.nn.Linear(8, 12)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.ids(ids)))).reshape((-1, 12))


@pytest.mark.parametrize("make", [small_cnn, Language])
def test_gradients_of_larger_models_equal_those_of_the_cpu(make):
    rng = np.random.default_rng(0)
    if make is small_cnn:
        data = rng.standard_normal((4, 1, 8, 8)).astype(np.float32)
        labels = np.arange(4)
    else:
        data, labels = rng.integers(0, 12, (2, 5)), np.arange(10)
    found = []
    for place in ("cpu", DEVICE):
        mg.manual_seed(1)
        model = make()
        model.to(place)
        loss = mg.cross_entropy(model(mg.variable(data, device=place)), labels, label_smoothing=0.1)
        loss.backward()
        assert loss.device == place
        found.append((loss, [p.grad for p in model.parameters()], list(model.buffers())))
    (loss, grads, buffers), (its_loss, its_grads, its_buffers) = found
    close(loss, its_loss)
    for a, b in zip((*grads, *buffers), (*its_grads, *its_buffers), strict=True):
        assert b.device == DEVICE
        close(a, b)


def test_schedules_and_groups_act_on_the_device():
    results = []
    for place in ("cpu", DEVICE):
        model = digits_model().to(place)
        groups = [
            {"parameters": model[0], "learning_rate": 0.1},
            {"parameters": model[2], "weight_decay": 0.1},
        ]
        optimizer = mg.optim.AdamW(groups, learning_rate=0.01)
        schedule = mg.optim.StepDecay(optimizer, 1, 0.5)
        for k in range(3):
            x, labels = batch(k, place)
            mg.cross_entropy(model(x), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        results.append(([g.learning_rate for g in optimizer.groups], list(model.parameters())))
    assert results[0][0] == results[1][0]
    for p, q in zip(results[0][1], results[1][1], strict=True):
        close(p, q)
