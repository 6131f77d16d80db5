"""Performs a traversal's effects: runs stages, waits, asks, keeps the log, tells observers."""
