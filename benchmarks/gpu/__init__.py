"""Checks and figures on a GPU: `python -m benchmarks.gpu --check --bench`.

Without a GPU it says why and records nothing; `--check --dry-run` runs the checks on the simulator.
"""
