"""Trains each work by `mg.distributed`, eager and with a compiled loss."""

import json
import statistics

import minigrad as mg
from benchmarks import denormals
from benchmarks.peers import minigrad_models
from benchmarks.ranks.work import WORKS, loss_of, trained
from minigrad import distributed


class Model(mg.nn.Module):
    """A loss as a module that holds its parameters."""

    def __init__(self, arrays, loss):
        self.loss, self.names = loss, {name: name.replace(".", "_") for name in arrays}
        for name, value in arrays.items():
            setattr(self, self.names[name], mg.nn.Parameter(mg.variable(value)))

    def forward(self, x, y):
        """The loss of a batch."""
        return self.loss({name: getattr(self, own) for name, own in self.names.items()}, x, y)


def run(work, wrap):
    """Returns {"seconds": median of a step, "losses": of each step, "bytes": of all gradients}."""
    (x, y), arrays = work.make()
    model = Model(arrays, loss_of(work, minigrad_models))
    replica = distributed.DataParallel(model)
    optimizer = mg.optim.Adam(model, learning_rate=1e-3)
    forward = wrap(model)

    def step(inputs, targets):
        loss = forward(mg.variable(inputs), mg.variable(targets))
        replica.backward(loss, weight=len(inputs))
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    batches = (
        pair
        for _ in range(work.epochs)
        for pair in distributed.batches(x, y, batch_size=work.batch, drop_last=True)
    )
    losses, seconds = trained(batches, step)
    replica.check()
    mean = distributed.all_reduce(mg.variable(losses, dtype="float64"), "mean")
    size = sum(p.size * p.dtype.itemsize for p in model.parameters())
    return {"seconds": statistics.median(seconds), "losses": mean.tolist(), "bytes": size}


def main():
    """Prints what `run` returns for each work and way."""
    denormals.flush()
    distributed.init(timeout=60)  # ranks that compile share the cores
    ways = {"minigrad": lambda model: model, "compiled": mg.compile}
    found = {
        way: {name: run(work, wrap) for name, work in WORKS.items()} for way, wrap in ways.items()
    }
    if distributed.rank() == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
