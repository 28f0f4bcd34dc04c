"""Scripts that several ranks run, for `benchmarks.distributed`; rank 0 prints a line of JSON.

They are started by `minigrad run` and by torchrun, one process for each rank.
"""
