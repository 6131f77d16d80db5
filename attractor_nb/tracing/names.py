"""Names of spans and their attributes: OpenTelemetry's GenAI names where there is one, else ours.

The names are those of the conventions' own repository (open-telemetry/semantic-conventions-genai), all in
development; a test holds them against the installed package, which has the same. Pure; no telemetry is imported.
"""

from __future__ import annotations

from typing import Final

from attractor_nb.model.calls.providers import known_provider

SCOPE: Final = "attractor_nb"

OPERATION: Final = "gen_ai.operation.name"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
INVOKE_WORKFLOW: Final = "invoke_workflow"

AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
ERROR_TYPE: Final = "error.type"
OTHER_ERROR: Final = "_OTHER"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
WORKFLOW: Final = "gen_ai.workflow.name"

ATTEMPT: Final = "attractor.attempt"
BRANCH: Final = "attractor.branch"
CACHED: Final = "attractor.cached"
CALL_COST: Final = "attractor.call.cost_usd"
ATTEMPT_COST: Final = "attractor.attempt.cost_usd"
ATTEMPT_INPUT_TOKENS: Final = "attractor.attempt.input_tokens"
ATTEMPT_OUTPUT_TOKENS: Final = "attractor.attempt.output_tokens"
ATTEMPT_UNPRICED: Final = "attractor.attempt.unpriced_calls"
FIDELITY: Final = "attractor.fidelity"
HANDLER: Final = "attractor.node.type"
NEXT_NODE: Final = "attractor.next_node"
NODE: Final = "attractor.node.id"
OUTCOME: Final = "attractor.outcome"
ROUTE: Final = "attractor.route"
RUN: Final = "attractor.run.id"
SKIPPED: Final = "attractor.tool.skipped"
VISIT: Final = "attractor.visit"

CUT_OFF: Final = "cut_off"
"""The outcome of what was under way when its run ended."""

_OTHERS: Final = {"codex": "openai", "moonshot": "moonshot_ai"}
"""Agents, and providers without a row of ours, that the conventions call otherwise; an unknown name stays."""


def provider_and_model(model: str) -> tuple[str, str]:
    """The provider, or empty, and the model of a call, by OpenTelemetry's names.

    >>> provider_and_model("openai:gpt-5.2"), provider_and_model("google:gemini-3"), provider_and_model("m")
    (('openai', 'gpt-5.2'), ('gcp.gemini', 'gemini-3'), ('', 'm'))
    """
    provider, colon, name = model.partition(":")
    if not colon:
        return "", model
    known = known_provider(provider)
    return (known.traced_as or known.name if known else _OTHERS.get(provider, provider)), name


def conversation(run_id: str, thread: str) -> str:
    """The name of a thread that no thread of another run has; empty for none.

    >>> conversation("q7kd2m4x", "main"), conversation("q7kd2m4x", "")
    ('q7kd2m4x/main', '')
    """
    return f"{run_id}/{thread}" if run_id and thread else thread
