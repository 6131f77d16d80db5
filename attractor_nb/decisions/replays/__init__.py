"""Reuse of earlier results for a call: recordings and the cache."""
