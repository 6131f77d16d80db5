"""Which earlier result answers a call: recordings and the cache."""
