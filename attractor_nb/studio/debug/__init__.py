"""Breakpoints, steps, and changes while a run stands."""
