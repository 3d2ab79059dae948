"""Numba kernels: functions of arrays, which import nothing else from the package."""
