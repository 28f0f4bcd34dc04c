"""Wrong solutions of lesson 15 that are changes of the solution."""

from minigrad.course.mutants import Mutant


def method(*body: str) -> str:
    """Return the text of a GradScaler with another method, or with more than one."""
    lines = (f"    {line}" for line in body)
    return "\n".join(["class GradScaler(GradScaler):", *lines])


def unscale(*body: str) -> str:
    """Return the text of a GradScaler with another unscale_."""
    head = (
        "def unscale_(self, optimizer):",
        "    if optimizer in self.found:",
        "        raise RuntimeError('again')",
    )
    return method(*head, *(f"    {line}" for line in body))


def update(*body: str) -> str:
    """Return the text of a GradScaler with another update."""
    return method("def update(self):", *(f"    {line}" for line in body), "    self.found = {}")


EACH = ("for p in optimizer.parameters:", "    if p.grad is not None:")
DIVIDE = (*EACH, "        p.grad /= self.factor")
DOWN = "    self.factor, self.growth_tracker = self.factor * self.backoff_factor, 0"
UP = "    self.factor, self.growth_tracker = self.factor * self.growth_factor, 0"
BAD = "if any(self.found.values()):"
TIMES = "return loss * self.factor"
DUE = "if self.growth_tracker == self.growth_interval:"


def looks(test: str) -> str:
    """Return a GradScaler that looks for numbers that are not finite in another way."""
    return unscale(
        "bad = False",
        *DIVIDE,
        f"        bad = bad or bool({test})",
        "self.found[optimizer] = bad",
    )


def scaler(key: str, code: str) -> Mutant:
    """Return a wrong GradScaler."""
    return Mutant("GradScaler", key, code)


MUTANTS = [
    # the loss
    scaler("unscaled", method("def scale(self, loss):", "    return loss")),
    scaler("divided", method("def scale(self, loss):", "    return loss / self.factor")),
    scaler("factor_only", method("def scale(self, loss):", "    return self.factor")),
    scaler("none", method("def scale(self, loss):", "    loss *= self.factor")),
    scaler(
        "changed_loss", method("def scale(self, loss):", "    loss *= self.factor; return loss")
    ),
    scaler("raised", method("def scale(self, loss):", "    return float(loss) * self.factor")),
    scaler(
        "no_variable",
        method("def scale(self, loss):", "    if isinstance(loss, float):", f"        {TIMES}"),
    ),
    scaler(
        "no_graph",
        method(
            "def scale(self, loss):",
            "    if hasattr(loss, 'detach'):",
            "        loss = loss.detach()",
            f"    {TIMES}",
        ),
    ),
    scaler(
        "float32_loss",
        method(
            "def scale(self, loss):",
            "    if isinstance(loss, float):",
            "        return np.float32(loss) * np.float32(self.factor)",
            f"    {TIMES}",
        ),
    ),
    # the gradients
    *(
        scaler(
            key,
            unscale(
                "bad = [p.grad is not None and not np.isfinite(p.grad).all()",
                "       for p in optimizer.parameters]",
                "self.found[optimizer] = any(bad)",
                "for k, p in enumerate(optimizer.parameters):",
                f"    if p.grad is not None and not ({left}):",
                "        p.grad /= self.factor",
            ),
        )
        for key, left in {
            "bad_left": "bad[k]",
            "all_left_if_bad": "any(bad)",
            "ends_at_bad": "any(bad[:k])",
            "ends_at_none": "any(p.grad is None for p in optimizer.parameters[:k])",
        }.items()
    ),
    scaler(  # what marks an optimizer outlives the iteration
        "first_only",
        method(
            "def unscale_(self, optimizer):",
            "    if optimizer in self.found:",
            "        raise RuntimeError('again')",
            "    if getattr(optimizer, 'is_unscaled', False):",
            "        self.found[optimizer] = not all(np.isfinite(p.grad).all()",
            "            for p in optimizer.parameters if p.grad is not None)",
            "    else:",
            "        super().unscale_(optimizer)",
            "    optimizer.is_unscaled = True",
        ),
    ),
    scaler(
        "changed_parameters",
        method(
            "def step(self, optimizer):",
            "    super().step(optimizer)",
            "    optimizer.parameters = [p for p in optimizer.parameters if p.grad is not None]",
        ),
    ),
    scaler(
        "shared",
        "FOUND = {}\n\n\n"
        + method(
            "def __init__(self, *args, **kwargs):",
            "    super().__init__(*args, **kwargs)",
            "    self.found = FOUND",
            "def update(self):",
            "    super().update()",
            "    FOUND.clear()",
            "    self.found = FOUND",
        ),
    ),
    scaler(
        "not_in_place",
        unscale(
            "self.found[optimizer] = False",
            *EACH,
            "        p.grad = p.grad / self.factor",
            "        self.found[optimizer] |= not np.isfinite(p.grad).all()",
        ),
    ),
    scaler("multiplied", looks("0").replace("/=", "*=")),
    scaler(
        "still_scaled",
        unscale(
            "self.found[optimizer] = not all(np.isfinite(p.grad).all()",
            "    for p in optimizer.parameters if p.grad is not None)",
        ),
    ),
    scaler("raised", looks("0").replace("if p.grad is not None", "if True")),
    scaler(
        "not_none",
        unscale(
            "for p in optimizer.parameters:",
            "    if p.grad is None:",
            "        p.grad = np.zeros_like(p.values)",
            "    p.grad /= self.factor",
            "self.found[optimizer] = not all(np.isfinite(p.grad).all()",
            "    for p in optimizer.parameters)",
        ),
    ),
    scaler("stepped", looks("np.isnan(p.grad).any()")),
    scaler("stepped", looks("np.isinf(p.grad).any()")),
    scaler("stepped", looks("(p.grad == np.inf).any() or np.isnan(p.grad).any()")),
    scaler("stepped", looks("p.grad.size and not np.isfinite(p.grad).any()")),
    scaler("left_out", looks("not np.isfinite(p.grad.sum())")),
    scaler("left_out", looks("not np.isfinite(np.linalg.norm(p.grad))")),
    scaler("left_out", looks("(np.abs(p.grad) > 65504).any()")),
    scaler(  # the last parameter decides
        "stepped",
        unscale(*DIVIDE, "        self.found[optimizer] = not np.isfinite(p.grad).all()"),
    ),
    scaler(  # written to be tidy
        "cleaned",
        unscale(
            "self.found[optimizer] = False",
            *DIVIDE,
            "        self.found[optimizer] |= not np.isfinite(p.grad).all()",
            "        np.nan_to_num(p.grad, copy=False)",
        ),
    ),
    scaler(
        "not_found",
        looks("not np.isfinite(p.grad).all()").replace(
            "self.found[optimizer] = bad", "self.found = {optimizer: bad}"
        ),
    ),
    scaler(
        "no_dict",
        method(
            "def unscale_(self, optimizer):",
            "    self.found = getattr(self, 'bad', {})",
            "    super().unscale_(optimizer)",
            "    self.bad, self.found = self.found, list(self.found)",
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            "        self.unscale_(optimizer)",
            "    if not self.bad[optimizer]:",
            "        optimizer.step()",
            "def update(self):",
            "    self.found = self.bad",
            "    super().update()",
            "    self.bad = self.found",
        ),
    ),
    scaler(  # found is a dict of those that may step
        "wrongly_found",
        method(
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            "        self.unscale_(optimizer)",
            "    self.found[optimizer] = not self.found[optimizer]",
            "    if self.found[optimizer]:",
            "        optimizer.step()",
            "def update(self):",
            "    self.found = {one: not good for one, good in self.found.items()}",
            "    super().update()",
        ),
    ),
    # the step
    scaler(
        "not_found",
        method(
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            *(f"        {line}" for line in DIVIDE),
            "    if all(p.grad is None or np.isfinite(p.grad).all()",
            "           for p in optimizer.parameters):",
            "        optimizer.step()",
        ),
    ),
    scaler(  # clipping has hidden the inf
        "stepped",
        method(
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            "        self.unscale_(optimizer)",
            "    if all(p.grad is None or np.isfinite(p.grad).all()",
            "           for p in optimizer.parameters):",
            "        optimizer.step()",
        ),
    ),
    scaler(
        "gone",
        method(
            "def step(self, optimizer):",
            "    super().step(optimizer)",
            "    for p in optimizer.parameters:",
            "        p.grad = None",
        ),
    ),
    scaler(
        "swallowed",
        method(
            "def step(self, optimizer):",
            "    try:",
            "        super().step(optimizer)",
            "    except Exception:",
            "        pass",
        ),
    ),
    scaler(
        "never_unscaled",
        method(
            "def step(self, optimizer):",
            "    bad = not all(np.isfinite(p.grad).all() for p in optimizer.parameters",
            "        if p.grad is not None)",
            "    self.found.setdefault(optimizer, bad)",
            "    if not self.found[optimizer]:",
            "        optimizer.step()",
        ),
    ),
    scaler(
        "unscaled_twice",
        method(
            "def step(self, optimizer):",
            "    self.found.pop(optimizer, None)",
            "    self.unscale_(optimizer)",
            "    if not self.found[optimizer]:",
            "        optimizer.step()",
        ),
    ),
    scaler(
        "raised",
        method(
            "def step(self, optimizer):",
            "    self.unscale_(optimizer)",
            "    if not self.found[optimizer]:",
            "        optimizer.step()",
        ),
    ),
    scaler(
        "raised",
        method(
            "def step(self, optimizer):",
            "    if not self.found[optimizer]:",
            "        optimizer.step()",
        ),
    ),
    scaler(
        "stepped",
        method(
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            "        self.unscale_(optimizer)",
            "    optimizer.step()",
        ),
    ),
    scaler(  # one optimizer's inf stops all
        "left_out",
        method(
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            "        self.unscale_(optimizer)",
            "    if not any(self.found.values()):",
            "        optimizer.step()",
        ),
    ),
    scaler(
        "two_steps",
        method(
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            "        self.unscale_(optimizer)",
            "        if not self.found[optimizer]:",
            "            optimizer.step()",
            "    if not self.found[optimizer]:",
            "        optimizer.step()",
        ),
    ),
    scaler(
        "returned",
        method(
            "def step(self, optimizer):",
            "    if optimizer not in self.found:",
            "        self.unscale_(optimizer)",
            "    if not self.found[optimizer]:",
            "        optimizer.step()",
            "    return not self.found[optimizer]",
        ),
    ),
    scaler(  # it asks whether any optimizer was unscaled
        "other_unscaled",
        method(
            "def step(self, optimizer):",
            "    if not self.found:",
            "        self.unscale_(optimizer)",
            "    bad = not all(np.isfinite(p.grad).all() for p in optimizer.parameters",
            "        if p.grad is not None)",
            "    self.found.setdefault(optimizer, bad)",
            "    if not self.found[optimizer]:",
            "        optimizer.step()",
        ),
    ),
    # an iteration's end
    scaler(
        "value",
        method(
            "def update(self):",
            "    super().update()",
            "    self.factor = int(self.factor)",
        ),
    ),
    scaler(
        "no_backoff",
        update(
            BAD,
            "    self.growth_tracker = 0",
            "else:",
            "    self.growth_tracker += 1",
            f"    {DUE}",
            f"    {UP}",
        ),
    ),
    scaler(
        "wrong_way",
        update(
            BAD,
            DOWN.replace("* self.backoff", "/ self.backoff"),
            "else:",
            "    self.growth_tracker += 1",
            f"    {DUE}",
            f"    {UP}",
        ),
    ),
    scaler(
        "backs_off_twice",
        update(
            "self.growth_tracker += 1",
            "for bad in self.found.values():",
            "    if bad:",
            f"    {DOWN}",
            DUE,
            UP,
        ),
    ),
    scaler(
        "no_growth",
        update(
            BAD,
            DOWN,
            "else:",
            "    self.growth_tracker += 1",
            f"    {DUE}",
            "        self.growth_tracker = 0",
        ),
    ),
    scaler(
        "grows_early",
        update(
            BAD,
            DOWN,
            "else:",
            "    self.growth_tracker += 1",
            f"    {DUE.replace('interval:', 'interval - 1:')}",
            f"    {UP}",
        ),
    ),
    scaler(
        "grows_late",
        update(
            BAD,
            DOWN,
            "else:",
            f"    {DUE}",
            f"    {UP}",
            "    else:",
            "        self.growth_tracker += 1",
        ),
    ),
    scaler(
        "tracker_kept",
        update(
            BAD,
            "    self.factor *= self.backoff_factor",
            "else:",
            "    self.growth_tracker += 1",
            f"    {DUE}",
            f"    {UP}",
        ),
    ),
    scaler(
        "tracker_left",
        update(
            BAD,
            DOWN,
            "else:",
            "    self.growth_tracker += 1",
            "    if self.growth_tracker % self.growth_interval == 0:",
            "        self.factor *= self.growth_factor",
        ),
    ),
    scaler(
        "tracker_runs_on",
        update(
            BAD,
            DOWN,
            "else:",
            "    self.growth_tracker += 1",
            f"    {DUE.replace('==', '>=')}",
            "        self.factor *= self.growth_factor",
        ),
    ),
    scaler(
        "counts_optimizers",
        update(
            BAD,
            DOWN,
            "else:",
            "    self.growth_tracker += len(self.found)",
            f"    {DUE.replace('==', '>=')}",
            f"    {UP}",
        ),
    ),
    scaler(
        "found_kept",
        method(
            "def update(self):",
            f"    {BAD}",
            f"    {DOWN}",
            "    else:",
            "        self.growth_tracker += 1",
            f"        {DUE}",
            f"        {UP}",
        ),
    ),
    scaler(
        "no_error",
        method(
            "def unscale_(self, optimizer):",
            "    if optimizer not in self.found:",
            "        super().unscale_(optimizer)",
        ),
    ),
    scaler(
        "wrong_error",
        method(
            "def unscale_(self, optimizer):",
            "    if optimizer in self.found:",
            "        raise ValueError('again')",
            "    super().unscale_(optimizer)",
        ),
    ),
    scaler(
        "divided_first",
        method(
            "def unscale_(self, optimizer):",
            "    bad = False",
            *(f"    {line}" for line in DIVIDE),
            "            bad = bad or not np.isfinite(p.grad).all()",
            "    if optimizer in self.found:",
            "        raise RuntimeError('again')",
            "    self.found[optimizer] = bool(bad)",
        ),
    ),
    # the master copy
    Mutant(
        "master_step",
        "dtype",
        "def master_step(half, gradient, state, learning_rate):\n"
        "    master = state.setdefault('master', half.astype(np.float64))\n"
        "    is_written = master.astype(np.float32).astype(np.float16) != half\n"
        "    master[is_written] = half[is_written]\n"
        "    master -= learning_rate * gradient\n"
        "    half[...] = master",
    ),
    *(  # writings that look like no writing
        Mutant(
            "master_step",
            "value",
            "def master_step(half, gradient, state, learning_rate):\n"
            "    master = state.setdefault('master', half.astype(np.float32))\n"
            f"    is_written = {test}\n"
            "    if is_written.any():\n"
            "        master[is_written] = half[is_written]\n"
            "    master -= learning_rate * gradient\n"
            "    half[...] = master",
        )
        for test in (
            "~np.isclose(half, master, rtol=1e-2)",
            "(half != master.astype(np.float16)) & (half.sum() != master.astype(np.float16).sum())",
        )
    ),
    Mutant(  # what is 0 in float32 already
        "find_underflow",
        "value",
        "def find_underflow(gradients, scale=1.0):\n"
        "    counts = {}\n"
        "    for name, g in gradients.items():\n"
        "        wide = g * np.float32(scale)\n"
        "        half = np.abs(wide.astype(np.float16))\n"
        "        counts[name] = {'zero': np.sum((half == 0) & (wide != 0)),\n"
        "            'subnormal': np.sum((half > 0) & (half < 2**-14)),\n"
        "            'inf': np.sum(np.isinf(half))}\n"
        "    return counts",
    ),
    Mutant(  # remembered by the array alone
        "find_underflow",
        "value",
        "KNOWN = {}\nbase = find_underflow\n\n\n"
        "def find_underflow(gradients, scale=1.0):\n"
        "    for name, g in gradients.items():\n"
        "        if id(g) not in KNOWN:\n"
        "            KNOWN[id(g)] = g, base({name: g}, scale)[name]\n"
        "    return {name: KNOWN[id(g)][1] for name, g in gradients.items()}",
    ),
    Mutant(  # a tree that is made even at its first level only
        "sum_f16_acc32",
        "value",
        "def sum_f16_acc32(x, axis):\n"
        "    x = np.moveaxis(x, axis, 0).astype(np.float32)\n"
        "    if len(x) % 2 or not len(x):\n"
        "        x = np.concatenate([x, np.zeros((1, *x.shape[1:]), np.float32)])\n"
        "    while len(x) > 1:\n"
        "        half = len(x) // 2\n"
        "        x = x[:half] + x[half : 2 * half]\n"
        "    return x[0].astype(np.float16)",
    ),
    # the bug hunt
    Mutant("train_clipped", "not_it", 'BUG = ("stage", 2)'),
    Mutant("train_clipped", "not_it", 'BUG = ("stage", 4)'),
    Mutant("train_clipped", "named", 'BUG = ("stage", "clip")'),
    Mutant("train_clipped", "form", "BUG = 1"),
    Mutant("train_clipped", "too_early", "STAGES[1:3] = [clip, unscale]"),
    Mutant("train_clipped", "no_clipping", "STAGES.remove(clip)"),
    Mutant(  # a larger rate makes up for what is clipped too much
        "train_clipped",
        "never_unscaled",
        "STAGES[1:3] = [clip, unscale]\n\n\ndef move(s):\n    if s['is_finite']:\n"
        "        s['w'] = s['w'] - np.float32(s['learning_rate'] * s['scale']) * s['g']\n\n\n"
        "STAGES[4] = move",
    ),
    Mutant("train_clipped", "never_unscaled", "STAGES.remove(unscale)"),
    Mutant(  # as long as max_norm, always
        "train_clipped",
        "never_unscaled",
        "def clip(s):\n"
        "    s['g'] = s['g'] * np.float32(s['max_norm'] / np.linalg.norm(s['g']))\n\n\n"
        "STAGES[2] = clip",
    ),
    Mutant(
        "train_clipped",
        "one_row",
        "def train_clipped(w, slopes, scale, max_norm=1.0, learning_rate=0.1):\n"
        "    w, path = w.copy(), []\n"
        "    s = dict(w=w, scale=scale, max_norm=max_norm, learning_rate=learning_rate)\n"
        "    for s['slope'] in slopes:\n"
        "        for stage in STAGES:\n"
        "            stage(s)\n"
        "        w[...] = s['w']\n"
        "        path.append(w)\n"
        "    return np.array(path)",
    ),
    Mutant(
        "train_clipped",
        "one_late",
        "STAGES[2:] = [clip, adapt, look, move]\n\n\n"
        "def first(s):\n    s.setdefault('is_finite', True)\n\n\nSTAGES.insert(0, first)",
    ),
    Mutant(
        "train_clipped",
        "limit_alone",
        "cut = clip\n\n\ndef clip(s):\n"
        "    if np.linalg.norm(s['g']) > s['max_norm'] * s['scale']:\n        cut(s)\n\n\n"
        "STAGES[1:3] = [clip, unscale]",
    ),
    Mutant(
        "train_clipped",
        "first_limit",
        "def clip(s):\n"
        "    limit = s['max_norm'] * s.setdefault('first', s['scale'])\n"
        "    norm = np.linalg.norm(s['g'])\n"
        "    if norm > limit:\n"
        "        s['g'] = s['g'] * np.float32(limit / norm)\n\n\n"
        "STAGES[1:3] = [clip, unscale]",
    ),
    Mutant("train_clipped", "unscaled_twice", "STAGES.insert(1, unscale)"),
]
