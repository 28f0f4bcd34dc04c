"""Wrong solutions of lesson 09 that are changes of the solution."""

from minigrad.course.mutants import Mutant

ALIASED = """def correct(s, g):
    s["first"], s["second"] = s["m"], s["v"]
    s["first"] /= 1 - s["beta1"] ** s["t"]
    s["second"] /= 1 - s["beta2"] ** s["t"]


"""

MUTANTS = [
    Mutant("lean_adam", "not_it", 'BUG = ("stage", 2)'),
    Mutant("lean_adam", "not_it", 'BUG = ("stage", 4)'),
    Mutant("lean_adam", "named", 'BUG = ("stage", "correct")'),
    Mutant("lean_adam", "form", "BUG = 3"),
    Mutant("lean_adam", "still_both", f"{ALIASED}STAGES[3] = correct"),
    Mutant(
        "lean_adam",
        "kept",
        """SCRATCH = {}


def correct(s, g):
    for name, beta, new in (("m", s["beta1"], "first"), ("v", s["beta2"], "second")):
        s[new] = SCRATCH.setdefault(name, np.empty_like(s[name]))
        np.divide(s[name], 1 - beta ** s["t"], out=s[new])


STAGES[3] = correct""",
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
