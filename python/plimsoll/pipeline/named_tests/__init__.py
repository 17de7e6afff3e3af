"""Plans of the named tests: from a few options, each declared once, to what a plan file says."""
