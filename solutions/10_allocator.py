"""Lesson 10: who gets which memory, when it comes back, and what is left.

Memory is a row of numbered bytes here: an address is an int, a block begins
at an address and has a number of bytes. Your classes only decide who gets
which bytes. Python is enough, up to the bug hunt.
"""

import numpy as np

ALIGNMENT = 64  # bytes: all addresses are multiples of it
SEGMENT = 1 << 16  # bytes: a pool asks the system for no less
POISON = 0xFF  # what is written over memory that was freed


class NotInUseError(RuntimeError):
    """Memory was freed, or shared, that is not in use (any more)."""


def size_class(nbytes):
    """Round a request up to one of few sizes, so that blocks fit again.

    The sizes are 64, 128, 192, ... 512. Beyond, there are eight
    from each power of two p to the next one, 2p: the multiples of p / 8.
    So after 512 come 576, 640, ... 1024, then 1152, 1280, ... 2048.

    Args:
        nbytes: an int, 0 or more; it may be huge.

    Returns:
        An int: the smallest of these sizes that holds nbytes.
    """
    ### BEGIN SOLUTION
    step = max(ALIGNMENT, (1 << nbytes.bit_length()) // 16)
    return max(ALIGNMENT, -(-nbytes // step) * step)
    ### END SOLUTION


class Pool:
    """Hands out memory, and keeps what comes back for the next request.

    The pool gets its memory in segments from the system:
        system.take(nbytes): returns the address of a new segment of nbytes,
            a multiple of 64. Segments may touch; one may begin where one of
            another length did that went back.
        system.give_back(address): returns a whole segment to the system;
            nothing in it may be in use.
    """

    def __init__(self, system):
        """Begin with no memory at all."""
        ### BEGIN SOLUTION
        self.system = system
        self.segments = {}  # address -> bytes
        self.in_use = {}  # address of a block -> (bytes, its segment)
        self.free_blocks = []  # (address, bytes, segment)
        ### END SOLUTION

    def alloc(self, nbytes):
        """Return the address of a block of size_class(nbytes) bytes.

        The address is a multiple of 64, and no byte of the block belongs to
        another block that is in use. The block is cut out of the smallest
        free piece that holds it (if several are, of any), at the piece's
        beginning; the rest of the piece stays free. Pieces that touch are
        one, but a piece never reaches beyond its segment.

        If no free piece is large enough, the pool takes a new segment, as
        large as the block, and of SEGMENT bytes at least. Just before that,
        and at no other time, it gives back to the system all segments in
        which nothing is in use.
        """
        ### BEGIN SOLUTION
        size = size_class(nbytes)
        fitting = [piece for piece in self.free_blocks if piece[1] >= size]
        if not fitting:
            self.give_back_empty()
            room = max(size, SEGMENT)
            segment = self.system.take(room)
            self.segments[segment] = room
            piece = segment, room, segment
            self.free_blocks.append(piece)
            fitting = [piece]
        piece = min(fitting, key=lambda piece: piece[1])
        self.free_blocks.remove(piece)
        address, room, segment = piece
        if room > size:
            self.free_blocks.append((address + size, room - size, segment))
        self.in_use[address] = size, segment
        return address
        ### END SOLUTION

    def free(self, address):
        """Take a block back; the next request may get it.

        Raises:
            NotInUseError: alloc() never returned this address, or its block
                is free already. Then nothing changes.
        """
        ### BEGIN SOLUTION
        if address not in self.in_use:
            raise NotInUseError(f"no block in use begins at {address}")
        size, segment = self.in_use.pop(address)
        start, end = address, address + size
        for piece in list(self.free_blocks):
            low, high = piece[0], piece[0] + piece[1]
            if piece[2] == segment and (high == start or low == end):
                self.free_blocks.remove(piece)
                start, end = min(low, start), max(high, end)
        self.free_blocks.append((start, end - start, segment))

    def give_back_empty(self):
        """Give all segments back to the system that are one free piece."""
        for piece in list(self.free_blocks):
            address, room, segment = piece
            if room == self.segments[segment]:
                self.free_blocks.remove(piece)
                del self.segments[segment]
                self.system.give_back(address)
        ### END SOLUTION


class Buffer:
    """Memory of a pool that several may hold; the last one frees it.

    Attributes:
        address: where its bytes begin. They are
            pool.memory[address : address + nbytes], of dtype uint8.
        nbytes: how many bytes it has, those that were asked for.
        owners: how many hold it: 1 at first, 0 after the last one.
    """

    def __init__(self, pool, nbytes):
        """Take memory by pool.alloc(nbytes); whoever makes it owns it."""
        ### BEGIN SOLUTION
        self.pool, self.nbytes = pool, nbytes
        self.address = pool.alloc(nbytes)
        self.owners = 1
        ### END SOLUTION

    def incref(self):
        """Count one owner more.

        Raises:
            NotInUseError: nobody owns it any more. Nothing changes.
        """
        ### BEGIN SOLUTION
        self.check_in_use()
        self.owners += 1
        ### END SOLUTION

    def decref(self):
        """Count one owner less; after the last one, the memory is free.

        Then each of its nbytes bytes becomes POISON, and no other; after
        that, pool.free gets the address, once. While others own it, no
        byte changes.

        Raises:
            NotInUseError: nobody owns it any more. Nothing changes.
        """
        ### BEGIN SOLUTION
        self.check_in_use()
        self.owners -= 1
        if not self.owners:
            end = self.address + self.nbytes
            self.pool.memory[self.address : end] = POISON
            self.pool.free(self.address)

    def check_in_use(self):
        """Raise if nobody owns it."""
        if not self.owners:
            raise NotInUseError(f"the buffer at {self.address} was freed")
        ### END SOLUTION


def plan_reuse(lifetimes):
    """Give values whose lives are known a place in one block, the arena.

    Moments are ints, from wherever they begin, and values come in no
    order. A value is needed from `first` to `last`, both included.
    Values that are needed at the same moment share no byte; others may. A
    value takes its bytes, rounded up to a multiple of 64.

    Args:
        lifetimes: list of (nbytes, first, last), ints, nbytes at least 1.
            It may be empty, and is only read.

    Returns:
        A list of ints: for each value, in the given order, its offset from
        the beginning of the arena, a multiple of 64.

    The arena ends where the last value ends. It is as short as possible if
    all values have the same nbytes. Otherwise it is at most a tenth longer
    than that of this rule: most nbytes first, each at the lowest offset
    that is free during its whole life.
    """
    ### BEGIN SOLUTION
    offsets = {}
    placed = []  # (begin, end, first, last)

    def largest_then_earliest(k):
        return -lifetimes[k][0], lifetimes[k][1]

    for k in sorted(range(len(lifetimes)), key=largest_then_earliest):
        nbytes, first, last = lifetimes[k]
        room, offset = -(-nbytes // ALIGNMENT) * ALIGNMENT, 0
        for begin, end, since, until in sorted(placed):
            if since <= last and first <= until:
                if offset + room <= begin:
                    break
                offset = max(offset, end)
        placed.append((offset, offset + room, first, last))
        offsets[k] = offset
    return [offsets[k] for k in range(len(lifetimes))]
    ### END SOLUTION


# --- Bug hunt -------------------------------------------------------------
# A training step by hand: a hidden layer of tanh, an error, two gradients.
# Every array is taken from a pool, and goes back to it when nobody needs it
# any more. One goes back too early. The step was tested on a pool with
# plenty of room, and was right. Write into BUG the letters of two lines,
# such as "A": under "given" the line that gives the memory back too early,
# under "read" the first line below it that still reads that array. Then
# repair the step. Lines may change places. It takes no array more than now,
# fills each before the next take, copies none, computes nothing twice, and
# gives each array back before the next take, if nobody needs it any more.

### BEGIN SOLUTION
BUG = {"given": "E", "read": "I"}
### STARTS AS
# BUG = {"given": None, "read": None}
### END SOLUTION


def hand_step(pool, x, goal, w1, w2):
    """Compute two gradients of half the squared error, by hand.

    The error is sum((y - goal) ** 2) / 2, and y = tanh(x @ w1) @ w2.

    Args:
        pool: take(shape) returns an array of float64 whose entries are what
            its memory holds; give(array) takes it back, after which nobody
            may read or write its entries (its shape is no memory).
        x, goal, w1, w2: float64 arrays (n, i), (n, o), (i, h), (h, o): the
            caller's, only read.

    Returns:
        (dw1, dw2): arrays of the pool, (i, h) and (h, o). All others that
        were taken are given back. No array is made without the pool.
    """
    z = pool.take((len(x), w1.shape[1]))
    np.matmul(x, w1, out=z)  # A
    h = pool.take(z.shape)
    np.tanh(z, out=h)  # B
    pool.give(z)  # C: tanh' is 1 - h * h: only the output is needed
    y = pool.take(goal.shape)
    np.matmul(h, w2, out=y)  # D
    ### BEGIN SOLUTION
    ### STARTS AS
    # pool.give(h)  # E: the next layer has read it
    ### END SOLUTION
    dy = pool.take(goal.shape)
    np.subtract(y, goal, out=dy)  # F
    pool.give(y)  # G: the error is all that backward needs of it
    dh = pool.take(z.shape)
    np.matmul(dy, w2.T, out=dh)  # H
    dw2 = pool.take(w2.shape)
    np.matmul(h.T, dy, out=dw2)  # I
    pool.give(dy)  # J: both products have read it
    slope = pool.take(z.shape)
    np.multiply(h, h, out=slope)  # K
    ### BEGIN SOLUTION
    pool.give(h)  # E: the slope of tanh was the last to read it
    ### STARTS AS
    ### END SOLUTION
    np.subtract(1.0, slope, out=slope)  # L
    np.multiply(dh, slope, out=dh)  # M
    pool.give(slope)  # N
    dw1 = pool.take(w1.shape)
    np.matmul(x.T, dh, out=dw1)  # O
    pool.give(dh)  # P
    return dw1, dw2
