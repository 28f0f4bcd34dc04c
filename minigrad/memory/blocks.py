"""Blocks: context managers that also decorate functions and generators.

Each thread keeps a list of its open blocks with the values that they will restore. The values are
not kept in the block, because several threads may enter one object, each several times. When
generators run in turns, a block may end before one that began later. It then hands its values to
the later block, which restores them instead.
"""

import functools
import inspect
import threading
from typing import Any

from minigrad.errors import ArgumentTypeError, StateError
from minigrad.hints import teaching, teaching_class
from minigrad.memory.interrupts import ready, uninterrupted


class _Entered(threading.local):
    """The open blocks of one thread, innermost last, each with the values that it will restore."""

    def __init__(self):
        self.blocks: list[tuple[Block, dict[str, Any]]] = []


_entered = _Entered()


class _BlockType(type):
    """Makes `with mg.no_grad:` raise an error that asks for the missing parentheses."""

    def __enter__(cls):
        raise ArgumentTypeError(
            f"with: wanted a block, {cls.__name__}(...)",
            f"the class {cls.__name__} itself",
            f"with the parentheses: `with {cls.__name__}(...):`",
        )

    def __exit__(cls, *error):
        raise NotImplementedError  # never runs: Python only looks it up before __enter__


class Block(metaclass=_BlockType):
    """The base class of blocks: `with block:`, or `@block` above a function or a generator."""

    _setting: str | None = None  # equal for blocks that set the same values, if they hand them on
    _is_in_parts = True  # whether it can end when a generator is suspended and begin again after

    def __init_subclass__(cls):
        teaching_class(cls)

    def __init__(self):
        pass

    def _begin(self) -> dict:
        """Sets the block's values; returns {name: previous value} for `_end`."""
        raise NotImplementedError

    def _end(self, before, is_error):
        """Restores the values that `_begin` returned. is_error: an exception ends the block."""
        raise NotImplementedError

    @uninterrupted
    def __enter__(self):
        ready()
        before = self._begin()
        _entered.blocks.append((self, before))
        return self

    @uninterrupted
    def __exit__(self, kind=None, *error):
        blocks, k = _entered.blocks, len(_entered.blocks) - 1
        while k >= 0 and blocks[k][0] is not self:
            k -= 1
        if k < 0:
            name = type(self).__name__
            raise StateError(
                f"{name}: a block ends in the thread in which it began",
                f"{threading.current_thread().name}, where it did not begin",
                f"`with {name}(...):` in each thread, around what this thread does",
            )
        _, before = blocks.pop(k)
        for block, later in blocks[k:]:  # blocks that began later and are still open
            if self._setting and block._setting == self._setting:
                for name in before.keys() & later.keys():
                    later[name] = before.pop(name)
        self._end(before, kind is not None)

    @teaching
    def __call__(self, function: Any) -> Any:
        """Wraps a function or a generator function so that its body runs inside the block."""
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
        """Wraps a generator function: its body runs inside the block, its caller outside."""

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
                    given = None  # a thrown error refers to this frame: break the cycle
                try:
                    resume, given = running.send, (yield value)
                except BaseException as error:  # from throw or close: pass it to the body
                    resume, given = running.throw, error

        return generator


class _Part:
    """Enters and leaves the blocks of a generator's body, from one yield to the next."""

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
        for block in reversed(self._open):  # includes blocks that the body left open
            block.__exit__()


def _is(question, function):
    """Returns whether `question` holds for a function or for an object's `__call__`."""
    return question(function) or question(inspect.getattr_static(type(function), "__call__", None))


def _refused(function):
    """Describes a thing that cannot be decorated; returns None for one that can."""
    if isinstance(function, type):
        return f"the class {function.__name__}"
    if _is(inspect.iscoroutinefunction, function):
        return "an async function: other tasks run while it waits, and would run inside the block"
    if _is(inspect.isasyncgenfunction, function):
        return "an async generator: other tasks run while it waits, and would run inside the block"
    if isinstance(function, classmethod):
        return "a classmethod: @classmethod belongs above this line"
    return None if callable(function) else f"{function!r:.60} of type {type(function).__name__}"
