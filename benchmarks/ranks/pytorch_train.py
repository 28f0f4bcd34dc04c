"""Trains each work by PyTorch's DistributedDataParallel, with gloo."""

import json
import os
import statistics

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from benchmarks.peers import pytorch_models
from benchmarks.peers.pytorch_peer import prepare
from benchmarks.ranks.work import WORKS, loss_of, part, trained


class Model(torch.nn.Module):
    """A loss as a module that holds its parameters."""

    def __init__(self, arrays, loss):
        super().__init__()
        self.loss, self.names = loss, {name: name.replace(".", "_") for name in arrays}
        for name, value in arrays.items():
            self.register_parameter(self.names[name], torch.nn.Parameter(torch.tensor(value)))

    def forward(self, x, y):
        """The loss of a batch."""
        return self.loss({name: getattr(self, own) for name, own in self.names.items()}, x, y)


def run(work):
    """Returns what minigrad_train.run does."""
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    (x, y), arrays = work.make()
    model = DistributedDataParallel(Model(arrays, loss_of(work, pytorch_models)))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def step(inputs, targets):
        loss = model(torch.from_numpy(inputs), torch.from_numpy(targets))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    mine = part(work.batch, rank, size)
    starts = range(0, len(x) - work.batch + 1, work.batch)
    batches = (
        (x[start : start + work.batch][mine], y[start : start + work.batch][mine])
        for _ in range(work.epochs)
        for start in starts
    )
    losses, seconds = trained(batches, step)
    total = torch.tensor(losses, dtype=torch.float64)
    torch.distributed.all_reduce(total)
    nbytes = sum(p.numel() * p.element_size() for p in model.parameters())
    return {
        "seconds": statistics.median(seconds),
        "losses": (total / size).tolist(),
        "bytes": nbytes,
    }


def main():
    """Prints what `run` returns for each work."""
    prepare(int(os.environ["OMP_NUM_THREADS"]))
    torch.distributed.init_process_group("gloo")
    found = {"pytorch": {name: run(work) for name, work in WORKS.items()}}
    if torch.distributed.get_rank() == 0:
        print(json.dumps(found), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
