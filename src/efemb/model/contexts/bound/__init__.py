"""Contexts bound to data, in the three forms that solvers know: rows, entities, cells."""
