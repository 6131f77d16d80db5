"""The runs that are kept, and how they come from one another."""
