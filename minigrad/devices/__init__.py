"""Devices: each offers the same table of functions over Arrays."""

from minigrad.devices import backend as backend
