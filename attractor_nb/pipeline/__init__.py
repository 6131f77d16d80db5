"""The top layer: prepares a pipeline, connects its parts, runs it, and reads it back."""
