"""Contexts bound to data, in the three shapes that solvers know: rows, entities, cells."""
