"""Calls of one kernel that a thread leads, and of which threads on standby make some.

Waking a thread takes longer than many a call, so they spin between calls for a while
(`devices/threads.py`). The leader writes on a board of words that all threads see which machine
code to call, and where the arguments of each call lie.
"""

# pyright: reportUndefinedVariable=false

OVER, INSIDE, CALLS, TAKEN = 8, 64, 128, 192  # bytes: places on the board, by cache lines
WORDS = TAKEN + 8 * 64  # after a word for each call
AT_FIRST, LONGEST = 10000, 10300  # rounds of waiting: without a system call, and in all (0.1 ms)
INTEGERS, FLOATS, MIXED = 32, 3, 9  # as in `devices/threads.py`


@intrinsic
def call_with(typing, function, form, words):
    """Call the machine code at an address with the words at another as its arguments.

    form: how many there are, and above its lowest 8 bits which of the first FLOATS are floats.
    """

    def code(context, builder, signature, arguments):
        function, form, words = arguments
        word, after = ir.IntType(64), builder.append_basic_block("called")
        choice = builder.switch(form, after)
        for floats in range(1 << FLOATS):
            for n in range(1, 1 + (MIXED if floats else INTEGERS)):
                if floats >> n:
                    continue
                kinds = [types.float64 if floats >> k & 1 else types.int64 for k in range(n)]
                block = builder.append_basic_block()
                choice.add_case(word(n + (floats << 8)), block)
                with builder.goto_block(block):
                    at = builder.inttoptr(words, word.as_pointer())
                    values = [builder.load(builder.gep(at, [word(k)])) for k in range(n)]
                    values = [
                        builder.bitcast(v, context.get_value_type(t))
                        for v, t in zip(values, kinds, strict=True)
                    ]
                    type_of = context.call_conv.get_function_type(types.none, kinds)
                    to_call = builder.inttoptr(function, type_of.as_pointer())
                    context.call_conv.call_function(builder, to_call, types.none, kinds, values)
                    builder.branch(after)
        builder.position_at_end(after)

    return types.none(types.int64, types.int64, types.int64), code


@step_jit
def make_calls(board, start):
    """Make calls that are on the board, beginning with the one at `start`, until none is left.

    Each thread begins elsewhere, in the same place each time: there its cache has the data.
    """
    x = i8_at(board + CALLS)
    for k in range(x[0]):
        t = (start + k) % x[0]
        if arrive(board + TAKEN + 8 * t) == 0:
            call_with(x[1], x[2], x[3] + 8 * t * (x[2] & 255))


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8)")
def lead(board, count, threads, function, form, words, operands, with_each):
    """Make `count` calls of a kernel with the threads that are on standby.

    threads: how many may take part. function, form: as of `call_with`. words: the address of the
    arguments of one call after the other. To the first `with_each` arguments of each the words at
    `operands` are added. An odd number at the board's start opens it. The threads inside are waited
    for, others are not.
    """
    x, taken = i8_at(board + CALLS), i8_at(board + TAKEN)
    if with_each > 0:
        given, own, common, n = i8_at(words), i8_at(board + WORDS), i8_at(operands), form & 255
        for k in range(count * n):
            own[k] = given[k] + (common[k % n] if k % n < with_each else 0)
        words = board + WORDS
    x[0], x[1], x[2], x[3], x[4] = count, function, form, words, threads
    for t in range(count):
        taken[t] = 0
    add(board, 1)
    make_calls(board, 0)
    add(board, 1)
    spins = 0
    while add(board + INSIDE, 0) > 0:  # not `look`: it must not pass the addition above
        spins += 1
        if spins > SPINS:
            YIELD()


@jit("void(i8)")
def serve(board):
    """Make calls of each board that is opened, until none has been for a while."""
    seen, rounds = I8(0), 0
    while rounds < LONGEST and not look(board + OVER):
        rounds += 1
        if rounds > AT_FIRST:
            YIELD()
        turn = look(board)
        if turn & 1 and turn != seen:
            before = add(board + INSIDE, 1)
            if add(board, 0) == turn:
                x = i8_at(board + CALLS)
                make_calls(board, x[0] * (before + 1) // x[4])
                rounds = 0
            add(board + INSIDE, -1)
            seen = turn
