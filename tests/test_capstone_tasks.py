"""The tasks of the capstones: what is trained with, what a score is, what is counted."""

import contextlib
import re
import sys

import numpy as np
import pytest

from minigrad.course import capstone_tasks as tasks
from minigrad.course.l17_capstone.common import keeps_nothing, recorded
from minigrad.course.trigram import trigram_bits
from minigrad.grader.folder import CourseError


def test_text_is_cut_into_parts_that_are_all_of_it():
    import minigrad as mg

    alphabet, tokens, held_out = tasks.text()
    written = mg.data.load_text()
    assert len(tokens) + sum(map(len, held_out)) == len(written)
    assert "".join(alphabet[i] for i in tokens[:200]) == written[:200]
    first = "".join(alphabet[i] for i in held_out[0])
    assert first in written
    assert first not in "".join(alphabet[i] for i in tokens)


def test_trigram_counts_two_tokens_back():
    """A token that is mostly the sum of the two before it costs as little as it can."""
    random = np.random.default_rng(1)
    tokens = list(random.integers(0, 5, 2))
    for _ in range(30_000):
        a, b = tokens[-2:]
        certain = random.random() < 0.9
        tokens.append((a + b) % 5 if certain else int(random.integers(5)))
    tokens = np.array(tokens)
    likely, other = 0.9 + 0.1 / 5, 0.1 / 5
    entropy = -(likely * np.log2(likely) + 4 * other * np.log2(other))
    assert trigram_bits(tokens[:25_000], tokens[25_000:], 5) == pytest.approx(entropy, abs=0.05)


def test_trigram_has_a_probability_for_everything():
    """All successors of a context, seen and unseen ones, have probabilities that add up to 1."""
    tokens = np.array([0, 1, 2, 0, 1, 1, 2, 0])
    for a, b in ((0, 1), (2, 2), (3, 0)):
        rest = [2.0 ** -trigram_bits(tokens, np.array([a, b, c]), 4) for c in range(4)]
        assert sum(rest) == pytest.approx(1.0)
        assert min(rest) > 0


def test_bits_are_those_of_the_softmax():
    scores = np.log(np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])) + 7.0
    assert tasks.bits_per_token(scores, np.array([0, 1])) == pytest.approx((1 + 3) / 2)


def test_bar_of_the_text_names_the_baseline():
    [named] = re.findall(r"which needs ([\d.]+)", tasks.CAPSTONES["write_text"].bar)
    assert float(named) == pytest.approx(tasks.text_baseline(), abs=0.005)


def test_bars_are_what_they_say():
    digits, text, pole = (tasks.CAPSTONES[n] for n in ("read_digits", "write_text", "balance_pole"))
    assert digits.is_passed([0.96, 0.96, 0.97, 0.99, 0.99])
    assert not digits.is_passed([0.96, 0.96, 0.969, 0.99, 0.99])
    assert text.is_passed([tasks.text_baseline() - 0.01] * 5)
    assert not text.is_passed([1.0, 1.0, 1.0, 1.0, tasks.text_baseline() + 0.01])
    assert not text.is_passed([1.0, 1.0, 1.0, 1.0, text.worst])
    assert pole.is_passed([0.0, 0.0, 195.0, 500.0, 200.0])
    assert not pole.is_passed([194.9, 0.0, 194.9, 500.0, 200.0])


def test_run_of_digits_holds_out_a_fifth_and_hands_over_no_label_of_it():
    seen = {}

    def function(images, labels, seed, record):
        seen.update(n=len(images), seed=seed)
        return lambda new: np.full(len(new), 3)

    score = tasks.run_digits(function, 2, print)
    assert (seen["n"], seen["seed"]) == (1438, 2)
    assert score == pytest.approx(0.1, abs=0.01)
    with pytest.raises(
        CourseError, match=r"wanted 359 labels from read, got shape.*check 17\.read"
    ):
        tasks.run_digits(lambda *_: lambda new: np.zeros((len(new), 10)), 2, print)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (tasks.run_digits, r"wanted read, a function of images, got None.*check 17\.read_digits"),
        (tasks.run_text, r"wanted the model, a mg\.nn\.Module, got None.*check 17\.write_text"),
    ],
)
def test_function_that_returns_nothing_is_told_what_is_wanted(run, said):
    with pytest.raises(CourseError, match=said):
        run(lambda *_: None, 0, print)


def test_run_of_the_pole_counts_games_by_itself():
    pytest.importorskip("gymnasium")

    def function(env, steps, seed, record):
        env.reset(seed=seed)
        for _ in range(500):
            _, _, ended, cut_off, _ = env.step(0)
            if ended or cut_off:
                env.reset()
                record(1e9)  # what it says of itself is a curve, and no score

    at = []
    score = tasks.run_pole(function, 0, lambda mean, x: at.append(x))
    assert 8 <= score <= 11  # pushed to one side, it falls at once
    assert at == sorted(at)
    assert at[-1] <= 500
    assert tasks.run_pole(lambda env, *_: env.reset(), 0, print) == 0.0


def test_run_of_the_pole_ends_beyond_its_steps(monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(tasks, "POLE_STEPS", 30)

    def endless(env, steps, seed, record):
        env.reset(seed=seed)
        while True:
            if any(env.step(0)[2:4]):
                env.reset()

    with pytest.raises(CourseError, match="more than 30 times"):
        tasks.run_pole(endless, 0, print)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is not installed here.* Try: pip install gymnasium$"),
        (
            "raise ImportError('built for another NumPy')",
            "does not load .*another NumPy.*reinstall",
        ),
        ("import a_part_that_is_missing", "does not load .*a_part_that_is_missing.*reinstall"),
        ("raise ValueError('dtype size changed')", "does not load .*dtype size changed.*reinstall"),
    ],
)
def test_gymnasium_that_is_missing_or_broken_is_no_fault_of_the_file(
    text, said, tmp_path, monkeypatch
):
    monkeypatch.delitem(sys.modules, "gymnasium", raising=False)
    if text is None:
        monkeypatch.setitem(sys.modules, "gymnasium", None)
    else:
        (tmp_path / "gymnasium.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
    for needs_it in (tasks.CAPSTONES["balance_pole"].prepare, lambda: tasks.cart_pole(9)):
        with pytest.raises(CourseError, match=said) as raised:
            needs_it()
        assert "not at fault" in str(raised.value)
    tasks.CAPSTONES["read_digits"].prepare()


def test_every_task_has_an_exercise_of_its_name():
    from minigrad.grader.folder import load_lesson

    exercises = load_lesson("17_capstone").exercises
    assert list(exercises) == list(tasks.CAPSTONES)
    assert [one.id for one in exercises.values()] == [
        one.exercise_id for one in tasks.CAPSTONES.values()
    ]
    assert all(exercise.is_open for exercise in exercises.values())


class Refused(Exception):
    """What a tester raises in these tests."""


class Tester:
    """Stands for the grader's: fails with the key alone."""

    def fail(self, key, *words):
        raise Refused(key)


@pytest.mark.parametrize(
    ("nodes", "is_leak"),
    [
        ([2, 10, 10], False),  # learning began between the first two looks
        ([2, 2, 10], False),
        ([2, 10, 18], True),
        ([2, 10], False),  # it stopped before the last look
        ([10, 10, 10], False),
    ],
)
def test_nodes_that_grow_once_when_learning_begins_are_no_leak(nodes, is_leak):
    expected = pytest.raises(Refused, match="grows") if is_leak else contextlib.nullcontext()
    with expected:
        keeps_nothing(Tester(), {"nodes": nodes}, (133, 266, 399))


def test_training_without_a_network_is_refused():
    told = {"losses": [1.0] * 30, "kinds": ["float"], "steps": 30, "has_weights": False}
    with pytest.raises(Refused, match="no_network"):
        recorded(Tester(), told, 25)
    recorded(Tester(), told | {"has_weights": True}, 25)


KINDS = 7


def model_of_text(fault="", reverse=False):
    """A model that knows the mean of what came, and keeps rows in its cache; with a fault."""
    import minigrad as mg

    table = np.random.default_rng(3).standard_normal((KINDS, KINDS)).astype(np.float32)

    class Means(mg.nn.Module):
        def forward(self, tokens, cache=None):
            rows = table[tokens.numpy()]
            if cache is not None and fault != "no cache":
                rows = np.concatenate([*cache.get("rows", ()), rows], axis=1)
                cache["rows"] = [rows]
            n = rows.shape[1]
            order = np.arange(n)[:: -1 if reverse and cache is not None else 1]
            scores = np.stack(
                [10 * rows[:, [j for j in order if j <= i]].mean(axis=1) for i in range(n)], axis=1
            )
            if fault == "later":
                scores += rows[:, ::-1]
            if fault == "last bit":  # of the first score alone, by the last token alone
                more = np.nextafter(scores[:, 0, 0], np.float32(99))
                odd = tokens.numpy()[:, -1] % 2 == 0
                scores[:, 0, 0] = np.where(odd & (n > 1), more, scores[:, 0, 0])
            if fault == "cache is off" and cache is not None:
                scores += 0.001
            return mg.variable(scores if cache is None else scores[:, -1:])

    return Means()


ROWS = np.random.default_rng(4).integers(0, KINDS, (2, tasks.LENGTH))


@pytest.mark.parametrize("reverse", [False, True])
def test_model_that_looks_back_and_has_a_cache_keeps_its_promises(reverse):
    """With a cache its sums may go in another order, of which the last bits are others."""
    tasks.keeps_promises(model_of_text(reverse=reverse), KINDS, ROWS)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("later", r"as before, to the last bit, got place \d+ differs"),
        ("last bit", r"as before, to the last bit, got place 0 differs"),
        ("no cache", r"wanted model\(token, cache\) = the scores .* 0\.0001, got row 0, place 1"),
        ("cache is off", r"to 0\.0001, got row 0, place 0: they differ by 1\.0e-03"),
    ],
)
def test_model_that_sees_later_tokens_or_whose_cache_is_off_is_refused(fault, said):
    with pytest.raises(CourseError, match=rf"write_text: .*{said}.*check 17\.write_text"):
        tasks.keeps_promises(model_of_text(fault), KINDS, ROWS)


def test_run_of_the_text_asks_for_what_the_check_asks(monkeypatch):
    from minigrad.course.l17_capstone import text

    assert (text.look_back, text.same_with_cache) == (tasks.look_back, tasks.same_with_cache)
    asked, bits = [], [2.0]
    monkeypatch.setattr(tasks, "held_out_bits", lambda model: bits[0])
    monkeypatch.setattr(tasks, "keeps_promises", lambda *given: asked.append(given))
    model = model_of_text()
    assert tasks.run_text(lambda *_: model, 0, print) == 2.0
    [(found, n_kinds, rows)] = asked
    assert (found, n_kinds, rows.shape) == (model, len(tasks.text()[0]), (2, tasks.LENGTH))
    bits[0] = np.nan  # it diverged: a bad run, and no broken promise
    assert np.isnan(tasks.run_text(lambda *_: model, 0, print))
    assert len(asked) == 1
