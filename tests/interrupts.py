"""Ctrl-C at one chosen moment after another, without timers.

Python looks for signals after a call, before it does anything with what the call returned.
"""

import dis
import sys


def interrupted(k, file, function, *arguments):
    """function(*arguments), with Ctrl-C after the k-th call that code of a file makes.

    Returns whether there were so many calls.
    """
    last, left = {}, [k]

    def trace(frame, event, _):
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = last.get(id(frame), "")
            now = last[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            left[0] -= before.startswith(("CALL", "PRECALL")) and not now.startswith("CALL")
            if left[0] < 0:
                raise KeyboardInterrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    return False
