"""A run, moment by moment."""
