"""Calls in a kernel -> closures: casts, functions of Python, math and NumPy, device functions."""

import ast
import inspect
from typing import NamedTuple

import numpy as np

from minigrad.simt.language import functions, intrinsics
from minigrad.simt.language.language import PATHS, Intrinsic, call_of, nearest
from minigrad.simt.language.names import MISSING, as_dtype, constant, device_function, is_pythons
from minigrad.simt.language.part import LanguagePart
from minigrad.simt.machine.arrays import ArrayView
from minigrad.simt.machine.local import LocalArray
from minigrad.simt.machine.masks import NUMBERS, Misuse, describe, on_numbers
from minigrad.simt.watch.memory import Site


class CallExpression(NamedTuple):
    """What a function of the machine gets besides its arguments."""

    site: Site
    wanted: bool  # whether its result is used


class Calls(LanguagePart):
    """The part of the compiler that handles calls."""

    def call(self, node, wanted):
        """Compile a call; wanted: whether its result is used."""
        for argument in (*node.args, *node.keywords):
            if isinstance(argument, ast.Starred) or getattr(argument, "arg", "") is None:
                raise self.source.refuse(
                    node, "`*` and `**` cannot be used in calls in the simulator"
                )
        callee = self.scope.static(node.func)
        if callee is MISSING:
            return self._method(node)
        if isinstance(callee, Intrinsic):
            return self._intrinsic(callee, node, wanted)
        dtype = as_dtype(callee) if not is_pythons(callee) else None
        if dtype is not None and not isinstance(callee, str):
            return self._cast(node, dtype)
        try:
            plain, context = functions.PLAIN.get(callee), functions.CONTEXT.get(callee)
        except TypeError:  # not hashable
            plain = context = None
        if callee is float and len(node.args) == 1 and isinstance(self.folded(node.args[0]), str):
            return self._number_in_text(node)
        if plain is not None:
            return self._plain(node, plain)
        if context is not None:
            return self._context(node, context, wanted)
        inner = device_function(callee)
        if inner is not None:
            return self._device(node, inner)
        why, fix = functions.refusal(callee, ast.unparse(node.func))
        raise self.source.refuse(node, why, fix=fix)

    def _number_in_text(self, node):
        """Compile float("nan"): float of a string known when the kernel is compiled."""
        try:
            value = np.float64(self.folded(node.args[0]))
        except ValueError:
            raise self.source.refuse(node, f"{ast.unparse(node)} is no number") from None
        return lambda f, m: value

    def _arguments(self, node):
        if node.keywords:
            raise self.source.refuse(
                node, f"{ast.unparse(node.func)} takes no arguments by name in a kernel"
            )
        return [self.expression(argument) for argument in node.args]

    def _plain(self, node, function):
        """Compile a call of a function that needs only values."""
        parts, site = self._arguments(node), self.source.site(node)
        self._check_number(node, function, 0)
        name = ast.unparse(node.func)

        def counted(f, m):
            result = on_numbers(name, function, [part(f, m) for part in parts])
            counts = f.wave.counts
            if counts is not None and result.__class__ is np.ndarray and result.dtype.char == "d":
                counts.double(site, m)
            return result

        return counted

    def _context(self, node, function, wanted):
        """Compile a call of a function that needs the frame, the mask and the site."""
        parts, call = self._arguments(node), CallExpression(self.source.site(node), wanted)
        self._check_number(node, function, 3)
        name = ast.unparse(node.func)

        def run(f, m):
            values = [part(f, m) for part in parts]
            return on_numbers(name, lambda *some: function(call, f, m, *some), values)

        return run

    def _check_number(self, node, function, own):
        """Refuse a wrong number of arguments; own: how many the machine itself adds."""
        if hasattr(function, "nin"):
            fits, wanted = len(node.args) == function.nin, function.nin
        else:
            kinds = inspect.signature(function).parameters.values()
            named = [p for p in kinds if p.kind is not p.VAR_POSITIONAL]
            least = sum(p.default is p.empty for p in named) - own
            most = len(named) - own if len(named) == len(kinds) else 99
            fits, wanted = least <= len(node.args) <= most, least
        if not fits:
            raise self.source.refuse(
                node,
                f"{ast.unparse(node.func)} takes {wanted} argument{'s' * (wanted != 1)},"
                f" not {len(node.args)}",
            )

    def _cast(self, node, dtype):
        parts = self._arguments(node)
        if len(parts) != 1:
            raise self.source.refuse(node, f"a cast to {dtype} takes one value")
        (only,) = parts
        site = self.source.site(node)

        def cast(f, m):
            value = only(f, m)
            if not isinstance(value, NUMBERS):
                raise Misuse(f"{describe(value)} cannot be made a {dtype}")
            if f.wave.counts is not None and value.ndim and "d" in (dtype.char, value.dtype.char):
                f.wave.counts.double(site, m)
            return value if value.dtype is dtype else value.astype(dtype, copy=False)

        return cast

    def _method(self, node):
        """Compile `value.view(dtype)`; other methods of Numba's numbers and arrays are refused."""
        if not isinstance(node.func, ast.Attribute):
            self.expression(node.func)  # refuses an undefined name as such
            raise self.source.refuse(
                node, f"{ast.unparse(node.func)} is a variable of the kernel and cannot be called"
            )
        name = node.func.attr
        if name == "view" and len(node.args) == 1:
            dtype = self._dtype(node.args[0])
            base = self.expression(node.func.value)

            def view(f, m):
                value = base(f, m)
                if not isinstance(value, NUMBERS):
                    raise Misuse(f"{describe(value)} has no .view in a kernel")
                return value.view(dtype)

            return view
        root = node.func.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.scope.slots:
            self.expression(root)  # refuses an undefined name as such
        raise self.source.refuse(
            node,
            f".{name}() cannot be called in the simulator",
            fix="write the loop over elements, or use math.* and cuda.*",
        )

    def _dtype(self, node):
        value = self.scope.static(node)
        if isinstance(node, ast.Constant):
            value = node.value
        # Numba accepts no type of Python
        dtype = None if value is MISSING or is_pythons(value) else as_dtype(value)
        if dtype is None:
            raise self.source.refuse(
                node,
                f"{ast.unparse(node)} is no element type",
                fix="use np.float32, np.int32 or another of NumPy's or Numba's number types",
            )
        return dtype

    # ---- device functions ------------------------------------------------------------------------

    def _device(self, node, function):
        program = self.program(function, node)
        names = [k.arg for k in node.keywords]
        parts = [self.expression(a) for a in node.args]
        parts += [self.expression(k.value) for k in node.keywords]
        signature = inspect.signature(function)
        try:
            bound = signature.bind(
                *range(len(node.args)),
                **{name: len(node.args) + k for k, name in enumerate(names)},
            )
        except TypeError as error:
            raise self.source.refuse(node, f"{function.__name__}: {error}") from None
        order = []
        for name, parameter in signature.parameters.items():
            if name in bound.arguments:
                order.append(parts[bound.arguments[name]])
            else:
                value = constant(parameter.default)
                if value is None and parameter.default is not None:
                    raise self.source.refuse(
                        node,
                        f"{name} of {function.__name__} has a default that is no number",
                        fix="pass it in the call",
                    )
                order.append(lambda f, m, value=value: value)

        def run(f, m):
            return program(f.wave, [part(f, m) for part in order], m)

        return run

    # ---- intrinsics ------------------------------------------------------------------------------

    def intrinsic_value(self, member, node):
        """Return the closure of an intrinsic that is a value, such as cuda.threadIdx.x."""
        value = intrinsics.VALUES.get(member.path)
        if value is not None:
            return value
        if member.path not in PATHS:
            raise self._unknown(member.path, node)
        raise self.source.refuse(
            node, f"{ast.unparse(node)} is no value in a kernel", fix=f"call it: {call_of(member)}"
        )

    def _unknown(self, path, node):
        """Return the error for a name that `cuda` does not have."""
        near = nearest(path)
        meant = f"; did you mean cuda.{near[0]}?" if near else ""
        fix = f"there are: {', '.join(f'cuda.{p}' for p in near)}" if near else None
        return self.source.refuse(node, f"cuda.{path} is not known{meant}", fix=fix)

    def _intrinsic(self, intrinsic, node, wanted):
        path = intrinsic.path
        if path in ("grid", "gridsize"):
            (axes,) = [self.folded(a) for a in node.args] if len(node.args) == 1 else (0,)
            if axes is MISSING or axes not in (1, 2, 3):
                raise self.source.refuse(node, f"cuda.{path} takes the number of axes: 1, 2 or 3")
            return intrinsics.grid(path, int(axes))
        if path in ("shared.array", "local.array"):
            return self._array(path, node)
        if path == "cp_async_wait":
            self._check_groups(node)
        if path == "const.array_like":
            return self.expression(node.args[0])
        function = intrinsics.FUNCTIONS.get(path)
        if function is None:
            if path not in PATHS and path not in intrinsics.VALUES:
                raise self._unknown(path, node)
            raise self.source.refuse(node, f"cuda.{path} exists, but is not a function")
        self.exact = self.exact or path.startswith(("syncwarp", "threadfence"))
        if hasattr(function, "plain"):
            return self._plain(node, function.plain)
        return self._context(node, function, wanted)

    def _check_groups(self, node):
        """Refuse a number of groups that the compiler could not put into the instruction."""
        groups = self.folded(node.args[0]) if len(node.args) == 1 else MISSING
        if not isinstance(groups, np.integer) or groups < 0:
            raise self.source.refuse(
                node,
                f"{ast.unparse(node)}: how many groups may still be on their way must be known when"
                " the kernel is compiled",
                fix="cuda.cp_async_wait(0) waits for all; with two tiles in turn,"
                " cuda.cp_async_wait(1) leaves the next one on its way",
            )

    def _array(self, path, node):
        names = ("shape", "dtype", "alignment")  # alignment is in bytes: every array has it here
        given = dict(zip(names, node.args, strict=False))
        given.update({k.arg: k.value for k in node.keywords})
        if not {"shape", "dtype"} <= set(given) <= set(names) or len(node.args) > len(names):
            raise self.source.refuse(
                node, f"cuda.{path} takes a shape and a dtype, and an alignment if need be"
            )
        shape = self.folded(given["shape"])
        parts = shape if isinstance(shape, tuple) else (shape,)
        if shape is MISSING or not all(isinstance(n, np.integer) and n >= 0 for n in parts):
            raise self.source.refuse(
                node,
                f"the shape of a cuda.{path} must be known when the kernel is compiled, in whole"
                " numbers",
                fix=f"use literals or global names of numbers; {SIZES[path]}",
            )
        for part in getattr(given["shape"], "elts", [given["shape"]]):
            if any(isinstance(n, ast.Name) for n in ast.walk(part)) and not _is_name(part):
                raise self.source.refuse(
                    node,
                    f"{ast.unparse(part)}, in the shape of a cuda.{path}, does not compile: Numba"
                    " computes with numbers there, not with names",
                    fix="a size is a number, or one name of a number: give the sum a name outside"
                    " of the kernel",
                )
        dtype = self._dtype(given["dtype"])
        sizes = tuple(int(n) for n in parts)
        site = self.source.site(node)
        if path == "local.array":
            return lambda f, m: _local_array(f.wave, sizes, dtype, site, m)
        if sizes == (0,):
            return lambda f, m: _dynamic_array(f.wave, dtype, site)
        return lambda f, m: _shared_array(f.wave, sizes, dtype, site)


# ---- the arrays that a kernel declares ----------------------------------------------------------


SIZES = {  # what to do about a size that is known only at launch
    "shared.array": "a size known at launch alone is dynamic shared memory: shape 0, and"
    " kernel[blocks, threads, 0, bytes]",
    "local.array": "of a local array, take the largest size that can be needed",
}


def _local_array(wave, sizes, dtype, site, mask):
    """Return the local array declared at a site, uninitialised for the lanes of a mask."""
    array = wave.arrays.get(site)
    if array is None:
        array = wave.arrays[site] = LocalArray(sizes, dtype, wave.lanes.count)
    else:
        array.forget(mask)
    return array


def _shared_array(wave, sizes, dtype, site):
    """Return the shared array declared at a site: the same one each time."""
    array = wave.arrays.get(site)
    if array is None:
        nbytes = int(np.prod(sizes)) * dtype.itemsize
        region = wave.memory.shared(nbytes, site.text, shape=sizes)
        array = wave.arrays[site] = _view_of_shared(wave, region, sizes, dtype)
    return array


def _dynamic_array(wave, dtype, site):
    """Return a view of dynamic shared memory; all dynamic arrays begin at the same byte."""
    if wave.dynamic_region is None:
        wave.dynamic_region = wave.memory.shared(wave.dynamic, "dynamic shared memory")
    return _view_of_shared(wave, wave.dynamic_region, (wave.dynamic // dtype.itemsize,), dtype)


def _view_of_shared(wave, region, sizes, dtype):
    lanes = wave.lanes
    strides = [int(np.prod(sizes[axis + 1 :])) for axis in range(len(sizes))]
    step = np.int64(region.stride // dtype.itemsize)
    offset = np.int64(0) if lanes.blocks == 1 else lanes.block * step
    return ArrayView(region, dtype, sizes, strides, offset)


def _is_name(node):
    """Return whether an expression is a name, or an attribute of one."""
    return isinstance(node, ast.Name | ast.Attribute)
