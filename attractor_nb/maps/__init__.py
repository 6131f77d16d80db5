"""One pipeline over many inputs: rows, bounded concurrency, one result; resumable as a whole."""
