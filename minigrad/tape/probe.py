"""Reports to the memory monitor on the graph: running op, live nodes, holders of a buffer."""

import gc

from minigrad.devices.backend import device_named
from minigrad.memory.monitor import Probe, register_probe
from minigrad.seams import seams
from minigrad.tape import modes
from minigrad.tape.node import Node, live_nodes, place_line, saved_bytes, user_place
from minigrad.tape.variable import Variable


def run_as(name, function, /, *args, **kwargs):
    """Runs a function that makes or writes Variables. Observers see it under `name`."""
    before = modes.state.running
    modes.state.running = (name, user_place())
    try:
        return function(*args, **kwargs)
    finally:
        modes.state.running = before


def check_as(name, function, /, *args):
    """Runs a check of elements. A trace records it as an instruction `name`."""
    return run_as(name, function, *args) if seams.effects.is_tracing else function(*args)


class GraphProbe(Probe):
    """Reports on the graph of all threads and on the running op of this thread."""

    def running_op(self):
        """Returns (name of the running op, user's line)."""
        name, place = modes.state.running
        return name, place_line(place) if place else ""

    def live_nodes(self):
        """Returns the live nodes, oldest first."""
        return live_nodes()

    def saved_bytes(self, nodes):
        """Returns the bytes of the values that nodes saved; each Storage counts once."""
        return saved_bytes(nodes)

    def describe_nodes(self, nodes):
        """Returns the op, line and saved bytes of each node, as texts."""
        return [f"{n.op}, {n.saved_bytes:,} bytes saved, made at {n.line}" for n in nodes]

    def name_holders(self, buffers):
        """Returns the bytes and holders of each buffer (Variables, gradients, nodes), as texts."""
        wanted = {id(b): [] for b in buffers}

        def note(array, text):
            texts = wanted.get(id(getattr(array, "buffer", None)))
            if texts is not None and text not in texts:
                texts.append(text)

        for o in gc.get_objects():
            kind = type(o)
            if kind is Node:
                for name, value in o.saved.items():
                    note(value, f"{name} saved by {o.op}, {o.line}")
            elif issubclass(kind, Variable):
                note(o.array, _variable(o))
                if o._grad is not None:
                    note(o._grad.array, f"gradient of {o.describe()}")
        return [
            f"{b.requested:,} bytes: {'; '.join(wanted[id(b)][:3]) or 'an array of the engine'}"
            for b in buffers
        ]

    def start_device(self, device):
        """Makes the pool of a device that has not been used yet."""
        device_named(device)

    def watch(self, delta):
        """Adds to the number of observers for which `running_op` must know every op."""
        modes.watch(delta)

    def save_copies(self, delta):
        """Adds to the number of blocks in which saved values survive in-place writes."""
        modes.state.saving_copies += delta
        modes.watch(delta)


def _variable(x):
    """Describes a Variable and the op that made it."""
    made = f", result of {x.node.op}, {x.node.line}" if x.node is not None else ""
    return x.describe() + made


register_probe(GraphProbe())
