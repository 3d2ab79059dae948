"""Fitting: solvers (values and gradients), optimisers and the trainer that joins them."""
