"""What stages leave: their directories, files, status, artifacts and threads."""
