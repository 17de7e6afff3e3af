"""The door to the Rust side: plain data in, column buffers and JSON out."""

__version__: str

def columns() -> list[tuple[str, str, str, str]]:
    """The columns of a sample table: name, numpy type, unit, meaning."""

def metrics() -> list[tuple[str, str, str, str]]:
    """What is measured: name, kind, unit, meaning; a row's metric is its position in this list."""
