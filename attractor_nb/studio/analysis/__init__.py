"""The analysis of a pipeline: what every run passes, its critical path, its loops, and findings about them."""
