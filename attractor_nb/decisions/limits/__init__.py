"""When a run, or a map, has gone on for too long or spent too much."""
