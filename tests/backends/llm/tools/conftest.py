"""A model that asks for the tools that a test says, and answers with what they told it."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from attractor_nb.model.events import ToolCallEnded
from attractor_nb.stage import current_stage

collect_ignore = ["mcp_server.py", "http_mcp_server.py", "odd_mcp_server.py"]  # programs of their own


@dataclass
class ToolUser:
    """A backend whose model makes these calls, one after the other, and then answers.

    Attributes:
        calls: Tool and arguments of each call; a list of them is asked for at once.
        told: What the model was told of each call, in order.
        offered: The names of the tools that it was offered.
    """

    calls: list[tuple[str, Any]]
    told: list[str] = field(default_factory=list)
    offered: list[str] = field(default_factory=list)

    async def run(self, node, prompt, context):
        """Ask the model, as the provider backend does."""
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
        from pydantic_ai.models.function import FunctionModel

        from attractor_nb.backends.llm.tools import tools_for

        left = list(self.calls)

        def answer(messages, info):
            self.offered = [tool.name for tool in info.function_tools]
            last = messages[-1].parts
            self.told += [str(part.content) for part in last if isinstance(part, ToolReturnPart)]
            if not left:
                return ModelResponse(parts=[TextPart("done")])
            number = len(self.calls) - len(left) + 1
            batch = left.pop(0)
            if not isinstance(batch, list):
                return ModelResponse(parts=[ToolCallPart(*batch, tool_call_id=f"call-{number}")])
            return ModelResponse(
                parts=[ToolCallPart(*call, tool_call_id=f"call-{number}.{index}") for index, call in enumerate(batch)]
            )

        toolset = tools_for(node, current_stage())
        agent = Agent(FunctionModel(answer), toolsets=[toolset] if toolset else [])
        return (await agent.run(prompt)).output


@pytest.fixture
def kept():
    """The calls that a stage's file keeps."""

    def read(logs_root, node_id="work"):
        text = (logs_root / node_id / "tool_calls.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    return read


@pytest.fixture
def unlogged(monkeypatch):
    """From its call on logging is not set up, as in most programs: warnings and worse are printed.

    pytest sets it up for each test, after its fixtures are made.
    """
    return lambda: monkeypatch.setattr(logging.getLogger(), "handlers", [])


@pytest.fixture
def tool_user():
    """The class of backends whose model calls tools."""
    return ToolUser


@pytest.fixture
def use_tools():
    """Runs a pipeline whose model makes calls: the model, the result, and the tool calls that the events tell of."""

    def go(tmp_path, pipeline, calls, **options):
        user, seen = ToolUser(calls), []
        result = pipeline.run(
            wait=True,
            backend=user,
            logs_root=tmp_path / "run",
            durability="fast",
            observers=[seen.append],
            **({} if "workdir" in options else {"isolation": "workspace"}),
            **options,
        )
        return user, result, [event for event in seen if isinstance(event, ToolCallEnded)]

    return go
