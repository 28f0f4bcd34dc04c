"""What the checks of lesson 10 do in the learner's process: a system, a memory, a log."""

import numpy as np


class System:
    """The system under a pool: it gives segments of memory, takes them back, and writes a log.

    gaps: the bytes that it leaves before each segment, in turn. What came back it gives again.
    """

    def __init__(self, log, gaps=(0,)):
        self.log, self.gaps, self.end, self.n_taken = log, gaps, 4096, 0
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


def pool_log(mine, steps, gaps):
    """Run a program on a new Pool; return what happened, in order.

    A step ("at", request, more) frees the address of a request, and some bytes more. A second Pool
    is made and used meanwhile.
    """
    log, addresses, other = [], [], None
    pool = mine.Pool(System(log, tuple(gaps)))
    for what, number, *more in steps:
        if what == "alloc":
            addresses.append(pool.alloc(number))
            got = addresses[-1]
            log.append(["alloc", number, got if type(got) is int else type(got).__name__])
            continue
        address = addresses[number] + (more[0] if more else 0)
        raised = 0
        try:
            pool.free(address)
        except mine.NotInUseError:
            raised = "NotInUseError"
        log.append(["free", address, raised])
        if other is None:
            other = mine.Pool(System([]))
            other.alloc(64)
    return log


class Counter:
    """A pool that gives one address after the other, and writes down what it is asked."""

    def __init__(self, memory, addresses):
        self.memory, self.addresses = memory, list(addresses)
        self.asked, self.frees, self.at_free = [], [], None

    def alloc(self, nbytes):
        """Return the next address."""
        self.asked.append(nbytes)
        return self.addresses.pop(0)

    def free(self, address):
        """Note the address, and what its bytes are now."""
        self.frees.append(address)
        self.at_free = self.memory.copy()


def counted(mine, values, place, nbytes, calls):
    """Make a Buffer and do what a text of `+` and `-` says; return what is seen after each."""
    pool = Counter(values.copy(), [place])
    buffer = mine.Buffer(pool, nbytes)
    first, after = look(pool, buffer, False), []
    for call in calls:
        raised = False
        try:
            (buffer.incref if call == "+" else buffer.decref)()
        except mine.NotInUseError:
            raised = True
        after.append(look(pool, buffer, raised))
    return {"asked": list(pool.asked), "first": first, "after": after}


def look(pool, buffer, raised):
    """Return what there is to see of a Buffer and its pool."""
    memory = pool.memory.copy()
    return {
        "raised": raised,
        "frees": list(pool.frees),
        "memory": memory,
        "after_free": memory if pool.at_free is None else pool.at_free.copy(),
        "owners": buffer.owners,
        "address": buffer.address,
        "nbytes": buffer.nbytes,
    }


def counted_apart(mine, counts, turns):
    """Make Buffers of one pool with so many owners; take owners away in turn."""
    pool = Counter(np.zeros(1024, np.uint8), [64 * (k + 1) for k in range(len(counts))])
    buffers = [mine.Buffer(pool, 64) for _ in counts]
    for buffer, count in zip(buffers, counts, strict=True):
        for _ in range(count - 1):
            buffer.incref()
    seen = []
    for k in turns:
        buffers[k].decref()
        seen.append([[b.owners for b in buffers], list(pool.frees)])
    return seen


class ArrayPool:
    """A pool of arrays: `take` gives the array of this size that came back last, or a new one.

    With poison, what comes back becomes nan, and is not given again.

    Attributes:
        in_use, peak: numbers in use, now and at most.
        wrong: what was given back and was not in use, in words.
    """

    def __init__(self, poison):
        self.poison, self.free, self.taken = poison, {}, {}
        self.in_use = self.peak = 0
        self.wrong = ""

    def take(self, shape):
        """Return an array of this shape; its entries are what its memory holds."""
        size = int(np.prod(shape))
        ready = self.free.setdefault(size, [])
        flat = ready.pop() if ready else np.full(size, np.nan)
        array = flat.reshape(shape)
        self.taken[id(array)] = array, flat
        self.in_use += size
        self.peak = max(self.peak, self.in_use)
        return array

    def give(self, array):
        """Take an array back."""
        _, flat = self.taken.pop(id(array), (None, None))
        if flat is None:
            self.wrong = self.wrong or f"something else: {type(array).__name__} {np.shape(array)}"
            return
        self.in_use -= flat.size
        if self.poison:
            flat[:] = np.nan
        else:
            self.free.setdefault(flat.size, []).append(flat)


def hand_steps(mine, x, goal, w1, w2, poison):
    """Run the step by hand on a pool of arrays; return its results and what the pool has seen."""
    pool = ArrayPool(poison)
    returned = mine.hand_step(pool, x, goal, w1, w2)
    return {
        "returned": returned,
        "left": len(pool.taken),
        "peak": pool.peak,
        "wrong": pool.wrong,
    }
