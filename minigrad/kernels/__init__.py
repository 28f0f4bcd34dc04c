"""Devices: each offers the same table of functions over Arrays; formulas, the code made of them."""

from minigrad.kernels import backend as backend
