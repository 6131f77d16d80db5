"""A run in time, and where it spent what."""
