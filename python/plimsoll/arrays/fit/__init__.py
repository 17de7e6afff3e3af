"""Fitting a modelled array to measured storage."""
