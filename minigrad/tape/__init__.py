"""Variables, the graph that their outputs own, modes, the order of backward, the backward pass."""

from minigrad.tape import probe as _probe

_ = _probe  # loading it registers the probe that answers `minigrad.memory` about the graph
