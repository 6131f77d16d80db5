"""Runs and sessions as a terminal shows them while they go on."""
