"""Fusion: instructions joined into loops, and memory shared among values."""
