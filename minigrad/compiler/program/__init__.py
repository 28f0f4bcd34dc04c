"""The program: instructions over values, and the items that kernels are made of."""
