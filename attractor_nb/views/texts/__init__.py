"""Texts as users read them: Markdown, code, JSON, and what differs between two of them."""
