"""The plan: read, completed and checked.

Its load, limits, stop conditions, hosts and start time.
"""
