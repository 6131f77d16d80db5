"""Events on their way to those who listen."""
