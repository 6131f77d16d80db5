"""Where everything meets: a pipeline is prepared, wired to its plugs, run, and read again."""
