"""Evaluation: pipelines scored on data, variants compared, a verdict."""
