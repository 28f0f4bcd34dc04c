"""Variables, the graph that their outputs own, modes, the order of backward, the backward pass."""
