"""Workers for the checks and pictures of lesson 16: threads of which one runs at a time."""

import threading
from collections import defaultdict, deque

import numpy as np

from minigrad.course.objects import StuckError, Worker


class LostError(Exception):
    """Raised by all_reduce in place of a StuckError, which is a RuntimeError: errors differ."""


class UnlikeError(ValueError):
    """Raised by all_reduce for arrays of different shapes."""


class Killed(BaseException):
    """Ends a worker that a check kills."""


class Post:
    """Carries arrays between workers. One of them runs until it must wait; then the next one does.

    So every run goes the same way, and it is seen at once when nobody can go on.

    Args:
        size: how many workers there are.
        kill: {rank: how many arrays that worker sends before it dies}.

    Attributes:
        sent: for each worker a list of (to, copy of the array).
        received: for each worker a list of the ranks it received from.
        waits: {rank: the rank that it waits for}; when nobody could go on, it stays as it was.
        raised: the errors that `receive` raised.
    """

    def __init__(self, size, kill=()):
        self.size, self.kill = size, dict(kill)
        self.sent, self.received = [[] for _ in range(size)], [[] for _ in range(size)]
        self.waits, self.stuck, self.ended, self.raised = {}, {}, {}, []
        self.boxes = defaultdict(deque)
        self.turn, self.changed = 0, threading.Condition()

    def send(self, rank, to, array):
        """Put a copy of an array into a box."""
        if not isinstance(array, np.ndarray | np.generic):
            raise TypeError(f"worker {rank} sends a {type(array).__name__}, not an array")
        if len(self.sent[rank]) == self.kill.get(rank):
            raise Killed
        self.sent[rank].append((to, np.array(array)))
        self.boxes[rank, to].append(np.array(array))

    def receive(self, rank, source):
        """Take the next array out of a box; let others run while there is none."""
        box = self.boxes[source, rank]
        if not box:
            with self.changed:
                self.waits[rank] = source
                self.pass_on(rank)
                self.changed.wait_for(lambda: self.turn == rank)
                del self.waits[rank]
        if not box:
            why = self.ended.get(source, "waits itself")
            self.raised.append(StuckError(f"worker {rank} waits for worker {source}, which {why}"))
            raise self.raised[-1]
        self.received[rank].append(source)
        return box.popleft()

    def pass_on(self, rank):
        """Give the turn to the next worker that can go on."""
        others = [(rank + k) % self.size for k in range(1, self.size + 1)]
        alive = [r for r in others if r not in self.ended]
        for r in alive:
            source = self.waits.get(r)
            if source is None or self.boxes[source, r] or source in self.ended:
                self.turn = r
                break
        else:
            self.stuck = self.stuck or dict(sorted(self.waits.items()))
            self.turn = next(iter(alive), -1)
        self.changed.notify_all()

    def begin(self, rank):
        """Wait for this worker's first turn."""
        with self.changed:
            self.changed.wait_for(lambda: self.turn == rank)

    def end(self, rank, how):
        """Note how a worker has ended."""
        with self.changed:
            self.ended[rank] = how
            self.pass_on(rank)


def run_workers(function, arguments, kill=()):
    """Call function(worker, *arguments[rank]) as each of several workers.

    Args:
        function: what each worker does.
        arguments: for each worker a tuple.
        kill: as in `Post`.

    Returns:
        (results by rank, None where there is none; errors {rank: exception}; the Post).
    """
    post = Post(len(arguments), kill)
    results: list = [None] * post.size
    errors = {}

    def work(rank, mine):  # a worker's frames hold nothing of the others'
        post.begin(rank)
        how = "has ended"
        try:
            results[rank] = function(Worker(rank, post.size, post), *mine)
        except Killed:
            how = "has died"
        except StuckError as error:
            errors[rank], how = error, "has given up"
        except BaseException as error:
            errors[rank], how = error, "has failed"
        finally:
            post.end(rank, how)

    threads = [threading.Thread(target=work, args=one, daemon=True) for one in enumerate(arguments)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, errors, post


def is_stuck(error):
    """Return whether an error is that of a receive in vain, or was raised in its place."""
    while error is not None and not isinstance(error, StuckError):
        error = error.__cause__ or error.__context__
    return error is not None


def first_error(errors):
    """Raise the first error that is not the consequence of another one's, if there is one."""
    for error in errors.values():
        if not is_stuck(error):
            raise error


def replaced(errors, raised):
    """Return by worker what was raised in place of the errors that `raised` lists."""
    return {
        rank: f"{type(error).__name__}: {error}"
        for rank, error in errors.items()
        if not any(error is one for one in raised)
    }


def plain(value):
    """Return a copy of an array; anything else unchanged."""
    return value.copy() if isinstance(value, np.ndarray) else value


def cut(mine, rows, k, dtype, before=()):
    """Call shard with an array of a type that no message carries, such as texts.

    With `before`, shard is called with these rows first, and then with others in the same array.
    Returns for each part its shape and its rows; or what shard returned, if that is no list.
    """
    data = np.empty(len(rows), dtype)
    for some in (before, rows):
        if len(some):
            for i, row in enumerate(some):
                data[i] = row
            parts = mine.shard(data, k)
    if not isinstance(parts, list) or not all(isinstance(part, np.ndarray) for part in parts):
        return parts
    return [[list(part.shape), part.tolist()] for part in parts]


def reduce_all(mine, arrays, kill=(), before=()):
    """Call ring_all_reduce as several workers; return what can be seen of it.

    Args:
        mine: the learner's module.
        arrays: for each worker its array.
        kill: as in `Post`.
        before: arrays for a call before this one, whose results are kept; () for none.

    Returns a dict: for each worker its result, its array afterwards, whether the result is that
    array's memory, what it sent, [(to, entries, dtype), …]; whom each waits for if nobody goes on;
    arrays that were sent and not received; by worker the text of a StuckError, or of what was
    raised in its place; the workers whose earlier result this call has changed.
    """
    kept = run_workers(mine.ring_all_reduce, [(x,) for x in before])[0] if before else []
    as_they_were = [plain(x) for x in kept]
    results, errors, post = run_workers(mine.ring_all_reduce, [(x,) for x in arrays], kill)
    first_error(errors)
    return {
        "results": [plain(x) for x in results],
        "after": [x.copy() for x in arrays],
        "is_same": [
            isinstance(y, np.ndarray) and (y is x or np.shares_memory(x, y))
            for x, y in zip(arrays, results, strict=True)
        ],
        "sent": [[(to, x.size, x.dtype.str) for to, x in one] for one in post.sent],
        "received": post.received,
        "stuck": post.stuck,
        "left": {f"{a} to {b}": len(box) for (a, b), box in post.boxes.items() if box},
        "errors": {rank: f"{error}" for rank, error in errors.items()},
        "replaced": replaced(errors, post.raised),
        "overwritten": [
            r
            for r, pair in enumerate(zip(kept, as_they_were, strict=True))
            if not np.array_equal(*pair)
        ],
    }


def sum_of_all(worker, counts, x):
    """Return the sum of the workers' arrays, the same bits on each: worker 0 adds them up."""
    x = np.asarray(x, np.float64)
    counts[worker.rank].append(x.shape)
    others = [r for r in range(worker.size) if r != worker.rank]
    if worker.rank:
        worker.send(0, x)
        total = worker.receive(0)
        if total.shape != x.shape:
            raise UnlikeError(f"shape {x.shape} here, {total.shape} on worker 0")
        return total
    total = x.copy()
    for rank in others:
        part = worker.receive(rank)
        if part.shape != x.shape:
            raise UnlikeError(f"shape {x.shape} on worker 0, {part.shape} on {rank}")
        total += part
    for rank in others:
        worker.send(rank, total)
    return total


def slope(w, x, y):
    """Return the gradient of the mean of (x @ w - y)**2 over rows; nan where there is no row.

    If w has no axes, x has one, and x * w takes the place of x @ w; or x's rows have no entries,
    and w itself does.
    """
    if not len(x):
        return np.full(w.shape, np.nan)
    if not np.ndim(w):
        if np.ndim(x) > 1:
            return np.asarray(2 * np.mean(w - y))
        return np.asarray(2 * np.mean(x * (x * w - y)))
    return 2 * x.T @ (x @ w - y) / len(x)


def tilt(w, x, y):
    """Return the gradient of the mean of x @ w over rows, which is the same for all w."""
    return np.mean(x, axis=0) if len(x) else np.full(w.shape, np.nan)


def turned(w, x, y):
    """Return the slope, in an array that lies in memory column by column."""
    return np.asfortranarray(slope(w, x, y))


GRADIENTS = {"slope": slope, "tilt": tilt, "turned": turned}


def summing(worker, counts, dies, lost, raised):
    """Return an all_reduce for all steps of a worker: a plain function, as Python makes most.

    In the call of which `dies` tells, the worker dies. With `lost`, it raises a LostError in place
    of a StuckError. The errors go into `raised`, too.
    """

    def all_reduce(x):
        if dies and len(counts[worker.rank]) == dies["call"]:
            dies["in_call"] = True
            raise Killed
        try:
            return sum_of_all(worker, counts, x)
        except StuckError as error:
            raised.append(LostError(f"{error}") if lost else error)
            if not lost:
                raise
            raise raised[-1] from error

    return all_reduce


def steps(mine, weights, parts, learning_rate, dies=None, lost=False, gradient="slope"):
    """Call dp_step as several workers, for several steps; return what can be seen of it.

    Args:
        mine: the learner's module.
        weights: for each worker its copy of the weights at first; it is written to.
        parts: for each worker a list, for each step its (x, y).
        learning_rate: a float.
        dies: None, or (rank, step, n): in that step, that worker dies in its call number n of
            all_reduce, counted from 0, or at the end of the step if it makes no such call.
        lost: whether the error of all_reduce is a LostError, and not a StuckError.
        gradient: which of GRADIENTS.
    """
    counts = [[] for _ in parts]
    paths = [[] for _ in parts]
    returned, changed, raised, odd = [], [], [], []
    dead, last, n_calls = dies or (None, None, 0)
    death = {"call": None, "in_call": False}

    def slope_at(w, x, y):
        if np.shape(w) != weights[0].shape:
            odd.append(f"gradient(w, x, y) with w of shape {np.shape(w)}")
        return GRADIENTS[gradient](w, x, y)

    def work(worker, rows):
        rank = worker.rank
        all_reduce = summing(worker, counts, death if rank == dead else None, lost, raised)
        for k, (x, y) in enumerate(rows):
            before = x.copy(), y.copy()
            if (rank, k) == (dead, last):
                death["call"] = len(counts[rank]) + n_calls
            step = mine.dp_step(all_reduce, slope_at, weights[rank], x, y, learning_rate)
            returned.append(plain(step))
            if (rank, k) == (dead, last):
                raise Killed
            if not all(
                np.array_equal(*two, equal_nan=True) for two in zip(before, (x, y), strict=True)
            ):
                changed.append(rank)
            paths[rank].append(weights[rank].copy())

    _, errors, post = run_workers(work, [(rows,) for rows in parts])
    unlike = [error for error in errors.values() if isinstance(error, UnlikeError)]
    if not unlike and not odd:
        first_error(errors)
    return {
        "odd": odd[0] if odd else "",
        "unlike": f"{unlike[0]}" if unlike else "",
        "paths": paths,
        "weights": [one.copy() for one in weights],
        "returned": [one for one in returned if one is not None],
        "changed": changed,
        "counts": [len(one) for one in counts],
        "stuck": post.stuck,
        "errors": {rank: f"{error}" for rank, error in errors.items()},
        "replaced": replaced(errors, raised),
        "in_call": death["in_call"],
    }
