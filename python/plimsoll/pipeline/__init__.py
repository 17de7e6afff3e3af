"""From a plan to a verdict: forecast, qualify, repeat, and runs in the background."""
