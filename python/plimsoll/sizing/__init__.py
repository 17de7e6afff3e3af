"""Sizing, array selection, cost and advice.

Arithmetic on what people state, with every step traced to its source.
"""
