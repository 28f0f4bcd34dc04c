"""Wrong solutions of lesson 09 that people really write."""

import re
from pathlib import Path

from minigrad.course.mutants import Mutant

SOLUTION = (Path(__file__).parents[2] / "solutions" / "09_adam.py").read_text(encoding="utf-8")


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])


def changed(name: str, *changes: tuple[str, str]) -> str:
    """Return the solution's function with some of its text replaced."""
    match = re.search(rf"^def {name}\(.*?(?=^\S|\Z)", SOLUTION, re.MULTILINE | re.DOTALL)
    assert match is not None
    text = match.group()
    for old, new in changes:
        assert old in text, f"{name}: {old}"
        text = text.replace(old, new)
    return text


AVERAGE = "corrected_average(values, beta)"
LOOP = ("m, averages = 0.0, []", "for t, value in enumerate(values, 1):")
ROUND = ("    m = beta * m + (1 - beta) * value",)
END = ("return np.array(averages)",)
CORRECT = "def correct(s, g):\n    {}\n    {}\n\n\nSTAGES[3] = correct"
ALIASED = """def correct(s, g):
    s["first"], s["second"] = s["m"], s["v"]
    s["first"] /= 1 - s["beta1"] ** s["t"]
    s["second"] /= 1 - s["beta2"] ** s["t"]


"""

MUTANTS = [
    Mutant(
        "corrected_average",
        "uncorrected",
        function(AVERAGE, *LOOP, *ROUND, "    averages.append(m)", *END),
    ),
    Mutant(
        "corrected_average",
        "swapped",
        changed(
            "corrected_average", ("beta * m + (1 - beta) * value", "(1 - beta) * m + beta * value")
        ),
    ),
    Mutant(
        "corrected_average",
        "sum",
        changed("corrected_average", ("(1 - beta) * value", "value")),
    ),
    Mutant(
        "corrected_average",
        "fed_back",
        function(
            AVERAGE, *LOOP, *ROUND, "    m = m / (1 - beta**t)", "    averages.append(m)", *END
        ),
    ),
    Mutant(
        "corrected_average",
        "early",
        changed("corrected_average", ("enumerate(values, 1)", "enumerate(values)")),
    ),
    Mutant(
        "corrected_average",
        "late",
        changed("corrected_average", ("beta**t", "beta ** (t + 1)")),
    ),
    Mutant(
        "corrected_average",
        "last_only",
        changed("corrected_average", ("np.array(averages)", "averages[-1]")),
    ),
    Mutant(
        "corrected_average",
        "from_first",
        changed(
            "corrected_average",
            ("m, averages = 0.0", "m, averages = values[0]"),
            (" / (1 - beta**t)", ""),
        ),
    ),
    Mutant(
        "corrected_average",
        "plain_mean",
        function(AVERAGE, "return np.cumsum(values) / np.arange(1, len(values) + 1)"),
    ),
    Mutant(
        "adam_step",
        "no_correction",
        changed("adam_step", ("m / (1 - beta1**t), v / (1 - beta2**t)", "m, v")),
    ),
    Mutant(
        "adam_step",
        "eps_inside",
        changed("adam_step", ("np.sqrt(second) + eps", "np.sqrt(second + eps)")),
    ),
    Mutant("adam_step", "abs_square", changed("adam_step", ("g * g", "abs(g)"))),
    Mutant("adam_step", "no_eps", changed("adam_step", (" + eps)", ")"))),
    Mutant(
        "adam_step",
        "eps_before",
        changed(
            "adam_step",
            ("m / (1 - beta1**t), v / (1 - beta2**t)", "m / (1 - beta1**t), v"),
            ("(np.sqrt(second) + eps)", "((np.sqrt(second) + eps) / np.sqrt(1 - beta2**t))"),
        ),
    ),
    Mutant(
        "adam_step",
        "one_corrected",
        changed("adam_step", ("v / (1 - beta2**t)", "v")),
    ),
    Mutant(
        "adam_step",
        "stale_t",
        changed(
            "adam_step",
            ('state.get("step", 0) + 1', 'max(state.get("step", 0), 1)'),
            ('"step": t', '"step": state.get("step", 0) + 1'),
        ),
    ),
    Mutant(
        "adam_step",
        "corrected_state",
        changed(
            "adam_step",
            (
                '"first_moment": m, "second_moment": v',
                '"first_moment": first, "second_moment": second',
            ),
        ),
    ),
    Mutant(
        "adam_step",
        "dtype",
        changed("adam_step", ("np.zeros_like(p)", "np.zeros(p.shape)")),
    ),
    Mutant(
        "adam_step",
        "changed_input",
        changed(
            "adam_step", ("new_p = p - learning_rate", "new_p = p\n    new_p -= learning_rate")
        ),
    ),
    Mutant(
        "step_all",
        "shared_t",
        changed(
            "step_all",
            (
                "state = states.get(name, {})",
                't = max((one["step"] for one in states.values()), default=0)\n'
                "        zero = np.zeros_like(p)\n"
                '        state = {"first_moment": zero, "second_moment": zero}\n'
                '        state = {**state, **states.get(name, {}), "step": t}',
            ),
        ),
    ),
    Mutant(
        "step_all",
        "none_is_zero",
        changed("step_all", ("continue", "g = np.zeros_like(p)")),
    ),
    Mutant(
        "step_all",
        "zero_is_none",
        changed("step_all", ("if g is None", "if g is None or not g.any()")),
    ),
    Mutant("step_all", "raised", changed("step_all", ("            continue", "            pass"))),
    Mutant(
        "step_all",
        "changed_input",
        changed("step_all", ("dict(parameters), dict(states)", "parameters, states")),
    ),
    Mutant(
        "step_all",
        "state_lost",
        changed("step_all", ("dict(parameters), dict(states)", "dict(parameters), {}")),
    ),
    Mutant(
        "step_all",
        "dropped",
        changed("step_all", ("dict(parameters), dict(states)", "{}, {}")),
    ),
    Mutant(
        "step_all",
        "forgets",
        changed("step_all", ("states.get(name, {})", "{}")),
    ),
    Mutant(
        "step_all",
        "default_betas",
        changed("step_all", ("learning_rate, betas, eps)\n", "learning_rate)\n")),
    ),
    Mutant(
        "step_all",
        "no_state",
        changed("step_all", ("if g is None", "if g is None or name not in states")),
    ),
    Mutant(
        "adamw_step",
        "l2",
        function(
            "adamw_step(p, g, state, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8, "
            "weight_decay=0.01)",
            "return adam_step(p, g + weight_decay * p, state, learning_rate, betas, eps)",
        ),
    ),
    Mutant(
        "adamw_step",
        "no_rate",
        changed("adamw_step", ("1 - learning_rate * weight_decay", "1 - weight_decay")),
    ),
    Mutant(
        "adamw_step",
        "after",
        changed(
            "adamw_step",
            (
                "return adam_step(p * (1 - learning_rate * weight_decay), g,",
                "p, state = adam_step(p, g,",
            ),
            (
                "betas, eps)\n",
                "betas, eps)\n    return p * (1 - learning_rate * weight_decay), state\n",
            ),
        ),
    ),
    Mutant(
        "adamw_step",
        "grows",
        changed(
            "adamw_step", ("1 - learning_rate * weight_decay", "1 + learning_rate * weight_decay")
        ),
    ),
    Mutant(
        "adamw_step",
        "both",
        changed("adamw_step", ("weight_decay), g,", "weight_decay), g + weight_decay * p,")),
    ),
    Mutant(
        "adamw_step",
        "no_decay",
        changed("adamw_step", ("p * (1 - learning_rate * weight_decay)", "p")),
    ),
    Mutant(
        "adamw_step",
        "coupled",
        changed(
            "adamw_step",
            (
                "return adam_step(p * (1 - learning_rate * weight_decay), g, state,",
                "_, kept = adam_step(p, g + weight_decay * p, state, 0, betas)\n"
                "    return adam_step(p * (1 - learning_rate * weight_decay), g, state,",
            ),
            ("betas, eps)\n", "betas, eps)[0], kept\n"),
        ),
    ),
    Mutant(
        "adamw_step",
        "defaults",
        changed("adamw_step", ("state, learning_rate, betas, eps)", "state)")),
    ),
    Mutant("warmup_cosine", "from_zero", changed("warmup_cosine", ("peak * (t + 1)", "peak * t"))),
    Mutant(
        "warmup_cosine",
        "whole",
        changed("warmup_cosine", ("(t - warmup) / (steps - warmup)", "t / steps")),
    ),
    Mutant("warmup_cosine", "shifted", changed("warmup_cosine", ("(t - warmup) /", "t /"))),
    Mutant(
        "warmup_cosine",
        "no_minimum",
        changed("warmup_cosine", ("minimum + (peak - minimum)", "peak")),
    ),
    Mutant("warmup_cosine", "on_top", changed("warmup_cosine", ("(peak - minimum)", "peak"))),
    Mutant(
        "warmup_cosine",
        "half",
        changed("warmup_cosine", ("0.5 * (1 + np.cos(np.pi * done))", "np.cos(np.pi / 2 * done)")),
    ),
    Mutant(
        "warmup_cosine",
        "rises_again",
        changed("warmup_cosine", ("if t >= steps:\n        return minimum\n    ", "")),
    ),
    Mutant(
        "warmup_cosine",
        "line",
        changed("warmup_cosine", ("0.5 * (1 + np.cos(np.pi * done))", "(1 - done)")),
    ),
    Mutant(
        "warmup_cosine",
        "from_minimum",
        changed(
            "warmup_cosine",
            ("return peak * (t + 1)", "return minimum + (peak - minimum) * (t + 1)"),
        ),
    ),
    Mutant(
        "warmup_cosine",
        "raised",
        changed("warmup_cosine", ("if t < warmup", "if t < max(warmup, 1)")),
    ),
    Mutant("lean_adam", "not_it", 'BUG = ("stage", 2)'),
    Mutant("lean_adam", "not_it", 'BUG = ("stage", 4)'),
    Mutant("lean_adam", "named", 'BUG = ("stage", "correct")'),
    Mutant("lean_adam", "form", "BUG = 3"),
    Mutant("lean_adam", "still_both", f"{ALIASED}STAGES[3] = correct"),
    Mutant(
        "lean_adam",
        "still_second",
        ALIASED.replace(
            's["first"], s["second"] = s["m"]', 's["first"], s["second"] = s["m"].copy()'
        )
        + "STAGES[3] = correct",
    ),
    Mutant(
        "lean_adam",
        "uncorrected",
        CORRECT.format('s["first"] = s["m"].copy()', 's["second"] = s["v"].copy()'),
    ),
    Mutant(
        "lean_adam",
        "compensated",
        ALIASED
        + """def careful(s, g):
    m, v = s["m"].copy(), s["v"].copy()
    correct(s, g)
    s["first"], s["second"] = s["m"].copy(), s["v"].copy()
    s["m"], s["v"] = m, v


def lean_adam(p, gradients, learning_rate=0.1, betas=(0.9, 0.999), eps=1e-8):
    s = {"p": p.copy(), "m": np.zeros_like(p), "v": np.zeros_like(p), "t": 0, "eps": eps,
         "learning_rate": learning_rate, "beta1": betas[0], "beta2": betas[1]}
    path = []
    for g in gradients:
        for stage in [count, average_gradient, average_square, careful, move]:
            stage(s, g)
        path.append(s["p"].copy())
    return np.array(path)


STAGES[3] = correct""",
    ),
]
