"""What this host is and says.

Block devices, storage below a path, hardware, drives, counters, clocks, the kernel log.
"""
