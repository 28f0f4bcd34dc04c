"""The CPU: kernels that Numba compiles, over ranges that threads share; products by BLAS."""
