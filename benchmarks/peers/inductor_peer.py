"""PyTorch with torch.compile, in its best form: fixed shapes, C++ around the kernels.

The row of 2,000 operations on one element is left out, as for JAX.
"""

import functools

import torch

from benchmarks.peers.pytorch_cases import builders
from benchmarks.peers.pytorch_peer import prepare as prepare
from benchmarks.peers.pytorch_peer import version as version


def compiled(function):
    """The function, compiled for the shapes of its first call."""
    return torch.compile(function, dynamic=False, options={"cpp_wrapper": True})


def from_scratch(build):
    """A builder that first forgets earlier rows: shapes new to a function would compile slower."""

    @functools.wraps(build)
    def rebuilt(**settings):
        torch.compiler.reset()
        return build(**settings)

    return rebuilt


BUILDERS = {kind: from_scratch(build) for kind, build in builders(compiled).items()}
