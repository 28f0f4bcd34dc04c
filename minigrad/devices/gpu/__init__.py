"""CUDA kernels, written once for the `cuda` device and the `simt` device that simulates it."""
