"""Wrong solutions of lesson 17 that are changes of the solution."""

from minigrad.course.mutants import Mutant


def calls(*body: str) -> str:
    """Return the text of a write_text around the right one, which is `right` there."""
    head = ("right = write_text", "def write_text(tokens, n_kinds, steps, seed, record):")
    return "\n".join([*head, *(f"    {line}" for line in body)])


def model(*body: str) -> str:
    """Return the text of a Transformer with another forward; `scores` are the right ones."""
    head = ("class Transformer(Transformer):", "    def forward(self, tokens, cache=None):")
    return "\n".join([*head, *(f"        {line}" for line in body)])


SCORES = "scores = super().forward(tokens, cache)"
ORIGINAL = "right(tokens, n_kinds, steps, seed, record)"
TEXT = [
    ("future", model(SCORES, "return scores + 0.01 * scores.mean(axis=1, keepdims=True)")),
    ("future", model("y = super().forward(tokens, cache)", "return y + y.sum() * 1e-3")),
    ("other_row", model(SCORES, "return scores - scores.mean(axis=0, keepdims=True)")),
    (
        "blind",
        model(SCORES, "first = scores[:, :1] * 0.0",
              "return mg.concatenate([first, scores[:, :-1]], axis=1)"),
    ),
    ("shape", model(SCORES, "return scores if self.training else scores[:, -1]")),
    ("shape", model(SCORES, "return scores if self.training else scores.permute(0, 2, 1)")),
    ("cache_empty", model("return super().forward(tokens)")),
    (
        "cache_repeats",
        model(SCORES, "if cache is not None:",
              "    cache['late'], scores = scores, cache.get('late', scores)", "return scores"),
    ),
    (
        "cache_rounded",
        model(SCORES, "is_new = not cache or cache['before'] == 1",
              "return scores if is_new else scores + 0.002"),
    ),
    (
        "cache_later",
        model("if cache is not None:", "    cache['before'] = 0", SCORES, "return scores"),
    ),
    (
        "cache_shared",
        model("cache = None if cache is None else KEPT", SCORES, "return scores") + "\nKEPT = {}",
    ),
    (
        "by_chance",
        model(SCORES, "return scores + 0.01 * mg.randn(scores.shape)"),
    ),
    ("no_better", model(SCORES, "return mg.softmax(scores, axis=-1)")),
    (
        "no_better",
        "class Block(Block):\n    def forward(self, x, cache=None):\n"
        "        return x + self.mlp(x)",
    ),
    ("length", model(SCORES, "return scores * (1 + 0.01 * tokens.shape[1])")),
    (
        "other_training",
        "SHIFT = [0.0]\n" + model(SCORES, "return scores + SHIFT[0]") + "\n"
        + calls("SHIFT[0] = seed / 100", f"return {ORIGINAL}"),
    ),
    (
        "cache_kept",
        model("cache = None if cache is None else KEPT.setdefault(id(cache), {})", SCORES,
              "return scores") + "\nKEPT = {}",
    ),
    ("cache_first", model(SCORES, "return scores if cache is None else scores * 1.01")),
    (
        "cache_long",  # the last of 32 tokens alone sees another row than it should
        model(SCORES, "late = cache and cache['before'] == 32",
              "return scores * 1.01 if late else scores"),
    ),
    (
        "future",  # in whole rows alone
        model(SCORES, "whole = tokens.shape[1] == 32",
              "return scores + 0.01 * scores[:, -1:] if whole else scores"),
    ),
    ("no_better", calls("tokens = tokens.astype(np.uint8).astype(int)", f"return {ORIGINAL}")),
    (
        "no_better",  # it guesses the token after the next
        calls("tokens = np.concatenate([tokens[::2], tokens[1::2]])", f"return {ORIGINAL}"),
    ),
    ("shape", calls("n_kinds = int(tokens.max()) + 1", f"return {ORIGINAL}")),
    ("same_for_all", calls("seed %= 2", f"return {ORIGINAL}")),
    ("steps", calls("steps = max(steps, 3)", f"return {ORIGINAL}")),
    (
        "record_late",
        calls("told = []", "model = right(tokens, n_kinds, steps, seed, told.append)",
              "for loss in told:", "    record(loss)", "return model"),
    ),
    (
        "other_tokens",
        calls("told = iter(range(99))", "new = lambda loss: record(2.5 * 0.99 ** next(told))",
              "return right(tokens, n_kinds, steps, seed, new)"),
    ),
    ("no_model", calls(f"return {ORIGINAL}.forward")),
    ("changed_input", calls("tokens.sort()", f"return {ORIGINAL}")),
    ("changed_input", calls("tokens -= tokens.min()", f"return {ORIGINAL}")),
    ("no_better", calls("tokens = tokens - tokens.min()", f"return {ORIGINAL}")),
    (
        "not_repeated",
        calls("seed += int(np.random.default_rng().integers(9**9))", f"return {ORIGINAL}"),
    ),
    ("same_for_all", calls("seed = 0", f"return {ORIGINAL}")),
    ("steps", calls("steps += 1", f"return {ORIGINAL}")),
    ("not_recorded", calls("return right(tokens, n_kinds, steps, seed, lambda loss: None)")),
    (
        "record_kind",
        calls(
            "new = lambda loss: record(mg.variable(loss))",
            "return right(tokens, n_kinds, steps, seed, new)",
        ),
    ),
    (
        "nan",
        calls(
            "new = lambda loss: record(loss * float('inf'))",
            "return right(tokens, n_kinds, steps, seed, new)",
        ),
    ),
    (
        "grows",
        calls("p = mg.variable(1.0, requires_grad=True)", "held = []", "def new(loss):",
              "    held.append(p * loss)", "    record(loss)",
              "return right(tokens, n_kinds, steps, seed, new)"),
    ),
]  # fmt: skip
QUICK = """import copy
def balance_pole(env, steps, seed, record):
    mg.manual_seed(seed)
    random, rows, returns = np.random.default_rng(seed), [], [0.0]
    n_seen, n_actions = env.observation_space.shape[0], env.action_space.n
    net = mg.nn.Sequential(
        mg.nn.Linear(n_seen, 32), mg.nn.ReLU(), mg.nn.Linear(32, n_actions)
    )
    target = {target}
    optimizer = mg.optim.Adam(net, learning_rate=3e-3)
    seen, _ = env.reset({reset})
    for step in range(steps):
        action = int(random.integers(n_actions))
        new, reward, ended, cut_off, _ = env.step(action)
        rows.append((seen, action, reward, new, float(not ended)))
        seen, returns[-1] = new, returns[-1] + reward
        if ended or cut_off:
            record(float(np.mean(returns[-20:])))
            returns.append(0.0)
            seen, _ = env.reset()
        if step >= 50 and step % 4 == 0:
            some = [rows[i] for i in random.integers(0, len(rows), 32)]
            here, did, got, there, on = (mg.variable(np.array(x)) for x in zip(*some))
            {ask}
            wanted = best * on.to("float32") * 0.99 + got.to("float32")
            scores = mg.gather(net(here), did[:, None], 1).squeeze(1)
            mg.huber(scores, wanted).backward()
            optimizer.step()
            optimizer.zero_grad()
        if step % 500 == 0:
            target = {target}
    return lambda seen: int(net.valid()(mg.variable(seen[None])).numpy().argmax())
"""
STILL, MOVED = (
    "with mg.no_grad(): best = target(there).max(axis=1)",
    "best = target(there).max(axis=1)",
)
PARTLY = "mg.nn.Sequential(net.valid()[0], mg.nn.ReLU(), net.clone()[2])"
POLE = [  # the key, the target, how it is asked, the argument of the first reset
    ("target_shares", "net", STILL, "seed=seed"),
    ("target_shares", "net", MOVED, "seed=seed"),
    ("target_shares", "net.valid()", STILL, "seed=seed"),
    ("target_shares", "copy.copy(net)", STILL, "seed=seed"),
    ("target_shares", PARTLY, STILL, "seed=seed"),
    ("target_gradients", "copy.deepcopy(net)", MOVED, "seed=seed"),
    ("reset_seed", "net.clone()", STILL, ""),
    ("explores", "net.clone()", MOVED, "seed=seed"),  # a clone takes none: nothing to name
    ("explores", "copy.deepcopy(net)", STILL, "seed=seed"),
]
MUTANTS = [Mutant("write_text", key, code) for key, code in TEXT]
MUTANTS += [
    Mutant("balance_pole", key, QUICK.format(target=target, ask=ask, reset=reset))
    for key, target, ask, reset in POLE
]
