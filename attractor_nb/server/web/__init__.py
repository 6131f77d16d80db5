"""The files of the served page alone: its shell, its screens, its client of the server; views are in views/web."""
