"""AI pipelines as directed graphs in Graphviz DOT: author, lint, draw, run, ask, resume."""
