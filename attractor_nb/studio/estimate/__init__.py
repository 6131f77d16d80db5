"""Before a run: what it would cost and need, and where past runs would go."""
