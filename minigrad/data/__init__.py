"""Data that ships with minigrad, as NumPy arrays; nothing is downloaded."""

from minigrad.data.batches import batches, stratified_split
from minigrad.data.digits import load_digits

__all__ = ["batches", "load_digits", "stratified_split"]
