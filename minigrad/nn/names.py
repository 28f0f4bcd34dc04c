"""What names and arguments from PyTorch are called here: hints for error messages."""

import difflib
import inspect

from minigrad.errors import ArgumentTypeError

ARGUMENTS = {  # of layers
    "in_features": "inputs", "out_features": "outputs", "in_channels": "inputs",
    "out_channels": "outputs", "kernel_size": "size", "num_embeddings": "count",
    "embedding_dim": "size", "padding_idx": "padding_index", "normalized_shape": "size",
    "num_features": "channels", "embed_dim": "size", "d_model": "size", "num_heads": "heads",
    "nhead": "heads", "dim_feedforward": "hidden", "negative_slope": "slope", "dim": "axis",
}  # fmt: skip

NO_ARGUMENTS = {
    "inplace": "leave it out: layers do not write to their input",
    "device": "leave it out: model.to(device), or `with mg.device(device):` around its making",
    "batch_first": "leave it out: the batch is always the first axis",
    "padding_mode": "padding is with zeros; pad the input otherwise before the layer",
    "norm_first": "leave it out: blocks are pre-norm",
    "set_to_none": "leave it out: zero_grad() always sets .grad to None",
    "set_grads_to_none": "leave it out: zero_grad() always sets .grad to None",
}

MEMBERS = {  # of modules
    "double": "model.to('float64')",
    "float": "model.to('float32')",
    "half": "there is no float16; model.to('float32') or 'float64'",
    "bfloat16": "there is no bfloat16; model.to('float32') or 'float64'",
    "type": "model.to(dtype)",
    "cuda": "model.to('cuda')",
    "cpu": "model.to('cpu')",
    "apply": "for module in model.modules(): f(module)",
    "add_module": "setattr(model, name, module)",
    "register_module": "setattr(model, name, module)",
    "get_submodule": "dict(model.named_modules())[name]",
    "get_parameter": "dict(model.named_parameters())[name]",
    "get_buffer": "dict(model.named_buffers())[name]",
    "register_forward_pre_hook": "change the input in forward, or before calling the module",
    "register_backward_hook": "y.register_hook(f) on what forward returns",
    "register_full_backward_hook": "y.register_hook(f) on what forward returns",
}

LAYERS = {  # of mg.nn
    "functional": "functions are in mg itself: mg.relu, mg.softmax, mg.cross_entropy, ...",
    "utils": "clipping is in mg.optim: mg.optim.clip_grad_norm_, clip_grad_value_",
    "modules": "layers are in mg.nn itself: mg.nn.Linear, ...",
    "parameter": "mg.nn.Parameter",
    "CrossEntropyLoss": "the function mg.cross_entropy(logits, labels)",
    "NLLLoss": "the function mg.cross_entropy(logits, labels), which takes the log softmax itself",
    "MSELoss": "the function mg.mse(prediction, target)",
    "L1Loss": "(prediction - target).abs().mean()",
    "HuberLoss": "the function mg.huber(prediction, target)",
    "SmoothL1Loss": "the function mg.huber(prediction, target, delta=beta) / beta",
    "BCEWithLogitsLoss": "the function mg.bce_with_logits(logits, target)",
    "BCELoss": "the function mg.bce_with_logits(logits, target), which takes the sigmoid itself",
    "BatchNorm": "mg.nn.BatchNorm1d or mg.nn.BatchNorm2d",
    "MultiheadAttention": "mg.nn.MultiHeadAttention",
    "TransformerEncoderLayer": "mg.nn.TransformerBlock",
    "LogSoftmax": "the function mg.log_softmax(x)",
    "Identity": "mg.nn.Sequential(), with nothing in it",
    "AdaptiveAvgPool2d": "x.mean(axis=(2, 3)) for the mean of each channel",
    "Swish": "mg.nn.SiLU",
    "ParameterList": "a Module with attributes: setattr(self, f'weight_{k}', parameter)",
    "ParameterDict": "a Module with attributes: setattr(self, name, parameter)",
    "RNN": "a Module whose forward loops over the steps, with mg.nn.Linear in it",
    "LSTM": "a Module whose forward loops over the steps, with mg.nn.Linear in it",
    "GRU": "a Module whose forward loops over the steps, with mg.nn.Linear in it",
}


def refuse_unknown_arguments(name, function, given, renamed, absent):
    """Raises ArgumentTypeError if a keyword is none of the function's.

    Args:
        name: what was called, for the message.
        function: it, or the names of its arguments.
        given: keywords of the call.
        renamed: {keyword elsewhere: what it is called here}.
        absent: {keyword elsewhere: what to do without it}.
    """
    if isinstance(function, tuple):
        known = list(function)
    else:
        code = getattr(function, "__code__", None)
        if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
            return  # it looks at its keywords itself
        count = code.co_argcount + code.co_kwonlyargcount
        known = [n for n in code.co_varnames[code.co_posonlyargcount : count] if n != "self"]
    for keyword in given:
        ours = renamed.get(keyword)
        if keyword in known:
            continue
        if ours in known:
            fix = f"{ours}=, as it is called here"
        elif keyword in absent:
            fix = absent[keyword]
        elif known:
            fix = f"it takes {', '.join(known)}"
        else:
            fix = "it takes no arguments"
        raise ArgumentTypeError(f"{name}: there is no argument {keyword}", fix=fix)


def missing(where, name, hints, known):
    """An AttributeError for a module `where` that lacks `name`."""
    text = f"{where} has no '{name}'"
    if name in hints:
        return AttributeError(f"{text}; here it is {hints[name]}")
    if not name.startswith("_"):
        spellings = {k.lower().replace("_", ""): k for k in known}
        close = difflib.get_close_matches(name.lower().replace("_", ""), spellings, 1, 0.7)
        text += (
            f"; did you mean {spellings[close[0]]}?" if close else f"; dir({where}) lists it all"
        )
    return AttributeError(text)
