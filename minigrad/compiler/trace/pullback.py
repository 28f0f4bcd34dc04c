"""Makes a compiled function one node of the graph: what it keeps, and its backward program.

If a traced function returns Variables that carry a graph, the same trace goes on to differentiate
that graph, with placeholders for the upstream gradients. This yields a second recording, the
**pullback**: it reads upstream gradients and values of the function, and returns the gradients of
the function's inputs. The values it reads are **kept**: they become additional results of the
function's program.

A call then returns Variables that share one node, whose backward runs the pullback. The pullback is
compiled when backward first needs it.
"""

import threading
import weakref
from types import SimpleNamespace
from typing import Any

from minigrad.array.array import Array
from minigrad.compiler.program.program import (
    ARGUMENT,
    CAPTURED,
    CONSTANT,
    TEMPORARY,
    Recording,
    Value,
    whole,
)
from minigrad.compiler.trace.callbacks import Contexts, without_seen
from minigrad.compiler.trace.structure import StepOutput, variables_of
from minigrad.compiler.trace.tracebuffer import TraceBuffer
from minigrad.devices.backend import device_of
from minigrad.errors import GradientError, TraceError
from minigrad.seams import seams
from minigrad.tape.backward import BackwardPass, add_gradients, walk
from minigrad.tape.function_plan import Pack, SelectPlan, poisoned
from minigrad.tape.modes import no_grad, state
from minigrad.tape.node import Node, Plan
from minigrad.tape.order import ordered
from minigrad.tape.saved import protected
from minigrad.tape.versions import check

pullbacks = weakref.WeakSet()  # all of them: a forked child renews their locks


def is_whole(node):
    """Return whether backward has freed no node of a graph, so that it can be differentiated."""
    seen, stack = {node}, [node]
    while stack:
        node = stack.pop()
        if node.is_freed:
            return False
        for edge in node.edges:
            if type(edge) is Node and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return True


def carries_graph(x):
    """Return whether the caller can differentiate this Variable."""
    return x.node is not None and x._requires_grad and is_whole(x.node)


def without_freed_graphs(out, *arguments):
    """Detach results of an eager call whose graph was freed, as a program does; return them.

    Variables among the arguments stay as they are.
    """
    known = None
    for x in variables_of((out,)):
        if x.node is not None and x._requires_grad and not is_whole(x.node):
            if known is None:
                known = {id(v) for v in variables_of(*arguments)}
            if id(x) not in known:
                x.node, x._requires_grad = None, False
    return out


# -- a call --------------------------------------------------------------------------------------


class Link(Plan):
    """The plan of the node that a call of a compiled function makes; see `tape.node.Node`.

    outputs: indices of the results that carry the graph. edges: for each input that takes a
    gradient, the index of the Variable among the arguments, or the leaf itself. kept: for each
    kept value, the index of the result, or the Value of an argument or of captured memory.
    pullbacks: {positions of outputs: Pullback}: for all outputs, and for each alone. error: the
    GradientError that tracing the pullback raised, or None.
    """

    def __init__(self, name, outputs, edges, kept, pullbacks, error=None):
        self.name = f"compiled {name.rpartition('<locals>.')[2]}"
        self.outputs, self.edges, self.kept, self.pullbacks = outputs, edges, kept, pullbacks
        self.error = error
        self.saved_names = tuple(f"kept{k}" for k in range(len(kept)))
        self.input_names = tuple(f"input{k}" for k in range(len(edges)))

    @property
    def results(self):
        """Return the indices of the kept results."""
        return [k for k in self.kept if isinstance(k, int)]

    def attach(self, variables, edges, kept, drawn):
        """Attach a node to the results of one call.

        drawn: seed and counter at the start of the call, and the contexts of custom Functions.
        """
        node = Node(self, edges, kept, tuple([a.version for a in kept]), None, drawn)
        made = [node]
        for k, x in enumerate(variables):
            x.node = node
            if len(variables) > 1:
                x.node = Node(SelectPlan(k, self.name), (node,), ())
                made.append(x.node)
            x._requires_grad = True
        for span in state.spans:
            for node in made:
                span.add(node)

    def backward(self, node, dy):
        """Return first-order gradients: run the pullback for the outputs that got a gradient."""
        if seams.effects.is_tracing:
            raise seams.effects.failed_by(
                TraceError(
                    f"backward inside a compiled step, of what {self.name} returned outside of it",
                    fix="call the compiled function inside the step, too: it becomes a part of it",
                )
            )
        if self.error is not None:
            raise self.error
        dys = _sums(dy)
        single = self.pullbacks.get(tuple(dys))
        if single is not None:
            return single(list(dys.values()), node)
        grads = [None] * len(self.edges)
        for k, g in dys.items():
            for j, new in enumerate(self.pullbacks[k,]([g], node)):
                old = grads[j]
                grads[j] = new if old is None or new is None else add_gradients(old, new)
                grads[j] = old if new is None else grads[j]
        return grads

    def backward_graph(self, node, dy):
        """Return gradients that raise when they are differentiated."""
        grads = self.backward(node, _arrays(dy))
        makers = [g for part in dy.parts.values() for g in part] if isinstance(dy, Pack) else [dy]
        return [
            None
            if g is None
            else poisoned(
                g,
                f"{self.name}: a second derivative through a compiled function",
                "compute the first derivative inside it (mg.gradients(..., create_graph=True)), or "
                "call the function itself here: f.function(...)",
                (*node.edges, *(x.node or x for x in makers if x.requires_grad)),
            )
            for g in grads
        ]


def _arrays(dy):
    if isinstance(dy, Pack):
        return Pack({k: tuple(g.array for g in part) for k, part in dy.parts.items()})
    return dy.array


def _sums(dy):
    """Return {output: its summed gradient}, in ascending order of outputs."""
    if not isinstance(dy, Pack):
        return {0: dy}
    sums = {}
    for k in sorted(dy.parts):
        total, *more = dy.parts[k]
        for g in more:
            total = add_gradients(total, g)
        sums[k] = total
    return sums


class LinkOperand:
    """An operand of a Pullback, with the interface of a StandInGroup."""

    is_fixed, low, storage = False, 0, None

    def __init__(self, number, where):
        self.number, self.where, self.members = number, where, ()


class Pullback:
    """A program that maps upstream gradients and kept values to gradients; a Wrapper runs it.

    Args:
        name: the name of the pullback.
        capture: what was traced; its results are the gradients.
        outputs: the number of upstream gradients, which are its first arguments.
        kept: the indices of the kept values that follow them.
        targets: for each result, the index of its edge.

    scaled_by: the GradScaler that scaled a loss inside the function, or None.
    """

    scaled_by: Any = None
    modes, default, function, numbers = None, None, None, None
    donated = identities = unused = members = ()

    def __init__(self, name, capture, outputs, kept, targets):
        self.name, self.capture, self.outputs = name, capture, outputs
        self.kept, self.targets = kept, targets
        self.moving, self.copies = {}, {}
        arguments = capture.recording.arguments
        self.facts = {(v.name, "size"): f"{v.dtype}[{v.size}]" for v in arguments[:outputs]}
        self.groups = [LinkOperand(k, value.name) for k, value in enumerate(arguments)]
        names = [f"x{k}" for k in range(len(arguments))]
        lines = [f"{', '.join(names)}, = args"]
        lines += [f"s{x[1:]} = {x} if type({x}) is Array else {x}.storage" for x in names]
        self.description = SimpleNamespace(lines=lines, scope={"Array": Array})
        self.plan: Any = None
        self.wrapper: Any = None
        self.make: Any = None
        self.run: Any = None
        self.draws = SimpleNamespace(seed=0, counter=0)  # instead of the default generator
        self.contexts = Contexts()
        for i in capture.recording.instructions:
            if i.op == "callback":
                i.attributes = i.attributes["call"].of_call(self.contexts).attributes()
        self.seconds = 0.0
        self._lock = threading.RLock()
        pullbacks.add(self)

    def __call__(self, dys, node):
        """Return the gradients of the edges of a call's node: Arrays, or None."""
        kept, drawn = node.kept, node.attributes
        if self.scaled_by is not None and state.backward_pass is not None:
            state.backward_pass.scaled_by = self.scaled_by
        operands = [device_of(g).contiguous(g) for g in dys] + [kept[k] for k in self.kept]
        with self._lock:
            run = self.run or self.make(self)
            self.draws.seed, self.draws.counter, contexts = drawn
            if contexts:
                self.contexts.found = contexts
            results = run(operands, {})
            if type(results) is not tuple:  # a hook inside writes to an operand's memory
                results = run([device_of(a).convert(a, a.dtype) for a in operands], {})
        grads = [None] * len(node.edges)
        for target, g in zip(self.targets, results, strict=True):
            grads[target] = g.array
        return grads


def raise_failed(plan, status, *rest):
    """Raise the error of a check that failed in a pullback, or of a custom Function in it."""
    attributes = plan.checks[status - 1].attributes
    error = attributes["error"]()
    if "call" in attributes:
        attributes["call"].raised = None  # it holds the call: a cycle
    try:
        raise error
    finally:
        del error


# -- a trace -------------------------------------------------------------------------------------


class Linker:
    """Traces the backward pass of a function's results.

    Args:
        trace: the Trace, which is still running.
        name: the name of the function.
        results: see `capture._Results`.
        new_capture: the class Capture.
    """

    def __init__(self, trace, name, results, new_capture):
        self.trace, self.name, self.results = trace, name, results
        self.argument_of, self.new_capture = results.argument_of, new_capture
        self.start = len(trace.instructions)
        self.forward = {r.value for i in trace.instructions for r in i.writes}
        self.versions = {v: storage.version for v, (storage, *_) in trace.written.items()}
        self.random_count = self.most_random = trace.random_count
        self.noticed = len(trace.grads), len(trace.actions)
        self.edges, self.kept = {}, {}

    def link(self):
        """Return the Link, and add the kept values to the results."""
        roots = self.results.roots
        outputs, every = tuple(roots), tuple(range(len(roots)))
        choices = [every] if len(every) == 1 else [every, *((k,) for k in every)]
        pullbacks, error = {}, None
        try:
            for chosen in choices:
                pullbacks[chosen] = self._pullback(chosen, [roots[outputs[k]] for k in chosen])
        except GradientError as raised:  # a call of backward will raise it
            pullbacks, error, self.kept = {}, raised.with_traceback(None), {}
            self._cut()
            self._written()
            self._all_leaves([x.node for x in roots.values()])
        # forward reserves the random numbers for backward, which may run twice, or late
        self.trace.random_count = self.most_random
        kept = [self._source(v) for v in self.kept]
        edges = [k if leaf is None else leaf for k, leaf in self.edges.values()]
        return Link(self.name, outputs, edges, kept, pullbacks, error)

    def _pullback(self, chosen, roots):
        trace = self.trace
        trace.random_count = self.random_count
        dys = [trace.empty(x.shape, x.dtype) for x in roots]
        for k, g in zip(chosen, dys, strict=True):
            trace.value_of(g).name = f"gradient of result {k}"
        arrived = {}
        for x, g in zip(roots, dys, strict=True):
            arrived[x.node] = g if x.node not in arrived else add_gradients(arrived[x.node], g)
        order = ordered(list(arrived))
        for node in order:
            check(node)
        outer, running = state.backward_pass, state.running
        mine = state.backward_pass = BackwardPass(is_committed=False, is_entrusted=False)
        try:
            with no_grad():
                walk(iter(order), arrived, True, False, None, None)
        finally:
            state.backward_pass, state.running = outer, running
        own = {trace.value_of(g) for g in dys}
        targets, refs = [], []
        for leaf, g in arrived.items():
            edge = self._edge(leaf)
            if edge is not None:
                targets.append(edge)
                refs.append(self._result(g, refs, own))
        del arrived, order
        self.most_random = max(self.most_random, trace.random_count)
        pullback = self._capture(dys, targets, refs)
        pullback.scaled_by = mine.scaled_by
        return pullback

    def _edge(self, leaf):
        """Return the index of a leaf's edge, or None if the function itself made the leaf."""
        k = self.argument_of.get(id(leaf))
        if k is None and type(leaf.array.storage.buffer) is TraceBuffer:
            return None
        key = ("argument", k) if k is not None else id(leaf)
        if key not in self.edges:
            self.edges[key] = k, None if k is not None else leaf
        return list(self.edges).index(key)

    def _all_leaves(self, nodes):
        for node in ordered(list(dict.fromkeys(nodes))):
            for leaf in node.edges:
                if leaf is not None and type(leaf) is not Node:
                    self._edge(leaf)

    def _result(self, g, refs, own):
        """Return a Ref to a gradient that covers a whole Value of its own; copy if needed."""
        ref = self.trace.ref(g)
        value = ref.value
        is_new = value not in own and value not in self.forward and value.is_temporary
        if is_new and ref.covers() and all(value is not r.value for r in refs):
            return ref
        return self.trace.ref(self.trace.convert(g, g.dtype))

    def _capture(self, dys, targets, refs):
        trace = self.trace
        instructions = self._cut()
        if (len(trace.grads), len(trace.actions)) != self.noticed:
            trace.refuse(
                "a gradient hook inside a compiled function uses .grad or steps a schedule, and "
                "backward is called outside of the function",
                "set the hook outside, on what the function returns; or call backward inside",
            )
        written = self._written()
        arguments = {}
        for g in dys:
            old = trace.value_of(g)
            arguments[old] = Value(ARGUMENT, old.dtype, old.size, name=old.name)
        touched = {r.value: None for i in instructions for r in (*i.reads, *i.writes)}
        kept = []
        for v in touched:
            is_outside = v.kind in (ARGUMENT, CAPTURED) and v not in written
            if v not in arguments and (is_outside or (v in self.forward and v.is_temporary)):
                kept.append(v)
                arguments[v] = Value(ARGUMENT, v.dtype, v.size, name=v.name, place=v.place)
        for k, value in enumerate(arguments.values()):
            value.index = k
        if any(r.value in arguments for i in instructions for r in i.writes):
            trace.refuse(
                "a gradient hook or a Function's backward inside a compiled function writes in "
                "place to a value of the function",
                "write out of place: return 2.0 * g",
            )
        recording = Recording(
            [self._moved(i, arguments) for i in instructions], [*arguments.values()], refs
        )
        numbers = [self.kept.setdefault(v, len(self.kept)) for v in kept]
        capture = self.new_capture(
            recording,
            tuple(StepOutput("result", k) for k in range(len(refs))),
            written=written,
            device=trace.name,
        )
        return Pullback(f"{self.name} backward", capture, len(dys), numbers, targets)

    def _cut(self):
        """Remove and return the instructions recorded since the function returned."""
        instructions = [without_seen(i) for i in self.trace.instructions[self.start :]]
        del self.trace.instructions[self.start :]
        return instructions

    def _moved(self, i, arguments):
        """Return an instruction of the trace, rewritten to the pullback's arguments."""
        return i.with_refs(lambda r: r._replace(value=arguments.get(r.value, r.value)))

    def _written(self):
        """Return {outside Value: versions that the pullback adds}, and undo the counting."""
        added = {}
        for v, (storage, version, _) in self.trace.written.items():
            before = self.versions.get(v, version)
            if storage.version != before:
                added[v] = storage.version - before
                storage.version = before
        return added

    def _source(self, value):
        """Return where a call finds a kept value: an outside Value, or the index of a result."""
        if value.kind != TEMPORARY:
            assert value.kind != CONSTANT
            return value
        refs = self.results.refs
        for k, ref in enumerate(refs):
            if ref.value is value:
                return k
        refs.append(whole(value))
        return len(refs) - 1


def kept_array(array, size, first):
    """Return what is kept of outside memory: `size` elements from `first` of its Storage."""
    if array.size != size or not array.is_contiguous:
        array = array.storage.view((size,), (1,), first)
    return protected(array)
