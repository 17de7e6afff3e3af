"""What this host is and says: block devices, storage below a path, hardware, drives, counters, clocks, the kernel log."""
