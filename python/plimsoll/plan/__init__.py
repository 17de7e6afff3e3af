"""The plan: read, completed and checked; its load, limits, stop conditions, hosts and start time."""
