"""Data that ships with minigrad, as NumPy arrays and text; nothing is downloaded."""

from minigrad.data.batches import batches, stratified_split
from minigrad.data.digits import load_digits
from minigrad.data.text import load_text
from minigrad.hints import missing as _missing

__all__ = ["batches", "load_digits", "load_text", "stratified_split"]


def __getattr__(name):
    raise _missing("mg.data", name, "mg.data has no", known=__all__)
