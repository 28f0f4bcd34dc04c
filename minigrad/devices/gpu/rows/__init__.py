"""Kernels that compute row by row."""
