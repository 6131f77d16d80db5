"""Calls of models: who is asked, what is sent, what comes back."""
