"""The handlers of stages, by type, and the registry that finds them (spec 4).

Handlers know the protocols and the stores below them; never the engine, a backend or an interviewer by name.
"""
