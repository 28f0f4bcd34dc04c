"""Measures minigrad beside its peers: `python -m benchmarks`.

Read `rows.py` (what is measured), `harness.py` (how rounds are interleaved) and one file of
`peers/` (how a peer does it). Every peer runs in a process of its own, starts from the same
initial values, and must arrive at the same numbers, or its time does not count.
"""
