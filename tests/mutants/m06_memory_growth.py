"""Wrong solutions of lesson 06 that people really write."""

from pathlib import Path

from minigrad.course.mutants import Mutant

SOLUTION = (Path(__file__).parents[2] / "solutions" / "06_memory_growth.py").read_text("utf-8")


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])


def changed(head: str, *changes: tuple[str, str]) -> str:
    """Return the solution's text from `head` to the next definition, with pieces replaced."""
    start = SOLUTION.index(head)
    ends = [SOLUTION.find(mark, start + 1) for mark in ("\n\n\nclass ", "\n\n\ndef ", "\n\n\n# ")]
    text = SOLUTION[start : min([end for end in ends if end > 0], default=None)]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


BUMP = "bump_version(x)"
SAVED = "check_saved(ctx)"
RAISE = (
    "        raise SavedValueModifiedError("
    "f'{ctx.op} at {ctx.line}: saved at {version}, now {value.version}')"
)
PAIRS = "for value, version in zip(ctx.saved or (), ctx.versions):"
VALID = "valid_copy(model)"
EXIT = "mode.recording = self.before.pop()"
PLAIN_CALL = """\
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with no_grad():
                return function(*args, **kwargs)

        return wrapper
"""
CALL_BODY = changed("        if inspect.isgeneratorfunction").partition("        ### END")[0]

WRAPPER = """\
class Shown:
    def __init__(self, model):
        self.model = model

    def parameters(self):
        return self.model.parameters()

    def __call__(self, x):
        with mg.no_grad():
            {}
            y = self.model(x)
            {}
            return y


def valid_copy(model):
    {}
    return Shown(model)
"""
CHAIN = ("0.1 * float(chosen.mean())", "0.1 * chosen.mean()")
LIST = ("losses.append(float(last))", "losses.append(last)")
CYCLE = (
    "        self.step, self.loss = step, loss\n",
    "        self.step, self.loss = step, loss\n        self.show = self.show\n",
)

MUTANTS = [
    Mutant("bump_version", "no_version", function(BUMP, "x.version += 1")),
    Mutant(
        "bump_version",
        "no_version",
        function(BUMP, "if isinstance(x, View):", "    x = x.base", "x.version += 1"),
    ),
    Mutant(
        "bump_version",
        "unchanged",
        function(BUMP, "if not isinstance(x, View):", "    x.version += 1"),
    ),
    Mutant(
        "bump_version",
        "unchanged",
        function(BUMP, "x = type(x)(x.data, x.version + 1)"),
    ),
    Mutant(  # who writes into no values has written, too
        "bump_version",
        "unchanged",
        function(
            BUMP,
            "is_empty = x.data.size == 0",
            "while isinstance(x, View):",
            "    x = x.base",
            "x.version += not is_empty",
        ),
    ),
    Mutant(
        "bump_version",
        "kept",
        "ROOTS = {}\n\n\n"
        + function(
            BUMP,
            "if id(x) not in ROOTS:",
            "    root = x",
            "    while isinstance(root, View):",
            "        root = root.base",
            "    ROOTS[id(x)] = root",
            "ROOTS[id(x)].version += 1",
        ),
    ),
    Mutant(
        "bump_version",
        "other_number",
        function(
            BUMP,
            "while isinstance(x, View):",
            "    x = x.base",
            "x.version = (x.version + 1) % 256",
        ),
    ),
    Mutant(
        "bump_version",
        "wrote",
        function(
            BUMP, "while isinstance(x, View):", "    x = x.base", "x.data += 1", "x.version += 1"
        ),
    ),
    Mutant(
        "bump_version",
        "count",
        function(BUMP, "while isinstance(x, View):", "    x = x.base", "x.version = 1"),
    ),
    Mutant(
        "bump_version",
        "replaced",
        function(
            BUMP,
            "shown = x",
            "while isinstance(x, View):",
            "    x = x.base",
            "x.version += 1",
            "if shown is not x:",
            "    shown.base = x",
        ),
    ),
    Mutant(
        "bump_version",
        "returned",
        function(
            BUMP, "while isinstance(x, View):", "    x = x.base", "x.version += 1", "return x"
        ),
    ),
    Mutant(
        "check_saved",
        "false_alarm",
        function(SAVED, PAIRS, "    if value.version > 0:", RAISE),
    ),
    Mutant(  # two ints may be equal and not the same object
        "check_saved",
        "false_alarm",
        function(SAVED, PAIRS, "    if value.version is not version:", RAISE),
    ),
    Mutant(  # one Storage may be saved twice, with a write between
        "check_saved",
        "overlooked",
        function(
            SAVED,
            "for value, version in dict(zip(ctx.saved or (), ctx.versions)).items():",
            "    if value.version != version:",
            RAISE,
        ),
    ),
    Mutant(
        "check_saved",
        "text",
        function(
            SAVED,
            PAIRS,
            "    if value.version != version:",
            "        version = ctx.versions[ctx.saved.index(value)]",
            RAISE,
        ),
    ),
    Mutant(
        "check_saved",
        "overlooked",
        "FINE = set()\n\n\n"
        + function(
            SAVED,
            PAIRS,
            "    if ctx not in FINE and value.version != version:",
            RAISE,
            "FINE.add(ctx)",
        ),
    ),
    Mutant(
        "check_saved",
        "text",
        function(
            SAVED,
            "line = ctx.line.split('/')[-1]",
            PAIRS,
            "    if value.version != version:",
            RAISE.replace("ctx.line", "line"),
        ),
    ),
    Mutant(  # the versions are those of before, at other values
        "check_saved",
        "overlooked",
        function(
            SAVED,
            "if sorted(x.version for x in ctx.saved or ()) == sorted(ctx.versions):",
            "    return",
            PAIRS,
            "    if value.version != version:",
            RAISE,
        ),
    ),
    Mutant(
        "check_saved",
        "changed",
        function(
            SAVED,
            "known, ctx.versions = ctx.versions, tuple(x.version for x in ctx.saved or ())",
            "for value, version in zip(ctx.saved or (), known):",
            "    if value.version != version:",
            RAISE,
        ),
    ),
    Mutant(
        "check_saved",
        "false_alarm",
        function(
            SAVED,
            "if ctx.saved is None:",
            "    raise SavedValueModifiedError('the values are gone')",
            PAIRS,
            "    if value.version != version:",
            RAISE,
        ),
    ),
    Mutant(
        "check_saved",
        "wrong_error",
        function(
            SAVED,
            PAIRS,
            "    if value.version != version:",
            "        raise RuntimeError(f'{ctx.op} at {ctx.line}: {version} {value.version}')",
        ),
    ),
    Mutant(
        "check_saved",
        "other_version",
        function(SAVED, PAIRS, "    if value.version > version:", RAISE),
    ),
    Mutant(
        "check_saved",
        "did_not_raise",
        function(
            SAVED,
            PAIRS,
            "    if value.version != version:",
            "        return SavedValueModifiedError(ctx.op)",
        ),
    ),
    Mutant(
        "check_saved",
        "returned",
        function(SAVED, PAIRS, "    if value.version != version:", RAISE, "return True"),
    ),
    Mutant(
        "check_saved",
        "overlooked",
        function(
            SAVED,
            PAIRS,
            "    if value.version != version:",
            RAISE,
            "    return",
        ),
    ),
    Mutant(
        "check_saved",
        "view",
        function(
            SAVED, PAIRS, "    if not isinstance(value, View) and value.version != version:", RAISE
        ),
    ),
    Mutant(
        "check_saved",
        "text",
        function(
            SAVED,
            PAIRS,
            "    if value.version != version:",
            "        raise SavedValueModifiedError(f'{ctx.op}: a saved value was written to')",
        ),
    ),
    Mutant("no_grad", "after", changed("class no_grad:", (EXIT, "mode.recording = True"))),
    Mutant(  # forgets what is thrown into it: the body is closed later, in the caller's mode
        "no_grad",
        "interrupted",
        changed(
            "class no_grad:",
            (
                "                    try:\n"
                "                        resume, value = running.send, (yield value)\n"
                "                    except BaseException as error:\n"
                "                        resume, value = running.throw, error\n",
                "                    value = yield value\n",
            ),
        ),
    ),
    Mutant(
        "no_grad",
        "nested_same",
        changed(
            "class no_grad:",
            ("self.before.append(mode.recording)", "self.before = mode.recording"),
            ("self.before.pop()", "self.before"),
        ),
    ),
    Mutant(  # the notes of one thread are found by another
        "no_grad",
        "threads",
        changed("class no_grad:", ("    def __init__(self):\n        self.before = []\n", ""))
        + "\n\n\nno_grad.before = []",
    ),
    Mutant(
        "no_grad",
        "threads",
        changed(
            "class no_grad:",
            (
                "            with no_grad():\n                return function(*args, **kwargs)",
                "            with self:\n                return function(*args, **kwargs)",
            ),
        ),
    ),
    Mutant(
        "no_grad",
        "swallowed",
        changed("class no_grad:", (EXIT, EXIT + "\n        return True")),
    ),
    Mutant(
        "no_grad",
        "name",
        changed(
            "class no_grad:", ("        @functools.wraps(function)\n        def", "        def")
        ),
    ),
    Mutant(
        "no_grad",
        "not_restored",
        changed(
            "class no_grad:",
            (
                "            with no_grad():\n                return function(*args, **kwargs)",
                "            self.__enter__()\n"
                "            try:\n"
                "                result = function(*args, **kwargs)\n"
                "            except Exception:\n"
                "                self.__exit__(None, None, None)\n"
                "                raise\n"
                "            self.__exit__(None, None, None)\n"
                "            return result",
            ),
        ),
    ),
    Mutant("no_grad", "generator_records", changed("class no_grad:", (CALL_BODY, PLAIN_CALL))),
    Mutant(
        "no_grad",
        "generator_leaks",
        changed(
            "class no_grad:",
            (
                CALL_BODY,
                PLAIN_CALL.replace("def wrapper", "def generator")
                .replace("return function(", "return (yield from function(")
                .replace("**kwargs)\n\n        return wrapper", "**kwargs))\n\n        MARK")
                .replace(
                    "        MARK\n",
                    "        if inspect.isgeneratorfunction(function):\n"
                    "            return generator\n\n" + PLAIN_CALL,
                ),
            ),
        ),
    ),
    Mutant("no_grad", "sent", changed("class no_grad:", ("resume(value)", "next(running)"))),
    Mutant(
        "no_grad",
        "not_ended",
        changed(
            "class no_grad:", ("return stop.value", "raise StopIteration(stop.value) from None")
        ),
    ),
    Mutant("valid_copy", "answer_used", function(VALID, "return model.valid()")),
    Mutant("valid_copy", "recorded", function(VALID, "return copy.copy(model).eval()")),
    Mutant(
        "valid_copy",
        "other_ids",
        function(
            VALID,
            "shown = copy.deepcopy(model).eval()",
            "shown.forward = mg.no_grad()(shown.forward)",
            "return shown",
        ),
    ),
    Mutant(
        "valid_copy",
        "frozen",
        function(
            VALID,
            "model.requires_grad_(False)",
            "shown = copy.copy(model).eval()",
            "shown.forward = mg.no_grad()(shown.forward)",
            "return shown",
        ),
    ),
    Mutant(
        "valid_copy",
        "unfrozen",
        WRAPPER.format(
            "self.model.requires_grad_(False)", "self.model.requires_grad_(True)", "pass"
        ),
    ),
    Mutant(  # an error of the model leaves it in evaluation mode
        "valid_copy",
        "training",
        WRAPPER.format(
            "was = [(m, m.training) for m in self.model.modules()]; self.model.eval()",
            "[setattr(m, 'training', mode) for m, mode in was]",
            "pass",
        ),
    ),
    Mutant(
        "valid_copy",
        "training_lost",
        WRAPPER.format("self.model.eval()", "self.model.train()", "pass"),
    ),
    Mutant(
        "valid_copy",
        "no_output",
        WRAPPER.replace("return y", "return None").format("pass", "pass", "pass"),
    ),
    Mutant(
        "valid_copy",
        "only_once",
        function(
            VALID,
            "shown = copy.copy(model).eval()",
            "shown.forward = mg.no_grad()(shown.forward)",
            "known = iter(list(shown.parameters()))",
            "shown.parameters = lambda: known",
            "return shown",
        ),
    ),
    Mutant(
        "valid_copy",
        "other_model",
        function(
            VALID,
            "global newest",
            "newest = copy.copy(model).eval()",
            "def shown(x):",
            "    with mg.no_grad():",
            "        return newest(x)",
            "shown.parameters = model.parameters",
            "return shown",
        ),
    ),
    Mutant("valid_copy", "value", WRAPPER.format("pass", "pass", "pass")),
    Mutant(
        "valid_copy",
        "mode",
        function(
            VALID,
            "shown = copy.copy(model).eval()",
            "forward = shown.forward",
            "def quiet(x):",
            "    mg.no_grad().__enter__()",
            "    return forward(x)",
            "shown.forward = quiet",
            "return shown",
        ),
    ),
    Mutant("fix_dqn_loop", "not_it", 'BUG = {"chain": "D", "list": "E", "cycle": "C"}'),
    Mutant("fix_dqn_loop", "value", changed("def fix_dqn_loop", ("step % 50 == 0", "step == 0"))),
    Mutant("fix_dqn_loop", "form", 'BUG = ("chain", "E")'),
    Mutant("fix_dqn_loop", "grows", changed("def fix_dqn_loop", CHAIN)),
    Mutant("fix_dqn_loop", "grows", changed("def fix_dqn_loop", LIST)),
    Mutant(  # as many nodes every 20 steps, and not in between
        "fix_dqn_loop",
        "grows",
        changed(
            "def fix_dqn_loop",
            (
                "mean_value = 0.9 * mean_value + 0.1 * float(chosen.mean())",
                "mean_value = 0.9 * mean_value + 0.1 * chosen.mean()\n"
                "        mean_value = mean_value.detach() if step % 4 == 3 else mean_value",
            ),
        ),
    ),
    Mutant(
        "fix_dqn_loop",
        "losses",
        changed("def fix_dqn_loop", ("for loss in losses]", "for loss in losses[-100:]]")),
    ),
    Mutant(
        "fix_dqn_loop",
        "started",
        changed(
            "def fix_dqn_loop",
            (
                "mean_value = 0.9 * mean_value + 0.1 * float(",
                "mean_value = mean_value if step else float(chosen.mean())\n"
                "        mean_value = 0.9 * mean_value + 0.1 * float(",
            ),
        ),
    ),
    Mutant("fix_dqn_loop", "cycle_left", changed("class Report:", CYCLE)),
    Mutant(
        "fix_dqn_loop",
        "answer_used",
        "import gc\n\n\n"
        + changed("class Report:", CYCLE)
        + "\n\n\n"
        + changed(
            "def fix_dqn_loop",
            ("loop.report(Report(step, loss))", "loop.report(Report(step, loss)); gc.collect()"),
        ),
    ),
    Mutant(
        "fix_dqn_loop",
        "value",
        changed("def fix_dqn_loop", ("0.9 * mean_value + 0.1 * float(", "float(")),
    ),
    Mutant(
        "fix_dqn_loop",
        "reports",
        changed("def fix_dqn_loop", ("        loop.report(Report(step, loss))\n", "")),
    ),
    Mutant(
        "fix_dqn_loop",
        "losses",
        changed(
            "def fix_dqn_loop",
            ("losses.append(float(last))", "losses.append(last.numpy())"),
            ("[float(loss) for loss in losses]", "losses"),
        ),
    ),
]
