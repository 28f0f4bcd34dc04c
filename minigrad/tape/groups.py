"""ParameterGroup: one flat gradient buffer for many parameters.

Each parameter's `.grad` is a view of the buffer, so clipping and all-reduce touch memory once. The
parameters keep separate Storages, so a write to one does not change the versions of the others. A
parameter belongs to at most one group, made by the first manager or optimizer that gets it.
"""

import weakref

from minigrad.array.array import Array
from minigrad.array.layout import contiguous_strides
from minigrad.devices.backend import device_of
from minigrad.formulas.expression import IDENTITY
from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams
from minigrad.tape.backward import ADD
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable, filled

ALIGN = 16  # elements: every slice starts on a cache line of float32


class ParameterGroup:
    """Parameters of one dtype on one device, and the flat buffer of their gradients.

    The slice of a parameter is valid only if its `.grad` is not None.
    """

    def __init__(self, parameters):
        first = parameters[0]
        self.dtype, self.device = first.dtype, first.device
        self._members, self.slices, self._claims = [], [], {}
        self.flat: Array
        self.add(parameters)

    @property
    def parameters(self):
        """The living members, in order."""
        return [p for p in (member() for member in self._members) if p is not None]

    @uninterrupted
    def add(self, parameters):
        """Grows the group: allocates a new buffer, moves the gradients and rebinds `.grad`."""
        old = [(p, p._grad) for p in self.parameters]
        members = [*self.parameters, *parameters]
        offsets, size = [], 0
        for p in members:
            offsets.append(size)
            size += -(-max(p.size, 1) // ALIGN) * ALIGN
        self.flat = filled(members[0].array, 0.0, (size,))
        self._members = [weakref.ref(p) for p in members]
        self.slices, self._claims = [], {}
        for k, (p, offset) in enumerate(zip(members, offsets, strict=True)):
            view = self.flat.view(p.shape, contiguous_strides(p.shape), offset)
            self.slices.append((view, Variable(view)))
            p.group = (self, k)
        for p, grad in old:
            if grad is not None:
                p._grad = None
                self.store(p, grad.array)

    @uninterrupted
    def leave(self):
        """Shrinks to the members that still refer to this group; see `regroup`."""
        kept = [p for p in self.parameters if p.group is not None and p.group[0] is self]
        self._members = [weakref.ref(p) for p in kept]
        if kept:
            self.add([])

    @uninterrupted
    def destination(self, parameter):
        """Returns the slice to write a gradient to directly, or None if gradients accumulate.

        A pass gets each slice only once; it adds a second gradient from other memory.
        """
        index = parameter.group[1]
        claim, running = self._claims.get(index), state.backward_pass
        if (
            running is None
            or not running.is_committed
            or parameter._grad is not None
            or (claim is not None and claim.is_active)
        ):
            return None
        self._claims[index] = running
        view = self.slices[index][0]
        device_of(view).prepare_write(view)
        return view

    def store(self, parameter, gradient):
        """Stores a gradient Array, or adds it to the existing gradient."""
        view, grad = self.slices[parameter.group[1]]
        device = device_of(view)
        if parameter._grad is None:
            grad.mark = None  # the mark of an earlier gradient
        if parameter._grad is not None:
            device.prepare_write(view)
            device.elementwise(ADD, (parameter._grad.array, gradient), (view,))
        elif gradient is not view:
            device.prepare_write(view)
            device.elementwise(IDENTITY, (gradient,), (view,))
        parameter._grad = grad

    def __repr__(self):
        return f"ParameterGroup({len(self.parameters)} parameters, {self.dtype}[{self.flat.size}])"


@uninterrupted
def join(parameters, group_of=None):
    """Puts parameters without a group into groups by dtype and device; returns these groups.

    Args:
        parameters: leaves that require gradients.
        group_of: groups to grow, by (dtype, device).
    """
    group_of = {} if group_of is None else group_of
    new = {}
    for p in parameters:
        if p.group is None:
            new.setdefault((p.dtype, p.device), []).append(p)
    if new:
        seams.effects.refuse(
            "a GradManager that makes a gradient buffer inside a compiled step",
            "attach the parameters before the step",
        )
    for key, members in new.items():
        if key in group_of:
            group_of[key].add(members)
        else:
            group_of[key] = ParameterGroup(members)
    return group_of


@uninterrupted
def regroup(parameters):
    """Moves parameters whose dtype or device has changed to new groups.

    Their `.grad` must be None. Parameters without a group stay without one.
    """
    moved = [p for p in parameters if p.group is not None]
    left = {id(p.group[0]): p.group[0] for p in moved}
    for p in moved:
        p.group = None
    for group in left.values():
        group.leave()
    join(moved)
