"""Runs compiled steps on GPUs, real and simulated: fused CUDA kernels, launched as one program."""
