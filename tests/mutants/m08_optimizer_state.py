"""Wrong solutions of lesson 08 that people really write."""

from minigrad.course.mutants import Mutant


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])


def method(*body: str) -> str:
    """Return the text of a class SGD with another step."""
    lines = ["class SGD(SGD):", "    def step(self):", *(f"        {line}" for line in body)]
    return "\n".join(lines)


UPDATE = "sgd_update(algorithm, values, gradient, state, hyperparameters)"
NORM = "clip_grad_norm_(gradients, max_norm)"
WEIGHTS = "clip_weights_(model, low, high)"
SAVE = "state_dict(model, optimizer)"
LOAD = "load_state_dict(model, optimizer, saved)"
REPLACE = "replace_parameter(model, optimizer, name, values, keep_state)"


def update(*body: str, checked: bool = True) -> str:
    """Return the text of sgd_update; the hyperparameters have short names in it."""
    refuse = ("if algorithm != 'SGD':", "    raise ValueError(algorithm)") if checked else ()
    names = (
        "lr, mu, wd = (hyperparameters[n] for n in ('learning_rate', 'momentum', 'weight_decay'))"
    )
    return function(UPDATE, *refuse, names, *body)


KEEP = ("if mu:", "    v = v + mu * state['momentum']", "    state['momentum'][...] = v")
WHOLE = ("v = gradient + wd * values", *KEEP, "values -= lr * v")
HYPER = (
    "h = {'learning_rate': self.learning_rate, 'momentum': self.momentum, "
    "'weight_decay': self.weight_decay}"
)
ZEROS = "{'momentum': np.zeros_like(p.values)} if self.momentum else {}"
STEP = "sgd_update('SGD', p.values, p.grad, self.state[p.id], h)"
SKIP = ("if p.grad is None or not p.requires_grad:", "    continue")
FRESH = ("if p.id not in self.state:", f"    self.state[p.id] = {ZEROS}")

MUTANTS = [
    # the formula
    Mutant(
        "sgd_update",
        "not_in_place",
        update("v = gradient + wd * values", *KEEP, "values = values - lr * v", "return values"),
    ),
    Mutant(
        "sgd_update",
        "raised",
        update("v = gradient + wd * values", *KEEP, "values[:] = values - lr * v"),
    ),
    Mutant(
        "sgd_update",
        "average",
        update(
            "v = gradient + wd * values",
            "if mu:",
            "    v = mu * state['momentum'] + (1 - mu) * v",
            "    state['momentum'][:] = v",
            "values -= lr * v",
        ),
    ),
    Mutant(
        "sgd_update",
        "state_rebound",
        update(
            "v = gradient + wd * values",
            "if mu:",
            "    v = v + mu * state['momentum']",
            "    state['momentum'] = v",
            "values -= lr * v",
        ),
    ),
    Mutant(
        "sgd_update",
        "rate_inside",
        update("v = lr * (gradient + wd * values)", *KEEP, "values -= v"),
    ),
    Mutant(
        "sgd_update",
        "changed_gradient",
        update(
            "v = gradient",
            "v += wd * values",
            "if mu:",
            "    v += mu * state['momentum']",
            "    state['momentum'][:] = v",
            "values -= lr * v",
        ),
    ),
    Mutant(
        "sgd_update",
        "decoupled",
        update("v = gradient.copy()", *KEEP, "values -= lr * v + lr * wd * values"),
    ),
    Mutant(
        "sgd_update",
        "not_kept",
        update(
            "v = gradient + wd * values",
            "if mu:",
            "    v = v + mu * state['momentum']",
            "values -= lr * v",
        ),
    ),
    Mutant(
        "sgd_update",
        "zero_skipped",
        update(
            "if gradient.any():",
            "    v = gradient + wd * values",
            *(f"    {line}" for line in KEEP),
            "    values -= lr * v",
        ),
    ),
    Mutant(
        "sgd_update",
        "did_not_raise",
        update("v = gradient + wd * values", *KEEP, "values -= lr * v", checked=False),
    ),
    # the optimizer
    Mutant(
        "SGD",
        "started_anew",
        method(
            HYPER,
            "for p in self.parameters:",
            *(f"    {line}" for line in SKIP),
            f"    self.state[p.id] = {ZEROS}",
            f"    {STEP}",
        ),
    ),
    Mutant(
        "SGD",
        "shared",
        method(
            HYPER,
            "for p in self.parameters:",
            *(f"    {line}" for line in SKIP),
            "    if not self.state:",
            f"        self.state.update({ZEROS})",
            "    sgd_update('SGD', p.values, p.grad, self.state, h)",
        ),
    ),
    Mutant(
        "SGD",
        "wrong_key",
        method(
            HYPER,
            "for i, p in enumerate(self.parameters):",
            *(f"    {line}" for line in SKIP),
            f"    state = self.state.setdefault(i, {ZEROS})",
            "    sgd_update('SGD', p.values, p.grad, state, h)",
        ),
    ),
    Mutant(
        "SGD",
        "none_moved",
        method(
            HYPER,
            "for p in self.parameters:",
            *(f"    {line}" for line in FRESH),
            "    if p.requires_grad:",
            "        g = np.zeros_like(p.values) if p.grad is None else p.grad",
            "        sgd_update('SGD', p.values, g, self.state[p.id], h)",
        ),
    ),
    Mutant(
        "SGD",
        "frozen_moved",
        method(
            HYPER,
            "for p in self.parameters:",
            "    if p.grad is None:",
            "        continue",
            *(f"    {line}" for line in FRESH),
            f"    {STEP}",
        ),
    ),
    Mutant(
        "SGD",
        "fixed",
        method(
            "if not hasattr(self, 'hyper'):",
            f"    {HYPER.replace('h = ', 'self.hyper = ')}",
            "for p in self.parameters:",
            *(f"    {line}" for line in SKIP + FRESH),
            f"    {STEP.replace(', h)', ', self.hyper)')}",
        ),
    ),
    Mutant(
        "SGD",
        "other_array",
        method(
            HYPER,
            "for p in self.parameters:",
            *(f"    {line}" for line in SKIP + FRESH),
            "    p.values = p.values.copy()",
            f"    {STEP}",
        ),
    ),
    Mutant(
        "SGD",
        "zero_skipped",
        method(
            HYPER,
            "for p in self.parameters:",
            "    if p.grad is None or not p.requires_grad or not p.grad.any():",
            "        continue",
            *(f"    {line}" for line in FRESH),
            f"    {STEP}",
        ),
    ),
    Mutant(
        "SGD",
        "all_stand",
        method(
            HYPER,
            "for p in self.parameters:",
            "    if p.grad is None or not p.requires_grad:",
            "        return",
            *(f"    {line}" for line in FRESH),
            f"    {STEP}",
        ),
    ),
    Mutant(
        "SGD",
        "dtype",
        method(
            HYPER,
            "for p in self.parameters:",
            *(f"    {line}" for line in SKIP),
            "    if p.id not in self.state:",
            f"        self.state[p.id] = {ZEROS.replace('_like(p.values)', '(p.values.shape)')}",
            f"    {STEP}",
        ),
    ),
    Mutant(
        "SGD",
        "kept",
        "\n".join(
            [
                "class SGD(SGD):",
                "    known = {}",
                "    def step(self):",
                "        self.state = self.known",
                "        super().step()",
            ]
        ),
    ),
    Mutant(
        "SGD",
        "no_entry",
        method("super().step()", "self.state = {i: s for i, s in self.state.items() if s}"),
    ),
    # clipping gradients
    Mutant(
        "clip_grad_norm_",
        "largest",
        function(
            NORM,
            "norms = [float(np.linalg.norm(g.astype(np.float64))) for g in gradients]",
            "if not np.all(np.isfinite(norms)):",
            "    raise ValueError(norms)",
            "for g, norm in zip(gradients, norms):",
            "    if norm > max_norm:",
            "        g *= max_norm / norm",
            "return max(norms, default=0.0)",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "each_alone",
        function(
            NORM,
            "norms = [float(np.linalg.norm(g.astype(np.float64))) for g in gradients]",
            "total = float(np.linalg.norm(norms)) if norms else 0.0",
            "if not np.isfinite(total):",
            "    raise ValueError(total)",
            "for g, norm in zip(gradients, norms):",
            "    if norm > max_norm:",
            "        g *= max_norm / norm",
            "return total",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "after",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        g *= max_norm / norm",
            "    return max_norm",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "enlarged",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "for g in gradients:",
            "    g *= max_norm / norm",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "touched",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "for g in gradients:",
            "    g[...] = g / (norm or 1.0) * min(norm, max_norm)",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "epsilon",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        g *= max_norm / (norm + 1e-6)",
            "return norm",
        ),
    ),
    Mutant(  # an error in the middle of the work
        "clip_grad_norm_",
        "raised_late",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        if not np.isfinite(g).all():",
            "            raise ValueError(norm)",
            "        g *= max_norm / norm",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "not_in_place",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "if norm > max_norm:",
            "    for i in range(len(gradients)):",
            "        gradients[i] = gradients[i] * (max_norm / norm)",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "did_not_raise",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if norm == np.inf:",
            "    raise ValueError(norm)",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        g *= max_norm / norm",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "overflow",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g ** 2) for g in gradients)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        g *= max_norm / norm",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "raised",
        function(
            NORM,
            "flat = [g.ravel().astype(np.float64) for g in gradients]",
            "norm = float(np.linalg.norm(np.concatenate(flat)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        g *= max_norm / norm",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "wrong_error",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "assert np.isfinite(norm)",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        g *= max_norm / norm",
            "return norm",
        ),
    ),
    Mutant(
        "clip_grad_norm_",
        "underflow",
        function(
            NORM,
            "norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))",
            "if not np.isfinite(norm):",
            "    raise ValueError(norm)",
            "if norm > max_norm:",
            "    for g in gradients:",
            "        g /= norm / max_norm",
            "return norm",
        ),
    ),
    # clipping weights
    Mutant(
        "clip_weights_",
        "new_parameter",
        function(
            WEIGHTS,
            "for name, p in model.items():",
            "    model[name] = Parameter(np.clip(p.values, low, high), p.grad)",
        ),
    ),
    Mutant(
        "clip_weights_",
        "new_parameter",
        function(
            WEIGHTS,
            "for name, p in model.items():",
            "    values = np.clip(p.values, low, high)",
            "    model[name] = Parameter(values, p.grad, p.requires_grad, p.id)",
        ),
    ),
    Mutant(
        "clip_weights_",
        "new_array",
        function(
            WEIGHTS, "for p in model.values():", "    p.values = np.clip(p.values, low, high)"
        ),
    ),
    Mutant(
        "clip_weights_",
        "unchanged",
        function(WEIGHTS, "for p in model.values():", "    np.clip(p.values, low, high)"),
    ),
    Mutant(
        "clip_weights_",
        "unchanged",
        function(
            WEIGHTS,
            "for p in model.values():",
            "    values = p.values",
            "    values = np.clip(values, low, high)",
        ),
    ),
    Mutant(
        "clip_weights_",
        "returned",
        function(
            WEIGHTS,
            "return {n: Parameter(np.clip(p.values, low, high)) for n, p in model.items()}",
        ),
    ),
    Mutant(
        "clip_weights_",
        "one_side",
        function(WEIGHTS, "for p in model.values():", "    p.values[p.values > high] = high"),
    ),
    Mutant(
        "clip_weights_",
        "clipped_gradient",
        function(
            WEIGHTS,
            "for p in model.values():",
            "    p.values.clip(low, high, out=p.values)",
            "    if p.grad is not None:",
            "        p.grad.clip(low, high, out=p.grad)",
        ),
    ),
    Mutant(
        "clip_weights_",
        "value",
        function(
            WEIGHTS,
            "for p in model.values():",
            "    if p.grad is not None:",
            "        np.clip(p.values, low, high, out=p.values)",
        ),
    ),
    Mutant(
        "clip_weights_",
        "raised",
        function(
            WEIGHTS, "for p in model.values():", "    p.values[:] = np.clip(p.values, low, high)"
        ),
    ),
    Mutant(
        "clip_weights_",
        "value",
        function(
            WEIGHTS,
            "for p in model.values():",
            "    np.clip(p.values, low or -np.inf, high or np.inf, out=p.values)",
        ),
    ),
    # saving and loading
    Mutant(
        "state_dict",
        "kept",
        function(
            SAVE[:-1] + ", saved={})",
            "for n, p in model.items():",
            "    if p.id in optimizer.state:",
            "        saved[n] = {s: a.copy() for s, a in optimizer.state[p.id].items()}",
            "return saved",
        ),
    ),
    Mutant(
        "state_dict",
        "missing",
        function(
            SAVE,
            "known = optimizer.state",
            "return {",
            "    n: {s: a.copy() for s, a in known[p.id].items()}",
            "    for n, p in model.items() if p.id in known and p.requires_grad",
            "}",
        ),
    ),
    Mutant(
        "state_dict",
        "dtype",
        function(
            SAVE,
            "known = optimizer.state",
            "return {",
            "    n: {s: a.astype(np.float32) for s, a in known[p.id].items()}",
            "    for n, p in model.items() if p.id in known",
            "}",
        ),
    ),
    Mutant(
        "state_dict",
        "rounded",
        function(
            SAVE,
            "known = optimizer.state",
            "return {",
            "    n: {s: a.round(6) for s, a in known[p.id].items()}",
            "    for n, p in model.items() if p.id in known",
            "}",
        ),
    ),
    Mutant(
        "state_dict",
        "by_id",
        function(
            SAVE,
            "return {i: {s: a.copy() for s, a in d.items()} for i, d in optimizer.state.items()}",
        ),
    ),
    Mutant(
        "state_dict",
        "alias",
        function(
            SAVE,
            "known = optimizer.state",
            "return {n: known[p.id] for n, p in model.items() if p.id in known}",
        ),
    ),
    Mutant(
        "state_dict",
        "no_array",
        function(
            SAVE,
            "known = optimizer.state",
            "return {",
            "    n: {s: a.tolist() for s, a in known[p.id].items()}",
            "    for n, p in model.items() if p.id in known",
            "}",
        ),
    ),
    Mutant(
        "state_dict",
        "too_many",
        function(
            SAVE,
            "def copied(p):",
            "    slots = optimizer.state.get(p.id, {})",
            "    return {s: a.copy() for s, a in slots.items()}",
            "return {n: copied(p) for n, p in model.items()}",
        ),
    ),
    Mutant(
        "state_dict",
        "value",
        function(
            SAVE,
            "named, known = zip(model, optimizer.parameters), optimizer.state",
            "return {",
            "    n: {s: a.copy() for s, a in known[p.id].items()}",
            "    for n, p in named if p.id in known",
            "}",
        ),
    ),
    Mutant(
        "state_dict",
        "state_lost",
        function(
            SAVE,
            "known = optimizer.state",
            "return {n: known.pop(p.id) for n, p in model.items() if p.id in known}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "value",
        function(
            LOAD,
            "for n, d in saved.items():",
            "    if n not in model or d['momentum'].shape != model[n].values.shape:",
            "        raise ValueError(n)",
            "optimizer.state = {",
            "    model[n].id: {s: np.array(a, float) for s, a in d.items()}",
            "    for n, d in saved.items()",
            "}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "accepted_shape",
        function(
            LOAD,
            "for n, d in saved.items():",
            "    if n not in model or d['momentum'].size != model[n].values.size:",
            "        raise ValueError(n)",
            "optimizer.state = {",
            "    model[n].id: {s: a.copy() for s, a in d.items()} for n, d in saved.items()",
            "}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "by_place",
        function(
            LOAD,
            "state = {}",
            "for p, (name, slots) in zip(optimizer.parameters, saved.items()):",
            "    if name not in model:",
            "        raise ValueError(name)",
            "    state[p.id] = {s: a.copy() for s, a in slots.items()}",
            "optimizer.state = state",
        ),
    ),
    Mutant(
        "load_state_dict",
        "key_is_name",
        function(
            LOAD,
            "optimizer.state = {n: {s: a.copy() for s, a in d.items()} for n, d in saved.items()}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "left_over",
        function(
            LOAD,
            "for n, d in saved.items():",
            "    if n not in model or d['momentum'].shape != model[n].values.shape:",
            "        raise ValueError(n)",
            "for n, d in saved.items():",
            "    optimizer.state[model[n].id] = {s: a.copy() for s, a in d.items()}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "accepted_shape",
        function(
            LOAD,
            "for n in saved:",
            "    if n not in model:",
            "        raise ValueError(n)",
            "optimizer.state = {model[n].id: {s: a.copy() for s, a in d.items()}",
            "                   for n, d in saved.items()}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "half_loaded",
        function(
            LOAD,
            "optimizer.state = {}",
            "for n, d in saved.items():",
            "    if n not in model or d['momentum'].shape != model[n].values.shape:",
            "        raise ValueError(n)",
            "    optimizer.state[model[n].id] = {s: a.copy() for s, a in d.items()}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "alias",
        function(
            LOAD,
            "for n, d in saved.items():",
            "    if n not in model or d['momentum'].shape != model[n].values.shape:",
            "        raise ValueError(n)",
            "optimizer.state = {model[n].id: dict(d) for n, d in saved.items()}",
        ),
    ),
    Mutant(
        "load_state_dict",
        "wrong_error",
        function(
            LOAD,
            "for n, d in saved.items():",
            "    if d['momentum'].shape != model[n].values.shape:",
            "        raise ValueError(n)",
            "optimizer.state = {model[n].id: {s: a.copy() for s, a in d.items()}",
            "                   for n, d in saved.items()}",
        ),
    ),
    # replacing
    Mutant(
        "replace_parameter",
        "orphan",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "if keep_state and old.values.shape != values.shape:",
            "    raise ValueError(name)",
            "model[name] = new",
            "state = optimizer.state.pop(old.id, None)",
            "if keep_state and state is not None:",
            "    optimizer.state[new.id] = state",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "both",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "model[name] = new",
            "optimizer.parameters.append(new)",
            "state = optimizer.state.pop(old.id, None)",
            "if keep_state and state is not None:",
            "    optimizer.state[new.id] = state",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "same_object",
        function(
            REPLACE,
            "p = model[name]",
            "p.values = values",
            "p.grad = None",
            "if not keep_state:",
            "    optimizer.state.pop(p.id, None)",
            "return p",
        ),
    ),
    Mutant(
        "replace_parameter",
        "stale",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "if keep_state and old.values.shape != values.shape:",
            "    raise ValueError(name)",
            "model[name] = new",
            "optimizer.parameters[optimizer.parameters.index(old)] = new",
            "if keep_state and old.id in optimizer.state:",
            "    optimizer.state[new.id] = optimizer.state[old.id]",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "lost",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "model[name] = new",
            "optimizer.parameters[optimizer.parameters.index(old)] = new",
            "optimizer.state.pop(old.id, None)",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "kept",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "model[name] = new",
            "optimizer.parameters[optimizer.parameters.index(old)] = new",
            "if old.id in optimizer.state:",
            "    optimizer.state[new.id] = optimizer.state.pop(old.id)",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "raised",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "model[name] = new",
            "optimizer.parameters[optimizer.parameters.index(old)] = new",
            "state = optimizer.state.pop(old.id)",
            "if keep_state:",
            "    optimizer.state[new.id] = state",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "half_done",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "model[name] = new",
            "optimizer.parameters[optimizer.parameters.index(old)] = new",
            "state = optimizer.state.pop(old.id, None)",
            "if keep_state and state is not None:",
            "    if old.values.shape != values.shape:",
            "        raise ValueError(name)",
            "    optimizer.state[new.id] = state",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "none",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "if keep_state and old.values.shape != values.shape:",
            "    raise ValueError(name)",
            "model[name] = new",
            "optimizer.parameters[optimizer.parameters.index(old)] = new",
            "state = optimizer.state.pop(old.id, None)",
            "if keep_state and state is not None:",
            "    optimizer.state[new.id] = state",
        ),
    ),
    Mutant(
        "replace_parameter",
        "order",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "if keep_state and values.shape != old.values.shape:",
            "    raise ValueError(name)",
            "model[name] = new",
            "optimizer.parameters = list(model.values())",
            "state = optimizer.state.pop(old.id, None)",
            "if keep_state and state is not None:",
            "    optimizer.state[new.id] = state",
            "return new",
        ),
    ),
    Mutant(
        "replace_parameter",
        "others",
        function(
            REPLACE,
            "old, new = model[name], Parameter(values)",
            "if keep_state and values.shape != old.values.shape:",
            "    raise ValueError(name)",
            "model[name] = new",
            "optimizer.parameters = [",
            "    new if np.array_equal(p.values, old.values) else p for p in optimizer.parameters",
            "]",
            "state = optimizer.state.pop(old.id, None)",
            "if keep_state and state is not None:",
            "    optimizer.state[new.id] = state",
            "return new",
        ),
    ),
    # the bug hunt
    Mutant("fine_tune", "not_it", 'BUG = ("function", "freeze")'),
    Mutant("fine_tune", "not_it", 'BUG = ("function", "step_all")'),
    Mutant("fine_tune", "form", 'BUG = "forget_gradients"'),
    Mutant(
        "fine_tune",
        "frozen_moved",
        function(
            "forget_gradients(model)",
            "for p in model.values():",
            "    if p.grad is not None:",
            "        p.grad = np.zeros_like(p.grad)",
        ),
    ),
    Mutant(
        "fine_tune",
        "unreached_moved",
        function(
            "forget_gradients(model)",
            "for p in model.values():",
            "    if p.grad is not None:",
            "        p.grad = np.zeros_like(p.grad) if p.requires_grad else None",
        ),
    ),
    Mutant(
        "fine_tune",
        "unreached_moved",
        function(
            "freeze(model, prefix)",
            "for name, p in model.items():",
            "    if name.startswith(prefix):",
            "        p.requires_grad, p.grad = False, None",
        )
        + "\n\n\n"
        + function(
            "forget_gradients(model)",
            "for p in model.values():",
            "    if p.grad is not None:",
            "        p.grad = np.zeros_like(p.grad)",
        ),
    ),
    Mutant(
        "fine_tune",
        "elsewhere",
        function(
            "forget_gradients(model)",
            "for p in model.values():",
            "    p.grad = np.zeros_like(p.grad)",
        )
        + "\n\n\n"
        + function(
            "fine_tune(model, batches, prefix, after)",
            "velocity = {}",
            "for number, gradients in enumerate(batches):",
            "    if number == after:",
            "        freeze(model, prefix)",
            "    for p in model.values():",
            "        p.grad = None",
            "    deliver_gradients(model, gradients)",
            "    step_all(model, velocity)",
        ),
    ),
    Mutant(
        "fine_tune",
        "not_trained",
        function(
            "step_all(model, velocity)",
            "for p in model.values():",
            "    if p.grad is not None:",
            "        p.values -= 0.1 * p.grad",
        ),
    ),
    Mutant(
        "fine_tune",
        "not_trained",
        function(
            "step_all(model, velocity)",
            "for p in model.values():",
            "    if p.grad is not None and p.grad.any():",
            "        v = velocity.setdefault(p.id, np.zeros_like(p.values))",
            "        v *= 0.8",
            "        v += p.grad + 0.2 * p.values",
            "        p.values -= 0.05 * v",
        ),
    ),
    Mutant(
        "fine_tune",
        "frozen_moved",
        function(
            "forget_gradients(model)",
            "for name in ('body.w', 'head.w'):",
            "    model[name].grad = None",
        ),
    ),
]
