"""What a fresh session is told about the run so far: how much, in which order, in which words."""
