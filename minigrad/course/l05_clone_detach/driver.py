"""Runs beside the learner's code of lesson 05: builds Boxes and buffers, reports what is there."""

import tracemalloc

import numpy as np

from minigrad.course.objects import Box, Node, Storage

array_equal = np.array_equal  # taken before the learner's file, which could replace it


def node_of(history):
    """Return the Node of a history: None, 'leaf', or an op whose input is a leaf."""
    if history is None or history == "leaf":
        return history and Node("leaf")
    return Node(history, (Node("leaf"),), (2.0,))


def parts(node):
    """Return a Node's parts."""
    return node and dict(vars(node))


def identity(box):
    """Return all of a Box that reading leaves unchanged, except its numbers."""
    _, node, storage, data = whole(box)
    version, flags = getattr(storage, "version", None), str(getattr(data, "flags", None))
    return box, storage, id(data), flags, version, node, parts(node), attributes(box)


def whole(box):
    """Return a Box with everything that it holds: its node, its Storage, its array."""
    storage = getattr(box, "storage", None)
    return box, getattr(box, "node", None), storage, getattr(storage, "data", None)


def attributes(box):
    """Return the names of the attributes of a Box and of its Storage."""
    return [sorted(getattr(one, "__dict__", ())) for one in (box, getattr(box, "storage", None))]


def apart(mine, name, values, version, history):
    """Call detach or clone on one Box; describe the result and the source afterwards."""
    storage = Storage(values, version)
    node = node_of(history)
    box = Box(storage, node)
    before = parts(node), attributes(box)
    other = getattr(mine, name)(Box(Storage(np.zeros(2)), Node("leaf")))
    of_other = identity(other)
    can_be_written = values.flags.writeable
    made = getattr(mine, name)(box)
    same = {
        "array, which nobody can write to any more,": values.flags.writeable == can_be_written,
        "storage": box.storage is storage and storage.data is values,
        "node": box.node is node and parts(node) == before[0],
        "version": storage.version == version,
        "list of attributes": attributes(box) == before[1],
    }
    changed = [part for part in same if not same[part]]
    facts: dict = {"changed": changed, "source": values.copy()}
    facts["kept"] = other is made or identity(other) != of_other
    if not facts["kept"]:
        again = zip(whole(getattr(mine, name)(box)), whole(made), whole(box), strict=True)
        facts["kept"] = any(a is b and a is not given and a is not None for a, b, given in again)
    if not isinstance(made, Box):
        return {**facts, "made": made, "type": type(made).__name__}
    facts["new_box"] = made is not box
    facts["node"] = described(made.node, node)
    if not isinstance(made.storage, Storage):
        return {**facts, "storage": type(made.storage).__name__}
    data = copied(made.storage.data)
    if values.flags.writeable:
        values[...] = values == 0  # changes every entry, which shows in all that share its memory
    return {
        **facts,
        "same_storage": made.storage is storage,
        "data": data,
        "later": made.storage.data,
        "version": made.storage.version,
    }


def copied(data):
    """Return a copy of an array, anything else unchanged."""
    return data.copy() if isinstance(data, np.ndarray) else data


def described(made, source):
    """Describe a node: None, the source's own, or a new one with these inputs."""
    if made is None:
        return {"is": "none"}
    if made is source:
        return {"is": "same"}
    if not isinstance(made, Node):
        return {"is": "other", "type": type(made).__name__}
    whose = []
    if isinstance(made.inputs, tuple):
        whose = [
            "source" if one is source else "none" if one is None else type(one).__name__
            for one in made.inputs
        ]
    saved = made.saved if isinstance(made.saved, tuple | list) else [made.saved]
    return {
        "is": "new",
        "op": made.op,
        "inputs": whose,
        "inputs_type": type(made.inputs).__name__,
        "n_saved": len(saved),
    }


def alias(mine, dtype, size, a, b):
    """Call is_alias on two arrays, written as expressions of names, on read-only memory."""
    x, y = np.zeros(size, dtype), np.zeros(size, dtype)
    x.flags.writeable = y.flags.writeable = False
    names = {"x": x, "y": y, "m": x.reshape(3, -1), "c": x.reshape(2, 3, -1), "np": np}
    a, b = eval(a, dict(names)), eval(b, dict(names))
    try:
        return {"ok": mine.is_alias(a, b)}
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        return {"wrote": str(error)}


def address(array):
    """Return where an array begins."""
    return array.__array_interface__["data"][0]


def cow(mine, values, steps):
    """Run steps on CowBuffers, of which the first is called a.

    A step is ("fork", new, old), ("read", name), ("write", name, index, number), ("touch", name),
    which calls write() and writes nothing, ("poke", name), which tests whether any result of read()
    so far can be written to, or ("drop", name).

    Returns:
        A list: after each step the values of every buffer, and the number of its memory.
    """
    _unrelated = mine.CowBuffer(np.array(values))  # has other memory, so it owns none of this
    buffers = {"a": mine.CowBuffer(values)}
    kept, reads, places = [], [], [address(values)]
    report = []
    for step in [("start",), *steps]:
        note: dict = one_step(buffers, step, kept, reads)
        if "bad" in note:
            return [note]
        shown = {}
        for name, buffer in buffers.items():
            array, again = buffer.read(), buffer.read()
            if not isinstance(array, np.ndarray):
                return [{"bad": "read", "type": type(array).__name__}]
            if address(array) != address(again):
                note["read_copies"] = True
            reads += [array, again]
            if address(array) not in places:
                places.append(address(array))
            shown[name] = [array.copy(), places.index(address(array))]
        del buffer  # else a dropped one would live on
        report.append({"shown": shown, "memories": len(places), **note})
    return report


def one_step(buffers, step, kept, reads):
    """Do one step; return further facts about it."""
    what, *rest = step
    if what == "fork":
        new, old = rest
        made = buffers[old].fork()
        if type(made) is not type(buffers[old]):
            return {"bad": "fork", "type": type(made).__name__}
        if made is buffers[old]:
            return {"bad": "itself", "type": ""}
        buffers[new] = made
    elif what == "drop":
        del buffers[rest[0]]
    elif what in ("write", "touch"):
        array = buffers[rest[0]].write()
        if not isinstance(array, np.ndarray):
            return {"bad": "write", "type": type(array).__name__}
        kept.append(array)
        if not array.flags.writeable:
            return {"bad": "read_only", "type": ""}
        if what == "write":
            array[rest[1]] = rest[2]
    elif what == "poke":
        return {"writeable": any(array.flags.writeable for array in reads)}
    return {}


def cow_bytes(mine, n, steps):
    """Run steps on a buffer of n numbers; return how many copies of it each allocates."""
    values = np.zeros(n)
    buffers = {"a": mine.CowBuffer(values)}
    copies = []
    tracemalloc.start()
    try:
        for step in steps:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            if step[0] == "read":
                buffers[step[1]].read()
            elif "bad" in (note := one_step(buffers, step, [], [])):
                return [note]
            peak = tracemalloc.get_traced_memory()[1]
            copies.append((peak - before) / values.nbytes)
    finally:
        tracemalloc.stop()
    return copies


def sync(mine, online, target, order):
    """Call target_sync; describe both networks afterwards."""
    networks = []
    for arrays, version, names in ((online, 5, list(online)), (target, 2, order)):
        networks.append(
            {
                name: Box(Storage(arrays[name], version + i), Node("leaf") if i % 2 else None)
                for i, name in enumerate(names)
            }
        )
    before = {name: identity(box) for name, box in networks[0].items()}
    known = {
        name: (*whole(box), box.storage.version, parts(box.node))
        for name, box in networks[1].items()
    }
    values = {name: array.copy() for name, array in online.items()}
    returned = mine.target_sync(*networks)
    facts = {"returned": returned, "names": list(networks[1])}
    facts["online_changed"] = [
        name
        for name in online
        if identity(networks[0].get(name)) != before[name]
        or not array_equal(online[name], values[name])
    ]
    facts["online_values"] = online
    facts["target"] = {
        name: target_facts(networks[1].get(name), *known[name], online[name]) for name in order
    }
    return facts


def target_facts(now, box, node, storage, data, version, of_node, theirs):
    """Describe one Box of the target afterwards."""
    facts = {"type": type(now).__name__, "same_box": now is box}
    if not isinstance(now, Box) or not isinstance(now.storage, Storage):
        return facts
    values = now.storage.data
    return {
        **facts,
        "same_storage": now.storage is storage,
        "same_data": values is data,
        "shares": isinstance(values, np.ndarray)
        and np.shares_memory(values, theirs)
        and data is not theirs,
        "values": values,
        "version": (version, now.storage.version),
        "writeable": isinstance(values, np.ndarray) and values.flags.writeable,
        "node": "None"
        if now.node is None is not node
        else "another one"
        if now.node is not node
        else "as before"
        if parts(node) == of_node
        else "its own, changed",
    }


def target(mine, arrays, transposed):
    """Call make_target; describe its result for each name, and whether online is unchanged.

    With `transposed`, arrays with two axes lie in memory column by column.
    """
    if transposed:
        arrays = {name: array.T.copy().T for name, array in arrays.items()}
    online = {name: Box(Storage(array), Node("leaf")) for name, array in arrays.items()}
    before = {name: identity(box) for name, box in online.items()}
    copies = {name: array.copy() for name, array in arrays.items()}
    made = mine.make_target(online)
    if not isinstance(made, dict):
        return {"type": type(made).__name__}
    held = {name: (box, identity(box), np.array(whole(box)[3])) for name, box in made.items()}
    mine.make_target({n: Box(Storage(np.zeros_like(a))) for n, a in arrays.items()})
    kept = [
        str(name)
        for name, (box, known, values) in held.items()
        if made.get(name) is not box
        or identity(box) != known
        or not array_equal(whole(box)[3], values)  # pyright: ignore[reportArgumentType]
    ]
    layers = {
        str(name): {
            "type": type(box).__name__,
            "values": copied(whole(box)[3]),
            "node": getattr(box, "node", None) is not None,
        }
        for name, box in made.items()
    }
    unchanged = all(
        identity(online.get(name)) == known and array_equal(copies[name], arrays[name])
        for name, known in before.items()
    )
    for box in online.values():
        array = whole(box)[3]
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = array == 0  # as in `apart`
    for name, box in made.items():
        layers[str(name)]["later"] = whole(box)[3]
    return {"layers": layers, "online_unchanged": unchanged, "kept": kept}
