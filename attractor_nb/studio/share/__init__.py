"""A run for others: a page, a picture."""
