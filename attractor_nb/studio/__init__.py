"""What looks at a run or changes a text: one folder a feature."""
