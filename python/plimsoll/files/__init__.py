"""Files as such: the run folder, parquet, and text from outside made harmless.

Knows nothing of what the files say.
"""
