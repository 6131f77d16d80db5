"""The words of pipelines: attributes with their types, shapes, labels, durations, lists, variables."""
