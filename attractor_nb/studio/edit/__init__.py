"""Changes of a pipeline's text; forms of its parts."""
