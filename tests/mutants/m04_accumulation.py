"""Wrong solutions of lesson 04 that people really write."""

from minigrad.course.mutants import Mutant


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])


def manager(head: str, *body: str) -> str:
    """Return the text of a GradManager with one method of its own."""
    lines = [f"    def {head}:", *(f"        {line}" for line in body)]
    return "\n".join(["class GradManager(GradManager):", *lines])


def walk(*body: str, grads: str = "{loss.node: np.ones_like(loss.data)}") -> str:
    """Return a GradManager whose backward ends in its own way."""
    return manager(
        "backward(self, loss)",
        "if self.tape is None:",
        "    raise RuntimeError('this GradManager does not record')",
        "if loss.data.size != 1:",
        "    raise ValueError('a loss is one number')",
        f"grads = {grads}",
        *body,
    )


SUM = "unbroadcast(g, shape)"
ADD = "accumulate(grads, key, g)"
TRAIN = "train_both(critic, actor, xs, ys, learning_rate)"
BACK = (
    "for node in reversed(self.tape):",
    "    if node in grads:",
    "        found = RULES[node.op](grads[node], *node.saved)",
    "        for source, g in zip(node.inputs, found):",
    "            accumulate(grads, source, g)",
)
WRITE = (
    "for box in self.attached:",
    "    if box.node in grads:",
    "        g = grads[box.node]",
    "        box.grad = g if box.grad is None else box.grad + g",
    "    elif self.keep_empty_grad and box.grad is None:",
    "        box.grad = np.zeros_like(box.data)",
)


def training(*round_lines: str) -> str:
    """Return train_both with the lines of a round."""
    return function(
        TRAIN,
        "critic, actor = Box(critic), Box(actor)",
        "critic.grad, actor.grad = 0.0, 0.0",
        "log = []",
        "for x, y in zip(xs, ys):",
        *(f"    {line}" for line in round_lines),
        "return np.array(log).reshape(len(log), 2)",
    )


CRITIC = (
    "critic_backward(critic, x, y)",
    "by_critic = critic.grad",
    "critic.data = critic.data - learning_rate * critic.grad",
)
ACTOR = (
    "actor_backward(actor, critic)",
    "by_actor = actor.grad",
    "actor.data = actor.data - learning_rate * actor.grad",
)
LOG = "log.append((by_critic, by_actor))"
CLEAR = "critic.grad = actor.grad = 0.0"

MUTANTS = [
    Mutant(
        "unbroadcast",
        "raised",
        function(
            SUM,
            "new = g.ndim - len(shape)",
            "axes = (*range(new), *(a for a, n in enumerate(shape) if n == 1 and a >= new))",
            "return g.sum(axis=axes, keepdims=True).reshape(shape)",
        ),
    ),
    Mutant("accumulate", "overwrites", function(ADD, "grads[key] = g.copy()")),
    Mutant(
        "accumulate",
        "wrote_to_g",
        function(ADD, "if key in grads:", "    grads[key] += g", "else:", "    grads[key] = g"),
    ),
    Mutant(
        "accumulate",
        "shared",
        function(
            ADD,
            "if key in grads:",
            "    grads[key] = grads[key] + g",
            "else:",
            "    grads[key] = np.asarray(g)",
        ),
    ),
    Mutant(
        "accumulate",
        "new_array",
        function(ADD, "grads[key] = grads.get(key, 0) + g"),
    ),
    Mutant(
        "accumulate",
        "doubled",
        function(ADD, "grads.setdefault(key, g.copy())", "grads[key] += g"),
    ),
    Mutant(
        "accumulate",
        "not_stored",
        function(ADD, "if key in grads:", "    return grads[key] + g", "return g.copy()"),
    ),
    Mutant(
        "accumulate",
        "not_stored",
        function(ADD, "if key in grads:", "    grads[key] += g"),
    ),
    Mutant(  # g * 1.0 is no array where g has no axes
        "accumulate",
        "number",
        function(
            ADD, "if key in grads:", "    grads[key] += g", "else:", "    grads[key] = g * 1.0"
        ),
    ),
    Mutant(
        "accumulate",
        "raised",
        function(ADD, "grads.setdefault(key, np.zeros(len(g)))", "grads[key] += g"),
    ),
    Mutant(
        "accumulate",
        "value",
        function(
            ADD,
            "if key and key in grads:",
            "    grads[key] += g",
            "else:",
            "    grads[key] = g.copy()",
        ),
    ),
    Mutant(
        "GradManager",
        "twice",
        manager(
            "attach(self, boxes)",
            "self.attached += [box for box in boxes if box not in self.attached]",
        ),
    ),
    Mutant(
        "GradManager",
        "no_grad",
        manager("attach(self, boxes)", "self.attached = list(dict.fromkeys(boxes))"),
    ),
    Mutant(
        "GradManager",
        "tape_lost",
        manager(
            "record(self)",
            "was, self.tape = self.tape, []",
            "if was is not None:",
            "    raise RuntimeError('this GradManager records already')",
            "TAPES.append(self.tape)",
        ),
    ),
    Mutant(
        "GradManager",
        "still_saved",
        manager(
            "release(self)",
            "if self.tape is not None:",
            "    stop(self.tape)",
            "    self.tape = None",
        ),
    ),
    Mutant(
        "GradManager",
        "from_the_end",
        walk(
            *BACK,
            *WRITE,
            "self.release()",
            grads="{self.tape[-1] if self.tape else loss.node: np.ones_like(loss.data)}",
        ),
    ),
    Mutant(
        "GradManager",
        "overwrites",
        walk(
            *BACK,
            "for box in self.attached:",
            "    box.grad = grads.get(box.node)",
            "self.release()",
        ),
    ),
    Mutant(
        "GradManager",
        "too_early",
        walk(
            "waiting = [loss.node]",
            "while waiting:",
            "    node = waiting.pop(0)",
            "    if node in self.tape and node in grads:",
            "        found = RULES[node.op](grads[node], *node.saved)",
            "        for source, g in zip(node.inputs, found):",
            "            if source not in grads:",
            "                waiting.append(source)",
            "            accumulate(grads, source, g)",
            "for box in self.attached:",
            "    if box.node in grads:",
            "        box.grad = grads[box.node]",
            "self.release()",
        ),
    ),
    Mutant(  # Ctrl-C is no Exception
        "GradManager",
        "not_released",
        walk(
            "try:",
            *(f"    {line}" for line in BACK),
            "except Exception:",
            "    self.release()",
            "    raise",
            *WRITE,
            "self.release()",
        ).replace("raise ValueError", "self.release(); raise ValueError"),
    ),
    Mutant(
        "GradManager",
        "wiped",
        walk(
            *BACK,
            "for box in self.attached:",
            "    if box.node in grads:",
            "        g = grads[box.node]",
            "        box.grad = g if box.grad is None else box.grad + g",
            "    else:",
            "        box.grad = np.zeros_like(box.data) if self.keep_empty_grad else None",
            "self.release()",
        ),
    ),
    Mutant(
        "GradManager",
        "empty_zeros",
        walk(
            *BACK,
            "for box in self.attached:",
            "    if box.grad is None:",
            "        box.grad = np.zeros_like(box.data)",
            "    if box.node in grads:",
            "        box.grad = box.grad + grads[box.node]",
            "self.release()",
        ),
    ),
    Mutant("train_both", "untouched", "BUG = (None, None)"),
    Mutant("train_both", "not_it", 'BUG = ("actor", 1)'),
    Mutant("train_both", "not_then", 'BUG = ("critic", 0)'),
    Mutant(
        "train_both",
        "mixed",
        training(*CRITIC, "critic.grad = 0.0", *ACTOR, "actor.grad = 0.0", LOG),
    ),
    Mutant("train_both", "never", training(*CRITIC, *ACTOR, LOG)),
    Mutant(
        "train_both",
        "no_step",
        training(*CRITIC, ACTOR[0], "critic.grad = actor.grad = 0.0", *ACTOR[1:], LOG),
    ),
    Mutant("train_both", "actor_adds_up", training("critic.grad = 0.0", *CRITIC, *ACTOR, LOG)),
    Mutant(
        "train_both",
        "both_first",
        training(CLEAR, CRITIC[0], ACTOR[0], *CRITIC[1:], *ACTOR[1:], LOG),
    ),
    Mutant("train_both", "actor_first", training(CLEAR, *ACTOR, CLEAR, *CRITIC, LOG)),
    Mutant(
        "train_both",
        "logged",
        training(
            CLEAR, *CRITIC, "critic.grad = 0.0", *ACTOR, "log.append((critic.grad, actor.grad))"
        ),
    ),
]
