"""Comparison of runs: improvement factors with their confidence, circumstances side by side, and
gates for scripts.

A side of a comparison is one run folder, or the folder of a repeated run. Figures are those of
`summary.json`; confidence comes from whole runs where a side has several, and from blocks of time
within a run where it has one.
"""

from plimsoll.compare.compare import compare
from plimsoll.compare.sides import ComparisonError, Side, read_sides

__all__ = ["ComparisonError", "Side", "compare", "read_sides"]
