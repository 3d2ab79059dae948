"""Benchmarks: speed, memory and scores on real data, or quickly on simulated stand-ins."""

from __future__ import annotations

import os

# Read by the libraries when they are loaded: CPU-seconds are to be those of one core.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
for _name in THREADS:
    os.environ[_name] = "1"
