"""What only the served page has: its shell, its screens, its way to the server; views are in views/web."""
