"""What is known while a run goes on: its progress, and the same figures as OpenMetrics."""
