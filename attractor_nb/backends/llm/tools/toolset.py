"""A stage's tools as pydantic-ai takes them. Imported only where a model is about to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from attractor_nb.backends.llm.tools.tool_problems import ToolProblem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic_ai import RunContext

    from attractor_nb.backends.llm.tools.catalog import CallableTool
    from attractor_nb.backends.llm.tools.tool_calls import ToolCalls

_ANY_OBJECT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""What a tool takes we check ourselves, so that a call with anything else is recorded, too."""
_MAX_RETRIES: Final = 3
"""For arguments that are not even JSON."""


class StageToolset(AbstractToolset[Any]):
    """The tools that a node allows, called one after the other."""

    def __init__(self, find: Callable[[], Awaitable[Sequence[CallableTool]]], calls: ToolCalls) -> None:
        """Take what finds the tools, which may have to start a server first, and what calls them."""
        self._find = find
        self._tools: dict[str, CallableTool] = {}
        self._calls = calls

    @property
    def id(self) -> str:
        """What pydantic-ai knows it by."""
        return "attractor"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - the interface of toolsets
        """All of them, as the model is told of them."""
        self._tools = self._tools or {tool.name: tool for tool in await self._find()}
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name, description=tool.description, parameters_json_schema=tool.schema, sequential=True
                ),
                max_retries=_MAX_RETRIES,
                args_validator=_ANY_OBJECT,
            )
            for name, tool in self._tools.items()
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - the interface of toolsets
    ) -> str:
        """Call one; a problem is told to the model and ends nothing."""
        try:
            return await self._calls.run(self._tools[name], ctx.tool_call_id or "", tool_args)
        except ToolProblem as problem:
            raise ToolFailed(str(problem)) from None
