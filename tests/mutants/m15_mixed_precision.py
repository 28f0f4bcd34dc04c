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
    # the gradients
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
    # the step
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
    # an iteration's end
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
    Mutant("train_clipped", "unscaled_twice", "STAGES.insert(1, unscale)"),
]
