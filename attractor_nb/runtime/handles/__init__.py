"""What is known of work that is done elsewhere, and who waits for it or shows it."""
