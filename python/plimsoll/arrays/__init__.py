"""Arrays that are modelled, not measured.

Presets, workloads, and the published results as a permanent test.

The model itself is Rust and knows only bytes, nanoseconds and plain structures. Here stand the
figures with their sources, the reading of what people write, and what is made of the results.
Everything that comes out of here is MODELLED and says so.
"""
