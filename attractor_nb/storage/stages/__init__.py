"""The records of stages: their directories, files, status, artifacts and threads."""
