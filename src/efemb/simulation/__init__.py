"""Simulated data with known parameters, for tests, power studies and benchmarks."""

from __future__ import annotations

from efemb.simulation.baskets import simulate_baskets
from efemb.simulation.fitted_rows import compare_prices, simulate_rows
from efemb.simulation.models import Simulation, simulate
from efemb.simulation.recording import SimulatedRecording, simulate_zebrafish
from efemb.simulation.shops import SimulatedShop, simulate_shop
from efemb.simulation.trips import SimulatedTrips, simulate_iri

__all__ = [
    "SimulatedRecording",
    "SimulatedShop",
    "SimulatedTrips",
    "Simulation",
    "compare_prices",
    "simulate",
    "simulate_baskets",
    "simulate_iri",
    "simulate_rows",
    "simulate_shop",
    "simulate_zebrafish",
]
