"""Plimsoll qualifies storage for transactional work."""

__version__ = "0.1.0"
