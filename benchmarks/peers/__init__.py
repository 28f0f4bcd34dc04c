"""The libraries measured. Nothing is imported here: a worker imports its own peer alone."""

import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One library, in one way of using it.

    Attributes:
        name: for the command line.
        title: for the table.
        package: what must be importable.
        module: the file here that offers BUILDERS, `prepare(threads)` and `version()`.
        imports: the import statement that is timed; none where another way of use has it already.
        first: a script that imports the library and takes one gradient; likewise.
        compiles: whether the first calls of a step compile something.
    """

    name: str
    title: str
    package: str
    module: str
    imports: str = ""
    first: str = ""
    compiles: bool = False

    @property
    def installed(self) -> bool:
        """Whether the package is there; it is not imported."""
        return importlib.util.find_spec(self.package) is not None


OURS = ("minigrad", "compiled")

PEERS = {
    peer.name: peer
    for peer in [
        Peer(
            "minigrad",
            "minigrad eager",
            "minigrad",
            "benchmarks.peers.minigrad_peer",
            "import minigrad",
            "import minigrad as mg; x = mg.ones(3, requires_grad=True); mg.sum(x * x).backward()",
            compiles=True,
        ),
        Peer(
            "compiled",
            "minigrad compiled",
            "minigrad",
            "benchmarks.peers.compiled_peer",
            compiles=True,
        ),
        Peer(
            "pytorch",
            "PyTorch eager",
            "torch",
            "benchmarks.peers.pytorch_peer",
            "import torch",
            "import torch; x = torch.ones(3, requires_grad=True); (x * x).sum().backward()",
        ),
        Peer("inductor", "torch.compile", "torch", "benchmarks.peers.inductor_peer", compiles=True),
        Peer(
            "jax",
            "JAX (jit)",
            "jax",
            "benchmarks.peers.jax_peer",
            "import jax, jax.numpy",
            "import jax, jax.numpy as jnp; jax.jit(jax.grad(lambda x: (x * x).sum()))"
            "(jnp.ones(3)).block_until_ready()",
            compiles=True,
        ),
        Peer(
            "mygrad",
            "MyGrad",
            "mygrad",
            "benchmarks.peers.mygrad_peer",
            "import mygrad",
            "import mygrad as mg; x = mg.ones(3); (x * x).sum().backward()",
        ),
        Peer(
            "autograd",
            "HIPS autograd",
            "autograd",
            "benchmarks.peers.autograd_peer",
            "import autograd, autograd.numpy",
            "import autograd, autograd.numpy as np; autograd.grad(lambda x: np.sum(x * x))"
            "(np.ones(3))",
        ),
    ]
}
