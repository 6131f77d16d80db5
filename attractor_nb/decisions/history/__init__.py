"""What a run's events say of its past: visits, causes, reasons, loops."""
