"""Sizing, array selection, cost and advice: arithmetic on what people state, with every step traced to its source."""
