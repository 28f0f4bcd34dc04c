"""Computes the golden values with PyTorch in float64: `python tests/golden/make.py`.

It needs `torch`, which neither the library nor its tests do. It writes, beside itself,

- `values.npz`: one flat array per dtype, which holds one after another the arrays that the
  manifest's "arrays" lists (key: dtype, shape). Per case these are `<case>/in/<input>`,
  `<case>/out/<k>`, `<case>/dy/<k>` (a random upstream gradient) and `<case>/grad/<input>`
  (the gradient of sum(out * dy)); and there are `optimizer/...`, `schedule/...`, `clip/...`,
  `running/...`.
- `manifest.json`: per case the operation and the arguments of minigrad's call. In arguments,
  "$x" is input x, a list is a tuple, {"slice": [start, stop, step]} is a slice, and "..." is
  an ellipsis. The keyword "which" says which of several results is compared.

An input depends only on its case's name, so that adding a case changes no other.
"""

import json
import zipfile
from pathlib import Path

import elementwise
import network
import numpy as np
import structure
import torch
import training

HERE = Path(__file__).parent
CASES = [*elementwise.CASES, *structure.CASES, *network.CASES]


def compute(case):
    """The arrays of one case, by key."""
    inputs = case.draw()
    tensors = {name: torch.tensor(value) for name, value in inputs.items()}
    free = [n for n, t in tensors.items() if t.is_floating_point() and n not in case.constant]
    for name in free:
        tensors[name].requires_grad_()
    outputs = case.reference(*tensors.values())
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    arrays = {f"in/{name}": value for name, value in inputs.items()}
    arrays |= {f"out/{k}": y.detach().numpy() for k, y in enumerate(outputs)}
    if not free:
        return arrays
    rng = case.generator()
    rng.standard_normal(1000)  # upstream gradients must not repeat the inputs
    dys = [torch.tensor(np.round(rng.standard_normal(y.shape) * 1024) / 1024) for y in outputs]
    arrays |= {f"dy/{k}": dy.numpy() for k, dy in enumerate(dys)}
    grads = torch.autograd.grad(
        sum((y * dy).sum() for y, dy in zip(outputs, dys, strict=True)),
        [tensors[name] for name in free],
    )
    return arrays | {f"grad/{name}": g.numpy() for name, g in zip(free, grads, strict=True)}


def save(path, arrays):
    """As np.savez_compressed, but equal values give equal bytes: no time in the archive."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, value, allow_pickle=False)


def joined(arrays):
    """One flat array per dtype: 1,400 arrays in an archive would be headers for the most part."""
    kinds = {}
    for value in arrays.values():
        kinds.setdefault(value.dtype.name, []).append(value.ravel())
    return {name: np.concatenate(parts) for name, parts in kinds.items()}


def written(manifest):
    """JSON with one line per case and per array: changes show line by line."""
    parts = []
    for key, value in manifest.items():
        lines = value
        if isinstance(value, list):
            lines = "[\n  " + ",\n  ".join(json.dumps(item) for item in value) + "\n ]"
        elif isinstance(value, dict):
            items = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            lines = "{\n  " + ",\n  ".join(items) + "\n }"
        parts.append(f" {json.dumps(key)}: {lines}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    """Writes both files and says how large they are."""
    names = [case.name for case in CASES]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two cases have the same name: {sorted(twice)}")
    arrays = {}
    for case in CASES:
        for key, value in compute(case).items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError(f"{case.name}: {key} is not finite")
            arrays[f"{case.name}/{key}"] = value
    arrays |= {f"optimizer/start/{key}": value for key, value in training.problem().items()}
    for name, (kind, keywords) in training.OPTIMIZERS.items():
        for key, value in training.trajectory(kind, keywords).items():
            arrays[f"optimizer/{name}/{key}"] = value
    for name, (kind, keywords) in training.SCHEDULES.items():
        arrays[f"schedule/{name}"] = training.rates(kind, keywords)
    arrays |= {f"clip/{key}": value for key, value in training.clipping().items()}
    arrays |= {f"running/{key}": value for key, value in training.running().items()}
    arrays = {key: np.asarray(value) for key, value in arrays.items()}
    save(HERE / "values.npz", joined(arrays))
    manifest = {
        "made_with": {"torch": torch.__version__.split("+")[0], "numpy": np.__version__},
        "optimizers": training.OPTIMIZERS,
        "schedules": training.SCHEDULES,
        "steps": training.STEPS,
        "every": training.EVERY,
        "cases": [
            {
                "name": case.name,
                "op": case.op,
                "arguments": case.arguments,
                "keywords": case.keywords,
            }
            for case in CASES
        ],
        "arrays": {key: [value.dtype.name, *value.shape] for key, value in arrays.items()},
    }
    (HERE / "manifest.json").write_text(written(manifest), encoding="utf-8")
    size = (HERE / "values.npz").stat().st_size
    print(f"{len(CASES)} cases, {len(arrays)} arrays, {size / 1e3:.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main()
