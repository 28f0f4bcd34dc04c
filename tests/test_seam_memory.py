"""A learner's pool under the engine, and a learner's plan of a compiled step's memory.

A call that is remembered runs once more, on memory of its own: tests that count blocks make their
calls three times before.
"""

import gc
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.seams import seams

STEPS = 4


class OwnSegments:
    """A pool that takes a segment for each block, and gives it back at once."""

    def __init__(self, system):
        self.system, self.asked, self.freed = system, [], []
        made.append(self)

    def alloc(self, nbytes):
        self.asked.append(nbytes)
        return self.system.take(nbytes)

    def free(self, address):
        self.freed.append(address)
        self.system.give_back(address)


made = []


@pytest.fixture(autouse=True)
def _forget():
    yield
    made.clear()


def new_step():
    mg.manual_seed(3)
    model = mg.nn.Sequential(mg.nn.Linear(64, 16), mg.nn.Tanh(), mg.nn.Linear(16, 10))
    optimizer = mg.optim.Adam(model, learning_rate=0.01)

    def step(x, labels):
        loss = mg.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def losses(step, steps=STEPS):
    images, labels = mg.data.load_digits()
    found = []
    for k in range(steps):
        rows = slice(32 * k, 32 * k + 32)
        x = mg.variable(images[rows].reshape(32, 64).astype(np.float32))
        found.append(step(x, mg.variable(labels[rows])).item())
    return found


def test_seam_pool_serves_each_request_while_digits_train_and_gives_the_same_losses():
    reference = losses(new_step())
    before = mg.memory.stats()
    with mg.memory.poison(), mg.use(pool=OwnSegments), mg.memory.timeline() as seen:
        mine = losses(new_step())
    (pool,) = made
    assert mine == reference
    assert len(pool.asked) == sum(event.kind == "alloc" for event in seen.events) > 20 * STEPS
    assert len(pool.freed) == sum(event.kind == "free" for event in seen.events)
    after = mg.memory.stats()
    assert after["reserved_bytes"] == before["reserved_bytes"]
    assert after["current_bytes"] == before["current_bytes"]
    n = len(pool.asked)
    assert losses(new_step()) == reference
    assert len(pool.asked) == n


def test_seam_pool_is_of_its_thread_only():
    with mg.use(pool=OwnSegments):
        thread = threading.Thread(target=lambda: mg.ones((4321,)))
        thread.start()
        thread.join()
    assert made[0].asked == []


def test_seam_pool_keeps_what_outlives_its_block():
    for _ in range(3):
        mg.ones((1000,))
    with mg.use(pool=OwnSegments):
        x = mg.ones((1000,))
    assert x.sum().item() == 1000.0
    (pool,) = made
    assert pool.freed == []
    y = x + 1.0
    del x
    assert len(pool.freed) == 1
    assert y.tolist() == [2.0] * 1000


def test_seam_pool_runs_under_compiled_steps():
    reference = losses(mg.compile(new_step()))
    with mg.use(pool=OwnSegments):
        assert losses(mg.compile(new_step())) == reference
    assert len(made[0].asked) > STEPS


def test_seam_pool_may_use_the_engine_itself_and_be_interrupted_by_a_release():
    class Busy(OwnSegments):
        kept = None

        def alloc(self, nbytes):
            Busy.kept = mg.ones((77,)) * 2.0  # served by the engine; drops the one before
            gc.collect()
            return super().alloc(nbytes)

    for _ in range(3):
        mg.ones((50,)), mg.ones((60,)), mg.ones((77,)) * 2.0
    with mg.use(pool=Busy):
        x = [mg.ones((50,)) for _ in range(3)]
        x.append(x)
        del x
        y = mg.ones((60,))
    assert y.tolist() == [1.0] * 60
    (pool,) = made
    assert len(pool.asked) - len(pool.freed) == 1
    assert 320 not in pool.asked
    Busy.kept = None


class Overlapping(OwnSegments):
    def alloc(self, nbytes):
        if not self.asked:
            self.start = self.system.take(1 << 16)
        self.asked.append(nbytes)
        return self.start

    def free(self, address):
        """Keep the segment: the next request gets the same place."""


class Outside(OwnSegments):
    def alloc(self, nbytes):
        return self.system.take(nbytes) + 64


class Unaligned(OwnSegments):
    def alloc(self, nbytes):
        return self.system.take(nbytes + 64) + 1


class Wrong(OwnSegments):
    def free(self, address):
        raise KeyError(address)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (Overlapping, "nobody uses"),
        (Outside, "inside a segment"),
        (Unaligned, "a multiple of 64"),
        (dict, "alloc and free"),
        (3, "alloc and free"),
    ],
)
def test_seam_pool_with_a_wrong_part_raises_seam_error(pool, message):
    with pytest.raises(errors.SeamError, match=message), mg.use(pool=pool):
        mg.stack([mg.ones((100,)) for _ in range(3)])
    assert seams.pool is None
    assert mg.ones((4,)).tolist() == [1.0] * 4


def test_seam_pool_may_not_give_back_what_is_in_use():
    class Hasty(OwnSegments):
        def alloc(self, nbytes):
            while nbytes > 500 and self.asked:  # x may ask twice
                self.free(self.asked[-1])
            self.asked.append(self.system.take(nbytes))
            return self.asked[-1]

        def free(self, address):
            self.system.give_back(address)
            self.asked.remove(address)

    with mg.use(pool=Hasty):
        x = mg.ones((100,))
        with pytest.raises(errors.SeamError, match="nothing is in use"):
            mg.ones((200,))
    assert x.tolist() == [1.0] * 100


def test_seam_pool_that_computes_is_no_part_of_the_call_it_serves():
    class Computing(OwnSegments):
        def alloc(self, nbytes):
            self.doubled = mg.ones((7, 3)) * 2.0
            return super().alloc(nbytes)

    with mg.use(pool=Computing):
        x, row, takes = mg.ones((7, 5)), mg.ones((5,)), []
        for _ in range(5):
            before = made[0].system.pool.takes
            y = x + row
            takes.append(made[0].system.pool.takes - before)
    assert y.tolist() == [[2.0] * 5] * 7
    assert made[0].doubled.tolist() == [[2.0] * 3] * 7
    assert takes[-1] == takes[0]  # the second call made the code of the later ones


def test_seam_pool_error_of_a_release_comes_with_the_next_request():
    for _ in range(3):
        mg.ones((100,))
    with mg.use(pool=Wrong):
        x = mg.ones((100,))
        del x
        with pytest.raises(KeyError) as caught:
            mg.ones((200,))
    assert "Wrong" not in str(caught.value)
    assert "free, which runs in the engine as pool (Wrong.free)" in caught.value.__notes__[0]


def test_seam_pool_obeys_the_limit():
    gc.collect()  # what is freed inside the block goes to the engine's pool, and would serve it
    mg.memory.empty_cache()  # so would free segments, which the pool returns where a limit is met
    with mg.use(pool=OwnSegments):
        mg.memory.set_limit(mg.memory.stats()["reserved_bytes"] + (1 << 20))
        try:
            with pytest.raises(errors.OutOfMemoryError, match="limit"):
                mg.ones((5_300_000,))  # a size that no other test has
        finally:
            mg.memory.set_limit(None)


def apart(lifetimes):
    """Give each value a place of its own, the last one lowest."""
    offsets, end = [], 0
    for nbytes, _, _ in reversed(lifetimes):
        offsets.append(end)
        end += -(-nbytes // 64) * 64
    return offsets[::-1]


def test_seam_plan_reuse_places_the_temporaries_of_a_compiled_step_and_gives_the_same_losses():
    reference, asked = losses(mg.compile(new_step())), []

    def plan(lifetimes):
        asked.append(lifetimes)
        return apart(lifetimes)

    with mg.use(plan_reuse=plan):
        step = mg.compile(new_step())
        mine = losses(step)
    assert mine == reference
    assert len(asked) == 1
    rows = step.memory_plan().after.rows
    assert [row.offset for row in rows] == apart(asked[0])
    assert [(row.size, row.first, row.last) for row in rows] == asked[0]
    again = mg.compile(new_step())
    assert losses(again) == reference
    assert len(asked) == 1
    assert again.memory_plan().after.total < step.memory_plan().after.total


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda lifetimes: [0] * len(lifetimes), "apart"),
        (lambda lifetimes: None, "offsets"),
        (lambda lifetimes: apart(lifetimes)[1:], "offsets"),
        (lambda lifetimes: [offset + 8 for offset in apart(lifetimes)], "multiples of 64"),
        (lambda lifetimes: [float(offset) for offset in apart(lifetimes)], "multiples of 64"),
        (lambda lifetimes: [offset + 64 for offset in apart(lifetimes)], "within"),
        (lambda lifetimes: [-64, *apart(lifetimes)[1:]], "multiples of 64"),
    ],
)
def test_seam_plan_reuse_with_a_wrong_plan_raises_seam_error(plan, message):
    with mg.use(plan_reuse=plan), pytest.raises(errors.SeamError, match=message):
        losses(mg.compile(new_step()))
    assert seams.plan_reuse is None
