"""What each request is answered with."""
