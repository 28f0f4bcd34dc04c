"""Wrong solutions of lesson 07 that people really write."""

from minigrad.course.mutants import Mutant


def lines(indent: int, body: tuple[str, ...]) -> list[str]:
    """Return the lines of a body, indented."""
    return [" " * indent + line for line in body]


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *lines(4, body)])


def softplus(forward: tuple[str, ...], backward: tuple[str, ...]) -> str:
    """Return a Softplus with these bodies."""
    return klass("Softplus", "ctx, x", forward, backward)


def log_sum_exp(forward: tuple[str, ...], backward: tuple[str, ...]) -> str:
    """Return a LogSumExp with these bodies."""
    return klass("LogSumExp", "ctx, x, axis", forward, backward)


def step(forward: tuple[str, ...], backward: tuple[str, ...], declared: str = "True") -> str:
    """Return a StraightThrough with these bodies."""
    head = (f"pseudo_gradient = {declared}",)
    return klass("StraightThrough", "ctx, x", forward, backward, head)


def klass(
    name: str,
    arguments: str,
    forward: tuple[str, ...],
    backward: tuple[str, ...],
    head: tuple[str, ...] = (),
) -> str:
    """Return the text of a Function."""
    return "\n".join(
        [
            f"class {name}(mg.Function):",
            *lines(4, head),
            "    @staticmethod",
            f"    def forward({arguments}):",
            *lines(8, forward),
            "",
            "    @staticmethod",
            "    def backward(ctx, dy):",
            *lines(8, backward),
        ]
    )


STABLE = "mg.maximum(x, 0.0) + mg.log1p(mg.exp(-mg.abs(x)))"
KEEP_X = ("ctx.save_for_backward(x)", f"return {STABLE}")
TAKE_X = "(x,) = ctx.saved"
SLOPE = (TAKE_X, "return dy * mg.sigmoid(x)")

LSE = (
    "m = mg.max(x, axis=axis, keepdims=True)",
    "y = mg.log(mg.sum(mg.exp(x - m), axis=axis)) + mg.squeeze(m, axis)",
    "ctx.axis = axis",
    "ctx.save_for_backward(x, y)",
    "return y",
)
TAKE_P = ("x, y = ctx.saved", "p = mg.exp(x - mg.unsqueeze(y, ctx.axis))")

STEP = (
    "ctx.save_for_backward(x)",
    "return mg.where(x >= 0, mg.ones_like(x), -mg.ones_like(x))",
)
WINDOW = (TAKE_X, "return mg.where(mg.abs(x) <= 1, dy, mg.zeros_like(dy))")

HVP = "hvp(f, x, v)"
OWN = ("x = x.detach()", "x.requires_grad = True")
G = "g = mg.gradients(f(x), x, create_graph=True)"
ZEROS = "return mg.zeros_like(x) if h is None else h"

PENALTY = "gradient_penalty(critic, x)"
SCORES = "g = mg.gradients(critic(x).sum(), x, create_graph=True)"

SOFTCAP = klass(
    "Softcap",
    "ctx, x, cap",
    ("ctx.cap = cap", "ctx.save_for_backward(x)", "return cap * mg.tanh(x / cap)"),
    ("(x,) = ctx.saved", "{}", "return {}, None"),
)

CAP = "Softcap.cap"

MUTANTS = [
    # ---- Softplus
    Mutant("Softplus", "dropped_upstream", softplus(KEEP_X, (TAKE_X, "return mg.sigmoid(x)"))),
    Mutant(
        "Softplus",
        "not_finite",
        softplus(("ctx.save_for_backward(x)", "return mg.log(1.0 + mg.exp(x))"), SLOPE),
    ),
    Mutant(
        "Softplus",
        "value",
        softplus(
            (
                "ctx.save_for_backward(x)",
                "return mg.where(x > 10.0, x, mg.log1p(mg.exp(mg.minimum(x, 10.0))))",
            ),
            SLOPE,
        ),
    ),
    Mutant(
        "Softplus",
        "no_graph",
        softplus(KEEP_X, (TAKE_X, "with mg.no_grad():", "    return dy * mg.sigmoid(x)")),
    ),
    Mutant(
        "Softplus",
        "saved_intermediate",
        softplus(
            ("ctx.save_for_backward(mg.sigmoid(x))", f"return {STABLE}"),
            ("(s,) = ctx.saved", "return dy * s"),
        ),
    ),
    Mutant(
        "Softplus",
        "value",
        softplus(("ctx.save_for_backward(x)", f"return {STABLE} if x.ndim else x"), SLOPE),
    ),
    Mutant(
        "Softplus",
        "written",
        softplus(
            (
                "e = mg.exp(-mg.abs(x))",
                "ctx.save_for_backward(x, e)",
                "e += 1.0",
                "return mg.maximum(x, 0.0) + mg.log(e)",
            ),
            (
                "x, e = ctx.saved",
                "return dy * mg.where(x >= 0, 1.0 / (1.0 + e), e / (1.0 + e))",
            ),
        ),
    ),
    Mutant("Softplus", "count", softplus(KEEP_X, (TAKE_X, "return dy * mg.sigmoid(x), None"))),
    Mutant(
        "Softplus",
        "shared_state",
        softplus(
            ("Softplus.x = x", f"return {STABLE}"),
            ("return dy * mg.sigmoid(Softplus.x)",),
        ),
    ),
    Mutant("Softplus", "answer_used", softplus(("return mg.softplus(x)",), SLOPE)),
    # ---- LogSumExp
    Mutant(
        "LogSumExp",
        "count",
        log_sum_exp(LSE, (*TAKE_P, "return mg.unsqueeze(dy, ctx.axis) * p")),
    ),
    Mutant("LogSumExp", "dropped_upstream", log_sum_exp(LSE, (*TAKE_P, "return p, None"))),
    Mutant(
        "LogSumExp",
        "not_added",
        log_sum_exp(
            (
                "m = mg.max(x, axis=axis, keepdims=True)",
                "y = mg.log(mg.sum(mg.exp(x - m), axis=axis))",
                "ctx.axis = axis",
                "ctx.save_for_backward(x, y)",
                "return y",
            ),
            (*TAKE_P, "return mg.unsqueeze(dy, ctx.axis) * p, None"),
        ),
    ),
    Mutant(
        "LogSumExp",
        "not_finite",
        log_sum_exp(
            (
                "y = mg.log(mg.sum(mg.exp(x), axis=axis))",
                "ctx.axis = axis",
                "ctx.save_for_backward(x, y)",
                "return y",
            ),
            (*TAKE_P, "return mg.unsqueeze(dy, ctx.axis) * p, None"),
        ),
    ),
    Mutant(
        "LogSumExp",
        "engine",
        log_sum_exp(
            (
                "m = mg.max(x, axis=axis, keepdims=True)",
                "x -= m",
                "y = mg.log(mg.sum(mg.exp(x), axis=axis)) + mg.squeeze(m, axis)",
                "ctx.axis = axis",
                "ctx.save_for_backward(x * 1.0)",
                "return y",
            ),
            (
                TAKE_X,
                "e = mg.exp(x)",
                "p = e / mg.sum(e, axis=ctx.axis, keepdims=True)",
                "return mg.unsqueeze(dy, ctx.axis) * p, None",
            ),
        ),
    ),
    Mutant(
        "LogSumExp",
        "half_constant",
        log_sum_exp(
            LSE,
            (
                "x, y = ctx.saved",
                "p = mg.exp(x - mg.unsqueeze(y.detach(), ctx.axis))",
                "return mg.unsqueeze(dy, ctx.axis) * p, None",
            ),
        ),
    ),
    Mutant(
        "LogSumExp",
        "saved_intermediate",
        log_sum_exp(
            (
                *LSE[:-2],
                "ctx.save_for_backward(mg.exp(x - mg.unsqueeze(y, axis)))",
                "return y",
            ),
            ("(p,) = ctx.saved", "return mg.unsqueeze(dy, ctx.axis) * p, None"),
        ),
    ),
    Mutant(
        "LogSumExp",
        "not_normalised",
        log_sum_exp(
            LSE,
            (
                "x, y = ctx.saved",
                "p = mg.exp(x - mg.max(x, axis=ctx.axis, keepdims=True))",
                "return mg.unsqueeze(dy, ctx.axis) * p, None",
            ),
        ),
    ),
    Mutant(
        "LogSumExp",
        "shape",
        log_sum_exp(
            LSE,
            (
                "x, y = ctx.saved",
                "p = mg.exp(x - mg.unsqueeze(y, -1))",
                "return mg.unsqueeze(dy, -1) * p, None",
            ),
        ),
    ),
    Mutant(
        "LogSumExp",
        "value",
        log_sum_exp(
            tuple(line.replace("ctx.axis", "LogSumExp.axis") for line in LSE),
            (
                "x, y = ctx.saved",
                "p = mg.exp(x - mg.unsqueeze(y, LogSumExp.axis))",
                "return mg.unsqueeze(dy, LogSumExp.axis) * p, None",
            ),
        ),
    ),
    # ---- StraightThrough
    Mutant("StraightThrough", "no_window", step(STEP, ("return dy",))),
    Mutant("StraightThrough", "true_slope", step(STEP, ("return dy * 0.0",), "False")),
    Mutant(
        "StraightThrough",
        "sign_of_zero",
        step(("ctx.save_for_backward(x)", "return mg.sign(x)"), WINDOW),
    ),
    Mutant(
        "StraightThrough",
        "dropped_upstream",
        step(
            STEP,
            (TAKE_X, "return mg.where(mg.abs(x) <= 1, mg.ones_like(x), mg.zeros_like(x))"),
        ),
    ),
    Mutant(
        "StraightThrough",
        "edge",
        step(STEP, (TAKE_X, "return mg.where(mg.abs(x) < 1, dy, mg.zeros_like(dy))")),
    ),
    Mutant(
        "StraightThrough",
        "one_side",
        step(STEP, (TAKE_X, "return mg.where(x <= 1, dy, mg.zeros_like(dy))")),
    ),
    Mutant(
        "StraightThrough",
        "truth",
        step(STEP, (TAKE_X, "return mg.where(-1 <= x <= 1, dy, mg.zeros_like(dy))")),
    ),
    Mutant(
        "StraightThrough",
        "shared_state",
        step(
            ("StraightThrough.x = x", STEP[1]),
            (WINDOW[1].replace("abs(x)", "abs(StraightThrough.x)"),),
        ),
    ),
    Mutant("StraightThrough", "not_static", step(STEP, WINDOW).replace("    @staticmethod\n", "")),
    Mutant("StraightThrough", "not_declared", step(STEP, WINDOW, "False")),
    Mutant(
        "StraightThrough",
        "not_yet",
        step(("StraightThrough.pseudo_gradient = True", *STEP), WINDOW, "None"),
    ),
    Mutant(
        "StraightThrough",
        "clipped",
        step(STEP, ("return mg.where(mg.abs(dy) <= 1, dy, mg.zeros_like(dy))",)),
    ),
    # ---- hvp
    Mutant("hvp", "gradient", function(HVP, *OWN, "return mg.gradients(f(x), x)")),
    Mutant("hvp", "gradient_times_v", function(HVP, *OWN, "return mg.gradients(f(x), x) * v")),
    Mutant(
        "hvp",
        "without_v",
        function(HVP, *OWN, G, "h = mg.gradients(g.sum(), x)", ZEROS),
    ),
    Mutant(
        "hvp",
        "late_v",
        function(HVP, *OWN, G, "h = mg.gradients(g.sum(), x) * v", ZEROS),
    ),
    Mutant(
        "hvp",
        "no_graph",
        function(HVP, *OWN, "g = mg.gradients(f(x), x)", "return mg.gradients((g * v).sum(), x)"),
    ),
    Mutant(
        "hvp",
        "no_graph",
        function(HVP, *OWN, G, "return mg.gradients((g * v).sum(), x)"),
    ),
    Mutant(
        "hvp",
        "differences",
        function(
            HVP,
            "def slope(z):",
            "    z = z.detach()",
            "    z.requires_grad = True",
            "    return mg.gradients(f(z), z)",
            "x = x.detach()",
            "return (slope(x + 1e-6 * v) - slope(x - 1e-6 * v)) / 2e-6",
        ),
    ),
    Mutant(
        "hvp",
        "cost",
        function(
            HVP,
            *OWN,
            G,
            "if not g.requires_grad:",
            "    return mg.zeros_like(x)",
            "flat, total = g.flatten(), mg.zeros_like(x)",
            "for i in range(flat.size):",
            "    row = mg.gradients(flat[i], x, retain_graph=True)",
            "    if row is not None:",
            "        total = total + row * v.flatten()[i]",
            "return total",
        ),
    ),
    Mutant(
        "hvp",
        "flag",
        function(
            HVP,
            "x.requires_grad = True",
            G,
            "h = mg.gradients((g * v).sum(), x) if g.requires_grad else None",
            ZEROS,
        ),
    ),
    Mutant(
        "hvp",
        "shape",
        function(HVP, *OWN, G, "h = mg.gradients(g @ v, x) if g.requires_grad else None", ZEROS),
    ),
    Mutant(  # right, but for a v that is x itself
        "hvp",
        "value",
        function(
            HVP,
            "before, x.requires_grad = x.requires_grad, True",
            G,
            "h = mg.gradients((g * v).sum(), x) if g.requires_grad else None",
            "x.requires_grad = before",
            ZEROS,
        ),
    ),
    # ---- gradient_penalty
    Mutant(
        "gradient_penalty",
        "no_graph",
        function(
            PENALTY,
            *OWN,
            "g = mg.gradients(critic(x).sum(), x)",
            "return ((mg.norm(g, axis=1) - 1.0) ** 2).mean()",
        ),
    ),
    Mutant(
        "gradient_penalty",
        "whole_batch",
        function(PENALTY, *OWN, SCORES, "return (mg.norm(g) - 1.0) ** 2"),
    ),
    Mutant(
        "gradient_penalty",
        "mean_score",
        function(
            PENALTY,
            *OWN,
            "g = mg.gradients(critic(x).mean(), x, create_graph=True)",
            "return ((mg.norm(g, axis=1) - 1.0) ** 2).mean()",
        ),
    ),
    Mutant(
        "gradient_penalty",
        "squared_norm",
        function(PENALTY, *OWN, SCORES, "return (((g * g).sum(axis=1) - 1.0) ** 2).mean()"),
    ),
    Mutant(
        "gradient_penalty",
        "columns",
        function(PENALTY, *OWN, SCORES, "return ((mg.norm(g, axis=0) - 1.0) ** 2).mean()"),
    ),
    Mutant(
        "gradient_penalty",
        "nan_at_zero",
        function(
            PENALTY,
            *OWN,
            SCORES,
            "return ((mg.sqrt((g * g).sum(axis=1)) - 1.0) ** 2).mean()",
        ),
    ),
    Mutant(
        "gradient_penalty",
        "half_graph",
        function(
            PENALTY,
            *OWN,
            SCORES,
            "n = mg.norm(g, axis=1)",
            "return ((n - 1.0) * (n - 1.0).detach()).mean()",
        ),
    ),
    Mutant(
        "gradient_penalty",
        "not_one",
        function(PENALTY, *OWN, SCORES, "return (mg.norm(g, axis=1) - 1.0) ** 2"),
    ),
    Mutant(
        "gradient_penalty",
        "wrote_grad",
        function(
            PENALTY,
            *OWN,
            "critic(x).sum().backward(create_graph=True)",
            "return ((mg.norm(x.grad, axis=1) - 1.0) ** 2).mean()",
        ),
    ),
    Mutant(
        "gradient_penalty",
        "value",
        function(
            PENALTY,
            *OWN,
            SCORES,
            "return ((mg.norm(g, axis=int(x.shape[1] > 1)) - 1.0) ** 2).mean()",
        ),
    ),
    # ---- the bug hunt
    Mutant("deep_gradient", "not_it", 'BUG = ("op", "Scaled")'),
    Mutant("deep_gradient", "not_it", 'BUG = ("op", "Leaky")'),
    Mutant("deep_gradient", "form", 'BUG = ("op", 1)'),
    Mutant("deep_gradient", "form", 'BUG = "Softcap"'),
    Mutant("deep_gradient", "value", SOFTCAP.format("t = mg.tanh(x)", "dy * (1.0 - t * t)")),
    Mutant("deep_gradient", "no_slope", SOFTCAP.format("pass", "dy")),
    Mutant(
        "deep_gradient",
        "inner_slope",
        SOFTCAP.format("t = mg.tanh(x / ctx.cap)", "dy * (1.0 - t * t) / ctx.cap"),
    ),
    Mutant(
        "deep_gradient",
        "outer_slope",
        SOFTCAP.format("t = mg.tanh(x / ctx.cap)", "dy * (1.0 - t * t) * ctx.cap"),
    ),
    Mutant(
        "deep_gradient",
        "value",
        SOFTCAP.format("t = mg.tanh(x / ctx.cap)", "dy * (1.0 - t * t)").replace("ctx.cap", CAP),
    ),
    Mutant(
        "deep_gradient",
        "left_graph",
        SOFTCAP.format("t = mg.variable(mg.tanh(x / ctx.cap).numpy())", "dy * (1.0 - t * t)"),
    ),
    Mutant(
        "deep_gradient",
        "value",
        SOFTCAP.format("t = mg.tanh(x)", "dy * ctx.cap * (1.0 - t * t)").replace(
            "(x / cap)", "(x)"
        ),
    ),
    Mutant("deep_gradient", "value", SOFTCAP.format("t = mg.tanh(x / 50.0)", "dy * (1.0 - t * t)")),
]
