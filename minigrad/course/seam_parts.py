"""Adapts learners' functions to the engine: Arrays become NumPy arrays and back.

Each class here fills one field of `minigrad.seams` with a learner's function, and checks its result
before the engine relies on it.
"""

import inspect
from typing import Any

import numpy as np

from minigrad.array.array import Array
from minigrad.course import objects
from minigrad.devices.backend import device_of
from minigrad.devices.backend import values as values_of
from minigrad.errors import SavedValueModifiedError, SeamError, describe_line
from minigrad.memory.interrupts import interruptible
from minigrad.ops.gradient_plan import sum_to
from minigrad.tape.backward import add_gradients
from minigrad.tape.node import Node, Plan
from minigrad.tape.versions import raise_modified


class Part:
    """A learner's function that replaces a part of the engine.

    label: the seam without the method, such as "pool" or "update['SGD']".
    """

    tally: Any = None  # of the class: a `tally.Tally` while somebody counts the calls

    def __init__(self, seam, function: Any):
        self.seam, self.function = seam, function
        self.label = seam.partition(" (")[0]
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.where = describe_line(code.co_filename, code.co_firstlineno) if code else self.name

    def __call__(self, *args) -> Any:
        """Call the function."""
        return self.run(self.function, *args)

    @interruptible
    def run(self, function, *args) -> Any:
        """Call a function for this part; add a note to its errors that says where it ran."""
        try:
            if Part.tally is not None:
                return Part.tally.call(self.label, function, args)
            return function(*args)
        except Exception as error:
            error.add_note(f"(raised by {self.name}, which runs in the engine as {self.seam})")
            raise

    def refuse(self, wanted, got, fix=None):
        """Raise the SeamError for a wrong result."""
        raise SeamError(
            f"mg.use({self.seam}={self.name}): wanted {wanted}", got, fix, where=self.where
        )

    def checked(self, value, shape, what):
        """Return a result as an ndarray of numbers; refuse any other kind or shape."""
        if not isinstance(value, (np.ndarray, np.generic, float, int)):
            self.refuse(f"an array for {what}", type(value).__name__)
        value = np.asarray(value)
        if value.shape != tuple(shape):
            self.refuse(f"shape {tuple(shape)} for {what}", f"{value.shape}")
        if value.dtype.kind not in "fiub":
            self.refuse(f"numbers for {what}", f"dtype {value.dtype}")
        return value


def read_only(array):
    """Return a read-only ndarray view of an Array; return a number unchanged."""
    if not isinstance(array, Array):
        return array
    view = values_of(array)
    view.flags.writeable = False
    return view


def new_array(values, model, dtype=None):
    """Return a new Array with an ndarray's values, on the device of `model`."""
    return device_of(model).from_numpy(np.ascontiguousarray(values), dtype or model.dtype)


class Adapter:
    """Calls a learner's part in the way the engine calls its own."""

    def __init__(self, part):
        self.part = part


class GradientPlan(Plan):
    """gradients={op: f}: f(dy, values that the op keeps) -> a gradient per input, of dy's shape."""

    def __init__(self, op, part):
        self.op, self.part, self.name, self.input_names = op, part, op.name, op.inputs
        offered = list(inspect.signature(op.gradient).parameters)[1:]
        asked = list(inspect.signature(part.function).parameters)[1:]
        known = {*op.inputs, "y"}
        if not all(name in known for name in asked):
            if len(asked) > len(offered):
                part.refuse(
                    f"at most {1 + len(offered)} arguments: dy, {', '.join(offered)}",
                    f"({', '.join(['dy', *asked])})",
                )
            asked = offered[: len(asked)]
        self.saved_names = tuple(asked)
        self.saved_index = tuple(-1 if n == "y" else op.inputs.index(n) for n in asked)

    def backward(self, node, dy):
        """Call the learner's function; un-broadcast its results as the engine does."""
        part, shape = self.part, dy.shape
        saved = [
            np.broadcast_to(read_only(k), shape) if isinstance(k, Array) else k for k in node.kept
        ]
        result = part(read_only(dy), *saved)
        results = list(result) if isinstance(result, tuple) else [result]
        count = len(self.op.gradient_formulas)
        if len(results) > count:
            part.refuse(f"{count} gradients for {self.name}", f"{len(results)}")
        grads = []
        for k, edge in enumerate(node.edges):
            if edge is None:
                grads.append(None)
                continue
            if k >= len(results):
                part.refuse(f"{count} gradients for {self.name}, one per input", f"{len(results)}")
            name = f"the gradient of {self.input_names[k]}"
            whole = new_array(part.checked(results[k], shape, name), dy)
            target, dtype = node.wanted[k] if node.wanted else (shape, dy.dtype)
            grads.append(sum_to(whole, target, dtype))
        return grads

    def backward_graph(self, node, dy):
        """Raise SeamError: a learner's NumPy code has no graph."""
        raise SeamError(
            f"{self.part.name} runs in first-order backward passes only",
            "create_graph=True",
            "leave the mg.use block for higher derivatives",
        )


class Gradients:
    """Holds the plans of one gradients={...}."""

    def __init__(self, plans):
        self.plans = plans

    def __call__(self, op, mask):
        """Return the plan for a node of this op, or None."""
        return self.plans.get(op.name)


class Unbroadcast(Adapter):
    """unbroadcast(g, shape) -> the sum of g in that shape."""

    def __call__(self, array, shape, dtype):
        result = self.part(read_only(array), shape)
        return new_array(self.part.checked(result, shape, "its result"), array, dtype)


class Accumulate(Adapter):
    """accumulate(grads, key, g): adds g to grads[key], or puts it there, without changing g."""

    arrived = None  # identifies the backward pass that grads and keys belong to

    def __call__(self, arrived, key, g):
        if not isinstance(g, Array):  # the gradients of a Function with several outputs
            arrived[key] = g if key not in arrived else add_gradients(arrived[key], g)
            return
        if self.arrived is not arrived:
            self.arrived, self.grads, self.keys = arrived, {}, {}
        grads, plain = self.grads, self.keys.get(key)
        if plain is None:
            op, line = (key.op, key.line) if type(key) is Node else ("leaf", "")
            plain = self.keys[key] = objects.Node(op, line=line)
        if key in arrived and plain not in grads:
            grads[plain] = np.array(values_of(arrived[key]))
        self.part(grads, plain, read_only(g))
        if plain not in grads:
            self.part.refuse("grads[key] to hold the sum", "no such key")
        arrived[key] = new_array(self.part.checked(grads[plain], g.shape, "grads[key]"), g)


class CheckSaved(Adapter):
    """check_saved(ctx) raises if ctx.saved[k].version differs from ctx.versions[k] for some k."""

    def __call__(self, node):
        saved, versions, modified = [], [], None
        for value, version in zip(node.kept, node.versions, strict=True):
            if version is not None:
                saved.append(objects.Storage(read_only(value), value.version))
                versions.append(version)
                if value.version != version:
                    modified = modified or (value, version)
        ctx = objects.Ctx(node.op, tuple(saved), tuple(versions), node.line)
        try:
            self.part(ctx)
        except Exception as error:
            if modified is None:
                self.part.refuse(
                    f"no error where nothing was written, at {node.op}",
                    f"{type(error).__name__}: {error}",
                )
            raise
        if modified is not None:
            try:
                raise_modified(node, *modified)
            except SavedValueModifiedError as error:
                self.part.refuse("an error for a saved value that was written to", str(error))


class Update(Adapter):
    """update(algorithm, values, gradient, state, hyperparameters): writes in place."""

    def __call__(self, algorithm, values, gradient, state, hyperparameters):
        before = gradient.copy()
        result = self.part(algorithm, values, gradient, state, hyperparameters)
        if isinstance(result, (np.ndarray, tuple, list)):
            self.part.refuse(
                "new values written into `values` and `state`",
                f"a {type(result).__name__} returned",
                "values[...] = new, or values -= step",
            )
        if not np.array_equal(gradient, before, equal_nan=True):
            self.part.refuse("the gradient left as it was", "a changed one")


class UpdateByAlgorithm:
    """update={'SGD': f}: each function for its algorithm; the engine runs the others."""

    def __init__(self, updates):
        self.updates, self.algorithms = updates, frozenset(updates)

    def __call__(self, algorithm, *rest):
        self.updates[algorithm](algorithm, *rest)


class ClipGradNorm(Adapter):
    """clip_grad_norm_(gradients, max_norm) -> the norm before; scales gradients in place."""

    def __call__(self, gradients, max_norm):
        return float(self.part.checked(self.part(gradients, max_norm), (), "the norm"))
