"""The databases under a path.

What speaks for and against a run there, whose they are, and which a run goes on with.
"""
