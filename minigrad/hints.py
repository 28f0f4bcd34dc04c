"""Hints for errors: what to write instead of names and arguments of PyTorch, NumPy and others.

Each table is keyed by place. Only failing calls and missing names look into the tables.
"""

import difflib
import functools
import inspect
import sys
from opcode import opmap

from minigrad.errors import ArgumentError, ArgumentTypeError, is_ours

_ONE_ORDER = "nothing: all kernels of a device run in the order of their launches"
_TIMES = "time.perf_counter(), after mg.cuda.synchronize()"
_ARRAYS = "a pair of NumPy arrays: mg.data.batches(x, y, batch_size=32)"

NAMES = {  # {place: {name elsewhere: name here}}
    "mg": {
        "Parameter": "mg.nn.Parameter", "Tensor": "mg.variable(data)",
        "as_tensor": "mg.variable(data)", "asarray": "mg.variable(data)", "bool": "mg.bool_",
        "bmm": "mg.matmul(a, b)", "cat": "mg.concatenate([a, b])",
        "chunk": "mg.split(x, sizes=-(-len(x) // n))", "clamp": "mg.clip(x, low, high)",
        "DataParallel": "mg.distributed.DataParallel(model)",
        "concat": "mg.concatenate([a, b])", "dot": "a @ b", "empty": "mg.zeros(shape)",
        "empty_like": "mg.zeros_like(x)", "float": "mg.float32",
        "from_array": "mg.from_numpy(array)", "GradScaler": "mg.optim.GradScaler",
        "gradcheck": "mg.debug.gradcheck(f, inputs)",
        "gradgradcheck": "mg.debug.gradgradcheck(f, inputs)",
        "half": "mg.float16", "hstack": "mg.concatenate(xs, 1)",
        "index_select": "x[index]", "inference_mode": "mg.inference()", "int": "mg.int64",
        "is_grad_enabled": "mg.is_recording()", "is_tensor": "isinstance(x, mg.Variable)",
        "long": "mg.int64",
        "mm": "mg.matmul(a, b)", "mse_loss": "mg.mse(x, target)", "normal": "mg.randn(shape)",
        "numel": "x.size",
        "seed": "mg.manual_seed(seed)", "set_grad_enabled": "mg.no_grad() and mg.enable_grad()",
        "take_along_axis": "mg.gather(x, index, axis)", "tensor": "mg.variable(data)",
        "uniform": "mg.rand(shape)",
        "utils": "mg.data.batches(x, y, batch_size=32), for utils.data.DataLoader",
        "view": "mg.reshape(x, shape)",
        "vstack": "mg.concatenate(xs, 0)",
    },
    "Variable": {
        "astype": "x.to(dtype)", "bfloat16": "x.to('bfloat16')", "bool": "x.to('bool')",
        "chunk": "mg.split(x, sizes=-(-len(x) // n))", "clamp": "x.clip(low, high)",
        "contiguous": "x.clone()", "copy": "x.clone()", "cpu": "x.to('cpu')",
        "cuda": "x.to('cuda')", "data": "x.detach()", "dim": "x.ndim", "dot": "x @ y",
        "double": "x.to('float64')", "element_size": "x.dtype.itemsize",
        "float": "x.to('float32')", "grad_fn": "x.node",
        "half": "x.to('float16')", "int": "x.to('int32')",
        "is_contiguous": "x.array.is_contiguous", "itemsize": "x.dtype.itemsize",
        "long": "x.to('int64')", "mT": "x.permute(0, 2, 1) of a batch of matrices, x.T of one",
        "mm": "x @ y", "movedim": "x.permute(axes)",
        "numel": "x.size", "ravel": "x.flatten()",
        "repeat": "mg.concatenate([x] * n, axis) for the whole, mg.repeat(x, n, axis=axis) for "
        "each element",
        "split": "mg.split(x, sizes=n, axis=axis) for parts of n, sections=n for n parts",
        "retain_grad": "x.register_hook(f), or mg.gradients(y, x) for the gradient of a result",
        "swapaxes": "x.permute(axes)", "t": "x.T", "type": "x.to(dtype)",
        "view": "x.reshape(shape)", "view_as": "x.reshape(y.shape)", "zero_grad": "x.grad = None",
    },
    "Module": {
        "double": "model.to('float64')", "float": "model.to('float32')",
        "half": "model.to('float16')",
        "bfloat16": "model.to('bfloat16')",
        "type": "model.to(dtype)", "cuda": "model.to('cuda')", "cpu": "model.to('cpu')",
        "apply": "for module in model.modules(): f(module)",
        "add_module": "setattr(model, name, module)",
        "register_module": "setattr(model, name, module)",
        "get_submodule": "dict(model.named_modules())[name]",
        "get_parameter": "dict(model.named_parameters())[name]",
        "get_buffer": "dict(model.named_buffers())[name]",
        "register_forward_pre_hook": "a line in forward, or before the call of the module",
        "register_backward_hook": "y.register_hook(f) on what forward returns",
        "register_full_backward_hook": "y.register_hook(f) on what forward returns",
    },
    "GradScaler": {
        "is_enabled": "scaler.enabled", "get_growth_factor": "scaler.state_dict()['growth_factor']",
        "get_backoff_factor": "scaler.state_dict()['backoff_factor']",
        "get_growth_interval": "scaler.state_dict()['growth_interval']",
    },
    "Optimizer": {
        "lr": "learning_rate", "params": "parameters", "param_groups": "groups",
        "add_param_group": "add",
    },
    "mg.autograd": {
        "Function": "mg.Function", "Variable": "mg.variable(data)",
        "backward": "y.backward(dy)", "enable_grad": "mg.enable_grad()",
        "detect_anomaly": "mg.debug.detect_anomaly()",
        "set_detect_anomaly": "mg.debug.detect_anomaly()",
        "grad": "mg.gradients(y, x), or mg.grad(f)(x) of a function",
        "gradgradcheck": "mg.debug.gradgradcheck(f, inputs)",
        "hessian": "mg.hessian(f)(x)", "inference_mode": "mg.inference()",
        "jacobian": "mg.jacobian(f)(x)", "no_grad": "mg.no_grad()",
        "set_grad_enabled": "mg.no_grad() and mg.enable_grad()",
    },
    "mg.nn": {
        "DataParallel": "mg.distributed.DataParallel(model)",
        "functional": "mg itself that has functions: mg.relu, mg.softmax, mg.cross_entropy, ...",
        "utils": "mg.optim that has clipping: mg.optim.clip_grad_norm_, clip_grad_value_",
        "modules": "mg.nn itself that has layers: mg.nn.Linear, ...",
        "CrossEntropyLoss": "the function mg.cross_entropy(logits, labels)",
        "NLLLoss": "the function mg.cross_entropy(logits, labels), which takes the log softmax "
        "itself",
        "MSELoss": "the function mg.mse(prediction, target)",
        "L1Loss": "(prediction - target).abs().mean()",
        "HuberLoss": "the function mg.huber(prediction, target)",
        "SmoothL1Loss": "the function mg.huber(prediction, target, delta=beta) / beta",
        "BCEWithLogitsLoss": "the function mg.bce_with_logits(logits, target)",
        "BCELoss": "the function mg.bce_with_logits(logits, target), which takes the sigmoid "
        "itself",
        "BatchNorm": "mg.nn.BatchNorm1d or mg.nn.BatchNorm2d",
        "MultiheadAttention": "mg.nn.MultiHeadAttention",
        "TransformerEncoderLayer": "mg.nn.TransformerBlock",
        "LogSoftmax": "the function mg.log_softmax(x)",
        "Identity": "mg.nn.Sequential(), with nothing in it",
        "AdaptiveAvgPool2d": "x.mean(axis=(2, 3)) for the mean of each channel",
        "Swish": "mg.nn.SiLU",
        "ParameterList": "a Module with attributes: setattr(self, f'weight_{k}', parameter)",
        "ParameterDict": "a Module with attributes: setattr(self, name, parameter)",
    },
    "mg.optim": {
        "lr_scheduler": "mg.optim itself that has schedules: StepDecay, CosineDecay, "
        "WarmupCosine, ...",
        "StepLR": "StepDecay(optimizer, every, factor)",
        "MultiStepLR": "LambdaSchedule(optimizer, lambda t: factor ** sum(t >= m for m in steps))",
        "LambdaLR": "LambdaSchedule(optimizer, function)",
        "ExponentialLR": "ExponentialDecay(optimizer, factor)",
        "CosineAnnealingLR": "CosineDecay(optimizer, steps, minimum)",
        "ConstantLR": "Constant(optimizer, factor, steps)",
        "LinearLR": "LinearWarmup(optimizer, steps, start)",
        "OneCycleLR": "WarmupCosine(optimizer, warmup, steps, minimum)",
        "SequentialLR": "Sequence(optimizer, schedules, milestones)",
        "ChainedScheduler": "nothing: schedules of one optimizer are a chain; step each of them",
        "ReduceLROnPlateau": "ReduceOnPlateau(optimizer, factor, patience)",
        "clip_grad_norm": "clip_grad_norm_(parameters, max_norm)",
    },
    "mg.data": {
        "DataLoader": "mg.data.batches(x, y, batch_size=32), of NumPy arrays",
        "Dataset": _ARRAYS, "TensorDataset": _ARRAYS,
        "random_split": "mg.data.stratified_split(x, labels)",
    },
    "mg.distributed": {  # of PyTorch, Horovod and MPI
        "DistributedDataParallel": "mg.distributed.DataParallel(model)",
        "ReduceOp": "an argument: all_reduce(x, op='sum')",
        "SUM": "an argument: all_reduce(x, op='sum')",
        "DistributedSampler": "mg.distributed.batches(x, y, batch_size=32)",
        "allgather": "mg.distributed.all_gather(x)", "allreduce": "mg.distributed.all_reduce(x)",
        "bcast": "mg.distributed.broadcast(x, root=0)",
        "get_rank": "mg.distributed.rank()", "get_world_size": "mg.distributed.size()",
        "init_process_group": "mg.distributed.init()",
        "spawn": "mg.distributed.run(f, ranks) in threads, `minigrad run -n 4 train.py` in "
        "processes",
        "world_size": "mg.distributed.size()",
    },
    "mg.cuda": {  # of Numba, CuPy and PyTorch
        "to_device": "x.to('cuda'), or a NumPy array for the simulator",
        "device_array": "mg.zeros(shape, device='cuda')",
        "amp": "mg.autocast('float16') and mg.optim.GradScaler",
        "empty_cache": "mg.memory.empty_cache()", "current_device": "mg.device, a context manager",
        "reduce": "x.sum(), or a kernel of your own",
        "declare_device": "@mg.cuda.jit(device=True)",
        "device_count": "int(mg.cuda.is_available()): minigrad uses one GPU",
        "get_device_name": "`minigrad doctor`, which names the GPU",
        "memory_allocated": "mg.memory.stats('cuda')['current_bytes']",
        "max_memory_allocated": "mg.memory.stats('cuda')['peak_bytes']",
        "memory_reserved": "mg.memory.stats('cuda')['reserved_bytes']",
        "set_device": "`with mg.device('cuda'):` or mg.set_default_device('cuda')",
        "manual_seed": "mg.manual_seed(seed), for all devices",
        "manual_seed_all": "mg.manual_seed(seed), for all devices",
        "stream": _ONE_ORDER, "Stream": _ONE_ORDER, "event": _TIMES, "Event": _TIMES,
    },
}  # fmt: skip
_SAYS = {  # {place: wording of its hints}; for other places "here it is {}"
    "mg": "here it is called {}",
    "Variable": "here it is called {}",
    "Optimizer": "it is called {} here",
}

_LEFT_OUT = {
    "inplace": "leave it out: layers do not write to their input",
    "device": "leave it out: model.to(device), or `with mg.device(device):` around its making",
    "batch_first": "leave it out: the batch is always the first axis",
    "padding_mode": "padding is with zeros; pad the input otherwise before the layer",
    "norm_first": "leave it out: blocks are pre-norm",
    "set_to_none": "leave it out: zero_grad() always sets .grad to None",
    "set_grads_to_none": "leave it out: zero_grad() always sets .grad to None",
}
_NUMBAS = "leave it out: minigrad chooses Numba's options"
_FROZEN = "leave it out: strings are compared by value, and numbers until they change"

ARGUMENTS = {  # {place: {keyword elsewhere: keyword here, keyword with value, or what to do}}
    "function": {
        "a_max": "high", "a_min": "low", "dim": "axis", "dims": "axes", "end": "stop",
        "end_dim": "end_axis", "fill_value": "value", "grad_outputs": "dy", "gradient": "dy",
        "input": "x", "keepdim": "keepdims", "label": "target", "labels": "target", "max": "high",
        "min": "low", "negative_slope": "slope", "num": "count", "num_classes": "classes",
        "rtol": "relative", "atol": "absolute", "size": "shape", "start_dim": "start_axis",
        "steps": "count", "weights": "weight",
        "attn_mask": "mask=~attn_mask for bools: here True is where attention is allowed",
        "key_padding_mask": "mask=~padding[:, None, None, :] for bools: here True is where "
        "attention is allowed",
        "requires_grad": "{name}(...).requires_grad_()",
    },
    "layer": {
        "in_features": "inputs", "out_features": "outputs", "in_channels": "inputs",
        "out_channels": "outputs", "kernel_size": "size", "num_embeddings": "count",
        "embedding_dim": "size", "padding_idx": "padding_index", "normalized_shape": "size",
        "num_features": "channels", "embed_dim": "size", "d_model": "size", "num_heads": "heads",
        "nhead": "heads", "dim_feedforward": "hidden", "negative_slope": "slope", "dim": "axis",
        **_LEFT_OUT,
    },
    "optimizer": NAMES["Optimizer"] | _LEFT_OUT | {
        "lr_decay": "rate_decay",
        "dampening": "leave it out: the gradient joins the momentum whole",
        "amsgrad": "leave it out: the second moment is a moving average",
        "maximize": "(-loss).backward()",
        "fused": "leave it out: one kernel updates all parameters",
        "foreach": "leave it out: one kernel updates all parameters",
    },
    "schedule": {
        "step_size": "every", "gamma": "factor", "T_max": "steps", "total_iters": "steps",
        "total_steps": "steps", "num_training_steps": "steps", "warmup_steps": "warmup",
        "num_warmup_steps": "warmup", "eta_min": "minimum", "min_lr": "minimum",
        "start_factor": "start", "schedulers": "schedules",
        "last_epoch": "leave it out: load_state_dict(saved) continues a saved schedule",
        "verbose": "leave it out: print optimizer.learning_rate",
        "max_lr": "leave it out: the peak is the optimizer's own learning_rate",
    },
    "compile": {  # of PyTorch and JAX
        "mode": "leave it out: there is one way to compile",
        "fullgraph": "leave it out: a step is one program, always; what no program can do raises",
        "dynamic": "leave it out: each shape has a program of its own; pad the last batch, or drop "
        "it",
        "backend": "leave it out: programs are generated Python that Numba compiles",
        "options": "leave it out: there are none",
        "disable": "set MINIGRAD_COMPILE=0 in the environment: everything runs as usual then",
        "static_argnums": _FROZEN, "static_argnames": _FROZEN,
        "donate_argnums": "donate", "donate_argnames": "donate",
    },
    "kernel": dict.fromkeys(  # of Numba
        [
            "boundscheck", "cache", "debug", "error_model", "fast_compile", "fastmath",
            "forceinline", "forceobj", "inline", "launch_bounds", "lineinfo", "link", "locals",
            "looplift", "lto", "max_registers", "nogil", "nopython", "opt", "parallel", "signature",
            "target",
        ],
        _NUMBAS,
    ),
}  # fmt: skip

# {function: what to write} if the arguments of a call do not fit
ADVICE = {
    "autocast": "`with mg.autocast('float16'):`, the dtype alone, for every device",
    "save": "mg.save('run.safetensors', model=model, optimizer=optimizer, step=1)",
    "load": "mg.load('run.safetensors', model=model, optimizer=optimizer)",
    **dict.fromkeys(
        ("no_grad", "enable_grad", "inference"),
        "`with mg.no_grad():` around lines, or `@mg.no_grad()` above a function; x.detach() is x "
        "without its graph",
    ),
    **{
        name.partition(".")[2]: f"`with mg.{name}():` around lines, or `@mg.{name}()` above a "
        "function"
        for name in (
            "debug.detect_anomaly",
            "debug.record_grad_function",
            "memory.copy_on_saved_write",
        )
    },
    **dict.fromkeys(
        ("step", "zero_grad"),
        "loss.backward(), optimizer.step(), optimizer.zero_grad(), in this order",
    ),
    "GradScaler.step": "scaler.step(optimizer), after scaler.scale(loss).backward()",
    "GradScaler.unscale_": "scaler.unscale_(optimizer), after scaler.scale(loss).backward()",
    "log": "mg.log(x) / math.log(base), or mg.log2(x), for another base",
    "power": "mg.pow(a, b); mg.remainder(mg.pow(a, b), n) for a power modulo n",
    "sort": "mg.sort(x, axis=1) gives the values alone, as np.sort; mg.argsort(x, 1) their places",
    "normalize": "mg.normalize(x, axis=1) divides by the Euclidean norm along an axis; for another "
    "p, x / (x.abs() ** p).sum(axis=1, keepdims=True) ** (1 / p)",
    "batches": "mg.data.batches(x, y, batch_size=32, seed=epoch): any number of arrays, and the "
    "rest by name; a seed shuffles, another one in another order",
    "distributed.batches": "mg.distributed.batches(x, y, batch_size=32): any number of arrays, and "
    "the rest by name",
    "distributed.backward": "replica.backward(loss, weight=len(x)): the weight is the number of "
    "examples behind the loss",
    "lstsq": "mg.linalg.lstsq(a, b): there is no rcond; a has to be of full rank",
    "item": "x.item() of one element; x[0].item() of one among several",
    "transpose": "x.permute(1, 0) puts the axes in an order; x.T reverses them",
    "norm": "mg.norm(x, axis=1) is the Euclidean norm along an axis; others are written out, such "
    "as x.abs().sum(axis=1)",
    "max": "x.max(axis=1) for the values alone, x.argmax(axis=1) for their places; "
    "mg.maximum(a, b) for the larger of two",
    "min": "x.min(axis=1) for the values alone, x.argmin(axis=1) for their places; "
    "mg.minimum(a, b) for the smaller of two",
    "split": "mg.split(x, sections=3) makes 3 parts, as np.array_split, and mg.split(x, sizes=3) "
    "parts of 3, as torch.split",
    "repeat": "mg.repeat(x, 2, axis=0) repeats each element, as np.repeat; "
    "mg.concatenate([x] * 2, axis=0) repeats the whole, as torch.Tensor.repeat",
    "diagonal": "axes have names: mg.diagonal(x, axis1=0, axis2=1)",
    "batch_norm": "all but x by name, as other libraries order them otherwise: mg.batch_norm(x, "
    "weight=w, bias=b, running_mean=m, running_var=v, training=True)",
    "gradients": "by name, as PyTorch has them in another order: create_graph=, retain_graph=",
    "gradcheck": "by name, as PyTorch has them in another order: eps=, rtol=, atol=",
    "gradgradcheck": "by name, as PyTorch has them in another order: eps=, rtol=, atol=",
    "cross_entropy": "after the weight by name: ignore_index=, label_smoothing=, reduction=, axis=",
    "full": "the shape is one tuple: full((2, 3), 0.5)",
}
for _name in ("var", "std"):
    ADVICE[_name] = (
        f"x.{_name}(axis=1, ddof=0) divides by n, x.{_name}(axis=1, ddof=1) by n - 1; all but the "
        "axis by name"
    )
for _name in ("zeros", "ones", "rand", "randn"):
    ADVICE[_name] = f"the shape is one tuple: {_name}((2, 3))"
NO_AXIS = {  # {function: what to write} if another argument stands where the axis belongs
    "max": "mg.maximum(a, b) for the larger of two",
    "min": "mg.minimum(a, b) for the smaller of two",
    "gather": "the axis comes last: gather(x, index, axis)",
    "scatter_add": "the axis comes last: scatter_add(x, index, source, axis)",
    "index_add": "the axis comes last: index_add(x, index, source, axis)",
}


def missing(place, name, text, hint=None, otherwise=None, known=()):
    """Returns the AttributeError for a missing name; the ImportError if a module's is imported.

    Python would replace an AttributeError, and its hint, by an ImportError of its own.

    Args:
        place: the key of the table of names.
        name: the missing name.
        text: the beginning of the message; the name follows.
        hint: what to use instead, if the table has no entry.
        otherwise: the end of the message if there is no hint.
        known: names of the place; without a hint, the message suggests the closest one, or
            dir(place) if none is close and `otherwise` is empty.
    """
    from minigrad.left_out import LEFT_OUT  # long, and needed only when a name is missing

    hint = NAMES.get(place, {}).get(name) or LEFT_OUT.get(place, {}).get(name) or hint
    if hint:
        says = "here it is {}" if hint.startswith(("a ", "an ", "nothing")) else _SAYS.get(place)
        otherwise = (says or "here it is {}").format(hint)
    elif known and not name.startswith("_"):
        spellings = {k.lower().replace("_", ""): k for k in known if not k.startswith("_")}
        close = difflib.get_close_matches(name.lower().replace("_", ""), spellings, 1, 0.7)
        if close:
            otherwise = f"did you mean {spellings[close[0]]}?"
        elif otherwise is None:
            otherwise = f"dir({place}) lists it all"
    text = f"{text} '{name}'" + (f"; {otherwise}" if otherwise else "")
    caller = sys._getframe(2)
    is_imported = caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]
    return ImportError(text, name=name) if is_imported else AttributeError(text)


def _instead(place, keyword, known, name):
    """Returns what to write instead of a keyword in a call of `name`, or None."""
    hint = ARGUMENTS[place].get(keyword, "")
    ours, has_value, _ = hint.partition("=")
    if ours in known:
        return hint if has_value else f"{ours}=, as it is called here"
    return None if ours.isidentifier() else hint.format(name=name)


def refuse_unknown_arguments(name, function, given, place):
    """Raises ArgumentTypeError for a keyword that the function does not have.

    Args:
        name: the name of the function, for the message.
        function: the function, or the names of its arguments.
        given: keywords of the call.
        place: the key of the table of arguments.
    """
    known = function
    if not isinstance(function, tuple):
        code = getattr(function, "__code__", None)
        if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
            return  # the function checks its keywords itself
        count = code.co_argcount + code.co_kwonlyargcount
        known = [n for n in code.co_varnames[code.co_posonlyargcount : count] if n != "self"]
    for keyword in given:
        if keyword not in known:
            fix = _instead(place, keyword, known, name)
            fix = fix or f"it takes {', '.join(known) or 'no arguments'}"
            raise ArgumentTypeError(f"{name}: there is no argument {keyword}", fix=fix)


def fails_at_the_call(error):
    """Returns whether a TypeError caught at a call comes from the call itself, not from inside."""
    return error.__traceback__.tb_next is None


def explained(function, error, keywords=(), name=None):
    """Returns the error for a call whose arguments do not fit the function's signature.

    name: the name in the message; the function's own by default.
    """
    signature = inspect.signature(function)
    known, name = signature.parameters, name or function.__name__
    rest = [p for p in known.values() if p.name != "self"]
    rest = [p for p in rest if p.kind is not p.VAR_KEYWORD]  # **unknown exists only to refuse
    signature = signature.replace(parameters=rest)
    fixes = (_instead("function", k, known, name) for k in keywords if k not in known)
    got = str(error).partition("() ")[2].removeprefix("got ")
    place = f"{function.__module__}..".split(".")[1]
    names = function.__qualname__, f"{place}.{name}", name
    advice = next((ADVICE[n] for n in names if n in ADVICE), None)
    fix = next(filter(None, fixes), None) or advice
    return ArgumentTypeError(f"{name}: wanted {name}{signature}", got, fix)


def refuse_misfit(cls, args, kwargs):
    """Raises ArgumentTypeError if the arguments of a call of a class do not fit its __init__."""
    signature = inspect.signature(cls.__init__, follow_wrapped=False)  # Python calls the wrapper
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError as error:
        name, (_, *rest) = cls.__name__, signature.parameters.values()
        raise ArgumentTypeError(
            f"{name}: wanted {name}{signature.replace(parameters=rest)}",
            str(error),
            ADVICE.get(name) or _made_first(name, args),
        ) from None


def _explain_digits(name, error):
    """Raises ArgumentError if the error is Python's refusal to print a long int in a message."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    is_long = str(error).startswith("Exceeds the limit")
    if is_long and is_ours(trace.tb_frame.f_code.co_filename):  # not the user's own printing
        raise ArgumentError(
            f"{name}: wanted numbers that it can use",
            f"an int of more than {sys.get_int_max_str_digits():,} digits",
        ) from None


def teaching_class(cls):
    """Wraps a class so that a wrong call raises ArgumentTypeError with the signature."""
    begin = cls.__init__

    @functools.wraps(begin)
    def __init__(self, *args, **kwargs):
        try:
            begin(self, *args, **kwargs)
        except ValueError as error:
            _explain_digits(type(self).__name__, error)
            raise
        except TypeError as error:
            if not fails_at_the_call(error):
                raise
            raise explained(begin, error, kwargs, type(self).__name__) from None

    cls.__init__ = __init__
    return cls


def _made_first(name, args):
    """Returns what to write if a layer's constructor got the arguments of its call."""
    if any(hasattr(x, "requires_grad") for x in args):
        return f"make it, then call it: layer = {name}(...), y = layer(x)"
    return None


def teaching(function):
    """Wraps a function so that a wrong call raises ArgumentTypeError with its signature.

    If a message of ours contains an int that Python cannot print, the wrapper raises ArgumentError.
    """

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            _explain_digits(function.__name__, error)
            raise
        except TypeError as error:
            if not fails_at_the_call(error):
                raise
            raise explained(function, error, kwargs) from None

    return wrapper
