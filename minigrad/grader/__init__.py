"""The autograder: runs a learner's file in its own process, compares answers in this one, teaches.

Imports only the standard library and NumPy. Read `run.py` first, then `tester.py`, `worker.py`.
"""
