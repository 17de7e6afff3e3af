"""Published papers: the text of their reports, read into tables and checked."""
