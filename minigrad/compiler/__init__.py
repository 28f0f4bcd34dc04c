"""Whole steps as one program: traced, optimised, planned, generated as Numba code."""
