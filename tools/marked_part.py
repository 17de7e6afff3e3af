"""Pages of which a program writes a part, between two marks."""


def with_part(page: str, begin: str, end: str, part: str) -> str:
    """The page with another text between its marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"a mark is missing: {begin.strip()} and {end} on lines of their own")
    return f"{before}{begin}{part}{end}{after}"
