"""What names and arguments of PyTorch's optimizers and schedules are called here."""

KNOWN_AS = {  # of optimizers
    "lr": "learning_rate", "params": "parameters", "param_groups": "groups",
    "add_param_group": "add",
}  # fmt: skip

SCHEDULE_ARGUMENTS = {
    "step_size": "every", "gamma": "factor", "T_max": "steps", "total_iters": "steps",
    "total_steps": "steps", "num_training_steps": "steps", "warmup_steps": "warmup",
    "num_warmup_steps": "warmup", "eta_min": "minimum", "min_lr": "minimum",
    "start_factor": "start", "schedulers": "schedules",
}  # fmt: skip

NO_SCHEDULE_ARGUMENTS = {
    "last_epoch": "leave it out: load_state_dict(saved) goes on where another one was",
    "verbose": "leave it out: print optimizer.learning_rate",
    "max_lr": "leave it out: the peak is the optimizer's own learning_rate",
}

OPTIMIZERS = {  # of mg.optim
    "lr_scheduler": "mg.optim itself that has schedules: StepDecay, CosineDecay, WarmupCosine, ...",
    "StepLR": "StepDecay(optimizer, every, factor)",
    "MultiStepLR": "a Schedule of your own: define rate(t, peak)",
    "LambdaLR": "a Schedule of your own: define rate(t, peak)",
    "ExponentialLR": "ExponentialDecay(optimizer, factor)",
    "CosineAnnealingLR": "CosineDecay(optimizer, steps, minimum)",
    "ConstantLR": "Constant(optimizer, factor, steps)",
    "LinearLR": "LinearWarmup(optimizer, steps, start)",
    "OneCycleLR": "WarmupCosine(optimizer, warmup, steps, minimum)",
    "SequentialLR": "Sequence(optimizer, schedules, milestones)",
    "ChainedScheduler": "nothing: schedules of one optimizer are a chain; step each of them",
    "ReduceLROnPlateau": "ReduceOnPlateau(optimizer, factor, patience)",
    "clip_grad_norm": "clip_grad_norm_(parameters, max_norm)",
}
