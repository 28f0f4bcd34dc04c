"""What the checks of lesson 10 do in the learner's process: a system, a memory, a log."""

import tracemalloc

import numpy as np


class System:
    """The system under a pool: it gives segments of memory, takes them back, and writes a log.

    gaps: the bytes that it leaves before each segment, in turn. What came back it gives again.
    """

    def __init__(self, log, gaps):
        self.log, self.gaps, self.end, self.n_taken = log, gaps, 0, 0
        self.lengths, self.returned = {}, []

    def take(self, nbytes):
        """Return the address of a new segment."""
        if type(nbytes) is not int or not 0 < nbytes < 1 << 40:
            raise TypeError(f"system.take: wanted a number of bytes, got {nbytes!r:.60}")
        address = next((a for a in self.returned if self.lengths[a] >= nbytes), None)
        if address is None:
            address = self.end + self.gaps[self.n_taken % len(self.gaps)]
            self.end, self.n_taken = address - (-nbytes // 64) * 64, self.n_taken + 1
            self.lengths[address] = nbytes
        else:
            self.returned.remove(address)
        self.log.append(["take", nbytes, address])
        return address

    def give_back(self, address):
        """Take a segment back."""
        if address in self.lengths and address not in self.returned:
            self.returned.append(address)
        self.log.append(["back", address if type(address) is int else str(type(address)), 0])


def tried(mine, goes_on, call, *arguments):
    """Call; return the result and None, or None and the error as data, which may go on instead."""
    try:
        return call(*arguments), None
    except Exception as error:
        if goes_on:
            raise
        kinds = [kind.__name__ for kind in type(error).__mro__]
        wanted = isinstance(error, mine.NotInUseError)
        return None, {"is_it": wanted, "kinds": kinds, "text": str(error)[:100]}


def pool_log(mine, steps, gaps, through):
    """Run a program on a new Pool; return what happened, in order.

    A step ("at", request, more) frees the address of a request, and some bytes more. An error is
    written down, but the one of step number `through`, which goes on. The program ends where
    alloc returns no address. A second Pool is made and used meanwhile.
    """
    log, addresses, other = [], [], None
    pool = mine.Pool(System(log, tuple(gaps)))
    log.append(["made", 0, 0])
    for n, (what, number, *more) in enumerate(steps):
        if what == "alloc":
            got, raised = tried(mine, n == through, pool.alloc, number)
            addresses.append(got)
            is_address = type(got) is int
            log.append(["alloc", number, got if is_address else raised or type(got).__name__])
            if not is_address:
                break
            continue
        address = addresses[number] + (more[0] if more else 0)
        log.append(["free", address, tried(mine, n == through, pool.free, address)[1]])
        if other is None:
            other = mine.Pool(System([], (4096,)))
            other.alloc(64)
    return log


class Memory:
    """A pool of places in a memory: the one that came back last is given first.

    asked, frees: what alloc and free were called with. at_free: the memory at the last free.
    """

    def __init__(self, values, places):
        self.memory, self.places, self.in_use = values.copy(), list(places), []
        self.asked, self.frees, self.at_free = [], [], None

    def alloc(self, nbytes):
        """Return the next place."""
        self.asked.append(nbytes)
        self.in_use.append(self.places.pop(0))
        return self.in_use[-1]

    def free(self, address):
        """Note the address, and what all bytes are now."""
        self.frees.append(address)
        self.at_free = self.memory.copy()
        if address in self.in_use:
            self.in_use.remove(address)
            self.places.insert(0, address)


def counted(mine, values, places, steps, through):
    """Do on Buffers of pools what steps say; return what is seen after each.

    values, places: the memory of each pool, and the addresses that it gives. A step is ("make",
    pool, nbytes), after which the owner writes its number into all bytes, ("+", buffer) or ("-",
    buffer). An error is written down, but the one of step number `through`, which goes on.
    """
    pools = [Memory(one, places) for one in values]
    memories = [one.memory for one in pools]
    buffers, seen = [], []
    for n, (what, number, *more) in enumerate(steps):
        for pool in pools:
            pool.at_free = None
        raised = None
        if what == "make":
            pool, nbytes = pools[number], more[0]
            place = pool.places[0]
            buffers.append(mine.Buffer(pool, nbytes))
            memories[number][place : place + nbytes] = len(buffers)
        else:
            call = buffers[number].incref if what == "+" else buffers[number].decref
            _, raised = tried(mine, n == through, call)
        seen.append(
            {
                "raised": raised,
                "buffers": [[one.owners, one.address, one.nbytes] for one in buffers],
                "pools": [
                    [list(one.asked), list(one.frees), memory.copy(), one.at_free]
                    for one, memory in zip(pools, memories, strict=True)
                ],
            }
        )
    return seen


class ArrayPool:
    """A pool of arrays, numbered as they are taken.

    kind: "much room": each array is new. "poison": so it is, and what comes back becomes nan.
    "used again": `take` gives the array of this size that came back last, if there is one.
    room: how many numbers it has ready; what is beyond is made when it is taken.

    Attributes:
        n_taken: how many arrays were taken so far.
        unfilled: the numbers of those in use that were all nan when the next one was taken.
        gives: (the array's number, how many had been taken) for each that came back.
        wrong: what was given back and was not in use, in words.
        spoilt: (n, k), if any: array n becomes nan when array k is taken.
    """

    def __init__(self, kind, room=0, spoilt=None):
        self.kind, self.spoilt, self.ready = kind, spoilt, np.full(room, np.nan)
        self.free, self.taken, self.all, self.gives = {}, {}, [], []
        self.unfilled = []
        self.wrong = ""

    @property
    def n_taken(self):
        """Return how many arrays were taken so far."""
        return len(self.all)

    def take(self, shape):
        """Return an array of this shape; its entries are what its memory holds."""
        size = int(np.prod(shape))
        if self.spoilt and self.n_taken == self.spoilt[1]:
            self.all[self.spoilt[0]][:] = np.nan
        newest, in_use = self.n_taken - 1, {number for _, _, number in self.taken.values()}
        if newest in in_use and np.isnan(self.all[newest]).all():
            self.unfilled.append(newest)
        flat = self.found(size)
        array = flat.reshape(shape)
        self.taken[id(array)] = array, flat, self.n_taken
        self.all.append(flat)
        return array

    def found(self, size):
        """Return memory for so many numbers."""
        if same := self.free.get(size):
            return same.pop()
        flat, self.ready = self.ready[:size], self.ready[size:]
        return flat if len(flat) == size else np.full(size, np.nan)

    def give(self, array):
        """Take an array back."""
        _, flat, number = self.taken.pop(id(array), (None, None, None))
        if flat is None:
            self.wrong = self.wrong or f"something else: {type(array).__name__} {np.shape(array)}"
            return
        self.gives.append([number, self.n_taken])
        if self.kind == "used again":
            self.free.setdefault(flat.size, []).append(flat)
        elif self.kind == "poison":
            flat[:] = np.nan

    def owns(self, array):
        """Return whether this is memory of an array in use."""
        return isinstance(array, np.ndarray) and any(
            np.shares_memory(array, flat) for _, flat, _ in self.taken.values()
        )


def hand_steps(mine, x, goal, w1, w2, kind, spoilt):
    """Run the step by hand on a pool of arrays; return its results and what the pool has seen."""
    pool = ArrayPool(kind, spoilt=spoilt)
    tanh, n_tanh = np.tanh, []
    given = {"x": x, "goal": goal, "w1": w1, "w2": w2}
    before = {name: one.copy() for name, one in given.items()}

    def counted_tanh(*arguments, **named):
        n_tanh.append(1)
        return tanh(*arguments, **named)

    np.tanh = counted_tanh
    try:
        returned = mine.hand_step(pool, x, goal, w1, w2)
    finally:
        np.tanh = tanh
    results = returned if isinstance(returned, tuple | list) else [returned]
    return {
        "returned": returned,
        "owned": [pool.owns(one) for one in results],
        "left": len(pool.taken),
        "n_taken": pool.n_taken,
        "sizes": [flat.size for flat in pool.all],
        "gives": pool.gives,
        "unfilled": pool.unfilled,
        "wrong": pool.wrong,
        "n_tanh": len(n_tanh),
        "changed": [name for name, one in given.items() if (one != before[name]).any()],
    }


def outside(mine, x, goal, w1, w2, room):
    """Return how many bytes the step takes at most beside those of its pool."""
    tracemalloc.start()
    try:
        for _ in range(2):  # what is made once is there at the second time
            pool = ArrayPool("much room", room)
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            mine.hand_step(pool, x, goal, w1, w2)
            peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return peak
