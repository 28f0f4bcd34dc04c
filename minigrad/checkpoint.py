"""Checkpoints: save a training run to one file, whole or not at all, and load it.

The file has the safetensors format (https://github.com/huggingface/safetensors): arrays by name,
and JSON beside them. Reading it runs no code. The arrays of the part `model` keep their own names,
as in the files of weights that other libraries read and write. All other arrays are named
`part/name`.
"""

import contextlib
import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np

from minigrad.arguments import flag, shown
from minigrad.array.bits import outside
from minigrad.array.dtypes import DTYPES, of_numpy
from minigrad.devices.backend import values
from minigrad.errors import ArgumentTypeError, DTypeError, MinigradError, StateError
from minigrad.hints import ADVICE, teaching
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn import state as model_state
from minigrad.nn.module import Module
from minigrad.ops.creation import Generator, get_rng_state, set_rng_state, variable
from minigrad.optim import saving as optimizer_state
from minigrad.optim import scaler as scaler_state
from minigrad.optim import schedules as schedule_state
from minigrad.optim.optimizer import Optimizer
from minigrad.optim.scaler import GradScaler
from minigrad.optim.schedules import Schedule
from minigrad.seams import seams
from minigrad.tape.variable import Variable

FORMAT = 2  # increases when older versions would misread a new file; 2 added tuples
MAIN = "model"  # the part whose arrays keep their own names
KEY = "minigrad"  # the key of our JSON in the file's metadata
DEEPEST = 100  # levels of nested lists: a list may contain itself
LONGEST = 10_000  # bits of an int: Python reads at most 4,300 digits from JSON


@teaching
def save(path, /, *, rng=True, **parts):
    """Writes parts of a training run to one file; `load` restores them.

    The new file replaces the old one only when it is complete. If the process is killed, one of the
    two files is there, whole.

    Args:
        path: the file to write; its name usually ends in .safetensors.
        rng: whether to save the state of the default random generator as well.
        parts: modules, optimizers, schedules, GradScalers and Generators; Variables and arrays;
            None, numbers, strings, and lists, tuples and dicts of these. Such values load equal to
            what was saved: a NumPy scalar as Python's number, an object of a subclass as one of the
            plain type.

    Raises:
        ArgumentTypeError: a part has another type, or contains such a value. The error names its
            place, such as config['rates'][2].
        DTypeError: an array has a dtype that minigrad lacks.

    >>> import minigrad as mg, pathlib, tempfile
    >>> model = mg.nn.Linear(3, 2)
    >>> optimizer = mg.optim.Adam(model, learning_rate=1e-3)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.safetensors"
    >>> mg.save(path, model=model, optimizer=optimizer, step=10)
    >>> mg.load(path, model=model, optimizer=optimizer)["step"]
    10
    """
    seams.effects.refuse("save: a compiled step writes no files", "call it outside the step")
    path, rng = _path("save", path), flag("save", "rng", rng)
    if not parts:
        raise ArgumentTypeError("save: wanted the parts to save, by name", "none", ADVICE["save"])
    held, described = {}, {}
    for name, part in parts.items():
        of_part, described[name] = _described(name, part)
        held |= {_key(name, inner): (x, name) for inner, x in of_part.items()}
    notes = {"format": FORMAT, "parts": described}
    if rng:
        notes["rng"] = list(get_rng_state())
    # the arrays show the memory of what `held` keeps: a state_dict may have made it for this call
    arrays = {key: _array(x, name) for key, (x, name) in held.items()}
    _write(path, arrays, {KEY: json.dumps(notes)})


def _path(where, path):
    if isinstance(path, (str, os.PathLike)):
        return Path(path)
    raise ArgumentTypeError(f"{where}: wanted a path", shown(path), ADVICE["save"])


def _key(part, name):
    return name if part == MAIN else f"{part}/{name}" if name else part


def _described(name, part):
    """Returns ({name: Variable or ndarray}, JSON) for a part."""
    if isinstance(part, Module):
        return part.state_dict(), {"kind": "module"}
    if isinstance(part, Optimizer):
        saved = part.state_dict()
        arrays = {
            f"{key}/{slot}": x for key, slots in saved["state"].items() for slot, x in slots.items()
        }
        saved["state"] = {key: list(slots) for key, slots in saved["state"].items()}
        return arrays, {"kind": "optimizer", "state": _encoded(saved, name)}
    if isinstance(part, Schedule):
        return {}, {"kind": "schedule", "state": _encoded(part.state_dict(), name)}
    if isinstance(part, GradScaler):
        return {}, {"kind": "scaler", "state": _encoded(part.state_dict(), name)}
    if isinstance(part, Generator):
        return {}, {"kind": "generator", "state": [part.seed, part.counter]}
    if isinstance(part, (Variable, np.ndarray)):
        return {"": part}, {"kind": "array"}
    return {}, {"kind": "value", "state": _encoded(part, name)}


def _encoded(x, name, place=()):
    """Returns a value as JSON. A dict with the key "" encodes a tuple or dict: see `_decoded`."""
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, (float, str)):
        return x
    if isinstance(x, int) and x.bit_length() < LONGEST:
        return x
    if isinstance(x, (list, tuple)) and len(place) < DEEPEST:
        encoded = [_encoded(y, name, (*place, k)) for k, y in enumerate(x)]
        return encoded if isinstance(x, list) else {"": "tuple", "of": encoded}
    if isinstance(x, dict) and len(place) < DEEPEST:
        keys = [_encoded(k, name, (*place, k)) for k in x]
        encoded = [_encoded(y, name, (*place, k)) for k, y in x.items()]
        if all(isinstance(k, str) and k for k in keys):
            return dict(zip(keys, encoded, strict=True))
        return {"": "dict", "of": list(zip(keys, encoded, strict=True))}
    raise _no_value(x, name, place)


def _decoded(x):
    """Returns the tuple or dict that `_encoded` wrote as a dict with the key ""."""
    match x:
        case {"": "tuple", "of": values}:
            return tuple(values)
        case {"": "dict", "of": pairs}:
            return dict(pairs)
    return x


def _no_value(x, name, place):
    if not place:
        return ArgumentTypeError(
            "save: wanted a module, optimizer, schedule, GradScaler, Generator, array or value as "
            f"{name}",
            shown(x),
            f"save its numbers: {name}={{'key': value, ...}}",
        )
    where = f"{name}{''.join(f'[{k!r:.40}]' for k in place[:3])}{'...' * (len(place) > 3)}"
    if len(place) == DEEPEST:
        return ArgumentTypeError(
            f"save: wanted lists and dicts at most {DEEPEST} deep", f"more in {where}"
        )
    return ArgumentTypeError(
        f"save: wanted None, a number, text, list, tuple or dict as {where}",
        shown(x),
        "modules and arrays are parts of their own: mg.save(path, model=model, x=x)",
    )


def _array(x, name):
    """Returns an ndarray in C order: safetensors writes memory as it is, ignoring strides.

    It does not keep the memory of a Variable, which must live until the file is written.
    """
    array = x
    if isinstance(x, Variable):
        array = x.dtype.cells(values(x.array))
        array = array.view(outside(name)) if x.dtype.is_coded else array
    if of_numpy(array.dtype) is None:
        known = ", ".join(map(str, DTYPES))
        raise DTypeError(f"save: wanted {name} of one of {known}", f"{array.dtype}")
    return np.require(array, requirements="C")


def _safetensors():
    try:
        import safetensors.numpy
    except ImportError:
        raise MinigradError(
            "checkpoints: wanted the package safetensors",
            "it is not installed",
            "pip install 'minigrad[checkpoint]'",
        ) from None
    return safetensors


def _write(path, arrays, notes):
    """Writes a temporary file in the same folder, then renames it to `path`."""
    safetensors = _safetensors()
    try:
        handle, name = tempfile.mkstemp(".tmp", f".{path.name}.", path.parent)
    except OSError as error:
        raise _refused("save", path, error) from None
    os.close(handle)
    try:
        safetensors.numpy.save_file(arrays, name, notes)
        with open(name, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(name, path)
    except (OSError, safetensors.SafetensorError) as error:
        raise _refused("save", path, error) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _refused(what, path, error):
    reason = getattr(error, "strerror", None) or str(error)
    fix = "a file that is there is as it was"
    if isinstance(error, FileNotFoundError):
        fix = f"make its folder first: pathlib.Path({str(path.parent)!r}).mkdir(parents=True)"
    return StateError(f"{what}: wanted a file at {path}", reason, fix)


@teaching
def load(path, /, *, strict=True, rng=True, **parts):
    """Restores the parts of a training run that `save` wrote, all of them or none.

    Args:
        path: a file that `save` wrote, or any safetensors file of weights, which has one part,
            `model`.
        strict: whether modules must have the same names as the file. False loads the names that
            match.
        rng: whether to restore the default random generator, if any part is restored.
        parts: the modules, optimizers, schedules, GradScalers and Generators to restore, by the
            names under which they were saved. State is matched by parameter name, never by
            position.

    Returns:
        {part: value}, with values as they were saved and arrays as Variables. A part that was not
        given is its state_dict, or (seed, counter) for a Generator.

    Raises:
        StateError: the file is no checkpoint, is damaged, has a newer format, or does not fit. The
            error lists all reasons; nothing was changed.
    """
    seams.effects.refuse("load: a compiled step reads no files", "call it outside the step")
    path, strict = _path("load", path), flag("load", "strict", strict)
    rng = flag("load", "rng", rng)
    saved, notes = _read(path)
    absent = [name for name in parts if name not in saved]
    if absent:
        raise StateError(
            f"load: wanted {', '.join(absent)} in {path}", f"it has {', '.join(saved) or 'nothing'}"
        )
    writes, problems = [], []
    for name, part in parts.items():
        try:
            writes.append(_prepared(name, part, saved.pop(name), notes.get(name), strict))
        except (StateError, ArgumentTypeError) as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise StateError(
            f"load: {path} does not fit; nothing was changed",
            " | ".join(f"{error.wanted}: {error.got}" for error in problems),
            problems[0].fix,
        )
    _run([*writes, lambda: _continue(notes)] if rng and parts else writes)
    return saved


@uninterrupted
def _run(writes):
    for write in writes:
        write()


def _continue(notes):
    if notes.get("") is not None:
        set_rng_state(tuple(notes[""]))


def _prepared(name, part, state, kind, strict):
    """Checks the state of one part; returns the function that writes it."""
    kinds = {
        Module: "module", Optimizer: "optimizer", Schedule: "schedule", GradScaler: "scaler",
        Generator: "generator",
    }  # fmt: skip
    wanted = next((kinds[k] for k in kinds if isinstance(part, k)), None)
    if wanted is None:
        raise ArgumentTypeError(
            f"load: wanted a module, optimizer, schedule, GradScaler or Generator as {name}",
            f"{type(part).__name__}",
            f"leave it out: load returns the saved value under {name!r}",
        )
    if wanted != kind:
        raise StateError(f"load: {name} was wanted as a {wanted}", f"it was saved as a {kind}")
    if wanted == "module":
        return model_state.prepared(part, state, strict)[0]
    if wanted == "optimizer":
        write, result = optimizer_state.prepared(part, state)
        if result.stale:
            left = f"load: left out what {name} updates nothing under: {', '.join(result.stale)}"
            warnings.warn(left, stacklevel=4)
        return write
    if wanted == "schedule":
        return schedule_state.prepared(part, state)
    if wanted == "scaler":
        return scaler_state.prepared(part, state)
    return lambda: vars(part).update(seed=state[0], counter=state[1])


def _read(path):
    """Returns ({part: state}, {part: kind, "": state of the random generator}) of a file."""
    safetensors, arrays = _safetensors(), {}
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            for key in file.keys():  # noqa: SIM118 - no dict
                if file.get_slice(key).get_dtype() == "BF16":
                    outside()  # NumPy learns of it
                arrays[key] = file.get_tensor(key)
            notes = (file.metadata() or {}).get(KEY)
    except FileNotFoundError:
        raise StateError(f"load: wanted a checkpoint at {path}", "there is no such file") from None
    except (OSError, safetensors.SafetensorError, ValueError) as error:
        if path.is_dir():
            raise StateError(f"load: wanted a checkpoint at {path}", "it is a folder") from None
        raise StateError(
            f"load: wanted a checkpoint at {path}",
            f"no complete safetensors file: {error}",
            "was it cut short, or written by something else (a pickle is not read)?",
        ) from None
    arrays = {key: _variable(path, key, array) for key, array in arrays.items()}
    if notes is None:  # a file of weights
        return {MAIN: arrays}, {MAIN: "module"}
    try:
        notes = json.loads(notes, object_hook=_decoded)
        version, described = notes["format"], notes["parts"]
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"load: {path} has damaged notes", f"{error!r}") from None
    if version > FORMAT:
        raise StateError(
            f"load: wanted a file of format {FORMAT} or older, which this minigrad reads",
            f"{path} has format {version}",
            "a newer minigrad wrote it: pip install --upgrade minigrad",
        )
    saved = {name: _state(name, one, arrays, described) for name, one in described.items()}
    return saved, {name: one["kind"] for name, one in described.items()} | {"": notes.get("rng")}


def _variable(path, key, array):
    if of_numpy(array.dtype) is None:
        raise StateError(
            f"load: wanted one of {', '.join(map(str, DTYPES))} in {path}",
            f"{key} is {array.dtype}",
            "convert it where the file was written",
        )
    return variable(array)


def _state(name, one, arrays, described):
    """Returns the state of one part, in the form of its state_dict."""
    kind = one["kind"]
    if kind == "array":
        return arrays[name]
    if kind == "module":
        mine = {key: x for key, x in arrays.items() if _part_of(key, described) == name}
        return mine if name == MAIN else {key[len(name) + 1 :]: x for key, x in mine.items()}
    if kind == "optimizer":
        state = {
            key: {slot: arrays[_key(name, f"{key}/{slot}")] for slot in slots}
            for key, slots in one["state"]["state"].items()
        }
        groups = [
            {key: tuple(x) if isinstance(x, list) and key != "names" else x for key, x in g.items()}
            for g in one["state"]["groups"]
        ]  # format 1 wrote tuples as lists
        return {**one["state"], "state": state, "groups": groups}
    return tuple(one["state"]) if kind == "generator" else one["state"]


def _part_of(key, described):
    """Returns the part that an array of the file belongs to."""
    first = key.partition("/")[0]
    return first if first in described and first != MAIN else MAIN
