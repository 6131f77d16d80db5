"""Coding agents of the command line as backends: claude, codex, gemini, and any other program (spec 4.5).

Each is a separate program that works in a directory, calls its tools and says on stdout, a JSON object a
line, what it does. A dialect (``dialects.py``, ``claude.py``) knows one program: how it is
called, and what its lines mean. ``AgentBackend`` knows stages and no program. ``CommandLineBackend`` takes
the command of any program.
"""

from typing import TYPE_CHECKING

from attractor_nb.lazy_imports import deferred

if TYPE_CHECKING:
    from attractor_nb.backends.agents.agent_backend import AgentBackend as AgentBackend
    from attractor_nb.backends.agents.agent_backend import ClaudeBackend as ClaudeBackend
    from attractor_nb.backends.agents.agent_backend import CodexBackend as CodexBackend
    from attractor_nb.backends.agents.agent_backend import GeminiBackend as GeminiBackend
    from attractor_nb.backends.agents.command_line import CommandLineBackend as CommandLineBackend
    from attractor_nb.backends.agents.installed import InstalledAgent as InstalledAgent
    from attractor_nb.backends.agents.installed import installed_agents as installed_agents
else:
    __getattr__ = deferred(
        __name__,
        {
            "AgentBackend": "backends.agents.agent_backend",
            "ClaudeBackend": "backends.agents.agent_backend",
            "CodexBackend": "backends.agents.agent_backend",
            "GeminiBackend": "backends.agents.agent_backend",
            "CommandLineBackend": "backends.agents.command_line",
            "InstalledAgent": "backends.agents.installed",
            "installed_agents": "backends.agents.installed",
        },
    )

__all__ = [
    "AgentBackend",
    "ClaudeBackend",
    "CodexBackend",
    "CommandLineBackend",
    "GeminiBackend",
    "InstalledAgent",
    "installed_agents",
]
