"""Wrong solutions of lesson 02 that people really write."""

from minigrad.course.mutants import Mutant

TOPO = "def topo_order(root):"
BACKWARD = "def backward(root):"
VISITS = "def count_visits(root, algorithm):"
HASTY = "def hasty_order(root):"

FIRST_MET = """
{head}
    order, seen, stack = [], set(), [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
            stack.extend(one for one in reversed(node.inputs) if one is not None)
    return order{end}
"""

ITERATIVE = """
{head}
    order, seen, stack = [], {seen}, [(root, iter(root.inputs))]
    while stack:
        node, inputs = stack[-1]
        for one in inputs:
            if one is not None and one not in seen:
                seen.{mark}(one)
                stack.append((one, iter(one.inputs)))
                break
        else:
            order.append(node)
            stack.pop()
    return order{end}
"""

RECURSIVE = """
{head}
    order, seen = [], set()

    def enter(node):
        if node is None{seen}:
            return
        seen.add(node)
        for one in node.inputs:
            enter(one)
        order.append(node)

    enter(root)
    return order
"""

WALK = """
def backward(root):
    order = topo_order(root)
    grads = dict.fromkeys(order, 0.0)
    grads[root] = 1.0
    for node in {order}:
        if node.op == "leaf":
            continue
        sent = RULES[node.op]({dy}, *node.saved)
        for one, dy in {pairs}:
            if one is not None:
                {hand_out}
    return {end}
"""


def walk(order="reversed(order)", dy="grads[node]", pairs="zip(node.inputs, sent)",
         hand_out="grads[one] += dy", end="grads"):  # fmt: skip
    """Return a backward with one part changed."""
    return WALK.format(order=order, dy=dy, pairs=pairs, hand_out=hand_out, end=end)


VISIT = """
def count_visits(root, algorithm):
    order = topo_order(root)
    if algorithm == "{sorted}":
        return dict.fromkeys(order, 1)
    if algorithm != "{naive}":
        raise ValueError(algorithm)
    visits = dict.fromkeys(order, 0)
    visits[root] = 1
    for node in reversed(order):
        for one in {inputs}:
            if one is not None:
                visits[one] += {share}
    return {end}
"""


def visit(sorted="sorted", naive="naive", inputs="node.inputs", share="visits[node]", end="visits"):
    """Return a count_visits with one part changed."""
    return VISIT.format(sorted=sorted, naive=naive, inputs=inputs, share=share, end=end)


MUTANTS = [
    Mutant("topo_order", "missing", f"{TOPO}\n    return []"),
    Mutant("topo_order", "reversed", ITERATIVE.format(head=TOPO, seen="{root}", mark="add",
                                                      end="[::-1]")),
    Mutant("topo_order", "when_met", FIRST_MET.format(head=TOPO, end="[::-1]")),
    Mutant(
        "topo_order",
        "when_met",
        f"""
{TOPO}
    order, seen = [root], {{root}}
    for node in order:
        for one in node.inputs:
            if one is not None and one not in seen:
                seen.add(one)
                order.append(one)
    return order[::-1]
""",
    ),
    Mutant("topo_order", "twice", RECURSIVE.format(head=TOPO, seen="")),
    Mutant("topo_order", "recursion", RECURSIVE.format(head=TOPO, seen=" or node in seen")),
    Mutant("topo_order", "cost", ITERATIVE.format(head=TOPO, seen="[root]", mark="append", end="")),
    Mutant(
        "topo_order",
        "raised",
        ITERATIVE.format(head=TOPO, seen="{root}", mark="add", end="").replace(
            "one is not None and ", ""
        ),
    ),
    Mutant(
        "topo_order",
        "when_met",
        f"""
{TOPO}
    order, seen, stack = [], {{root}}, [(root, False)]
    while stack:
        node, finished = stack.pop()
        if finished:
            order.append(node)
            continue
        stack.append((node, True))
        for one in node.inputs:
            if one is not None and one not in seen:
                seen.add(one)
                stack.append((one, False))
    return order
""",
    ),
    Mutant(
        "topo_order",
        "missing",
        ITERATIVE.format(head=TOPO, seen="{root}", mark="add", end="").replace(
            "one not in seen", "one not in seen and one.inputs"
        ),
    ),
    Mutant("backward", "overwritten", walk(hand_out="grads[one] = dy")),
    Mutant("backward", "overwritten", walk(pairs="dict(zip(node.inputs, sent)).items()")),
    Mutant("backward", "dropped_upstream", walk(dy="1.0")),
    Mutant(
        "backward",
        "per_input",
        f"""
{BACKWARD}
    grads = {{root: 1.0}}
    for node in reversed(topo_order(root)):
        for k, one in enumerate(node.inputs):
            if one is not None:
                share = RULES[node.op](grads[node], *node.saved)[k]
                grads[one] = grads.get(one, 0.0) + share
    return grads
""",
    ),
    Mutant(
        "backward",
        "left_out",
        f"""
{BACKWARD}
    order = topo_order(root)
    grads = {{**dict.fromkeys(order, 0.0), root: 1.0}}
    for node in reversed(order):
        if any(node.inputs):
            for one, dy in zip(node.inputs, RULES[node.op](grads[node], *node.saved)):
                grads[one] = grads.get(one, 0.0) + dy
    grads.pop(None, None)
    return grads
""",
    ),
    Mutant("backward", "wrong_end", walk(order="order")),
    Mutant("backward", "missing", walk(end='{n: g for n, g in grads.items() if n.op == "leaf"}')),
    Mutant("backward", "type", walk(end="[grads[node] for node in order]")),
    Mutant(
        "backward",
        "too_early",
        f"""
{BACKWARD}
    grads, seen, waiting = {{root: 1.0}}, {{root}}, [root]
    for node in waiting:
        if node.op == "leaf":
            continue
        for one, dy in zip(node.inputs, RULES[node.op](grads[node], *node.saved)):
            if one is None:
                continue
            grads[one] = grads.get(one, 0.0) + dy
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return grads
""",
    ),
    Mutant(
        "backward",
        "again",
        f"""
{BACKWARD}
    grads = {{root: 1.0}}

    def go(node):
        if node.op == "leaf":
            return
        for one, dy in zip(node.inputs, RULES[node.op](grads[node], *node.saved)):
            if one is not None:
                grads[one] = grads.get(one, 0.0) + dy
        for one in node.inputs:
            if one is not None:
                go(one)

    go(root)
    return grads
""",
    ),
    Mutant(
        "backward",
        "cost",
        f"""
{BACKWARD}
    grads, waiting = {{}}, [(root, 1.0)]
    while waiting:
        node, dy = waiting.pop()
        grads[node] = grads.get(node, 0.0) + dy
        if node.op != "leaf":
            sent = RULES[node.op](dy, *node.saved)
            waiting += [(one, g) for one, g in zip(node.inputs, sent) if one is not None]
    return grads
""",
    ),
    Mutant("count_visits", "per_consumer", visit(share="1")),
    Mutant("count_visits", "distinct", visit(inputs="set(node.inputs)")),
    Mutant("count_visits", "as_sorted", visit(sorted="naive", naive="sorted")),
    Mutant("count_visits", "type", visit(end="sum(visits.values())")),
    Mutant("count_visits", "float", visit(end="{n: float(v) for n, v in visits.items()}")),
    Mutant("count_visits", "did_not_raise", visit().replace("raise ValueError(algorithm)", "pass")),
    Mutant("count_visits", "wrong_error", visit().replace("raise ValueError(", "raise KeyError(")),
    Mutant(
        "count_visits",
        "cost",
        f"""
{VISITS}
    if algorithm == "sorted":
        return dict.fromkeys(topo_order(root), 1)
    if algorithm != "naive":
        raise ValueError(algorithm)
    visits = {{}}

    def visit(node):
        visits[node] = visits.get(node, 0) + 1
        for one in node.inputs:
            if one is not None:
                visit(one)

    visit(root)
    return visits
""",
    ),
    Mutant(
        "count_visits",
        "no_root",
        f"""
{VISITS}
    if algorithm == "sorted":
        return dict.fromkeys(topo_order(root), 1)
    if algorithm != "naive":
        raise ValueError(algorithm)
    visits = {{root: 0}}

    def visit(node):
        for one in node.inputs:
            if one is not None:
                visits[one] = visits.get(one, 0) + 1
                visit(one)

    visit(root)
    return visits
""",
    ),
    Mutant(
        "hasty_order",
        "only_leaf",
        "def counterexample():\n    x = leaf(2.0)\n    return mul(mul(x, x), add(x, 1.0))",
    ),
    Mutant(
        "hasty_order",
        "still_right",
        "def counterexample():\n    return add(tanh(leaf(1.0)), mul(leaf(2.0), 3.0))",
    ),
    Mutant(
        "hasty_order",
        "too_big",
        "def counterexample():\n    x = leaf(2.0)\n    a = mul(x, x)\n"
        "    b = mul(leaf(3.0), tanh(a))\n    return mul(a, b)",
    ),
    Mutant(
        "hasty_order",
        "cycle",
        "def counterexample():\n    a = tanh(leaf(2.0))\n    b = tanh(a)\n"
        "    a.inputs = (b,)\n    return mul(a, b)",
    ),
    Mutant("hasty_order", "type", "def counterexample():\n    return [mul(leaf(2.0), 3.0)]"),
    Mutant("hasty_order", "when_met", FIRST_MET.format(head=HASTY, end="")),
    Mutant(
        "hasty_order",
        "when_met",
        FIRST_MET.format(head=HASTY, end="").replace("reversed(node.inputs)", "node.inputs"),
    ),
    Mutant("hasty_order", "reversed", f"{HASTY}\n    return topo_order(root)"),
    Mutant("hasty_order", "twice", FIRST_MET.format(head=HASTY, end="").replace(
        "if node not in seen:", "if True:")),
]  # fmt: skip
