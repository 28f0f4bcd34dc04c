"""minigrad with every step compiled.

The row of 2,000 operations on one element is left out, as for JAX: compiled, it would measure the
program and not the cost of an operation.
"""

import minigrad as mg
from benchmarks.peers.minigrad_cases import builders
from benchmarks.peers.minigrad_peer import prepare as prepare
from benchmarks.peers.minigrad_peer import version as version

BUILDERS = builders(mg.compile)
