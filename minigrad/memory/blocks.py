"""Blocks: `with` statements that decorate functions and generators as well.

What a block finds when it begins is kept in a list of the thread, not in the block: one object may
be entered several times and by several threads. A block that ends before one that began later, as
generators that are advanced in turns have it, hands what it found on to that one.
"""

import functools
import inspect
import threading
from typing import Any

from minigrad.errors import ArgumentTypeError, StateError
from minigrad.hints import teaching, teaching_class
from minigrad.memory.interrupts import ready, uninterrupted


class _Entered(threading.local):
    """The open blocks of one thread, innermost last, each with what it found."""

    def __init__(self):
        self.blocks: list[tuple[Block, dict[str, Any]]] = []


_entered = _Entered()


class _BlockType(type):
    """Tells people who write `with mg.no_grad:` that the parentheses are missing."""

    def __enter__(cls):
        raise ArgumentTypeError(
            f"with: wanted a block, {cls.__name__}(...)",
            f"the class {cls.__name__} itself",
            f"with the parentheses: `with {cls.__name__}(...):`",
        )

    def __exit__(cls, *error):
        raise NotImplementedError  # Python looks for it before it enters


class Block(metaclass=_BlockType):
    """The base class of blocks: `with block:`, or `@block` above a function or a generator."""

    _setting: str | None = None  # what it sets, if blocks that set the same restore one another
    _is_in_parts = True  # whether it can end and begin again where a generator is suspended

    def __init_subclass__(cls):
        teaching_class(cls)

    def __init__(self):
        pass

    def _begin(self) -> dict:
        """Sets what holds inside; returns {what: its value before} for `_end`."""
        raise NotImplementedError

    def _end(self, before, is_error):
        """Restores what `_begin` returned; is_error: whether an exception ends the block."""
        raise NotImplementedError

    @uninterrupted
    def __enter__(self):
        ready()
        before = self._begin()
        _entered.blocks.append((self, before))
        return self

    @uninterrupted
    def __exit__(self, kind=None, *error):
        found, k = _entered.blocks, len(_entered.blocks) - 1
        while k >= 0 and found[k][0] is not self:
            k -= 1
        if k < 0:
            name = type(self).__name__
            raise StateError(
                f"{name}: a block ends in the thread in which it began",
                f"{threading.current_thread().name}, where it did not begin",
                f"`with {name}(...):` in each thread, around what this thread does",
            )
        _, before = found.pop(k)
        for block, later in found[k:]:  # those that began inside and are open still
            if self._setting and block._setting == self._setting:
                for name in before.keys() & later.keys():
                    later[name] = before.pop(name)
        self._end(before, kind is not None)

    @teaching
    def __call__(self, function: Any) -> Any:
        """The function, each call of which runs inside the block; or the generator function."""
        kind = _refused(function)
        is_generator = _is(inspect.isgeneratorfunction, function)
        if is_generator and not self._is_in_parts:
            kind = "a generator function, which stops halfway"
        if kind:
            name = type(self).__name__
            raise ArgumentTypeError(
                f"@{name}: wanted a function or a method",
                kind,
                "decorate its methods one by one"
                if isinstance(function, type)
                else f"`with {name}(...):` inside it, around lines without yield or await",
            )
        if is_generator:
            return self._of_generator(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapper

    def _of_generator(self, function):
        """The generator function whose body runs inside the block, and its caller outside."""

        @functools.wraps(function)
        def generator(*args, **kwargs):
            running, part = function(*args, **kwargs), _Part(self)
            resume, given = running.send, None
            while True:
                try:
                    with part:
                        value = resume(given)
                except StopIteration as stop:
                    return stop.value
                finally:
                    given = None  # an error that was thrown refers to this frame: a cycle
                try:
                    resume, given = running.send, (yield value)
                except BaseException as error:  # of throw, or of close: the body's to handle
                    resume, given = running.throw, error

        return generator


class _Part:
    """The blocks in which a generator's body runs from one yield to the next."""

    def __init__(self, block):
        self._open = [block]

    @uninterrupted
    def __enter__(self):
        self._mark = len(_entered.blocks)
        try:
            for block in self._open:
                block.__enter__()
        except BaseException:
            self.__exit__()
            raise

    @uninterrupted
    def __exit__(self, *error):
        self._open = [b for b, _ in _entered.blocks[self._mark :] if b._is_in_parts]
        for block in reversed(self._open):  # including those that the body left open
            block.__exit__()


def _is(question, function):
    """Whether a function, or what an object does when it is called, is of a kind."""
    return question(function) or question(inspect.getattr_static(type(function), "__call__", None))


def _refused(function):
    """What cannot be decorated, in words; None for what can."""
    if isinstance(function, type):
        return f"the class {function.__name__}"
    if _is(inspect.iscoroutinefunction, function):
        return "an async function: other tasks run while it waits, and would run inside the block"
    if _is(inspect.isasyncgenfunction, function):
        return "an async generator: other tasks run while it waits, and would run inside the block"
    if isinstance(function, classmethod):
        return "a classmethod: @classmethod belongs above this line"
    return None if callable(function) else f"{function!r:.60} of type {type(function).__name__}"
