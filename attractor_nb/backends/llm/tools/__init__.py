"""Tools that a model may call while it works on a stage: read, write and list files, run commands (spec 9.7).

They work in the run's working directory and nowhere else. What a tool cannot do is told to the model; what
it did is in the stage's ``tool_calls.jsonl`` and in a ``ToolCallEnded`` event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.backends.llm.tools.catalog import allowed_tools, tool_inputs
from attractor_nb.errors import TerminalError

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

    from attractor_nb.model.graph import Node
    from attractor_nb.stage import StageScope

__all__ = ["tool_inputs", "tools_for"]


def tools_for(node: Node, scope: StageScope) -> AbstractToolset[Any] | None:
    """The tools of a node, for one attempt; None when it allows none.

    Args:
        node: Its ``allowed_tools`` says which.
        scope: The attempt under way: where it works, and where its calls are recorded.

    Raises:
        TerminalError: It allows a tool that there is not, or there is no place here to work in.
    """
    tools = allowed_tools(node)
    if not tools:
        return None
    if scope.workplace is None:
        raise TerminalError(
            f"node {node.id!r} allows its model tools, and there is no working directory here",
            hint="run it without executor=: tools work on the machine of the run",
        )
    from attractor_nb.backends.llm.tools.calls import ToolCalls  # noqa: PLC0415 - for nodes with tools alone
    from attractor_nb.backends.llm.tools.toolset import StageToolset  # noqa: PLC0415 - pydantic-ai is slow to import

    return StageToolset(tools, ToolCalls(node, scope, scope.workplace))
