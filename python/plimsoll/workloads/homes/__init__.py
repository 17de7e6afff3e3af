"""Home folders on a file server, whose users go through scenarios."""
