"""What crosses a file or the door, as types.

Run spec, outcome, plan, summary, verdict, study, comparison.

Each module holds the shape of one document and nothing else; `document` reads, checks and writes
all of them.
"""
