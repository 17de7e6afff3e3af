"""From the files of a finished run to its summary: what was measured, split, cross-checked and counted."""
