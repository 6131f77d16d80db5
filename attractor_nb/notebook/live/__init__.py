"""Live views in a cell: of a run or a map, its questions, and the static output that remains."""
