"""Contexts that all observations of a row share."""
