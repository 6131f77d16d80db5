"""Names of attributes that other tools read: those that one of ours stands for, and those of Graphviz.

It knows the places of our attributes, not their table.
"""

from __future__ import annotations

from typing import Final

from attractor_nb.model.vocabulary.attribute_kinds import Scope

CHILD_FILE: Final = "pipeline.dotfile"
CHILD_FILES: Final = ("dot_file", "dotfile")
"""Names by which nodes of other dialects name the file of a sub-pipeline: read as ``pipeline.dotfile``."""
FOREIGN_NAMES: Final[dict[Scope, dict[str, tuple[Scope, str]]]] = {
    Scope.GRAPH: {
        "max_iterations": (Scope.GRAPH, "max_steps"),
        "max_visits": (Scope.GRAPH, "max_node_visits"),
        "model": (Scope.GRAPH, "llm_model"),
        "provider": (Scope.GRAPH, "llm_provider"),
        "stylesheet": (Scope.GRAPH, "model_stylesheet"),
    },
    Scope.NODE: {
        "max_visits": (Scope.GRAPH, "max_node_visits"),
        "max_iterations": (Scope.GRAPH, "max_node_visits"),
        "max_loops": (Scope.GRAPH, "max_node_visits"),
        "max_attempts": (Scope.NODE, "max_retries"),
        "retries": (Scope.NODE, "max_retries"),
        "timeout_ms": (Scope.NODE, "timeout"),
        "timeout_seconds": (Scope.NODE, "timeout"),
        "model": (Scope.NODE, "llm_model"),
        "provider": (Scope.NODE, "llm_provider"),
        "temperature": (Scope.NODE, "llm.temperature"),
        "max_tokens": (Scope.NODE, "llm.max_tokens"),
        "system": (Scope.NODE, "llm.system_prompt"),
        "system_prompt": (Scope.NODE, "llm.system_prompt"),
        "instruction": (Scope.NODE, "prompt"),
        "instructions": (Scope.NODE, "prompt"),
        "tool": (Scope.NODE, "tool_command"),
        "tools": (Scope.NODE, "allowed_tools"),
        "command": (Scope.NODE, "tool_command"),
        "cmd": (Scope.NODE, "tool_command"),
        "script": (Scope.NODE, "tool_command"),
        "handler": (Scope.NODE, "type"),
        "on_failure": (Scope.NODE, "retry_target"),
        "default_choice": (Scope.NODE, "human.default_choice"),
        **dict.fromkeys(CHILD_FILES, (Scope.NODE, CHILD_FILE)),
    },
    Scope.EDGE: {
        "cond": (Scope.EDGE, "condition"),
        "guard": (Scope.EDGE, "condition"),
        "if": (Scope.EDGE, "condition"),
        "when": (Scope.EDGE, "condition"),
        "priority": (Scope.EDGE, "weight"),
    },
}
"""Names that files written for other tools use, and our attribute that does the same, with its place."""

GRAPHVIZ_NAMES: Final = frozenset(
    """arrowhead arrowsize arrowtail bgcolor center charset cluster clusterrank color colorscheme comment
    compound concentrate constraint decorate dir fillcolor fixedsize fontcolor fontname fontpath fontsize
    gradientangle group headlabel headport height href id image K labelangle labeldistance labelfloat
    labelfontcolor labelfontname labelfontsize labelhref labeljust labelloc labeltooltip layout len lhead
    ltail margin maxiter mclimit mindist minlen nodesep nojustify ordering orientation outputorder overlap
    pad page pencolor penwidth peripheries pos quantum rank ranksep ratio regular rotate samehead sametail
    sep sides size skew splines start style tailclip taillabel tailport target tooltip truecolor URL vertices
    viewport width xlabel xlp""".split()  # noqa: SIM905 - 90 quoted words would be read by nobody
)
"""Attributes that only Graphviz reads; kept, never reported as slips."""
