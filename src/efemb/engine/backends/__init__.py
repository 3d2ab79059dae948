"""Backends: where the rounds of a fit run."""
