"""Runs: prepared, started, resumed, rewound, forked, with their children.

Functions on definitions and run directories. They know neither ``Pipeline`` nor ``Run``, which are layers above.
"""
