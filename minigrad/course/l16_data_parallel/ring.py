"""A sum over workers in a ring: its values, its bits, what it sends, and what a death does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from minigrad.course.l16_data_parallel import lesson
from minigrad.course.l16_data_parallel.driver import run_workers
from minigrad.grader import samples
from minigrad.grader.compare import agree, disagreements
from minigrad.grader.message import Failed, show, show_typed
from minigrad.grader.tester import Mistake, Tester

ring_all_reduce = lesson.exercise(
    "ring_all_reduce",
    difficulty=4,
    minutes=35,
    returns="an array like x: the sum of all workers' arrays",
    hints=(
        "Take three workers and three chunks, and paper. Let chunk 0 start at worker 0, chunk 1 at "
        "worker 1, and so on; each goes once around, and everybody adds. Who has which sum then?",
        "In step s of the first round, a worker sends chunk rank - s and adds what it receives to "
        "chunk rank - s - 1, counted modulo size. What it sends is what it received in the step "
        "before, added up. In the second round all numbers are one higher, and nothing is added.",
        "chunks = np.array_split(x.flatten(), k). Round 1, for step in range(k - 1): send "
        "chunks[(rank - step) % k]; chunks[(rank - step - 1) % k] += receive. Round 2: send "
        "chunks[(rank - step + 1) % k]; chunks[(rank - step) % k] = receive.",
    ),
)


def ring(worker, x, *, kind=""):
    """Return the sum over all workers, right or with a common mistake."""
    k, rank = worker.size, worker.rank
    after, before = (rank + 1) % k, (rank - 1) % k
    if kind == "as_texts":
        names = sorted(range(k), key=str)
        rank = names.index(rank)
        after, before = names[(rank + 1) % k], names[(rank - 1) % k]
    if kind == "swapped" and k == 2:
        chunks = np.array_split(x.flatten(), k)
        for chunk in chunks:
            worker.send(after, chunk)
        return np.concatenate([one + worker.receive(before) for one in chunks]).reshape(x.shape)
    flat = x.astype(np.float64).flatten() if kind == "widened" else x.flatten()
    if kind == "scaled":
        flat = flat / x.dtype.type(2**40)
    size = x.size // k
    if kind == "float_step":
        ends = np.add.accumulate([x.size / k] * k).astype(int)
        chunks, tail = np.split(flat, ends[:-1]), flat[:0]
        chunks[-1], tail = flat[ends[-2] : ends[-1]] if k > 1 else flat, flat[ends[-1] :]
    elif kind == "short_bounds":
        ends = np.cumsum([0, *map(len, np.array_split(flat, k))]).astype(np.uint16)
        chunks, tail = [flat[a:b] for a, b in itertools.pairwise(ends)], flat[:0]
        tail = flat[sum(map(len, chunks)) :]
    elif kind == "tail_own":
        chunks, tail = np.split(flat[: k * size], k), flat[k * size :]
    elif kind == "rest_last":
        chunks, tail = np.split(flat, [size * r for r in range(1, k)]), flat[:0]
    else:
        chunks, tail = np.array_split(flat, k), flat[:0]
    old = [chunk.copy() for chunk in chunks]
    for step in range(k - 2 if kind == "one_step_short" else k - 1):
        mine = (rank - step) % k
        other = mine if kind == "wrong_chunk" else (rank - step - 1) % k
        kept = {"zeros_stay": not chunks[mine].any(), "empty_stay": not chunks[mine].size}
        if not kept.get(kind):
            worker.send(after, old[mine] if kind == "stale" else chunks[mine])
        came = worker.receive(before)
        if kind == "nan_left_out":
            came = np.nan_to_num(came)
        chunks[other] = came if kind == "overwritten" else chunks[other] + came
    if kind == "no_gather":
        return np.concatenate(chunks).reshape(x.shape)
    shift = 0 if kind == "gather_own" else 1
    for step in range(k - 2 if kind == "gather_short" else k - 1):
        chunk = chunks[(rank - step + shift) % k]
        worker.send(after, chunk.astype(np.float32) if kind == "rounded" else chunk)
        place, came = (rank - step + shift - 1) % k, worker.receive(before)
        if kind == "zero_left":
            came = np.where(came != 0, came, chunks[place])
        if kind == "early" and len(came) and np.array_equal(came, chunks[place]):
            break
        chunks[place] = chunks[place] + came if kind == "added_in_gather" else came
    if kind == "left":
        worker.send(after, chunks[(rank + 2) % k])
    total = np.concatenate([*chunks, tail])
    if kind == "mean":
        total = total / k
    elif kind == "scaled":
        total = total * x.dtype.type(2**40)
    return total if kind == "flat" else total.reshape(x.shape)


WRONG = {
    "mean": "That is the mean: the sum, divided by the number of workers.",
    "no_gather": "Each worker has the sum of one chunk, and parts of sums in the others. What does "
    "the second round do?",
    "gather_short": "One chunk has not arrived everywhere. How many steps does the second round "
    "have?",
    "stale": "In each step it sends its own numbers. What has it received, and added, since?",
    "added_in_gather": "In the second round a whole sum arrives. What is still to be added?",
    "tail_own": "The last entries are this worker's own. What if size does not divide N?",
}
for key, attempt in WRONG.items():
    ring_all_reduce.mistake(key, attempt)(partial(ring, kind=key))
# In each of these pairs both give the same numbers.
UNSUMMED = (
    "Each chunk holds one worker's own numbers. Is what comes added in round 1? And does round 2 "
    "begin with the chunk of which this worker has the sum?"
)
TOO_EARLY = (
    "Each chunk holds one worker's own numbers. Is what comes added to the chunk that it belongs "
    "to? And has the first round enough steps?"
)
for kind in ("overwritten", "gather_own"):
    ring_all_reduce.mistake("unsummed", UNSUMMED)(partial(ring, kind=kind))
for kind in ("wrong_chunk", "one_step_short"):
    ring_all_reduce.mistake("too_early", TOO_EARLY)(partial(ring, kind=kind))
for key, kind in {"dtype": "widened", "shape": "flat", "chunk": "rest_last"}.items():
    ring_all_reduce.mistake(key)(partial(ring, kind=kind))
ring_all_reduce.mistake("rounded")(partial(ring, kind="rounded"))
ring_all_reduce.mistake("value")(partial(ring, kind="nan_left_out"))
ring_all_reduce.mistake("value")(partial(ring, kind="scaled"))
ring_all_reduce.mistake("lost")(partial(ring, kind="zeros_stay"))
ring_all_reduce.mistake("lost")(partial(ring, kind="early"))
ring_all_reduce.mistake("other_bits")(partial(ring, kind="swapped"))
ring_all_reduce.mistake("not_ring")(partial(ring, kind="as_texts"))
for kind in ("float_step", "short_bounds", "zero_left"):
    ring_all_reduce.mistake("value")(partial(ring, kind=kind))
ring_all_reduce.mistake("left")(partial(ring, kind="left"))


@ring_all_reduce.mistake("local", "That is this worker's own array. Whose numbers are missing?")
def _(worker, x):
    return x.copy()


@ring_all_reduce.mistake("neighbour", "These are two workers' arrays. How do the others' get here?")
def _(worker, x):
    worker.send((worker.rank + 1) % worker.size, x)
    return x + worker.receive((worker.rank - 1) % worker.size) if worker.size > 1 else x.copy()


@ring_all_reduce.mistake("changed_input")
def _(worker, x):
    k, rank = worker.size, worker.rank
    chunks = np.array_split(x.reshape(-1), k)
    for step in range(k - 1):
        worker.send((rank + 1) % k, chunks[(rank - step) % k])
        chunks[(rank - step - 1) % k] += worker.receive((rank - 1) % k)
    for step in range(k - 1):
        worker.send((rank + 1) % k, chunks[(rank - step + 1) % k])
        chunks[(rank - step) % k] = worker.receive((rank - 1) % k)
    return np.concatenate(chunks).reshape(x.shape)


@ring_all_reduce.mistake("stuck")
def _(worker, x):
    k, rank = worker.size, worker.rank
    chunks = np.array_split(x.flatten(), k)
    for step in range(k - 1):
        chunks[(rank - step - 1) % k] += worker.receive((rank - 1) % k)
        worker.send((rank + 1) % k, chunks[(rank - step) % k])
    return np.concatenate(chunks).reshape(x.shape)


@ring_all_reduce.mistake("lost")
def _(worker, x):
    k, rank = worker.size, worker.rank
    for _ in range(k - 1 if rank else 1):  # worker 0 believes that it is done
        worker.send((rank + 1) % k, x)
        x = x + worker.receive((rank - 1) % k)
    return x


@ring_all_reduce.mistake("none")
def _(worker, x):
    ring(worker, x)


@ring_all_reduce.mistake("same_array")
def _(worker, x):
    return ring(worker, x) if worker.size > 1 else x


@ring_all_reduce.mistake("same_array")
def _(worker, x):
    return ring(worker, x) if x.size else x


@ring_all_reduce.mistake("number")
def _(worker, x):
    return ring(worker, x) if worker.size > 1 else x * 1


@ring_all_reduce.mistake("wide")
def _(worker, x):
    return ring(worker, x.astype(np.float64)).astype(x.dtype)


@ring_all_reduce.mistake("chunk")
def _(worker, x):
    k, rank = worker.size, worker.rank
    chunks = np.array_split(np.atleast_1d(x), k)  # rows, not entries
    for step in range(k - 1):
        worker.send((rank + 1) % k, chunks[(rank - step) % k])
        other = (rank - step - 1) % k
        chunks[other] = chunks[other] + worker.receive((rank - 1) % k)
    for step in range(k - 1):
        worker.send((rank + 1) % k, chunks[(rank - step + 1) % k])
        chunks[(rank - step) % k] = worker.receive((rank - 1) % k)
    return np.concatenate(chunks).reshape(x.shape)


BUFFERS: dict = {}


@ring_all_reduce.mistake("overwritten")
def _(worker, x):
    buffer = BUFFERS.setdefault((worker.size, worker.rank, x.shape, x.dtype.str), np.empty_like(x))
    buffer[...] = ring(worker, x)
    return buffer


@ring_all_reduce.mistake("raised")
def _(worker, x):
    return ring(worker, np.array(np.split(x, worker.size)).reshape(x.shape))


@ring_all_reduce.mistake("raised")
def _(worker, x):
    worker.send(worker.rank + 1, x)
    return ring(worker, x)


ring_all_reduce.mistake("raised")(partial(ring, kind="empty_stay"))


@ring_all_reduce.mistake("raised")
def _(worker, x):
    total = ring(worker, x)
    worker.send((worker.rank + 1) % worker.size, total[:0])  # to itself, if it is alone
    worker.receive((worker.rank - 1) % worker.size)
    return total


@ring_all_reduce.mistake("other_bits")
def _(worker, x):
    k, rank = worker.size, worker.rank
    total, moving = x.copy(), x
    for _ in range(k - 1):
        worker.send((rank + 1) % k, moving)
        moving = worker.receive((rank - 1) % k)
        total = total + moving  # each worker adds in an order of its own
    return total


def around(worker, x):
    """Return the arrays of all workers, which go around whole."""
    k, rank = worker.size, worker.rank
    arrays = {rank: x}
    for step in range(k - 1):
        worker.send((rank + 1) % k, arrays[(rank - step) % k])
        arrays[(rank - step - 1) % k] = worker.receive((rank - 1) % k)
    return arrays


@ring_all_reduce.mistake("bytes")
def _(worker, x):
    arrays = around(worker, x)
    total = arrays[0].copy()
    for rank in range(1, worker.size):
        total += arrays[rank]
    return total


@ring_all_reduce.mistake("bytes")
def _(worker, x):
    k, rank = worker.size, worker.rank
    after, before = (rank + 1) % k, (rank - 1) % k
    if k == 1:
        return x.copy()
    if rank == 0:
        worker.send(after, x)
        total = worker.receive(before)
        worker.send(after, total)
        worker.receive(before)
        return total
    worker.send(after, np.asarray(x + worker.receive(before)))
    total = worker.receive(before)
    worker.send(after, total)
    return total


@ring_all_reduce.mistake("messages")
def _(worker, x):
    flat = x.flatten()
    parts = [ring(worker, flat[i : i + worker.size]) for i in range(0, x.size, worker.size)]
    return np.concatenate([flat[:0], *parts]).reshape(x.shape)


@ring_all_reduce.mistake("not_ring")
def _(worker, x):
    k, rank = worker.size, worker.rank
    others = [r for r in range(k) if r != rank]
    chunks = np.array_split(x.flatten(), k)
    for r in others:
        worker.send(r, chunks[r])
    total = np.zeros_like(chunks[rank])
    for r in range(k):  # in the order of ranks
        total = total + (chunks[rank] if r == rank else worker.receive(r))
    for r in others:
        worker.send(r, total)
    chunks = [total if r == rank else worker.receive(r) for r in range(k)]
    return np.concatenate(chunks).reshape(x.shape)


@ring_all_reduce.mistake("not_ring")
def _(worker, x):
    k, rank = worker.size, worker.rank
    chunks = np.array_split(x.flatten(), k)
    for step in range(k - 1):
        worker.send((rank - 1) % k, chunks[(rank + step) % k])
        chunks[(rank + step + 1) % k] += worker.receive((rank + 1) % k)
    for step in range(k - 1):
        worker.send((rank - 1) % k, chunks[(rank + step - 1) % k])
        chunks[(rank + step) % k] = worker.receive((rank + 1) % k)
    return np.concatenate(chunks).reshape(x.shape)


@ring_all_reduce.mistake("swallowed")
def _(worker, x):
    try:
        return ring(worker, x)
    except RuntimeError:
        return x.copy()


@ring_all_reduce.mistake("replaced")
def _(worker, x):
    try:
        return ring(worker, x)
    except RuntimeError as error:
        raise ConnectionError(f"worker {worker.rank}: a worker has died") from error


@ring_all_reduce.mistake("replaced")
def _(worker, x):
    try:
        return ring(worker, x)
    except RuntimeError as error:
        raise type(error)("the ring is broken") from None


@ring_all_reduce.mistake("changed_input")
def _(worker, x):
    before = x.copy()
    if x.size:
        x *= 2
    total = ring(worker, x) / x.dtype.type(2)
    x[...] = before  # not where the line above raises
    return np.asarray(total, x.dtype)


@ring_all_reduce.mistake("value")
def _(worker, x):
    return ring(worker, x.ravel(order="K")).reshape(x.shape)


@ring_all_reduce.mistake("dtype")
def _(worker, x):
    return ring(worker, x) if x.size else np.zeros(x.shape)


def known(t: Tester, arrays: Sequence[np.ndarray], rank: int) -> Iterator[Mistake]:
    """Yield what a worker would return with each common mistake."""
    for one in ring_all_reduce.wrong_versions:
        if not one.attempt or (t.survey and one.key not in t.survey.suspects):
            continue
        results, errors, _ = run_workers(one.function, [(x.copy(),) for x in arrays])
        if not errors:
            yield Mistake(one.key, results[rank], one.attempt)


def told(arrays: Sequence[np.ndarray]) -> str:
    """Return the workers and their arrays in words."""
    k, x = len(arrays), arrays[0]
    if x.size > 6:
        return f"ring_all_reduce on {k} workers, x of shape {x.shape}, {x.dtype}"
    is_plain = x.ndim == 1 and x.dtype == np.float64
    rows = [f"{show(x, bare=is_plain)} on worker {rank}" for rank, x in enumerate(arrays)]
    return f"ring_all_reduce on {k} worker{'s' * (k > 1)}, x = {', '.join(rows)}"


IN_PLACE = "Are the chunks parts of x itself? What does += do to them then?"
LEFT_CHANGED = "Does this function work in x itself? An error comes out of it before x is put back."


def unchanged(
    t: Tester, rank: int, before: np.ndarray, after: np.ndarray, why: str = IN_PLACE
) -> None:
    """Fail if a worker's x is not as it was."""
    if not np.array_equal(before, after, equal_nan=True):
        t.fail("changed_input", f"x as it was on worker {rank}: {show(before)}", show(after),
               why)  # fmt: skip


BY_HAND = "Follow one chunk on its way: who adds what to it, and who gets its sum?"
BITS = (
    "The sums differ in their last bits: (a + b) + c is not a + (b + c). Is each entry added up in "
    "one place, and then sent to all?"
)


NAN_BITS = (
    "nan has bits, too, and those of a + b may be other ones than those of b + a. Is each entry "
    "added up in one place, and then sent to all?"
)
ALONE = "One worker has nobody to send to. How many steps are size - 1 then?"
STUCK = "Everybody waits for an array that nobody has sent yet. Who begins?"
UNEVEN = "Count: how many arrays does each worker send, and how many does the next one receive?"
EMPTY = "Fewer entries than workers: some chunks are empty. Is one of these awaited, but not sent?"
ZEROS = "A worker has zeros here. Who leaves out what the next one waits for?"
MIXED = (
    "Here each worker's array lies in memory in an order of its own. In which order does x.ravel, "
    "or what you use, go through it?"
)
ORDER = (
    "These sums stand in other places. In which order does each step go through an array that does "
    "not lie in one piece?"
)


def why_value(x: np.ndarray, result: object, total: np.ndarray) -> str:
    """Return the Try line for a wrong sum: whether it comes from x's layout, nan or a scale."""
    if isinstance(result, np.ndarray) and result.shape == x.shape:
        if not x.flags.c_contiguous and agree(np.sort(result, None), np.sort(total, None)):
            return ORDER
        if not np.isfinite(total).all() and np.isfinite(result).all():
            return "A worker has nan or inf there, and so has the sum. Who takes it away?"
        if 0 < np.abs(total).max(initial=0) < 1e-20 and agree(result, total, rtol=0.5, atol=1e-8):
            return (
                "So small a number loses digits where it is rounded, or made smaller. Which step "
                "does that?"
            )
        wrong = disagreements(result, total, rtol=1e-6)
        if wrong.any() and not total[wrong].any():
            return "The sum is 0 there. Is a 0 that comes taken for a sum, as any other number is?"
        if 1 < x.size > np.sum(wrong) and np.array_equal(x[wrong], result[wrong]):
            return (
                "These entries are this worker's own. Is each entry in a chunk? Print where the "
                "chunks begin and end."
            )
        if np.isfinite(total).all() and total.any() and agree(result, total, rtol=1e-2, atol=1e-3):
            return "Nearly the sum: digits are lost. Which step rounds, or makes another type?"
    return samples.attempt_for(x, result, BY_HAND)


def reduced(t: Tester, arrays: Sequence[np.ndarray], before: Sequence, given: str) -> dict:
    """Return the driver's reply; of an error that few entries or workers cause, say so."""
    k, x = len(arrays), arrays[0]
    is_plain = x.ndim == 1 and x.dtype == np.float64  # no other layout, no other type
    why = ALONE if k == 1 else EMPTY if is_plain and x.size < k else ""
    try:
        return t.drive("reduce_all", [*arrays], {}, [*before], given=given)
    except Failed as failed:
        if failed.message.key != "raised" or not why:
            raise
        raise Failed(replace(failed.message, attempt=why)) from None


def check(
    t: Tester, arrays: Sequence[np.ndarray], before: Sequence[np.ndarray] = (), after: str = ""
) -> dict:
    """Check one sum; return the driver's reply.

    Args:
        t: the check's Tester.
        arrays: for each worker its array.
        before: arrays for a call before it, whose results must stay.
        after: what has happened before, in words.
    """
    k, x = len(arrays), arrays[0]
    given = told(arrays) + after + (", the second of two calls" if before else "")
    got = reduced(t, arrays, before, given)
    wanted = f"the sum on each of {k} workers" if k > 1 else "a copy of x"
    unsent = EMPTY if x.size < k else "" if all(one.all() for one in arrays) else ZEROS
    if got["stuck"]:
        waits = ", ".join(f"worker {a} waits for {b}" for a, b in got["stuck"].items())
        t.fail("stuck", wanted, f"nobody can go on: {waits}", unsent or STUCK)
    if got["errors"]:
        t.fail("lost", wanted, f"{next(iter(got['errors'].values()))}", unsent or UNEVEN)
    for rank, (one, now) in enumerate(zip(arrays, got["after"], strict=True)):
        unchanged(t, rank, one, now)
    for rank, sent in enumerate(got["sent"]):
        narrow = [dtype for *_, dtype in sent if not np.can_cast(x.dtype, dtype)]
        if narrow:
            t.fail("rounded", f"worker {rank} sends {x.dtype}, as x is", np.dtype(narrow[0]).name,
                   "Digits are lost on the way, and who added a chunk up still has them. Which "
                   "step makes another type?")  # fmt: skip
    total = np.sum([one.astype(np.float64) for one in arrays], axis=0).astype(x.dtype)
    mixed = len({one.strides for one in arrays}) > 1
    sizes = np.abs(arrays).sum(axis=0, dtype=np.float64)
    close = samples.tolerance(x.dtype) * float(sizes[np.isfinite(sizes)].max(initial=0))
    for rank, result in enumerate(got["results"]):
        t.close(result, total, what=f"the result of worker {rank}", rtol=0, atol=close,
                attempt=MIXED if mixed else why_value(arrays[rank], result, total),
                mistakes=known(t, arrays, rank))  # fmt: skip
        t.dtype(result, x.dtype, "The sum has the type of x. Which step makes another one?")
    if t.survey:
        return got
    for rank, result in enumerate(got["results"]):
        if not isinstance(result, np.ndarray):
            t.fail("number", f"the result of worker {rank}: an array of shape ()",
                   show_typed(result), "NumPy makes a number of an array without axes when it "
                   "computes with it. Which step does so?")  # fmt: skip
    for rank, sent in enumerate(got["sent"]):
        other = [dtype for *_, dtype in sent if np.dtype(dtype) != x.dtype]
        if other:
            t.fail("wide", f"worker {rank} sends {x.dtype}, as x is", np.dtype(other[0]).name,
                   "Each entry takes more bytes than x has for it. Which step makes another type?"
                   )  # fmt: skip
    if got["overwritten"]:
        t.fail("overwritten", "the results of the first call as they were returned",
               f"others on worker {got['overwritten'][0]}, after the second call",
               "Who owns the memory that you return? Make a new array in each call.")  # fmt: skip
    for rank, result in enumerate(got["results"]):
        if np.asarray(result).tobytes() != np.asarray(got["results"][0]).tobytes():
            pair = [np.ravel(got["results"][r]).copy() for r in (0, rank)]
            bits = [one.view(f"u{x.itemsize}") for one in pair]
            place = int(np.argmax(bits[0] != bits[1]))
            first, second = (
                f"{float(one[place])!r}" + f" (bits {two[place]:x})" * bool(np.isnan(one[place]))
                for one, two in zip(pair, bits, strict=True)
            )
            t.fail("other_bits", "the same bits on all workers",
                   f"entry {place} is {first} on worker 0, {second} on worker {rank}",
                   NAN_BITS if np.isnan(pair[0][place]) else BITS)  # fmt: skip
        if got["is_same"][rank]:
            t.fail("same_array", "a new array", "x itself, or a part of its memory",
                   "Whoever writes into the result must not change x.")  # fmt: skip
    if got["left"]:
        pair, n = next(iter(got["left"].items()))
        t.fail("left", "every array that is sent to be received",
               f"{n} from worker {pair} left over",
               "The next sum would receive it. How often does each worker send?")  # fmt: skip
    return got


def numbers(t: Tester, k: int, *shape: int) -> list[np.ndarray]:
    """Return an array for each of k workers."""
    return [samples.numbers(t.random, shape) for _ in range(k)]


def special(t: Tester) -> Iterator[list[np.ndarray]]:
    """Yield arrays in which zeros, nan or inf stand, on one worker or on all; or whose sum is 0."""
    for value in (0.0, np.nan, np.inf):
        arrays = numbers(t, 3, 6)
        arrays[1][: 6 if value == 0 else 1] = value
        yield arrays
    for value in (0.0, np.inf):  # a sum that is there before all have added to it
        arrays = numbers(t, 3, 3)
        for one in arrays:
            one[0] = value
        yield arrays
    (x,) = numbers(t, 1, 4)
    yield [x, -x]
    yield [np.full(2, np.nan), np.full(2, -np.nan)]  # with other bits


@ring_all_reduce.check(points=2)
def sums(t: Tester) -> None:
    """Every worker gets the sum of all arrays."""
    for k in (4, 3, 5, 2):
        for n in (k, 2 * k, 3 * k):
            check(t, numbers(t, k, n))
    for arrays in special(t):
        check(t, arrays)
    check(t, numbers(t, 3, 6), numbers(t, 3, 6))


@ring_all_reduce.check(points=2)
def any_shape(t: Tester) -> None:
    """Arrays have any shape, type and layout; there may be fewer entries than workers."""
    for n, k in ((6, 4), (5, 3), (2, 3), (1, 4), (7, 2), (3, 10)):
        check(t, numbers(t, k, n))
    for k in (3, 1):
        for arrays in samples.alike(t.random, k):
            check(t, arrays)
        for arrays in samples.alike(t.random, k, shapes=((0, 3), ()), dtypes=("float32",)):
            check(t, arrays)
    tiny = np.float32(1e-30)
    check(t, [samples.numbers(t.random, (4,), "float32") * tiny for _ in range(3)])
    check(t, [np.arange(1.0, 5) * 5e-324 for _ in range(2)])  # the smallest there are
    shape = 2, 3  # one layout on each worker
    check(t, [samples.numbers(t.random, shape), *samples.views(samples.numbers(t.random, shape))])


@ring_all_reduce.check(points=1, only_with=("sums",))
def same_bits(t: Tester) -> None:
    """The sums have the same bits on all workers."""
    for k in (3, 4, 5):
        check(t, [t.random.normal(size=40) for _ in range(k)])
        check(t, [t.random.normal(size=(9, 3)).astype(np.float32) for _ in range(k)])


@ring_all_reduce.check(points=2, only_with=("sums",))
def traffic(t: Tester) -> None:
    """A worker sends to the next one only, 2 * (size - 1) chunks of N / size entries."""
    for shape, k in (
        ((12,), 3),
        ((12,), 4),
        ((8,), 2),
        ((10,), 4),
        ((3,), 4),
        ((5, 3), 4),
        ((12,), 11),
        ((70001,), 2),
    ):
        arrays = numbers(t, k, *shape)
        got = check(t, arrays)
        longest = -(-arrays[0].size // k)
        most = 2 * (k - 1) * longest
        for rank in range(k):
            sent = got["sent"][rank]
            way = [("sends to", to, (rank + 1) % k) for to, *_ in sent]
            way += [("receives from", source, (rank - 1) % k) for source in got["received"][rank]]
            for what, other, one in way:
                if other != one:
                    t.fail("not_ring", f"worker {rank} of {k} {what} worker {one}",
                           f"worker {other}", "A worker sends to the next one, and receives from "
                           "the one before.")  # fmt: skip
            sizes = [size for _, size, _ in sent]
            told_ = f"{sum(sizes)} entries in {len(sent)} arrays"
            wanted = f"worker {rank} sends at most {most} entries, in {2 * (k - 1)} arrays"
            if sum(sizes) > most and max(sizes) == arrays[0].size:
                t.fail("bytes", wanted, told_, "A worker adds up one chunk only. Which entries "
                       "does it need of the others for that, and they of it?")  # fmt: skip
            if len(sent) > 2 * (k - 1):
                t.fail("messages", wanted, told_, "Each array that is sent costs time, however "
                       "short it is. Which one does the next worker have no need of?")  # fmt: skip
            if max(sizes, default=0) > longest:
                t.fail("chunk", f"worker {rank} sends at most {longest} entries at a time",
                       f"{max(sizes)} entries in one array", "In a step all wait for the longest "
                       "array. How long is the longest chunk, and is more than a chunk sent?"
                       )  # fmt: skip


@ring_all_reduce.check(points=1, only_with=("sums",))
def a_death(t: Tester) -> None:
    """If a worker dies, the others get an error and no sum."""
    for k in (2, 3, 4):
        for dead in range(k):
            for n in (0, k - 1):
                arrays = numbers(t, k, 2, k)
                given = f"{told(arrays)}; worker {dead} dies after sending {n} arrays"
                got = t.drive("reduce_all", arrays, {dead: n}, given=given)
                for rank, said in got["replaced"].items():
                    t.fail("replaced", f"the error of receive from worker {rank}", said,
                           "Another error takes its place. What if you do not catch it?"
                           )  # fmt: skip
                for rank in range(k):
                    unchanged(t, rank, arrays[rank], got["after"][rank], LEFT_CHANGED)
                    if rank != dead and rank not in got["errors"]:
                        t.fail("swallowed", f"the error of receive from worker {rank}",
                               f"{show(got['results'][rank])}, as if nothing had happened",
                               "This worker goes on with a wrong sum. Who takes the error out of "
                               "its way, or sends it something all the same?")  # fmt: skip
        check(t, numbers(t, k, 2 * k), after=", after a call in which a worker died")
