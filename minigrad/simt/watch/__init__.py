"""Watched memory: uninitialised reads, data races, accesses out of bounds."""
