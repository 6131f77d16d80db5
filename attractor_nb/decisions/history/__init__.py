"""The past of a run, read from its events: visits, causes, reasons, loops."""
