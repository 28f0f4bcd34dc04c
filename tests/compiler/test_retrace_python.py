"""What Python alone does in a compiled function: done while it is traced, or refused."""

import pytest

import minigrad as mg
from minigrad import nn
from tests.compiler.raising import until_error

pytestmark = pytest.mark.usefixtures("interpreted_plans")


class TestPython:
    def test_prints_only_while_traced(self, capsys):
        @mg.compile
        def step(x):
            print("hello")  # noqa: T201
            return x * 2.0

        for _ in range(4):
            step(mg.ones((1,)))
        assert capsys.readouterr().out == "hello\n" * 2  # calls 1 and 3

    def test_printing_a_value_is_refused(self):
        def f(x):
            print(x * 2.0)  # noqa: T201
            return x

        step = mg.compile(f)
        step(mg.ones((1,)))
        assert "print" in until_error(step, mg.ones((1,)))

    def test_a_branch_on_a_value_is_refused(self):
        step = mg.compile(lambda x: x if x.sum() > 0 else -x)
        step(mg.ones((1,)))
        assert "mg.where" in until_error(step, mg.ones((1,)))

    def test_a_kept_value_is_found(self):
        class Model:
            @mg.compile
            def step(self, x):
                self.h = x * 2.0
                return self.h + 1.0

        model = Model()
        model.step(mg.ones((1,)))
        text = until_error(model.step, mg.ones((1,)))
        assert "kept outside" in text
        assert "has no elements: set it anew" in text

    @pytest.mark.parametrize("keep", [lambda x: x, lambda x: x.detach(), lambda x: x[:1]])
    def test_a_kept_argument_is_found(self, keep):
        kept = []
        step = mg.compile(lambda x: kept.append(keep(x)) or x * 2.0)
        step(mg.ones((2,)))
        text = until_error(step, mg.ones((2,)))
        assert "argument 0 ('x') is kept" in text or "kept outside" in text

    def test_values_appended_outside_are_found(self):
        losses = []
        step = mg.compile(lambda x: losses.append(x.sum()))
        step(mg.ones((1,)))
        assert "kept outside" in until_error(step, mg.ones((1,)))

    def test_a_list_argument_that_is_changed_is_found(self):
        step = mg.compile(lambda xs: xs.append(1))
        step([mg.ones((1,))])
        text = until_error(step, [mg.ones((1,))])
        assert "changes a list or dict" in text
        assert "where: raising.py" in text

    @pytest.mark.parametrize("make", [lambda x: {x}, lambda x: x.tolist, lambda x: nn.ReLU()])
    def test_what_cannot_be_returned_is_refused_with_the_line(self, make):
        step = mg.compile(make)
        step(mg.ones((1,)))
        text = until_error(step, mg.ones((1,)))
        assert "wanted it to return Variables" in text
        assert "where: raising.py" in text

    def test_errors_of_the_function_are_the_usual_ones_and_change_nothing(self):
        h = mg.zeros((2,))

        def f(x):
            h.add_(1.0)
            return x @ x

        step = mg.compile(f)
        for _ in range(2):
            with pytest.raises(mg.errors.ShapeError, match="matmul"):
                step(mg.ones((2, 3)))
        assert h.tolist() == [2.0, 2.0]  # run as usual until a call has come to its end
        step(mg.ones((2, 2)))
        version = h.version
        with pytest.raises(mg.errors.ShapeError, match="matmul"):
            step(mg.ones((2, 3)))
        assert (h.tolist(), h.version) == ([3.0, 3.0], version)

    def test_an_attribute_set_inside_is_refused(self):
        model = nn.Linear(2, 2)

        def f(x):
            model.last = [3]
            return x * 1.0

        step = mg.compile(f)
        step(mg.ones((1,)))
        assert "Linear.last" in until_error(step, mg.ones((1,)))
