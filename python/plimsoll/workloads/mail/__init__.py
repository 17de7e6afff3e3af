"""Mail users: what they do in a day, where their mailboxes are, and what a plan says of both."""
