"""Train on digits with several ranks, each on its part of every batch.

minigrad run -n 2 examples/ranks.py              in processes, by MPI
python examples/ranks.py --threads 2             in threads of one process, without MPI
python examples/ranks.py                         alone: the same numbers, up to rounding
"""

import argparse

import minigrad as mg
from minigrad import distributed


def train(epochs=5, seed=1):
    """Trains a small network; returns the share of held-out digits that it reads correctly."""
    images, labels = mg.data.load_digits()
    (x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64), labels, seed=seed)
    model = mg.nn.Sequential(mg.nn.Linear(64, 64), mg.nn.ReLU(), mg.nn.Linear(64, 10))
    replica = distributed.DataParallel(model)  # all ranks begin with the values of rank 0
    optimizer = mg.optim.Adam(model, learning_rate=5e-3)
    for epoch in range(epochs):
        for inputs, targets in distributed.batches(x, y, batch_size=64, seed=epoch):
            loss = mg.cross_entropy(model(mg.variable(inputs)), mg.variable(targets))
            replica.backward(loss, weight=len(inputs))
            optimizer.step()
            optimizer.zero_grad()
        mean = distributed.all_reduce(loss.detach(), "weighted", weight=len(inputs)).item()
        if distributed.rank() == 0:
            print(f"epoch {epoch + 1}: loss of the last batch {mean:.4f}")
    replica.check()  # the same bits everywhere
    return float((model.valid()(mg.variable(x_new)).numpy().argmax(axis=1) == y_new).mean())


def main(arguments=None):
    """Trains as the options say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, help="the number of ranks in this process")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.threads:
        accuracy = distributed.run(train, options.threads, options.epochs)[0]
        size, rank = options.threads, 0
    else:
        distributed.init()
        accuracy, size, rank = train(options.epochs), distributed.size(), distributed.rank()
    if rank == 0:
        print(f"{size} ranks: {accuracy:.1%} of new digits")


if __name__ == "__main__":
    main()
