"""What moves in a cell: the live view of a run or a map, its questions, what its output keeps."""
