"""CUDA for people: kernels of one's own, the device, and what a kernel does to memory."""
