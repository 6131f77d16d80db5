"""What stages do: by handler type, and the registry that finds them (spec 4).

Handlers know the seams and the stores below them; never the engine, a backend or an interviewer by
name.
"""
