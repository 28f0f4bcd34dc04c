"""What values and calls are called in reports: operations, and parameters of models."""

import minigrad as mg
from minigrad.compiler.program.labels import joined, operation
from minigrad.compiler.program.sketch import Sketch


def test_labels():
    s = Sketch()
    x = s.argument((4, 4))
    y = s.exp(x)
    s.reduce("sum", y, axes=(0, 1))
    s.fill(0.0, (4,))
    s.copy(x)
    assert [operation(i) for i in s.instructions] == ["exp", "sum", "fill", "copy"]
    assert joined(s.instructions) == "exp + sum + fill + copy"
    for k, name in enumerate(("softmax", "softmax backward", "Adam.step", "Adam.step")):
        s.instructions[k].name = name
    assert joined(s.instructions) == "softmax + its gradient + Adam"
    s.instructions[3].name = "relu"
    assert joined(s.instructions, most=2) == "softmax + its gradient + 2 more"


def test_parameters_of_a_model_are_named_without_an_optimizer():
    model = mg.nn.Linear(4, 3)

    @mg.compile
    @mg.no_grad()
    def forward(x):
        return model(x).tanh()

    for _ in range(2):
        forward(mg.rand((2, 4)))
    names = forward._names(forward.traces[0])
    captured = forward.traces[0].plan.before.values("captured")
    assert sorted(map(names, captured)) == ["bias", "weight"]


def test_parameters_of_two_models_are_told_apart():
    first, second = mg.nn.Linear(3, 4), mg.nn.Linear(4, 3)
    optimizer = mg.optim.Adam([*first.parameters(), *second.parameters()])

    @mg.compile
    def step(x):
        second(first(x).tanh()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(2):
        step(mg.rand((2, 3)))
    names = {a.name for a in step.report().aliases}
    assert {"first.weight", "first.bias", "second.weight", "second.bias"} <= names
    assert {"Adam's state of first.weight", "Adam's state of second.bias"} <= names
