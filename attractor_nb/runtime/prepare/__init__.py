"""Preparation of a pipeline before it runs: its source, its children, inputs, trust, options."""
