"""The part of Python that kernels are written in, compiled to operations of the machine."""
