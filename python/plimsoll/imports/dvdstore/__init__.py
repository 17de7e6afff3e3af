"""Configurations of the driver of DVD Store."""
