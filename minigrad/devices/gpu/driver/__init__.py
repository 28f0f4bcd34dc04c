"""A real GPU: the CUDA driver, its memory, stream, graphs and cuBLAS."""
