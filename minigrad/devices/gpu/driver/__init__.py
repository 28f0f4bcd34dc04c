"""A real GPU: the CUDA driver with its memory, stream and graphs, and cuBLAS."""
