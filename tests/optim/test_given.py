"""What is given as parameters: every function that takes several refuses what is empty or a set."""

import itertools
import weakref

import pytest

import minigrad as mg
from minigrad import errors, nn, optim

TAKING = {
    "SGD": lambda given: optim.SGD(given, 0.1),
    "Adam": lambda given: optim.Adam(given),
    "a group": lambda given: optim.SGD([{"parameters": given}], 0.1),
    "clip_grad_norm_": lambda given: optim.clip_grad_norm_(given, 1.0),
    "clip_grad_norm_per_param_": lambda given: optim.clip_grad_norm_per_param_(given, 1.0),
    "clip_grad_value_": lambda given: optim.clip_grad_value_(given, 1.0),
    "clip_params_": lambda given: optim.clip_params_(given, -1.0, 1.0),
    "GradManager": lambda given: mg.GradManager(given),
    "attach": lambda given: mg.GradManager().attach(given),
}


def used_up(items):
    iterator = iter(items)
    list(iterator)
    return iterator


@pytest.mark.parametrize("name", TAKING)
def test_an_iterator_that_is_used_up_is_refused(name):
    model = nn.Linear(2, 1)
    parameters = model.parameters()
    sum(p.size for p in parameters)
    with pytest.raises(errors.ArgumentError, match="a generator that gives nothing"):
        TAKING[name](parameters)
    with pytest.raises(errors.ArgumentError, match="gives nothing"):
        TAKING[name](map(str, ()))


@pytest.mark.parametrize("name", [name for name in TAKING if name != "a group"])
@pytest.mark.parametrize("empty", [[], ()])
def test_none_at_all_are_refused(name, empty):
    with pytest.raises(errors.ArgumentError, match=f"an empty {type(empty).__name__}"):
        TAKING[name](empty)


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("kind", [set, frozenset, weakref.WeakSet, lambda given: iter({*given})])
def test_a_set_is_refused_since_state_goes_by_order(name, kind):
    parameters = [nn.Parameter([1.0]) for _ in range(3)]
    with pytest.raises(errors.ArgumentTypeError, match="in an order"):
        TAKING[name](kind(parameters))


@pytest.mark.parametrize("name", TAKING)
def test_what_has_an_order_is_taken(name):
    by_name = {f"p{k}": nn.Parameter([1.0]) for k in range(2)}
    values = by_name.values()
    for given in (values, dict.fromkeys(values).keys(), dict.fromkeys(values), iter([*values])):
        TAKING[name](given)


@pytest.mark.parametrize("name", TAKING)
def test_what_never_ends_is_refused(name):
    parameters = itertools.cycle([nn.Parameter([1.0])])
    with pytest.raises(errors.ArgumentError, match="a cycle of more than 1,000,000"):
        TAKING[name](parameters)


def test_parameters_of_a_group_are_added_by_its_optimizer_alone():
    p, q = nn.Parameter([1.0]), nn.Parameter([1.0])
    optimizer = optim.SGD([p], 0.1)
    with pytest.raises(errors.ArgumentTypeError, match=r"optimizer\.add\(parameter, group=0\)"):
        optimizer.groups[0].parameters = [p, q]
    optimizer.add(q, group=0)
    assert optimizer.groups[0].parameters == (p, q)
    assert isinstance(optimizer.groups, tuple)


def test_a_group_and_a_manager_may_begin_without_parameters():
    p = nn.Parameter([1.0])
    optimizer = optim.SGD([{"parameters": [p]}, {"parameters": []}], 0.1)
    assert [len(group.parameters) for group in optimizer.groups] == [1, 0]
    assert mg.GradManager().attached == []
    with pytest.raises(errors.ArgumentError, match="gives nothing"):
        optim.SGD([{"parameters": [p]}, {"parameters": used_up([p])}], 0.1)
    with pytest.raises(errors.ArgumentError, match="several parameters"):
        mg.GradManager(callbacks=print)  # nothing would call it


def test_callbacks_are_called_in_an_order():
    p = nn.Parameter([1.0])
    with pytest.raises(errors.ArgumentTypeError, match="in an order"):
        mg.GradManager(p, {print, repr})
    with pytest.raises(errors.ArgumentError, match="gives nothing"):
        mg.GradManager(p, used_up([print]))


def test_lists_of_modules_have_an_order_too():
    a, b = nn.ReLU(), nn.Linear(2, 1)
    for given in ({a, b}, frozenset({a, b})):
        with pytest.raises(errors.ArgumentTypeError, match="in an order"):
            nn.ModuleList(given)
    for kind in (nn.ModuleList, nn.ModuleDict):  # of a depth that may be 0
        assert len(kind(used_up([]))) == len(kind([])) == 0
    with pytest.raises(errors.ArgumentTypeError, match="in an order"):
        nn.ModuleDict({("a", a), ("b", b)})
    assert [*nn.ModuleDict(iter([("a", a), ("b", b)])).keys()] == ["a", "b"]


def test_an_error_within_a_generator_is_its_own():
    def parameters():
        yield nn.Parameter([1.0])
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        optim.SGD(parameters(), 0.1)
