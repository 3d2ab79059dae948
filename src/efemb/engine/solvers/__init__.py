"""Solvers: value and gradient of the data term, one package or file for each algorithm."""
