"""Handles on work that runs elsewhere: its state, its result, and the presenters that show it."""
