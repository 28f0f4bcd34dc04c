"""Counting: sectors, bank conflicts, divergence."""
