"""A product of eager code that one thread leads, and of which threads on standby take parts.

Waking a thread takes longer than many a product, so they spin between products for a while
(`devices/threads.py`). The leader writes its product on a board of words that all threads see: also
the bytes of an element, so that threads that serve float32 serve float64, too.
"""

# pyright: reportUndefinedVariable=false

OVER, NEXT, INSIDE, PRODUCT = 8, 64, 128, 192  # bytes: places on the board, by cache lines
AT_FIRST, LONGEST = 2000, 2300  # rounds of waiting: without a system call, and in all (0.1 ms)


@step_jit
def take_parts(board):
    """Compute parts of the product on the board until none is left."""
    x = i8_at(board + PRODUCT)
    while True:
        t = arrive(board + NEXT)
        if t >= x[0]:
            return
        if x[17] == 4:
            product_f4(t, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10],
                       x[11], x[12], x[13], x[14], x[15], x[16])  # fmt: skip
        else:
            product_f8(t, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10],
                       x[11], x[12], x[13], x[14], x[15], x[16])  # fmt: skip


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def lead(board, count, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, more, batch, sa, sb, sc, size):
    """Compute a product in `count` parts with the threads that are on standby.

    size: the bytes of an element. An odd number at the board's start opens it. The threads inside
    are waited for, others are not.
    """
    x = i8_at(board + PRODUCT)
    x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8] = count, a, b, c, m, n, k, lda, ldb
    x[9], x[10], x[11], x[12], x[13], x[14], x[15], x[16] = ldc, ta, tb, more, batch, sa, sb, sc
    x[17] = size
    i8_at(board + NEXT)[0] = 0
    add(board, 1)
    take_parts(board)
    add(board, 1)
    spins = 0
    while add(board + INSIDE, 0) > 0:  # not `look`: it must not pass the addition above
        spins += 1
        if spins > SPINS:
            YIELD()


@jit("void(i8)")
def serve(board):
    """Take parts of each product that is opened, until none has been for a while."""
    seen, rounds = I8(0), 0
    while rounds < LONGEST and not look(board + OVER):
        rounds += 1
        if rounds > AT_FIRST:
            YIELD()
        turn = look(board)
        if turn & 1 and turn != seen:
            add(board + INSIDE, 1)
            if add(board, 0) == turn:
                take_parts(board)
                rounds = 0
            add(board + INSIDE, -1)
            seen = turn
