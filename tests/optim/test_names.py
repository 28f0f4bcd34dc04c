"""Names and arguments brought from elsewhere: the error says what they are called here."""

import pytest

import minigrad as mg
from minigrad import errors, nn, optim
from tests.optim.reference import FEW

P = nn.Parameter([1.0])


def sgd():
    return optim.SGD([P], learning_rate=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.SGD([P], lr=0.1), "learning_rate="),
        (lambda: optim.SGD(params=[P]), "parameters="),
        (lambda: optim.Adam([P], amsgrad=True), "it takes parameters, learning_rate, betas"),
        (lambda: sgd().zero_grad(set_to_none=True), "always sets .grad to None"),
        (lambda: optim.StepDecay(sgd(), step_size=3), "every="),
        (lambda: optim.StepDecay(sgd(), 3, gamma=0.1), "factor="),
        (lambda: optim.ExponentialDecay(sgd(), gamma=0.1), "factor="),
        (lambda: optim.CosineDecay(sgd(), T_max=3), "steps="),
        (lambda: optim.CosineDecay(sgd(), 3, eta_min=0.1), "minimum="),
        (lambda: optim.LinearWarmup(sgd(), 3, start_factor=0.1), "start="),
        (lambda: optim.Constant(sgd(), total_iters=3), "steps="),
        (lambda: optim.ReduceOnPlateau(sgd(), min_lr=0.1), "minimum="),
        (lambda: optim.StepDecay(sgd(), 3, last_epoch=2), "load_state_dict"),
        (lambda: optim.StepDecay(sgd(), 3, patience=2), "it takes optimizer, every, factor"),
    ],
)
def test_unknown_argument_raises_and_names_what_there_is(make, message):
    with pytest.raises(errors.ArgumentTypeError, match=message):
        make()


def test_unknown_name_in_a_group_is_translated():
    with pytest.raises(errors.ArgumentError, match="learning_rate for lr"):
        optim.SGD([{"parameters": [P], "lr": 1.0}])
    with pytest.raises(errors.ArgumentError) as caught:
        optim.SGD([{"parameters": [P], "speed": 1.0}])
    assert "got: speed" in str(caught.value)


def test_optimizer_and_schedule_of_ones_own_have_their_own_arguments():
    class Mine(optim.SGD):
        def __init__(self, parameters, lr):
            super().__init__(parameters, learning_rate=lr)

    class Half(optim.Schedule):
        def __init__(self, optimizer, gamma):
            self.gamma = gamma
            super().__init__(optimizer)

        def rate(self, t, peak):
            return peak * self.gamma

    optimizer = Mine([P], lr=0.5)
    Half(optimizer, gamma=0.5)
    assert optimizer.learning_rate == 0.25


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lr_scheduler", "StepDecay"),
        ("CosineAnnealingLR", r"CosineDecay\(optimizer, steps, minimum\)"),
        ("adam", "did you mean Adam"),
        ("LBFGS", "Adam"),
        ("Wobbling", r"dir\(mg.optim\)"),
    ],
)
def test_missing_name_says_what_it_is_called_here(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(mg.optim, name)


def test_step_and_zero_grad_before_any_backward_do_nothing():
    p = nn.Parameter([1.0, 2.0])
    for row in FEW.values():  # most decay parameters
        for given in ([p], nn.Linear(2, 2)):
            optimizer = row.make(given)
            optimizer.zero_grad()
            optimizer.step()
            optimizer.zero_grad()
            assert not optimizer.state
    assert p.tolist() == [1.0, 2.0]
    assert optim.clip_grad_norm_([p], 1.0) == 0.0
    nn.Linear(2, 2).zero_grad()
