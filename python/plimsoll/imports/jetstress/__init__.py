"""Jetstress: configurations read and written, reports and test logs read."""
