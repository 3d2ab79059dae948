"""Gaussian models of fixed contexts, by Gram matrices."""
