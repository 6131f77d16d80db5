"""The store of a run: what is kept on disk, how it gets there, and how it is read again."""
