"""Runs on a server, from the command line."""
