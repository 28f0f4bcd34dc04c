"""Parameters, modules and layers: `mg.nn`."""

from minigrad.hints import missing
from minigrad.nn import init as init
from minigrad.nn.activation import (
    ELU,
    GELU,
    Flatten,
    LeakyReLU,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)  # fmt: skip
from minigrad.nn.attention import MultiHeadAttention, TransformerBlock
from minigrad.nn.containers import ModuleDict, ModuleList, Sequential
from minigrad.nn.convolution import AvgPool2d, Conv1d, Conv2d, MaxPool2d
from minigrad.nn.embedding import Embedding
from minigrad.nn.linear import Linear
from minigrad.nn.module import Module
from minigrad.nn.normalization import BatchNorm1d, BatchNorm2d, Dropout, LayerNorm, RMSNorm
from minigrad.nn.parameter import Buffer, Parameter

__all__ = [
    "ELU", "GELU", "AvgPool2d", "BatchNorm1d", "BatchNorm2d", "Buffer", "Conv1d", "Conv2d",
    "Dropout", "Embedding", "Flatten", "LayerNorm", "LeakyReLU", "Linear", "MaxPool2d", "Module",
    "ModuleDict", "ModuleList", "MultiHeadAttention", "Parameter", "RMSNorm", "ReLU", "Sequential",
    "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh", "TransformerBlock", "init",
]  # fmt: skip


def __getattr__(name):
    raise missing("mg.nn", name, "mg.nn has no", known=__all__)
