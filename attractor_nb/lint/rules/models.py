"""Rules about what nodes give to their models: files, tools, servers, options, values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attractor_nb.decisions.bounds import SPENDING
from attractor_nb.decisions.branch_policies import FAN_IN_TYPE
from attractor_nb.lint.structured_keys import StructuredKeys
from attractor_nb.lint.survey import Finding, KnownNames, Survey, name_span, replacing_value, rule, value_span
from attractor_nb.model.allowed_tools import (
    SERVER_FIELDS,
    SERVER_PREFIX,
    TOOL_NAME,
    declared_servers,
    read_allowed_tools,
    read_headers,
    server_attribute,
)
from attractor_nb.model.calls.messages import ATTACH, attached_names
from attractor_nb.model.calls.model_options import PREFIX as OPTION_PREFIX
from attractor_nb.model.calls.model_options import read_option, written_options
from attractor_nb.model.calls.providers import address_problem
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.graph import Graph, Node
from attractor_nb.model.inputs import STAGE_KEYS
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.model.vocabulary.attribute_table import AGENT_TOOLS
from attractor_nb.model.vocabulary.attributes import literal_text
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, CHILD_TYPES, DEFAULT_TYPE, FUNCTION_TYPE
from attractor_nb.model.vocabulary.value_forms import comma_list, parse_duration
from attractor_nb.network import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from attractor_nb.source import Span


_SPENDING_TYPES: Final = frozenset({DEFAULT_TYPE, FUNCTION_TYPE, *CHILD_TYPES})
_TEXT_ENDINGS: Final = (".txt", ".md", ".csv", ".json", ".html", ".svg", ".gif", ".docx", ".xlsx", ".py")
_OUTSIDE: Final = re.compile(r"[/\\~]|[A-Za-z]:|(.*[/\\])?\.\.([/\\]|\Z)")


class _Written(NamedTuple):
    """An attribute as it is written on the graph or a node."""

    thing: Graph | Node
    name: str
    text: str

    @property
    def span(self) -> Span | None:
        return value_span(self.thing, self.name)

    @property
    def node_id(self) -> str:
        return self.thing.id if isinstance(self.thing, Node) else ""


@rule(Severity.WARNING)
def attach_unused(survey: Survey) -> Iterator[Finding]:
    """`attach` is on a node that asks no model, or names a file that cannot be attached.

    Only a stage that asks a model can send an attachment; a fan-in, a tool or a human gate cannot. Images and PDFs can
    be attached; text belongs in the prompt, by a variable or as `@file`.

    Bad:

        digraph { start [shape=Mdiamond] test [shape=parallelogram, tool_command="make", attach="plot.png"]
            exit [shape=Msquare]  start -> test -> exit }

    Good:

        digraph { start [shape=Mdiamond] look [prompt="What is in it?", attach="plot.png"]
            exit [shape=Msquare]  start -> look -> exit }
    """
    for node in survey.having(ATTACH):
        text = node.get(ATTACH, str, "").strip()
        if not text:
            continue
        span, kind = value_span(node, ATTACH), survey.types[node.id]
        if kind in BUILT_IN_TYPES - {DEFAULT_TYPE} - survey.options.taken_over:
            message = f'"{node.id}" attaches files, but calls no model'
            yield Finding(message, span, node.id, fix=Fix("attach files to a model stage"))
        for name in attached_names(text):
            if name.lower().endswith(_TEXT_ENDINGS):
                message = f'"{node.id}" attaches {name}, but only images and PDFs can be attached'
                fix = Fix("put text into the prompt, with a variable or as @file")
                yield Finding(message, span, node.id, fix=fix)


@rule(Severity.WARNING)
def bound_unused(survey: Survey) -> Iterator[Finding]:
    """`max_budget_usd` or `max_tokens_total` is on a node that spends nothing.

    The bounds hold for all attempts and visits of a node that asks a model, calls a function or a handler of your own,
    or runs child pipelines. Starts, exits, diamonds, tools, human gates and fan-outs spend nothing themselves. The
    bounds of the whole run are attributes of the graph.

    Bad:

        digraph { start [shape=Mdiamond] test [shape=parallelogram, tool_command="make", max_budget_usd=1]
            exit [shape=Msquare]  start -> test -> exit }

    Good:

        digraph { max_budget_usd=5 start [shape=Mdiamond] plan [prompt="Plan it", max_budget_usd=1]
            exit [shape=Msquare]  start -> plan -> exit }
    """
    for name in sorted(SPENDING):
        for node in survey.having(name):
            kind = survey.types[node.id]
            is_asking = kind == FAN_IN_TYPE and bool(node.prompt)
            if kind in BUILT_IN_TYPES - _SPENDING_TYPES - survey.options.taken_over and not is_asking:
                message = f'{name} of "{node.id}" changes nothing: a {kind} stage spends nothing itself'
                fix = Fix("give it to the stages that spend, or to the graph")
                yield Finding(message, name_span(node, name), node.id, fix=fix)


@rule(Severity.ERROR)
def tools_known(survey: Survey) -> Iterator[Finding]:
    """`allowed_tools` names an unknown tool.

    Known tools are `read`, `write`, `list` and `run`, functions of `Pipeline(…, tools=…)`, and tools of MCP servers
    that the graph declares (`mcp:files/read_file`). A model without a tool that its prompt expects may report work that
    it cannot have done. If no functions are registered, an unknown tool name that could be a function is only a
    warning; a run with it is refused. Names of claude's own tools (`Read`, `Bash(git:*)`) are passed to that agent
    unchanged; other backends refuse them, so they are a warning, too.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", allowed_tools="read,wirte"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", allowed_tools="read,write"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    functions = sorted(survey.options.tools or ())
    names = (*AGENT_TOOLS, *functions)
    servers = declared_servers(survey.graph)
    listed = ", ".join((*names, *(f"mcp:{name}/…" for name in servers)))
    for written in attributes(survey, "allowed_tools"):
        words = [word.strip() for word in written.text.split(",")]
        of_agents = read_allowed_tools(written.text).agents
        unknown = [word for word in words if not _is_tool(word, names, servers) and word not in of_agents]
        if not unknown:
            if of_agents:
                message = f"allowed_tools {', '.join(of_agents)}: only the agent claude knows these names"
                fix = Fix(f"use {listed} for other backends")
                yield Finding(message, written.span, written.node_id, fix=fix, severity=Severity.WARNING)
            continue
        quoted = ", ".join(f'"{word}"' for word in unknown)
        message = f"allowed_tools {quoted} {'is not one' if len(unknown) == 1 else 'are not'} of {listed}"
        meant = {word: _tool_meant(word, names, servers) for word in unknown}
        fix = Fix(f"use {listed}, with commas between")
        if all(meant.values()):  # half a fix would leave a value that is still wrong
            if len(unknown) == 1:
                message += suggestion(meant[unknown[0]])
            mended = ",".join(dict.fromkeys(meant.get(word, word) for word in words))
            fix = replacing_value(written.thing, written.name, mended, f'write "{mended}"')
        elif unknown == [""]:
            message = "allowed_tools has an empty entry"
        may_be_own = survey.options.tools is None and all(TOOL_NAME.match(word) and not meant[word] for word in unknown)
        severity = Severity.WARNING if may_be_own else None
        yield Finding(message, written.span, written.node_id, fix=fix, severity=severity)


def _is_tool(word: str, names: Sequence[str], servers: Mapping[str, Any]) -> bool:
    served = read_allowed_tools(word).served
    return word in names or (bool(served) and served[0][0] in servers)


def _tool_meant(word: str, names: Sequence[str], servers: Mapping[str, Any]) -> str:
    """The tool that a word that names none can only mean; empty when there is no such."""
    if not (served := read_allowed_tools(word).served):
        return nearest(word, names) or ""
    server, tool = served[0]
    near = nearest(server, sorted(servers))
    return f"{SERVER_PREFIX}{near}/{tool}" if near else ""


@rule(Severity.ERROR)
def servers_declared(survey: Survey) -> Iterator[Finding]:
    """An `mcp.NAME.…` attribute is unknown, or the server has neither a `command` nor a `url`.

    A server has a `command` or a `url`. Headers need a `url`; each has the value of one environment variable, so that
    no source contains a key. A misspelt `command` leaves a server undeclared, and an invalid `timeout` is replaced by
    the default. An address that travels unencrypted over a network is a WARNING.

    Bad:

        digraph { mcp.files.comand="python -m files" start [shape=Mdiamond]
            work [prompt="Do it", allowed_tools="read"]  exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { mcp.files.command="python -m files" start [shape=Mdiamond]
            work [prompt="Do it", allowed_tools="mcp:files/read_file"]  exit [shape=Msquare]
            start -> work -> exit }
    """
    graph = survey.graph
    for name in graph.attrs:
        if (found := server_attribute(name)) is not None:
            for message, fix, severity in _server_problems(graph, name, *found):
                yield Finding(message, value_span(graph, name), fix=Fix(fix), severity=severity)


def _server_problems(
    graph: Graph, attribute: str, server: str, field: str
) -> Iterator[tuple[str, str, Severity | None]]:
    """Problem of one attribute of a server: message, fix and severity."""
    text = graph.get(attribute, str, "").strip()
    has = {name: bool(graph.get(f"mcp.{server}.{name}", str, "").strip()) for name in SERVER_FIELDS}
    if field not in SERVER_FIELDS:
        near = nearest(field, SERVER_FIELDS)
        message = f'"{attribute}" is not a setting of a server; the settings are {", ".join(SERVER_FIELDS)}'
        message += f'; did you mean "mcp.{server}.{near}"?' if near else ""
        yield message, f"write mcp.{server}.{near or SERVER_FIELDS[0]}", None
    elif field == "timeout":
        duration = parse_duration(text)
        if duration is None or duration.milliseconds < 1:
            yield f'"{attribute}" is "{text}", which is not a duration', "write a duration such as 60s", None
    elif field == "url":
        yield from _address_problems(attribute, server, text, has_command=has["command"])
    elif field == "headers":
        try:
            read_headers(text)
        except ValueError as error:
            yield f'"{attribute}" {error}', f'such as "Authorization: Bearer ${server.upper()}_TOKEN"', None
    owner = {"headers": "url", "env": "command"}.get(field)
    if owner and has[field] and not has[owner]:
        yield f'"{attribute}" belongs to a server that has a {owner}', f"write mcp.{server}.{owner}, or remove it", None


def _address_problems(
    attribute: str, server: str, text: str, *, has_command: bool
) -> Iterator[tuple[str, str, Severity | None]]:
    """Problem of the address of a server."""
    if has_command:
        yield f'the MCP server "{server}" has a command and an address', "remove one of both", None
    if problem := address_problem(text):
        shown = f' is "{text}", which' if "password" not in problem else ""
        yield f'"{attribute}"{shown} {problem}', 'write it whole, such as "https://mcp.example.org/mcp"', None
    elif text.startswith("http://") and not is_local(text):
        message = f'"{attribute}" sends what tools are called with, and their headers, unencrypted'
        yield message, "use https://, or a server on this machine", Severity.WARNING


@rule(Severity.ERROR, is_local=True)
def extra_valid(survey: Survey) -> Iterator[Finding]:
    """An `llm.extra.*` option is unknown or has the wrong type.

    No other option reaches a provider: it could make the provider fetch addresses, run tools or follow other
    instructions than the run records.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.extra.top_p="much"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.extra.top_p="0.9"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    graph = survey.graph
    for thing in (graph, *survey.having_any(OPTION_PREFIX)):
        node_id = thing.id if isinstance(thing, Node) else ""
        for name, value in written_options(thing.attrs).items():
            attribute = f"{OPTION_PREFIX}{name}"
            if node_id and attribute not in thing.attr_spans and graph.attrs.get(attribute) == value:
                continue  # which nodes have from their graph
            span = value_span(thing, attribute)
            try:
                read_option(name, value)
            except ValueError as error:
                yield Finding(str(error), span, node_id, fix=Fix("see the models' page of the documentation"))


@rule(Severity.WARNING)
def cache_files_inside(survey: Survey) -> Iterator[Finding]:
    """`cache.files` names files outside of the working directory, or is not a comma-separated list.

    A file outside may differ on another machine, and the cache would then not find the result there.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", cache.files="../data.csv"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", cache.files="data/*.csv"]
            exit [shape=Msquare]  start -> work -> exit }
    """

    def is_inside(entry: str) -> bool:
        return bool(entry) and not _OUTSIDE.match(entry)

    for written, entry in first_invalid_entries(survey, "cache.files", is_inside):
        what = f'"{entry}" is outside the working directory' if entry else "has an empty entry"
        fix = Fix('name files relative to the working directory, such as "data/*.csv"')
        yield Finding(f"cache.files {what}", written.span, written.node_id, fix=fix)


@rule(Severity.WARNING)
def carry_known(survey: Survey) -> Iterator[Finding]:
    """`carry` names a value that nothing in the graph can set.

    A value that is never set is not carried, and the model works without it. Names that params or your own backends may
    set are accepted, unless they are almost a name that a stage sets.

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="Plan it"] work [prompt="Do it", carry="plan.reponse"]
            exit [shape=Msquare]  start -> plan -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="Plan it"] work [prompt="Do it", carry="plan.response"]
            exit [shape=Msquare]  start -> plan -> work -> exit }
    """
    carrying = survey.having("carry")
    if not carrying:
        return
    known, structured = KnownNames(_set_by_stages(survey)), StructuredKeys(survey)
    for node in carrying:
        names = comma_list(literal_text(node.attrs["carry"]))
        for name in names:
            slip = structured.slip(name, node)
            near = slip.near if slip else "" if name in known else known.nearest(name)
            is_judged = slip or near or name.endswith(".response") or name.startswith("tool.")
            if name in known or not is_judged:
                continue
            fix = Fix("name a value that an earlier stage sets, such as plan.response or tool.output")
            message = f'carry names "{name}", which no stage sets{slip.words if slip else suggestion(near)}'
            if near:
                mended = ", ".join(near if each == name else each for each in names)
                fix = replacing_value(node, "carry", mended, f'write "{mended}"')
            yield Finding(message, value_span(node, "carry"), node.id, fix=fix)


def _set_by_stages(survey: Survey) -> tuple[str, ...]:
    """The context keys that the graph's own stages set under fixed names."""
    types = set(survey.types.values())
    outputs = (
        assigned.partition("=")[0].strip()
        for node in survey.having("pipeline.outputs")
        for assigned in comma_list(node.get("pipeline.outputs", str, ""))
    )
    return (
        *(f"{node_id}.response" for node_id in survey.graph.nodes),
        *(key for key in STAGE_KEYS if key.startswith("tool.") and "tool" in types),
        *(("human.gate.text", "human.gate.label", "human.gate.form") if "wait.human" in types else ()),
        *(("parallel.results", "parallel.fan_in.best_id") if "parallel" in types else ()),
        *(name for name in outputs if name),
    )


def attributes(survey: Survey, name: str) -> Iterator[_Written]:
    """An attribute wherever it is written and not blank; what nodes have from their graph is there."""
    whole = survey.graph.get(name, str, "")
    if whole.strip():
        yield _Written(survey.graph, name, whole)
    for node in survey.having(name):
        text = literal_text(node.attrs[name])
        if text.strip() and (name in node.attr_spans or text != whole):
            yield _Written(node, name, text)


def first_invalid_entries(survey: Survey, name: str, is_fit: Callable[[str], bool]) -> Iterator[tuple[_Written, str]]:
    """Of each list with commas between the first entry that does not fit; nothing between two is an entry."""
    for written in attributes(survey, name):
        for entry in (each.strip() for each in written.text.split(",")):
            if not is_fit(entry):
                yield written, entry
                break


RULES: Final = (
    attach_unused,
    bound_unused,
    tools_known,
    servers_declared,
    extra_valid,
    cache_files_inside,
    carry_known,
)
