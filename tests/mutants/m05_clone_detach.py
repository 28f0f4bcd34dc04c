"""Wrong solutions of lesson 05 that people really write."""

from minigrad.course.mutants import Mutant


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])


DETACH, CLONE, ALIAS = "detach(box)", "clone(box)", "is_alias(a, b)"
SYNC, TARGET = "target_sync(online, target)", "make_target(online)"


def cow(init: str, fork: str, read: str, write: str) -> str:
    """Return a CowBuffer of these bodies, lines separated by `;`."""
    bodies = {"__init__(self, array)": init, "fork(self)": fork, "read(self)": read}
    bodies["write(self)"] = write
    lines = ["class CowBuffer:"]
    for head, body in bodies.items():
        lines.append(f"    def {head}:")
        lines += [f"        {line.strip(' ')}" for line in body.split(";")]
    return "\n".join(lines).replace("\\t", "    ")


INIT = "self.array = array; self.owners = weakref.WeakSet([self])"
FORK = (
    "other = CowBuffer(self.array); other.owners = self.owners; self.owners.add(other);return other"
)
READ = "view = self.array.view(); view.flags.writeable = False; return view"
WRITE = (
    "if len(self.owners) > 1:;\\tself.owners.remove(self);"
    "\\tself.owners = weakref.WeakSet([self]);\\tself.array = self.array.copy();return self.array"
)
COUNTED = "self.owners[0] += 1; other = CowBuffer(self.array); other.owners = self.owners"

MUTANTS = [
    Mutant("detach", "copied", function(DETACH, "return Box(Storage(box.storage.data.copy()))")),
    Mutant(
        "detach",
        "new_storage",
        function(DETACH, "return Box(Storage(box.storage.data, box.storage.version))"),
    ),
    Mutant("detach", "same_box", function(DETACH, "box.node = None", "return box")),
    Mutant("detach", "none", function(DETACH, "box.node = None")),
    Mutant(
        "detach",
        "leaf",
        function(
            DETACH,
            "if box.node is not None and box.node.op == 'leaf':",
            "    return Box(box.storage, Node('leaf'))",
            "return Box(box.storage)",
        ),
    ),
    Mutant(
        "detach",
        "recorded",
        function(DETACH, "return Box(box.storage, Node('detach', (box.node,)))"),
    ),
    Mutant("detach", "attached", function(DETACH, "return Box(box.storage, box.node)")),
    Mutant("detach", "no_storage", function(DETACH, "return Box(box.storage.data)")),
    Mutant(
        "detach", "source", function(DETACH, "box.storage.version = 0", "return Box(box.storage)")
    ),
    Mutant(
        "detach",
        "attached",
        function(
            DETACH,
            "made_here = box.node is not None and box.node.op not in ('leaf', 'mul')",
            "return Box(box.storage, box.node if made_here else None)",
        ),
    ),
    Mutant(
        "clone",
        "dtype",
        function(
            CLONE,
            "values = np.array(box.storage.data, dtype=float)",
            "return Box(Storage(values), box.node and Node('clone', (box.node,)))",
        ),
    ),
    Mutant(
        "clone",
        "shape",
        function(
            CLONE,
            "values = box.storage.data.flatten()",
            "return Box(Storage(values), box.node and Node('clone', (box.node,)))",
        ),
    ),
    Mutant(
        "clone",
        "shared",
        function(CLONE, "return Box(Storage(box.storage.data), Node('clone', (box.node,)))"),
    ),
    Mutant("clone", "cut_off", function(CLONE, "return Box(Storage(box.storage.data.copy()))")),
    Mutant(
        "clone",
        "same_node",
        function(CLONE, "return Box(Storage(box.storage.data.copy()), box.node)"),
    ),
    Mutant(
        "clone",
        "recorded",
        function(CLONE, "return Box(Storage(box.storage.data.copy()), Node('clone', (box.node,)))"),
    ),
    Mutant(
        "clone",
        "inputs",
        function(CLONE, "return Box(Storage(box.storage.data.copy()), Node('clone', (box.node)))"),
    ),
    Mutant(
        "clone",
        "version",
        function(
            CLONE,
            "storage = Storage(box.storage.data.copy(), box.storage.version)",
            "return Box(storage, box.node and Node('clone', (box.node,)))",
        ),
    ),
    Mutant(
        "clone",
        "saved",
        function(
            CLONE,
            "values = box.storage.data.copy()",
            "return Box(Storage(values), box.node and Node('clone', (box.node,), (values,)))",
        ),
    ),
    Mutant(
        "clone",
        "op",
        function(
            CLONE,
            "node = box.node and Node(box.node.op, (box.node,))",
            "return Box(Storage(box.storage.data.copy()), node)",
        ),
    ),
    Mutant("is_alias", "answer_used", function(ALIAS, "return np.shares_memory(a, b)")),
    Mutant(
        "is_alias",
        "ranges",
        function(
            ALIAS,
            "from numpy.lib.array_utils import byte_bounds",
            "low, high = byte_bounds(a)",
            "other_low, other_high = byte_bounds(b)",
            "return low < other_high and other_low < high",
        ),
    ),
    Mutant("is_alias", "start", function(ALIAS, "return a.ctypes.data == b.ctypes.data")),
    Mutant("is_alias", "values", function(ALIAS, "return a.base is b.base")),
    Mutant(
        "is_alias",
        "start",
        function(
            ALIAS,
            "def shown(array):",
            "    found = [array.ctypes.data]",
            "    for n, stride in zip(array.shape, array.strides):",
            "        found = [p + stride * array.itemsize * i for p in found for i in range(n)]",
            "    return {p + k for p in found for k in range(array.itemsize)}",
            "return bool(shown(a) & shown(b))",
        ),
    ),
    Mutant(
        "is_alias",
        "backwards",
        function(
            ALIAS,
            "def shown(array):",
            "    found = [array.ctypes.data]",
            "    for axis, (n, stride) in enumerate(zip(array.shape, array.strides)):",
            "        step = abs(stride) if axis else stride",
            "        found = [p + step * i for p in found for i in range(n)]",
            "    return {p + k for p in found for k in range(array.itemsize)}",
            "return bool(shown(a) & shown(b))",
        ),
    ),
    Mutant(
        "is_alias",
        "bytes",
        function(
            ALIAS,
            "def shown(array):",
            "    found = [array.ctypes.data]",
            "    for n, stride in zip(array.shape, array.strides):",
            "        found = [p + stride * i for p in found for i in range(n)]",
            "    return {p + k for p in found for k in range(a.itemsize)}",
            "return bool(shown(a) & shown(b))",
        ),
    ),
    Mutant(
        "is_alias",
        "wrote",
        function(
            ALIAS,
            "if not (a.size and b.size):",
            "    return False",
            "before, kept = b.copy(), a.copy()",
            "a[...] = 77",
            "found = not np.array_equal(b, before)",
            "a[...] = kept",
            "return found",
        ),
    ),
    Mutant(
        "is_alias",
        "bytes",
        function(
            ALIAS,
            "def starts(array):",
            "    found = [array.ctypes.data]",
            "    for n, stride in zip(array.shape, array.strides):",
            "        found = [p + stride * i for p in found for i in range(n)]",
            "    return set(found)",
            "return bool(starts(a) & starts(b))",
        ),
    ),
    Mutant(
        "is_alias",
        "axes",
        function(
            ALIAS,
            "def shown(array):",
            "    step = array.strides[-1]",
            "    firsts = [array.ctypes.data + step * i for i in range(array.size)]",
            "    return {p + k for p in firsts for k in range(array.itemsize)}",
            "return bool(shown(a) & shown(b))",
        ),
    ),
    Mutant(
        "CowBuffer",
        "eager",
        cow(INIT, "return CowBuffer(self.array.copy())", READ, "return self.array"),
    ),
    Mutant(
        "CowBuffer",
        "init",
        cow(INIT.replace("= array", "= np.array(array)"), FORK, READ, WRITE),
    ),
    Mutant(
        "CowBuffer",
        "wrong_copier",
        cow(
            INIT,
            FORK,
            READ,
            "rest = weakref.WeakSet(one for one in self.owners if one is not self);"
            "values = self.array.copy();for one in rest:;\tone.owners = rest;"
            "\tone.array = values;self.owners = weakref.WeakSet([self]);return self.array",
        ),
    ),
    Mutant(  # knows its source and its forks, but not the forks of its source
        "CowBuffer",
        "seen",
        cow(
            "self.array = array; self.near = weakref.WeakSet()",
            "other = CowBuffer(self.array); other.near.add(self); self.near.add(other);"
            "return other",
            READ,
            "if self.near:;\tfor one in self.near:;\t\tone.near.discard(self);"
            "\tself.near = weakref.WeakSet();\tself.array = self.array.copy();"
            "return self.array",
        ),
    ),
    Mutant(
        "CowBuffer",
        "last_owner",
        cow(
            "self.array = array; self.shared = False",
            "self.shared = True; other = CowBuffer(self.array); other.shared = True; return other",
            READ,
            "if self.shared:;\\tself.array = self.array.copy();\\tself.shared = False;"
            "return self.array",
        ),
    ),
    Mutant(
        "CowBuffer",
        "copies_again",
        cow(
            INIT,
            FORK,
            READ,
            "if len(self.owners) > 1:;\\tself.array = self.array.copy();return self.array",
        ),
    ),
    Mutant(
        "CowBuffer",
        "lost",
        cow(INIT, FORK, READ, "return self.array if len(self.owners) == 1 else self.array.copy()"),
    ),
    Mutant("CowBuffer", "read_copies", cow(INIT, FORK, "return self.array.copy()", WRITE)),
    Mutant("CowBuffer", "read_writable", cow(INIT, FORK, "return self.array", WRITE)),
    Mutant(
        "CowBuffer",
        "dropped",
        cow(
            "self.array = array; self.owners = [1]",
            f"{COUNTED}; return other",
            READ,
            "if self.owners[0] > 1:;\\tself.owners[0] -= 1;\\tself.owners = [1];"
            "\\tself.array = self.array.copy();return self.array",
        ),
    ),
    Mutant(
        "target_sync",
        "aliased",
        function(SYNC, "for name in online:", "    target[name] = online[name]"),
    ),
    Mutant(
        "target_sync",
        "aliased",
        function(
            SYNC,
            "for name in online:",
            "    target[name].storage.data = online[name].storage.data",
            "    target[name].storage.version += 1",
        ),
    ),
    Mutant(
        "target_sync",
        "rebound",
        function(
            SYNC,
            "for name in online:",
            "    target[name].storage.data = online[name].storage.data.copy()",
            "    target[name].storage.version += 1",
        ),
    ),
    Mutant(
        "target_sync",
        "replaced",
        function(SYNC, "for name in online:", "    target[name] = clone(online[name])"),
    ),
    Mutant(
        "target_sync",
        "by_position",
        function(
            SYNC,
            "for box, other in zip(target.values(), online.values()):",
            "    box.storage.data[...] = other.storage.data",
            "    box.storage.version += 1",
        ),
    ),
    Mutant(
        "target_sync",
        "version",
        function(
            SYNC,
            "for name in online:",
            "    target[name].storage.data[...] = online[name].storage.data",
        ),
    ),
    Mutant(
        "target_sync",
        "backwards",
        function(
            SYNC,
            "for name in online:",
            "    online[name].storage.data[...] = target[name].storage.data",
            "    online[name].storage.version += 1",
        ),
    ),
    Mutant(
        "target_sync",
        "untouched",
        function(SYNC, "target = {name: clone(box) for name, box in online.items()}"),
    ),
    Mutant(
        "target_sync",
        "raised",
        function(
            SYNC,
            "for name, box in target.items():",
            "    box.storage.data[:] = online[name].storage.data",
            "    box.storage.version += 1",
        ),
    ),
    Mutant(
        "target_sync",
        "node",
        function(
            SYNC,
            "for name, box in target.items():",
            "    box.storage.data[...] = online[name].storage.data",
            "    box.storage.version += 1",
            "    box.node = None",
        ),
    ),
    Mutant(
        "target_sync",
        "common",
        function(
            SYNC,
            "for name, box in target.items():",
            "    box.storage.data[...] = 0",
            "    box.storage.data[...] += online[name].storage.data",
            "    box.storage.version += 1",
        ),
    ),
    Mutant("make_target", "not_it", 'BUG = ("layer", "b1")'),
    Mutant("make_target", "form", 'BUG = "w2"'),
    Mutant("make_target", "form", 'BUG = ("layer", 3)'),
    Mutant(
        "make_target",
        "aliased",
        function(
            TARGET,
            "return {k: frozen(np.asarray(box.storage.data)) for k, box in online.items()}",
        ),
    ),
    Mutant(
        "make_target",
        "aliased",
        function(TARGET, "return {k: frozen(box.storage.data[:]) for k, box in online.items()}"),
    ),
    Mutant(
        "make_target",
        "node",
        function(TARGET, "return {k: clone(box) for k, box in online.items()}"),
    ),
    Mutant(
        "make_target",
        "shape",
        function(
            TARGET, "return {k: frozen(box.storage.data.flatten()) for k, box in online.items()}"
        ),
    ),
    Mutant(
        "make_target",
        "online",
        function(
            TARGET,
            "made = {k: frozen(box.storage.data) for k, box in online.items()}",
            "for box in online.values():",
            "    box.storage = Storage(box.storage.data.copy())",
            "return made",
        ),
    ),
    Mutant(
        "make_target",
        "online",
        function(
            TARGET,
            "made = {k: clone(box) for k, box in online.items()}",
            "for k, box in online.items():",
            "    box.storage.version += 1",
            "    made[k].node = None",
            "return made",
        ),
    ),
    Mutant(
        "make_target",
        "aliased",
        function(
            TARGET,
            "made = {k: frozen(box.storage.data.copy()) for k, box in online.items()}",
            "made['w2'] = frozen(np.asfortranarray(online['w2'].storage.data))",
            "return made",
        ),
    ),
]
