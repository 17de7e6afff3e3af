"""An online store: what a plan says of it, and the arithmetic of its rate."""
