"""The one table of attributes: the scopes of each, its type, its default and what it means.

`attributes.py` reads it, and is what others import.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from attractor_nb.model.vocabulary.isolation import ISOLATIONS
from attractor_nb.model.vocabulary.value_forms import DEFAULT_MAX_ITEMS, FOR_EACH, MAX_ITEMS, Duration

# Attributes: their scope, the type of their value, and their row in the table.

AttrValue = str | int | float | bool | Duration
"""Values of an attribute once its type is known."""


class Scope(StrEnum):
    """The scope of an attribute: graph, node, edge or subgraph."""

    GRAPH = "graph"
    NODE = "node"
    EDGE = "edge"
    SUBGRAPH = "subgraph"


class AttrType(StrEnum):
    """The type of an attribute's value (spec 2.4), and three closer readings of a string."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "number"
    BOOLEAN = "boolean"
    DURATION = "duration"
    CHOICE = "choice"
    NODE_ID = "node id"
    COMMAND = "command"


class AttributeSpec(msgspec.Struct, frozen=True):
    """One row of the table."""

    name: str  #: The attribute's name, dots included.
    scope: Scope  #: Its scope.
    type: AttrType  #: Type of its value.
    default: AttrValue | None  #: Its value by default; None for "unset".
    meaning: str  #: One sentence for completion, lint and the docs.
    choices: tuple[str, ...] = ()  #: The values of a CHOICE.
    alias_of: str = ""  #: The canonical name, for a second spelling.
    minimum: int | None = None  #: The least number allowed, for numbers and durations (in milliseconds).


_S, _I, _F, _B, _D, _C, _N, _X = (
    AttrType.STRING,
    AttrType.INTEGER,
    AttrType.FLOAT,
    AttrType.BOOLEAN,
    AttrType.DURATION,
    AttrType.CHOICE,
    AttrType.NODE_ID,
    AttrType.COMMAND,
)
FIDELITY_MODES: Final = ("full", "truncate", "compact", "summary:low", "summary:medium", "summary:high")
REASONING_EFFORTS: Final = ("low", "medium", "high")
RETRY_PRESETS: Final = ("none", "standard", "aggressive", "linear", "patient")
FALLBACK_REASONS: Final = ("overlong", "refusal")
AGENT_TOOLS: Final = ("read", "write", "list", "run")
"""Names that `allowed_tools` accepts."""


def _rows(scope: Scope, *rows: AttributeSpec | tuple[str, AttrType, AttrValue | None, str]) -> list[AttributeSpec]:
    return [
        row if isinstance(row, AttributeSpec) else AttributeSpec(row[0], scope, row[1], row[2], row[3]) for row in rows
    ]


_G, _NODE, _E = Scope.GRAPH, Scope.NODE, Scope.EDGE

TABLE: Final[tuple[AttributeSpec, ...]] = (
    *_rows(
        _G,
        ("goal", _S, "", "Purpose of the pipeline; `$goal` in prompts, `graph.goal` in the context."),
        ("inputs", _S, "", "Inputs of a run: comma-separated names, `ticket, tone=plain` with a default."),
        ("inputs_schema", _S, "", "The registered model whose fields are the inputs, with their types."),
        ("label", _S, "", "Display name of the pipeline."),
        ("model_stylesheet", _S, "", "CSS-like rules that give nodes their model (spec 8)."),
        AttributeSpec(
            "default_max_retries", _G, _I, 0, "Additional attempts for nodes that omit `max_retries`.", minimum=0
        ),
        AttributeSpec(
            "default_max_retry", _G, _I, 0, "The spec's name of `default_max_retries`.", (), "default_max_retries", 0
        ),
        AttributeSpec("retry_policy", _G, _C, None, "Backoff preset for nodes without one.", RETRY_PRESETS),
        ("retry_target", _N, "", "Target when a goal gate is unsatisfied at the exit."),
        ("fallback_retry_target", _N, "", "Target if `retry_target` is missing."),
        AttributeSpec("default_fidelity", _G, _C, "", "Amount of earlier context in prompts.", FIDELITY_MODES),
        ("thread_id", _S, "", "The thread that nodes with `full` fidelity share by default."),
        ("llm_model", _S, "", "Model for nodes that name none."),
        ("llm_provider", _S, "", "Provider for nodes that name none."),
        AttributeSpec(
            "reasoning_effort", _G, _C, None, "Reasoning effort for nodes that name none.", REASONING_EFFORTS
        ),
        ("llm.system_prompt", _S, "", "System prompt of the models of nodes that name none."),
        (
            "llm.base_url",
            _S,
            "",
            "Base URL for the graph's model and other models of the same provider. No API key is sent.",
        ),
        ("llm_fallback", _S, "", "Models to ask in turn when a node's own fails, for nodes that name none."),
        ("llm_fallback_on", _S, "", "Further reasons to ask them, for nodes that name none."),
        ("llm.extra.NAME", _S, "", "Option that is passed on to the models of all nodes."),
        ("endpoint.NAME.url", _S, "", "Address of a server of your own; `NAME:model` is a model there."),
        ("endpoint.NAME.key_env", _S, "", "The environment variable that holds its key; none by default."),
        ("endpoint.NAME.api", _S, "chat", "API of the server: OpenAI's `chat` or `responses`."),
        AttributeSpec(
            "endpoint.NAME.requests_per_minute",
            _G,
            _I,
            None,
            "Requests that all runs of a process make there in a minute; NAME may be a provider's.",
            minimum=1,
        ),
        AttributeSpec(
            "endpoint.NAME.tokens_per_minute",
            _G,
            _I,
            None,
            "Tokens, sent and received, that all runs of a process may use there in a minute.",
            minimum=1,
        ),
        AttributeSpec(
            "on_fail", _G, _C, "route", "`continue` lets a failed stage leave by any edge.", ("route", "continue")
        ),
        AttributeSpec(
            "conditional_outcome",
            _G,
            _C,
            "previous",
            "Outcome that the edges of a diamond test: that of the previous stage, or its `own`.",
            ("previous", "own"),
        ),
        AttributeSpec(
            "max_goal_gate_redirects", _G, _I, 10, "Maximum number of redirects by unsatisfied goal gates.", minimum=0
        ),
        ("allow_many_exits", _B, False, "More than one exit node is accepted."),
        ("strict_gates", _B, False, "A goal gate that was never visited fails the run."),
        AttributeSpec("max_steps", _G, _I, 1000, "Stages the run may execute.", minimum=1),
        AttributeSpec("max_node_visits", _G, _I, None, "Visits any one node may get.", minimum=1),
        AttributeSpec("max_restarts", _G, _I, 10, "Maximum number of restarts by `loop_restart` edges.", minimum=0),
        AttributeSpec("max_budget_usd", _G, _F, None, "Cost after which the run is stopped, in USD.", minimum=0),
        AttributeSpec("max_tokens_total", _G, _I, None, "Tokens after which the run is stopped.", minimum=0),
        AttributeSpec("max_duration", _G, _D, None, "Time after which the run is stopped.", minimum=1),
        ("stack.child_dotfile", _S, "", "The pipeline that manager nodes supervise (spec 4.11)."),
        ("stack.child_pipeline", _S, "", "The registered pipeline that manager nodes supervise, by its name."),
        ("stack.child_workdir", _S, "", "Directory in which the supervised pipeline's commands run."),
        AttributeSpec(
            "isolation",
            _G,
            _C,
            None,
            "Separate working directory for the run: a `workspace` in the run directory, or a git `worktree`.",
            ISOLATIONS,
        ),
        AttributeSpec("max_child_depth", _G, _I, 8, "Maximum nesting depth of pipelines in this one.", minimum=1),
        ("mcp.NAME.command", _X, "", "Command that starts the MCP server NAME, over stdin and stdout."),
        (
            "mcp.NAME.env",
            _S,
            "",
            "Comma-separated environment variables to pass to server NAME in addition to the usual ones.",
        ),
        ("mcp.NAME.url", _S, "", "Address of the MCP server NAME, over streamable HTTP; in place of a command."),
        (
            "mcp.NAME.headers",
            _S,
            "",
            "Comma-separated headers for the server NAME: `Authorization: Bearer $A_TOKEN`; one variable in each.",
        ),
        AttributeSpec(
            "mcp.NAME.timeout", _G, _D, Duration(120_000), "Time limit of one tool call of the server NAME.", minimum=1
        ),
        ("tool_hooks.pre", _X, "", "Command before each tool call of a model (spec 9.7)."),
        ("tool_hooks.post", _X, "", "Command after each tool call of a model (spec 9.7)."),
        AttributeSpec(
            "tool_hooks.timeout", _G, _D, Duration(30_000), "Time each of these commands may take.", minimum=1
        ),
        AttributeSpec(
            "rankdir",
            _G,
            _C,
            "",
            "Direction of the drawing. Default: top to bottom, or left to right if it is then low and fits its cell.",
            ("TB", "LR", "BT", "RL"),
        ),
    ),
    *_rows(
        _NODE,
        ("label", _S, None, "Display name; the node id by default."),
        ("shape", _S, "box", "Shape of the drawing, and by it the handler type (spec 2.8)."),
        ("type", _S, "", "Handler type, before the shape's."),
        (
            "prompt",
            _S,
            "",
            "Instruction of the stage; `$goal`, `$name` and `${node.response}` are replaced by their values.",
        ),
        AttributeSpec("max_retries", _NODE, _I, None, "Additional attempts beyond the first.", minimum=0),
        AttributeSpec("retry_policy", _NODE, _C, None, "Backoff preset between attempts (spec 3.6).", RETRY_PRESETS),
        ("goal_gate", _B, False, "This node must succeed before the run may end."),
        ("retry_target", _N, "", "Target after a failure of this node."),
        ("fallback_retry_target", _N, "", "Target if `retry_target` is missing."),
        AttributeSpec("fidelity", _NODE, _C, "", "Amount of earlier context in the prompt.", FIDELITY_MODES),
        (
            "attach",
            _S,
            "",
            "Images and PDFs for the model, comma-separated: `${photo}`, paths in the working directory.",
        ),
        ("carry", _S, "", "Comma-separated context keys that the prompt contains completely, such as `plan.response`."),
        ("thread_id", _S, "", "Thread to reuse under `full` fidelity."),
        ("class", _S, "", "Comma-separated classes for the model stylesheet."),
        AttributeSpec("timeout", _NODE, _D, None, "Time one attempt may take.", minimum=1),
        ("llm_model", _S, "", "Model of this node."),
        ("llm_provider", _S, "", "Provider of this node."),
        AttributeSpec("reasoning_effort", _NODE, _C, "high", "Reasoning effort of the model.", REASONING_EFFORTS),
        ("auto_status", _B, False, "A handler that reports nothing counts as success."),
        ("allow_partial", _B, False, "Exhausted retries end in partial success."),
        AttributeSpec(
            "on_interrupted",
            _NODE,
            _C,
            None,
            "Rule of a resume for an interrupted stage: run it again, ask, or fail.",
            ("rerun", "ask", "fail"),
        ),
        ("idempotent", _B, False, "The tool may be run again without harm."),
        ("tool_command", _X, "", "Command of a tool stage (spec 4.10). Never interpolated."),
        AttributeSpec(
            "tool_shell",
            _NODE,
            _C,
            "sh",
            "Shell of `tool_command`: `sh`, or `bash` with `pipefail`, where a pipe fails with its first failure.",
            ("sh", "bash"),
        ),
        ("tool_hooks.pre", _X, "", "Command before each tool call of this node's model."),
        ("tool_hooks.post", _X, "", "Command after each tool call of this node's model."),
        AttributeSpec(
            "tool_hooks.timeout", _NODE, _D, Duration(30_000), "Time each of these commands may take.", minimum=1
        ),
        ("human.default_choice", _S, "", "The choice taken when a gate times out: target, key or label."),
        AttributeSpec("human.timeout", _NODE, _D, None, "Time limit for the answer of a gate.", minimum=1),
        ("human.prompt", _S, "", "Longer text under a gate's question; variables as in `prompt`."),
        ("human.form", _S, "", "Name of the registered model that is filled in as a form at a gate."),
        (
            "human.review",
            _S,
            "",
            "Files of stages that a gate shows beside its question, comma-separated: `plan/response.md`.",
        ),
        AttributeSpec(
            "human.type",
            _NODE,
            _C,
            "multiple_choice",
            "Kind of answer that a gate asks for (spec 6.2).",
            ("multiple_choice", "yes_no", "confirmation", "freeform", "multi_select"),
        ),
        AttributeSpec(
            "llm.temperature", _NODE, _F, None, "Sampling temperature of the model; 0 is the least random.", minimum=0
        ),
        AttributeSpec(
            "max_budget_usd", _NODE, _F, None, "Cost in USD of all attempts and visits after which it fails.", minimum=0
        ),
        AttributeSpec(
            "max_tokens_total", _NODE, _I, None, "Tokens of all attempts and visits after which it fails.", minimum=0
        ),
        AttributeSpec("llm.max_tokens", _NODE, _I, None, "Tokens after which a response is cut off.", minimum=1),
        ("llm.system_prompt", _S, "", "System prompt of this node's model; variables as in `prompt`."),
        ("llm.base_url", _S, "", "Address of this model's server, which gets no key; `http://` or `https://`."),
        AttributeSpec(
            "llm.context_tokens",
            _NODE,
            _I,
            None,
            "Tokens that the model's window holds; a longer thread is compacted (spec 5.4).",
            minimum=1,
        ),
        (
            "llm_fallback",
            _S,
            "",
            "Models to ask in turn when this one fails: `model` or `provider:model`, with commas.",
        ),
        ("llm.extra.NAME", _S, "", "Option that is passed on, such as `top_p`, `seed`, `stop`."),
        (
            "llm_fallback_on",
            _S,
            "",
            "Further reasons to ask them, comma-separated: `overlong` (the prompt does not fit), `refusal`.",
        ),
        (
            "allowed_tools",
            _S,
            "",
            "Tools that the model may call: `read`, `write`, `list`, `run`, own ones, `mcp:SERVER/TOOL`.",
        ),
        ("cache", _B, True, "This stage's result may be taken from the cache of the run."),
        ("cache.files", _S, "", "Paths and patterns, with commas: files whose content the result depends on."),
        (
            "cache.context",
            _S,
            None,
            "Context keys that a command or custom handler reads, with commas; `a.*` for all that begin so.",
        ),
        AttributeSpec("verdict", _NODE, _C, "", "Ask for a JSON verdict as the last block.", ("json",)),
        ("response_schema", _S, "", "JSON Schema of the response, or the name of a registered model (ruling 26)."),
        AttributeSpec(
            "join_policy",
            _NODE,
            _C,
            "wait_all",
            "Policy that completes a fan-out, or a stage with `for_each` (spec 4.8).",
            ("wait_all", "first_success", "k_of_n", "quorum"),
        ),
        AttributeSpec("join_k", _NODE, _I, None, "Branches, or items, that must succeed under `k_of_n`.", minimum=1),
        ("join_quorum", _F, None, "Fraction of branches, or items, that must succeed under `quorum`."),
        AttributeSpec(
            "error_policy",
            _NODE,
            _C,
            "continue",
            "Effect of a failed branch, or item, on the others (spec 4.8).",
            ("continue", "fail_fast", "ignore"),
        ),
        AttributeSpec("max_parallel", _NODE, _I, 4, "Branches, or items, that run at the same time.", minimum=1),
        (FOR_EACH, _S, "", "The stage is run once for each item of a list: `item in plan.verdict.files`."),
        AttributeSpec(
            MAX_ITEMS, _NODE, _I, DEFAULT_MAX_ITEMS, "Items that the list of `for_each` may have.", minimum=1
        ),
        AttributeSpec(
            "merge",
            _NODE,
            _C,
            "none",
            "Context changes of the branches that the fan-in copies into the run (spec 4.9).",
            ("none", "best", "all"),
        ),
        ("stack.child_dotfile", _S, "", "The pipeline that this manager supervises."),
        ("stack.child_pipeline", _S, "", "The registered pipeline that this manager supervises, by its name."),
        ("stack.child_workdir", _S, "", "Directory in which this child's commands run."),
        ("stack.child_autostart", _B, True, "`true`: start the child run. `false`: attach to a running one."),
        ("stack.child_run", _S, "", "Run directory of a child run that was started elsewhere."),
        ("manager.poll_interval", _D, Duration(45_000), "Time between two checks of the child."),
        AttributeSpec(
            "manager.max_cycles", _NODE, _I, 1000, "Checks of the child before the manager gives up.", minimum=1
        ),
        ("manager.stop_condition", _S, "", "Condition that ends the supervision."),
        ("manager.actions", _S, "observe,wait", "Actions of the manager in a cycle: observe, steer, wait."),
        ("manager.guard", _S, "", "Condition that should hold; while it does not, the manager steers."),
        ("manager.guard_function", _S, "", "Registered function that judges the child, by its name."),
        ("manager.escalate", _S, "", "Condition on which the manager stops its child and fails."),
        ("manager.instructions", _S, "", "Instruction that the manager gives when it steers."),
        AttributeSpec(
            "manager.steer_cooldown",
            _NODE,
            _D,
            Duration(60_000),
            "Least time between two instructions to a child.",
            minimum=0,
        ),
        ("pipeline.dotfile", _S, "", "The pipeline that this stage runs (spec 9.4)."),
        ("function", _S, "", "The registered Python function that this stage calls, by its name."),
        ("pipeline.name", _S, "", "The registered pipeline that this stage runs, by its name."),
        ("pipeline.inputs", _S, "", "Inputs of the child: `name=context.key, name='text', name=3`."),
        ("pipeline.outputs", _S, "", "Outputs of the child: `key=context.key_of_the_child`."),
    ),
    *_rows(
        _E,
        ("label", _S, "", "Caption and routing key."),
        ("condition", _S, "", "Guard of the edge (spec 10)."),
        ("weight", _I, 0, "Priority among equally eligible edges; higher wins."),
        AttributeSpec("fidelity", _E, _C, "", "Fidelity of the target's prompt.", FIDELITY_MODES),
        ("thread_id", _S, "", "Thread of the target."),
        ("loop_restart", _B, False, "Start over at the target in a fresh run directory."),
        ("default", _B, False, "Taken when nothing else matches (ruling 12)."),
        AttributeSpec(
            "max_taken", _E, _I, None, "Times that a run may take the edge; then it is not eligible.", minimum=1
        ),
    ),
    AttributeSpec("label", Scope.SUBGRAPH, _S, "", "Title of the group; derives a class (spec 2.10)."),
)


# Names of attributes that other tools read: our own aliases, and those of Graphviz.

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
        "max_taken": (Scope.EDGE, "max_taken"),
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
        "max_iterations": (Scope.EDGE, "max_taken"),
        "max_loops": (Scope.EDGE, "max_taken"),
        "max_visits": (Scope.EDGE, "max_taken"),
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
