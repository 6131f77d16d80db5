"""Frozen values that the whole house shares: graph, attributes, outcome, question, events, records.

Nothing here does I/O or knows a clock; each module is one subject of the spec.
"""
