"""Compiles whole steps to one program: traced, optimised, planned, generated as Numba code."""
