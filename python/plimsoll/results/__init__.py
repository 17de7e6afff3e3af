"""From the files of a finished run to its summary.

What was measured, split, cross-checked and counted.
"""
