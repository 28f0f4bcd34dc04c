"""Times the first two calls of a step: `python -m benchmarks.first_calls PEER KIND SETTINGS`.

It prints the seconds. Libraries are imported and arrays are made before; what a library loads at
its first operation, and all it compiles, counts.
"""

import importlib
import json
import sys

from benchmarks import denormals
from benchmarks.case import first_calls
from benchmarks.peers import PEERS
from benchmarks.process import limit_processors


def main(peer, kind, settings, threads):
    """Prints the seconds, or "unsupported"."""
    limit_processors(threads)
    denormals.flush()
    module = importlib.import_module(PEERS[peer].module)
    module.prepare(threads)
    build = module.BUILDERS.get(kind)
    print("unsupported" if build is None else first_calls(build(**settings)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]))
