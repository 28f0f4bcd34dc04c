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
    ("cache_later", model("return super().forward(tokens)")),
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
    ("no_model", calls(f"return {ORIGINAL}.forward")),
    ("changed_input", calls("tokens.sort()", f"return {ORIGINAL}")),
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
MUTANTS = [Mutant("write_text", key, code) for key, code in TEXT]
