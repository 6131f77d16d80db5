"""Tools that inspect a run or change a text, one folder per feature."""
