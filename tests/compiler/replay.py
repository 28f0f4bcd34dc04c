"""A captured step done once by the interpreter, with all that it leaves behind."""

from typing import Any

import numpy as np

from minigrad.array.array import unshare
from minigrad.compiler.trace.capture import capture
from minigrad.compiler.trace.structure import mapped
from minigrad.devices.backend import device_named
from minigrad.ops.creation import generator
from minigrad.tape.variable import Variable
from tests.compiler.interpreter import execute, memory_of, write_back


def replay(function, *args) -> Any:
    """function(*args) as a recording, run by NumPy: results, memory, `.grad`, random numbers."""
    captured = capture(function, args)
    assert captured.escaped() is None
    return run_captured(captured)


def run_captured(captured) -> Any:
    """One call of a captured step with the arguments that it was captured with."""
    for action, when in captured.actions:
        if when == "before":
            action()
    memory = memory_of(captured.recording)
    results = execute(captured.recording, memory, generator.seed, generator.counter)
    cpu = device_named("cpu")
    for value, count in captured.written.items():
        unshare(value.storage, cpu.copy_buffer)
        value.storage.version += count
    write_back(memory)
    generator.counter += captured.random_count
    made = {}

    def variable(output):
        if output.kind == "argument":
            return captured.variables[output.index]
        if output.kind == "captured":
            return output.variable
        if output.is_number:
            return results[output.index].item()
        if output.index not in made:
            data = results[output.index]
            dtype = captured.recording.results[output.index].dtype
            made[output.index] = Variable(cpu.from_numpy(np.asarray(data), dtype))
        return made[output.index]

    for effect in captured.grads:
        leaf = captured.variables[effect.argument] if effect.leaf is None else effect.leaf
        leaf._grad = None if effect.after is None else variable(effect.after)
    for action, when in captured.actions:
        if when == "after":
            action()
    return mapped(captured.structure, variable)
