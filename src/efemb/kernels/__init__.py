"""Numba kernels: arrays in, arrays out, no options; they import nothing else of the package."""
