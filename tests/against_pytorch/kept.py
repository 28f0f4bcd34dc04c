"""Programs kept with PyTorch's numbers, so that tests can hold them without PyTorch.

`kept.json` holds per program its seed, from which the leaves are drawn anew, its steps and the
shapes of its results; `kept.npz` the results, one after another.
"""

import json
from pathlib import Path

import numpy as np

from tests.against_pytorch.programs import draw_leaves

HERE = Path(__file__).parent
COUNT = 120


def encoded(value):
    """A parameter as JSON has it: what JSON lacks is a dict of one entry."""
    if isinstance(value, tuple):
        return {"tuple": [encoded(v) for v in value]}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    return {"ellipsis": []} if value is Ellipsis else value


def decoded(value):
    """The other way."""
    if not isinstance(value, dict):
        return value
    ((kind, items),) = value.items()
    if kind == "tuple":
        return tuple(decoded(v) for v in items)
    return slice(*items) if kind == "slice" else Ellipsis


def write(draw, run):
    """Draws programs and writes the first ones that `run` gives numbers for.

    Args:
        draw: seed -> Program or None.
        run: Program -> arrays or None for each result, or None if there are no numbers.
    """
    lines, numbers, seed = [], [], 0
    while len(lines) < COUNT:
        seed += 1
        program = draw(seed)
        results = run(program) if program is not None and program.steps else None
        if results is None:
            continue
        steps = [
            [name, operands, {k: encoded(v) for k, v in parameters.items()}]
            for name, operands, parameters in program.steps
        ]
        shapes = [None if r is None else r.shape for r in results]
        entry = {"seed": seed, "steps": steps, "roots": program.roots, "order": program.order}
        lines.append(json.dumps({**entry, "shapes": shapes}))
        numbers += [np.asarray(r, "float64").ravel() for r in results if r is not None]
    (HERE / "kept.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    np.savez_compressed(HERE / "kept.npz", results=np.concatenate(numbers))


def read():
    """Per kept program: (seed, Program, results)."""
    with np.load(HERE / "kept.npz") as file:
        numbers = file["results"]
    start = 0
    for entry in json.loads((HERE / "kept.json").read_text(encoding="utf-8")):
        program = draw_leaves(np.random.default_rng(entry["seed"]))
        program.roots, program.order = entry["roots"], entry["order"]
        for name, operands, parameters in entry["steps"]:
            parameters = {k: decoded(v) for k, v in parameters.items()}
            program.steps.append((name, operands, parameters))
        results = []
        for shape in entry["shapes"]:
            if shape is None:
                results.append(None)
                continue
            stop = start + int(np.prod(shape))
            results.append(numbers[start:stop].reshape(shape).astype(program.dtype))
            start = stop
        yield entry["seed"], program, results
    assert start == numbers.size
