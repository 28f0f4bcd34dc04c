"""Wrong solutions of lesson 03 that people really write."""

from minigrad.course.mutants import Mutant

FIND = "def find_cycle(root):"
EXPLAIN = "def explain_cycle(path):"
ASSERT = "def assert_dag(root):"

SEARCH = """
def find_cycle(root):
    finished, place = set(), {root: 0}
    path, iterators = [root], [iter(root.inputs)]
    while path:
        for one in iterators[-1]:
            if one is None or one in finished:
                continue
            if one in place:
                return FOUND
            place[one] = len(path)
            path.append(one)
            iterators.append(iter(one.inputs))
            break
        else:
            node = path.pop()
            iterators.pop()
            del place[node]
            finished.add(node)
    return None
"""


def search(found="[*path[place[one] :], one]", **changes):
    """Return a find_cycle with one part changed."""
    text = SEARCH.replace("FOUND", found)
    for old, new in changes.get("replace", ()):
        assert old in text
        text = text.replace(old, new)
    return text


TEXT = """
def explain_cycle(path):
    names = [f"{node.op} ({node.line})" if node.line else node.op for node in path]
    if len(names) > 8:
        names = [*names[:4], f"... {len(names) - 8} more ...", *names[-4:]]
    return " -> ".join(names)
"""


def text(old, new):
    """Return an explain_cycle with one part changed."""
    assert old in TEXT
    return TEXT.replace(old, new)


STORE = "Number.store_ = store_"

MUTANTS = [
    Mutant(
        "find_cycle",
        "two_ways",
        f"""
{FIND}
    seen, stack = {{root}}, [root]
    while stack:
        node = stack.pop()
        for one in node.inputs:
            if one is None:
                continue
            if one in seen:
                return [one, node, one]
            seen.add(one)
            stack.append(one)
    return None
""",
    ),
    Mutant("find_cycle", "tail", search("[*path, one]")),
    Mutant("find_cycle", "open", search("path[place[one] :]")),
    Mutant("find_cycle", "direction", search("[*path[place[one] :], one][::-1]")),
    Mutant("find_cycle", "slow_in", search("[*path[path.index(one) :], one]", replace=[
        ("one in place", "one in path"), ("finished, place = set()", "finished, place = []"),
        ("finished.add(node)", "finished.append(node)")])),
    Mutant("find_cycle", "cost", search(replace=[("finished.add(node)", "pass")])),
    Mutant(
        "find_cycle",
        "overlooked",
        search(replace=[("one is None or one in", "one in (None, node) or one in"),
                        ("    while path:", "    while path:\n        node = path[-1]")]),
    ),
    Mutant("find_cycle", "type", search("True", replace=[("return None", "return False")])),
    Mutant(
        "find_cycle",
        "recursion",
        f"""
{FIND}
    finished, path = set(), []

    def visit(node):
        if node is None or node in finished:
            return None
        if node in path:
            return [*path[path.index(node) :], node]
        path.append(node)
        for one in node.inputs:
            found = visit(one)
            if found is not None:
                return found
        path.pop()
        finished.add(node)
        return None

    return visit(root)
""",
    ),
    Mutant(
        "find_cycle",
        "no_edge",
        search("[one, *order[order.index(one) + 1 :], one]", replace=[
            ("path, iterators = [root]", "order, path, iterators = [root], [root]"),
            ("            path.append(one)", "            path.append(one)\n"
                                              "            order.append(one)")]),
    ),
    Mutant("explain_cycle", "last_missing", text("for node in path]", "for node in path[:-1]]")),
    Mutant("explain_cycle", "spaces", text('" -> "', '"->"')),
    Mutant("explain_cycle", "no_lines", text('f"{node.op} ({node.line})" if node.line else node.op',
                                             "node.op")),
    Mutant("explain_cycle", "brackets", text(" if node.line else node.op", "")),
    Mutant("explain_cycle", "not_shortened", text("len(names) > 8", "False")),
    Mutant("explain_cycle", "too_short", text("len(names) > 8", "len(names) >= 8")),
    Mutant("explain_cycle", "count", text("len(names) - 8", "len(names)")),
    Mutant("explain_cycle", "printed", text('return " -> ".join(names)',
                                            'print(" -> ".join(names))')),
    Mutant("assert_dag", "did_not_raise", f"{ASSERT}\n    return find_cycle(root) is None"),
    Mutant(
        "assert_dag",
        "wrong_error",
        f"{ASSERT}\n    if find_cycle(root):\n        raise Exception('there is a cycle')",
    ),
    Mutant(
        "assert_dag",
        "wrong_error",
        f"{ASSERT}\n    for one in root.inputs:\n        if one is not None:\n"
        "            assert_dag(one)",
    ),
    Mutant("assert_dag", "wrong_error", f"{ASSERT}\n    assert find_cycle(root) is None"),
    Mutant("assert_dag", "false_alarm", f"{ASSERT}\n    raise GraphCycleError(find_cycle(root))"),
    Mutant(
        "assert_dag",
        "wrong_error",
        f"{ASSERT}\n    path = find_cycle(root)\n    if path is not None:\n"
        "        raise GraphCycleError(explain_cycle(path))",
    ),
    Mutant(
        "assert_dag",
        "returned",
        f"{ASSERT}\n    path = find_cycle(root)\n    if path is not None:\n"
        "        raise GraphCycleError(path)\n    return True",
    ),
    Mutant(
        "assert_dag",
        "cost",
        f"{ASSERT}\n    if find_cycle(root) is not None:\n"
        "        path = find_cycle(root)\n        explain_cycle(find_cycle(root))\n"
        "        raise GraphCycleError(path)",
    ),
    Mutant(
        "assert_dag",
        "false_alarm",
        f"""
{ASSERT}
    seen, stack = set(), [root]
    while stack:
        node = stack.pop()
        if node in seen:
            raise GraphCycleError(find_cycle(root) or [node, node])
        seen.add(node)
        stack += [one for one in node.inputs if one is not None]
""",
    ),
    Mutant("recurrent", "not_it", 'BUG = ("op", "mul")'),
    Mutant("recurrent", "form", 'BUG = ("op", "store_")'),
    Mutant("recurrent", "form", 'BUG = "store"'),
    Mutant(
        "recurrent",
        "still_cyclic",
        "def store_(self, other):\n    self.value = other.value\n"
        "    self.node.op, self.node.inputs = 'store', (other.node,)\n"
        f"    self.node.saved = ()\n{STORE}",
    ),
    Mutant(
        "recurrent",
        "cut",
        "def store_(self, other):\n    self.value = other.value\n"
        f"    self.node = Node('leaf', saved=(other.value,))\n{STORE}",
    ),
    Mutant(
        "recurrent",
        "value",
        "def store_(self, other):\n    self.value = other.value\n"
        f"    self.node = Node('store', (self.node,))\n{STORE}",
    ),
    Mutant(
        "recurrent",
        "value",
        "def store_(self, other):\n    self.value = other.value\n"
        f"    self.node = Node('store', (self.node, other.node))\n{STORE}",
    ),
]  # fmt: skip
