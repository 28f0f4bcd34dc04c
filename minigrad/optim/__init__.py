"""Optimizers, schedules and clipping: `mg.optim`."""

from minigrad.hints import missing
from minigrad.optim.clipping import (
    clip_grad_norm_,
    clip_grad_norm_per_param_,
    clip_grad_value_,
    clip_params_,
)
from minigrad.optim.optimizer import Optimizer
from minigrad.optim.rules import SGD, Adagrad, Adam, AdamW, Lion, RMSprop
from minigrad.optim.scaler import GradScaler
from minigrad.optim.schedules import (
    Constant,
    CosineDecay,
    ExponentialDecay,
    LambdaSchedule,
    LinearWarmup,
    ReduceOnPlateau,
    Schedule,
    Sequence,
    StepDecay,
    WarmupCosine,
    cosine,
    warmup_cosine,
)

__all__ = [
    "SGD", "Adagrad", "Adam", "AdamW", "Constant", "CosineDecay", "ExponentialDecay", "GradScaler",
    "LambdaSchedule", "LinearWarmup", "Lion", "Optimizer", "RMSprop", "ReduceOnPlateau", "Schedule",
    "Sequence", "StepDecay", "WarmupCosine", "clip_grad_norm_", "clip_grad_norm_per_param_",
    "clip_grad_value_", "clip_params_", "cosine", "warmup_cosine",
]  # fmt: skip


def __getattr__(name):
    raise missing("mg.optim", name, "mg.optim has no", known=__all__)
