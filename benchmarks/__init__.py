"""Benchmarks: speed, memory and scores on real data, or quickly on simulated stand-ins."""
