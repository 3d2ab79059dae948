"""Data with known parameters: for tests, for power studies and for benchmarks."""

from __future__ import annotations

from efemb.simulation.baskets import simulate_baskets
from efemb.simulation.core import Simulation, simulate

__all__ = ["Simulation", "simulate", "simulate_baskets"]
