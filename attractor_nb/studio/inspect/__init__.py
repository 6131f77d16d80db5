"""One stage, one edge: what is known of them."""
