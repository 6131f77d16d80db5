"""What a pipeline is before it runs: its source, its children, inputs, trust, options."""
