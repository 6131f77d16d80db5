"""The decisions of a run, as pure functions (spec 3.2-3.7, 4.6, 5.4).

No clock, disk, randomness, thread or await: every rule can be read, and tested, as a table.
"""
