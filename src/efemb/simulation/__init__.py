"""Data with known parameters: for tests, for power studies and for benchmarks."""

from __future__ import annotations

from efemb.simulation.baskets import simulate_baskets
from efemb.simulation.core import Simulation, simulate
from efemb.simulation.iri import SimulatedTrips, simulate_iri
from efemb.simulation.zebrafish import SimulatedRecording, simulate_zebrafish

__all__ = [
    "SimulatedRecording",
    "SimulatedTrips",
    "Simulation",
    "simulate",
    "simulate_baskets",
    "simulate_iri",
    "simulate_zebrafish",
]
