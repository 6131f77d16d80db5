"""Runs: prepared, begun, gone on with, taken back, forked, with their children.

Functions on definitions and run directories. They know neither ``Pipeline`` nor ``Run``, which stand above.
"""
