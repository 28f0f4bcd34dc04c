"""Finds the numbers of a graph, forward and backward, for pictures that are played.

The backward pass is the engine's own, with an observer; it does not write `.grad`. Forward ran
before, and a node keeps only what its backward needs. A value that no node keeps is read from a
Variable that still holds it, or computed again. An unknown value is left out.
"""

import gc
from typing import NamedTuple

import numpy as np

from minigrad.array.array import Array
from minigrad.autograd.records import arrays_of
from minigrad.devices.backend import device_of, values
from minigrad.ops.base import Operation
from minigrad.ops.gradient_plan import ElementwisePlan, RowPlan, is_dy
from minigrad.ops.indexing import SetItem, SlicePlan
from minigrad.ops.structural_plan import StructuralPlan
from minigrad.tape.backward import gradients
from minigrad.tape.modes import no_grad, state
from minigrad.tape.node import Node
from minigrad.tape.variable import Variable, filled


class Sent(NamedTuple):
    """One step of the backward pass.

    Attributes:
        node: the node.
        dy: the gradient that had arrived at the node.
        slopes: for each input the local derivative, or None if it is not one number per element.
        gradients: for each input the gradient that the node sent to it, or None.
    """

    node: Node
    dy: object
    slopes: list
    gradients: list


def numbers(gradient):
    """Copies a gradient to NumPy; returns a tuple for the gradients of several outputs."""
    arrays = tuple(np.array(values(a)) for a in arrays_of(gradient))
    return arrays[0] if len(arrays) == 1 else arrays


def run_back(root, dy):
    """Runs a backward pass; returns ([Sent] in order, {leaf: gradient})."""
    sent, before = [], state.observers

    def observe(node, dy, grads, seconds):
        slopes = local_derivatives(node, dy)
        passed = [None if g is None else numbers(g) for g in grads]
        sent.append(Sent(node, numbers(dy), slopes, passed))

    state.observers = (observe,)  # the user's observers must not see this pass
    try:
        leaves = gradients([root], [dy], retain_graph=True)
    finally:
        state.observers = before
    return sent, {leaf: numbers(g) for leaf, g in leaves.items()}


def local_derivatives(node, dy):
    """Returns for each input the derivative of each output element: backward with dy = 1.

    It is None if the output has several elements and one of them depends on several input elements:
    the derivative is then a matrix, not one number per element.
    """
    plan, none = node.plan, [None] * len(node.edges)
    if not isinstance(dy, Array):
        return none
    ones = filled(dy, 1.0)
    if isinstance(plan, ElementwisePlan) and not isinstance(plan, RowPlan):
        own = [k for k, e in enumerate(plan.formulas) if e is not None and not is_dy(e)]
        grads = [None if e is None else ones for e in plan.formulas]
        for k in own:
            grads[k] = device_of(dy).empty(dy.shape, dy.dtype)
        if own:
            outs = [grads[k] for k in own]
            device_of(dy).elementwise(plan.program, (ones, *node.kept), outs)
    elif dy.size == 1 and type(plan) in (RowPlan, StructuralPlan, SlicePlan):
        grads = plan.backward(node, ones)
    else:
        return none
    return [None if g is None else numbers(g) for g in grads]


def outputs(root, nodes):
    """Returns {node: output} of the known outputs. nodes: in the order of the forward pass."""
    known, makers = {root.node: root.array}, set(nodes)
    for node in nodes:
        for name, value in node.saved.items():
            maker = node if name == "y" else node.edge_of(name)
            if type(maker) is Node and isinstance(value, Array):
                known.setdefault(maker, value)
    if len(known) < len(nodes):
        for v in gc.get_objects():
            if type(v) is Variable and v.node in makers and not v.array.version:
                known.setdefault(v.node, v.array)
    again = _computed_again(nodes, known)
    return {node: np.array(values(a)) for node, a in (again | known).items()}


def _computed_again(nodes, known):
    """Computes outputs that nobody holds from the known ones.

    Returns {} if a computed output contradicts a known one, because a leaf was written to since.
    """
    computed = {}
    for node in nodes:
        operands = [_operand(node, k, computed | known) for k in range(len(node.edges))]
        op = getattr(node.plan, "op", None)
        if any(x is None for x in operands) or not (
            isinstance(op, type) and issubclass(op, Operation)
        ):
            continue
        is_check = any(type(e) is Node and e in computed for e in node.edges)
        if op is SetItem or (node in known and not is_check):
            continue
        with no_grad():
            y = op.forward(*operands, *node.attributes)
        if node not in known:
            computed[node] = y
        elif not np.allclose(values(y), values(known[node]), 1e-4, 1e-6, equal_nan=True):
            return {}
    return computed


def _operand(node, k, known):
    """Returns input k of a node, an Array or a number, or None if nobody holds it."""
    edge = node.edges[k]
    if type(edge) is Node:
        return known.get(edge)
    return saved_input(node, k) if edge is None else edge.array


def saved_input(node, k):
    """Returns the saved input k of a node, an Array or a number, or None if it was not saved."""
    names = node.plan.input_names
    return node.saved.get(names[k]) if k < len(names) else None
