"""Runs as a list: lines, index, tags, removal."""
