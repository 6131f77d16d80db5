"""A fan-out (spec 4.8, 4.9): what its policies say, where its branches meet, which of them is the best."""
