"""Golden trajectories: what optimizers, schedules and clipping do over many steps."""

import numpy as np
import torch
from torch.optim import lr_scheduler

STEPS, EVERY = 50, 10

OPTIMIZERS = {
    "sgd": ("SGD", {"learning_rate": 0.05}),
    "sgd_momentum": ("SGD", {"learning_rate": 0.02, "momentum": 0.9}),
    "sgd_nesterov": ("SGD", {"learning_rate": 0.02, "momentum": 0.9, "nesterov": True}),
    "sgd_decay": ("SGD", {"learning_rate": 0.05, "weight_decay": 0.1}),
    "sgd_momentum_decay": (
        "SGD",
        {"learning_rate": 0.02, "momentum": 0.8, "weight_decay": 0.1},
    ),
    "adam": ("Adam", {"learning_rate": 0.05}),
    "adam_betas": ("Adam", {"learning_rate": 0.02, "betas": (0.8, 0.95), "eps": 1e-3}),
    "adam_decay": ("Adam", {"learning_rate": 0.05, "weight_decay": 0.1}),
    "adamw": ("AdamW", {"learning_rate": 0.05, "weight_decay": 0.1}),
    "adamw_default": ("AdamW", {"learning_rate": 0.01}),
    "rmsprop": ("RMSprop", {"learning_rate": 0.01}),
    "rmsprop_momentum": (
        "RMSprop",
        {"learning_rate": 0.005, "momentum": 0.5, "alpha": 0.9},
    ),
    "adagrad": ("Adagrad", {"learning_rate": 0.1}),
    "adagrad_decay": ("Adagrad", {"learning_rate": 0.1, "rate_decay": 0.1, "weight_decay": 0.05}),
    "rmsprop_centered": ("RMSprop", {"learning_rate": 0.005, "centered": True}),
}

SCHEDULES = {
    "step": ("StepLR", {"step_size": 4, "gamma": 0.5}),
    "exponential": ("ExponentialLR", {"gamma": 0.9}),
    "cosine": ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.01}),
}


def problem():
    """A smooth loss over two parameters whose gradients differ in size and change sign."""
    rng = np.random.default_rng(7)

    def short(shape):
        return np.round(rng.standard_normal(shape) * 1024) / 1024

    return {
        "w": short((3, 2)),
        "b": short((2,)),
        "w_scale": np.round(rng.uniform(0.1, 2, (3, 2)) * 1024) / 1024,
        "b_scale": np.array([0.5, 4.0]),
    }


def loss_of(w, b, w_scale, b_scale):
    """sum(scale w^2) / 2 + sum(sin(w)) and likewise for b."""
    squares = (w_scale * w * w).sum() + (b_scale * b * b).sum()
    return squares * 0.5 + w.sin().sum() + b.sin().sum()


def trajectory(kind, keywords):
    """The parameters after every tenth of fifty steps: arrays (6, 3, 2) and (6, 2)."""
    values = {name: torch.tensor(value) for name, value in problem().items()}
    parameters = [values[name].requires_grad_() for name in ("w", "b")]
    keywords = dict(keywords)
    rate = keywords.pop("learning_rate")
    if "rate_decay" in keywords:
        keywords["lr_decay"] = keywords.pop("rate_decay")
    optimizer = getattr(torch.optim, kind)(parameters, lr=rate, **keywords)
    seen = [[p.detach().numpy().copy() for p in parameters]]
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss_of(**values).backward()
        optimizer.step()
        if step % EVERY == 0:
            seen.append([p.detach().numpy().copy() for p in parameters])
    return {name: np.stack([pair[k] for pair in seen]) for k, name in enumerate("wb")}


def rates(kind, keywords):
    """The learning rate in force at each of 15 steps."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule = getattr(lr_scheduler, kind)(optimizer, **keywords)
    seen = []
    for _ in range(15):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return np.array(seen)


def clipping():
    """Gradients before and after global clipping, and the norm returned."""
    rng = np.random.default_rng(11)
    arrays = {}
    for name, bound in (("active", 1.5), ("inactive", 1e3)):
        parameters = [torch.zeros(3, 2).double(), torch.zeros(4).double()]
        for p in parameters:
            p.grad = torch.tensor(np.round(rng.standard_normal(p.shape) * 1024) / 1024)
        arrays |= {f"{name}/{k}": p.grad.numpy().copy() for k, p in enumerate(parameters)}
        norm = torch.nn.utils.clip_grad_norm_(parameters, bound)
        arrays |= {f"{name}/clipped{k}": p.grad.numpy() for k, p in enumerate(parameters)}
        arrays |= {f"{name}/norm": norm.numpy(), f"{name}/bound": np.array(bound)}
    return arrays


def running():
    """Running statistics of a batch norm before and after one training step."""
    rng = np.random.default_rng(13)
    x = torch.tensor(np.round(rng.standard_normal((4, 3, 2, 5)) * 1024) / 1024)
    mean, var = torch.tensor([0.5, -1.0, 2.0]).double(), torch.tensor([1.0, 0.25, 4.0]).double()
    before = {"x": x.numpy(), "mean": mean.numpy().copy(), "var": var.numpy().copy()}
    torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.25)
    return {**before, "mean_after": mean.numpy(), "var_after": var.numpy()}
