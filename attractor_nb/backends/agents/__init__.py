"""Coding agents of the command line as backends: claude, codex, gemini, and any other program (spec 4.5).

Each is a program of its own that works in a directory, calls its tools and says on stdout, a JSON object a
line, what it does. A dialect (``claude.py``, ``codex.py``, ``gemini.py``) knows one program: how it is
called, and what its lines mean. ``AgentBackend`` knows stages and no program. ``CommandLineBackend`` takes
the command of any program.
"""

from attractor_nb.backends.agents.backend import AgentBackend, ClaudeBackend, CodexBackend, GeminiBackend
from attractor_nb.backends.agents.command_line import CommandLineBackend
from attractor_nb.backends.agents.installed import InstalledAgent, installed_agents

__all__ = [
    "AgentBackend",
    "ClaudeBackend",
    "CodexBackend",
    "CommandLineBackend",
    "GeminiBackend",
    "InstalledAgent",
    "installed_agents",
]
