"""Workload families: what each one adds to a plan, which operations it has and what is stated of
its limits.
"""
