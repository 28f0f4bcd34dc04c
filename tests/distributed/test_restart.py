"""A run whose rank fails begins again from its checkpoint, with fewer ranks: one loss curve."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import distributed as d
from tests.distributed.test_data_parallel import examples, loss_of, make_model

EPOCHS = 4


def train(path, fails_in=None):
    """Train from a checkpoint, if there is one; return the mean loss of each epoch.

    fails_in: the epoch in which the last rank raises.
    """
    x, y = examples(50, "float64")
    model = make_model("float64", seed=d.rank())  # DataParallel takes over those of rank 0
    replica, optimizer = d.DataParallel(model), mg.optim.Adam(model, learning_rate=0.05)
    begin, curve = 0, []
    if path.exists():
        found = mg.load(path, model=model, optimizer=optimizer)
        begin, curve = found["epoch"], found["curve"]
    for epoch in range(begin, EPOCHS):
        total = 0.0
        for k, (some, targets) in enumerate(d.batches(x, y, batch_size=16, seed=epoch)):
            if epoch == fails_in and k == 1 and d.rank() == d.size() - 1:
                raise OSError("the disk is full")
            loss = loss_of(model, some, targets) if len(some) else None
            replica.backward(loss, weight=len(some))
            optimizer.step()
            optimizer.zero_grad()
            mine = mg.zeros((), dtype="float64") if loss is None else loss.detach()
            total += d.all_reduce(mine, "weighted", weight=len(some)).item()
        curve.append(total)
        if d.rank() == 0:
            mg.save(path, model=model, optimizer=optimizer, epoch=epoch + 1, curve=curve)
        d.barrier()
    return curve


@pytest.mark.parametrize("ranks", [(2, 1), (3, 2), (4, 3), (2, 3)])
def test_a_run_goes_on_with_another_number_of_ranks(ranks, tmp_path):
    (alone,) = d.run(train, 1, tmp_path / "alone.safetensors")
    path = tmp_path / "run.safetensors"
    with pytest.raises(OSError, match="the disk is full"):
        d.run(train, ranks[0], path, 2)
    assert mg.load(path)["epoch"] == 2, "epoch 2 failed: two are whole"
    curves = d.run(train, ranks[1], path)
    for curve in curves:
        np.testing.assert_allclose(curve, alone, rtol=1e-9)
    assert curves[0][-1] < 0.9 * curves[0][0]
