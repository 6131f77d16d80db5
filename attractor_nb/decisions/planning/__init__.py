"""A graph made ready to run, and what can be known of it before: its models and commands, how often each node comes."""
