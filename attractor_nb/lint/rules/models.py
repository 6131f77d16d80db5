"""Rules about what nodes say of their models: names, tools, servers, files that a result depends on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from attractor_nb.lint.rule import Finding, rule
from attractor_nb.lint.source_places import outward, replacing, replacing_value, value_span
from attractor_nb.model.allowed_tools import (
    SERVER_FIELDS,
    SERVER_PREFIX,
    TOOL_NAME,
    declared_servers,
    read_allowed_tools,
    server_attribute,
)
from attractor_nb.model.attachment import ATTACH, attached_names
from attractor_nb.model.attributes import AGENT_TOOLS, FALLBACK_REASONS, literal_text
from attractor_nb.model.comma_lists import comma_list
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.duration import parse_duration
from attractor_nb.model.graph import Node
from attractor_nb.model.model_endpoints import FIELDS, PREFIX, endpoint_of, read_endpoint, written_endpoints
from attractor_nb.model.model_options import KNOWN as KNOWN_OPTIONS
from attractor_nb.model.model_options import PREFIX as OPTION_PREFIX
from attractor_nb.model.model_options import read_option, written_options
from attractor_nb.model.nearest_name import nearest
from attractor_nb.model.providers import PROVIDER_NAMES, known_provider, read_model
from attractor_nb.model.shapes import BUILT_IN_TYPES, DEFAULT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.lint.survey import Survey
    from attractor_nb.model.graph import Graph
    from attractor_nb.source import Span

_TEXT_ENDINGS: Final = (".txt", ".md", ".csv", ".json", ".html", ".svg", ".gif", ".docx", ".xlsx", ".py")
_FAMILIES: Final = ("gpt", "claude", "gemini", "gemma", "deepseek", "chatgpt", "codex")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PROVIDERS: Final = f"known providers: {', '.join(PROVIDER_NAMES)}"
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
    """`attach` stands on a node that asks a model, and names what can be attached.

    Nothing is shown to a model by any other stage: a fan-in, a tool or a person sees no attachment. What is
    attached are images and PDFs; text belongs into the prompt, by a variable or as `@file`.

    Bad:

        digraph { start [shape=Mdiamond] test [shape=parallelogram, tool_command="make", attach="plot.png"]
            exit [shape=Msquare]  start -> test -> exit }

    Good:

        digraph { start [shape=Mdiamond] look [prompt="What is in it?", attach="plot.png"]
            exit [shape=Msquare]  start -> look -> exit }
    """
    for node in survey.graph.nodes.values():
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


@rule(Severity.ERROR)
def tools_known(survey: Survey) -> Iterator[Finding]:
    """`allowed_tools` names tools that there are.

    These are `read`, `write`, `list` and `run`, functions of `Pipeline(…, tools=…)`, and tools of MCP servers
    that the graph declares (`mcp:files/read_file`). A model that does not get a tool it was meant to have
    reports work that it cannot have done. Where nobody has given functions, a name that may be that of one is
    a warning; a run with it is refused.

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
    for written in _attributes(survey, "allowed_tools"):
        words = [word.strip() for word in written.text.split(",")]
        unknown = [word for word in words if not _is_tool(word, names, servers)]
        if not unknown:
            continue
        quoted = ", ".join(f'"{word}"' for word in unknown)
        message = f"allowed_tools {quoted} {'is not one' if len(unknown) == 1 else 'are not'} of {listed}"
        meant = {word: _tool_meant(word, names, servers) for word in unknown}
        fix = Fix(f"use {listed}, with commas between")
        if all(meant.values()):  # half a fix would leave a value that is still wrong
            if len(unknown) == 1:
                message += f'; did you mean "{meant[unknown[0]]}"?'
            mended = ",".join(dict.fromkeys(meant.get(word, word) for word in words))
            fix = replacing_value(written.thing, written.name, mended, f'write "{mended}"')
        elif unknown == [""]:
            message = "allowed_tools has an empty entry"
        may_be_own = survey.options.tools is None and all(
            TOOL_NAME.match(word) and not meant[word] for word in unknown
        )
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
    """`mcp.NAME.…` of the graph says of an MCP server how it is started, and nothing that nobody reads.

    A misspelt `command` leaves a server undeclared, and a time that is none has the default in its place.

    Bad:

        digraph { mcp.files.comand="python -m files" start [shape=Mdiamond]
            work [prompt="Do it", allowed_tools="read"]  exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { mcp.files.command="python -m files" start [shape=Mdiamond]
            work [prompt="Do it", allowed_tools="mcp:files/read_file"]  exit [shape=Msquare]
            start -> work -> exit }
    """
    for name in survey.graph.attrs:
        found = server_attribute(name)
        if found is not None and found[1] == "timeout":
            text = survey.graph.get(name, str, "")
            duration = parse_duration(text)
            if duration is None or duration.milliseconds < 1:
                message = f'"{name}" is "{text}", which is not a duration'
                yield Finding(
                    message, value_span(survey.graph, name), fix=Fix("write a duration such as 60s")
                )
        if found is None or found[1] in SERVER_FIELDS:
            continue
        near = nearest(found[1], SERVER_FIELDS)
        message = f'"{name}" is not a setting of a server; the settings are {", ".join(SERVER_FIELDS)}'
        if near:
            message += f'; did you mean "mcp.{found[0]}.{near}"?'
        fix = Fix(f"write mcp.{found[0]}.{near or SERVER_FIELDS[0]}")
        yield Finding(message, value_span(survey.graph, name), fix=fix)


@rule(Severity.ERROR)
def fallback_valid(survey: Survey) -> Iterator[Finding]:
    """`llm_fallback` is a list of models: `model` or `provider:model`, with commas between.

    An entry that is not a model would be found out when the first model has failed already.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="gpt-5-mini,,openai:"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="gpt-5-mini,ollama:qwen3"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for written in _attributes(survey, "llm_fallback"):
        for entry in (each.strip() for each in written.text.split(",")):
            if entry and not entry.startswith(":") and read_model(entry).model:
                continue
            what = f'entry "{entry}" that is not a model' if entry else "empty entry"
            article = "an" if what.startswith("e") else "a"
            yield Finding(
                f"llm_fallback has {article} {what}",
                written.span,
                written.node_id,
                fix=Fix('write models with commas between, such as "gpt-5-mini,anthropic:claude-haiku-4-5"'),
            )
            break


@rule(Severity.ERROR)
def base_url_valid(survey: Survey) -> Iterator[Finding]:
    """`llm.base_url` is the address of a server: `https://…`, or `http://…` on this machine.

    Prompts are sent there, and no key. An address that travels unencrypted over a network is a WARNING.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.base_url="models.example.org/v1"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.base_url="https://models.example.org/v1"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for written in _attributes(survey, "llm.base_url"):
        scheme, host = _address(written.text)
        fix = Fix('write it whole, such as "https://models.example.org/v1"')
        if scheme not in ("http", "https") or not host:
            message = f'llm.base_url "{written.text}" is not an address that begins with http:// or https://'
            yield Finding(message, written.span, written.node_id, fix=fix)
        elif scheme == "http" and host not in _LOOPBACK:
            message = f"llm.base_url sends prompts to {host} unencrypted"
            fix = Fix("use https://, or a server on this machine")
            yield Finding(message, written.span, written.node_id, fix=fix, severity=Severity.WARNING)


@rule(Severity.ERROR)
def endpoint_valid(survey: Survey) -> Iterator[Finding]:
    """An endpoint has an address, and what is said of it is right: `endpoint.local.url`, `.key_env`, `.api`.

    Prompts and the key that `key_env` names are sent there. Rates (`.requests_per_minute`,
    `.tokens_per_minute`) are counts, and the one thing that may be said of a provider, too. An address that
    travels unencrypted over a network is a WARNING.

    Bad:

        digraph { endpoint.local.ulr="http://127.0.0.1:8080/v1"  llm_model="local:qwen3"
            start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { endpoint.local.url="http://127.0.0.1:8080/v1"  llm_model="local:qwen3"
            start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]  start -> work -> exit }
    """
    graph = survey.graph
    for name, facts in written_endpoints(graph.attrs).items():
        wrong = next((field for field in facts if field not in FIELDS), "")
        attribute = f"{PREFIX}{name}.{wrong or next(iter(facts))}"
        near = nearest(wrong, FIELDS) if wrong else ""
        try:
            endpoint = read_endpoint(name, {field: literal_text(value) for field, value in facts.items()})
        except ValueError as error:
            fix = Fix("see the models' page of the documentation")
            if near and near not in facts:
                fix = Fix(f'write "{PREFIX}{name}.{near}"')
            said = (f"{PREFIX}{name}.{field}" for field in facts)
            attribute = next((each for each in said if str(error).startswith(f"{each} ")), attribute)
            yield Finding(str(error), value_span(graph, attribute), "", fix=fix)
            continue
        scheme, host = _address(endpoint.url)
        if scheme == "http" and host not in _LOOPBACK:
            what = "prompts and a key" if endpoint.key_env else "prompts"
            message = f"{PREFIX}{name}.url sends {what} to {host} unencrypted"
            fix = Fix("use https://, or a server on this machine")
            span = value_span(graph, f"{PREFIX}{name}.url")
            yield Finding(message, span, "", fix=fix, severity=Severity.WARNING)


@rule(Severity.ERROR)
def fallback_on_known(survey: Survey) -> Iterator[Finding]:
    """`llm_fallback_on` says when else the models of `llm_fallback` are asked: `overlong`, `refusal`.

    A word that is misspelt would leave the stage failed where another model was to answer.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="o3", llm_fallback_on="refusel"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="o3", llm_fallback_on="refusal"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for written in _attributes(survey, "llm_fallback_on"):
        for word in (each.strip() for each in written.text.split(",")):
            if word in FALLBACK_REASONS:
                continue
            near = nearest(word, FALLBACK_REASONS)
            message = f'llm_fallback_on "{word}" is not one of {", ".join(FALLBACK_REASONS)}'
            fix = Fix(f"use {', '.join(FALLBACK_REASONS)}, with commas between")
            if near:
                message += f'; did you mean "{near}"?'
                fix = _respelled(written.span, word, near) or Fix(f'write "{near}"')
            yield Finding(message, written.span, written.node_id, fix=fix)
            break


@rule(Severity.ERROR)
def extra_valid(survey: Survey) -> Iterator[Finding]:
    """`llm.extra.*` passes options on to the provider, and a known one has the type that it has to have.

    A name that is almost that of a known one is a WARNING: it would reach the provider as it is, and have no
    effect there or fail the request.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.extra.top_p="much"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.extra.top_p="0.9"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    graph = survey.graph
    for thing in (graph, *graph.nodes.values()):
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
                continue
            if name not in KNOWN_OPTIONS and (near := nearest(name, KNOWN_OPTIONS)):
                message = f'"{attribute}" is passed on as it is; did you mean "{OPTION_PREFIX}{near}"?'
                fix = Fix(f'write "{OPTION_PREFIX}{near}", if that is meant')
                yield Finding(message, span, node_id, fix=fix, severity=Severity.WARNING)


@rule(Severity.WARNING)
def cache_files_inside(survey: Survey) -> Iterator[Finding]:
    """`cache.files` names files of the working directory: paths and patterns, with commas between.

    What lies elsewhere is another file on another machine, and the key of the cache is another one there.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", cache.files="../data.csv"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", cache.files="data/*.csv"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for written in _attributes(survey, "cache.files"):
        for entry in (each.strip() for each in written.text.split(",")):
            if entry and not _OUTSIDE.match(entry):
                continue
            what = f'"{entry}" is outside the working directory' if entry else "has an empty entry"
            fix = Fix('name files relative to the working directory, such as "data/*.csv"')
            yield Finding(f"cache.files {what}", written.span, written.node_id, fix=fix)
            break


@rule(Severity.WARNING)
def provider_known(survey: Survey) -> Iterator[Finding]:
    """`llm_provider` is a provider that is known.

    A name within two slips of a known one is a WARNING. Any other is an INFO: a backend of your own may
    know it, the backend `llm` does not.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_provider="antropic", llm_model="small"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_provider="anthropic", llm_model="small"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    endpoints = written_endpoints(survey.graph.attrs)
    for choice in survey.model_choices:
        name = choice.provider.value
        if not name or known_provider(name) or name in endpoints:
            continue
        message = f'provider "{name}" is not known'
        near = nearest(name, endpoints) or nearest(name.lower(), PROVIDER_NAMES)
        severity = Severity.WARNING if near else Severity.INFO
        fix = Fix(f"{_PROVIDERS}; or keep it for a custom backend")
        if near:
            message += f'; did you mean "{near}"?'
            fix = _respelled(choice.provider.span, name, near) or Fix(f'write "{near}"')
        yield Finding(message, choice.provider.span, choice.node_id, fix=fix, severity=severity)


@rule(Severity.INFO)
def model_provider(survey: Survey) -> Iterator[Finding]:
    """A model's name tells its provider, or `llm_provider` does.

    The backend `llm` has to know whom to ask. It is said where the graph has models of known providers beside
    this one, or where the name is almost one of theirs (a WARNING): a backend of your own may know any name.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_model="cluade-opus-4-6"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_model="claude-opus-4-6"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    choices, endpoints = survey.model_choices, written_endpoints(survey.graph.attrs)
    are_providers_told = any(known_provider(choice.name.provider) for choice in choices)
    for choice in choices:
        name = choice.name
        if not name.model or name.provider or endpoint_of(name.model, "", endpoints):
            continue
        before, colon, after = name.model.partition(":")
        if colon and (near := nearest(before, endpoints)):
            message = f'there is no endpoint "{before}"; did you mean "{near}"?'
            fix = _respelled(choice.model.span, name.model, f"{near}:{after}") or Fix(
                f'write "{near}:{after}"'
            )
            yield Finding(message, choice.model.span, choice.node_id, fix=fix, severity=Severity.WARNING)
            continue
        family = name.model.split("-")[0].lower()
        near = nearest(family, _FAMILIES) if "-" in name.model else ""
        if not near and not are_providers_told:
            continue
        message = f'the provider of model "{name.model}" is unknown'
        fix = Fix("set llm_provider, or write provider:model")
        if near:
            meant = near + name.model[len(family) :]
            message += f'; did you mean "{meant}"?'
            fix = _respelled(choice.model.span, name.model, meant) or Fix(f'write "{meant}"')
        severity = Severity.WARNING if near else Severity.INFO
        yield Finding(message, choice.model.span, choice.node_id, fix=fix, severity=severity)


@rule(Severity.WARNING)
def carry_known(survey: Survey) -> Iterator[Finding]:
    """`carry` names values that something in the graph can set.

    A value that nobody sets is not carried, and the model does its work without it. Names that params or
    backends of your own may set are taken as they are, unless they are almost one that a stage sets.

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="Plan it"] work [prompt="Do it", carry="plan.reponse"]
            exit [shape=Msquare]  start -> plan -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="Plan it"] work [prompt="Do it", carry="plan.response"]
            exit [shape=Msquare]  start -> plan -> work -> exit }
    """
    carrying = [node for node in survey.graph.nodes.values() if "carry" in node.attrs]
    if not carrying:
        return
    known = _set_by_stages(survey)
    for node in carrying:
        names = comma_list(literal_text(node.attrs["carry"]))
        for name in names:
            near = "" if name in known else nearest(name, known)
            if name in known or not (near or name.endswith(".response") or name.startswith("tool.")):
                continue
            fix = Fix("name a value that an earlier stage sets, such as plan.response or tool.output")
            message = f'carry names "{name}", which no stage sets'
            if near:
                message += f'; did you mean "{near}"?'
                mended = ", ".join(near if each == name else each for each in names)
                fix = replacing_value(node, "carry", mended, f'write "{mended}"')
            yield Finding(message, value_span(node, "carry"), node.id, fix=fix)


def _set_by_stages(survey: Survey) -> tuple[str, ...]:
    """The context keys that the graph's own stages set under fixed names."""
    types = set(survey.types.values())
    outputs = (
        assigned.partition("=")[0].strip()
        for node in survey.graph.nodes.values()
        for assigned in comma_list(node.get("pipeline.outputs", str, ""))
    )
    return (
        *(f"{node_id}.response" for node_id in survey.graph.nodes),
        *(("tool.output", "tool.stderr", "tool.exit_code") if "tool" in types else ()),
        *(("human.gate.text", "human.gate.label", "human.gate.form") if "wait.human" in types else ()),
        *(("parallel.results", "parallel.fan_in.best_id") if "parallel" in types else ()),
        *(name for name in outputs if name),
    )


def _attributes(survey: Survey, name: str) -> Iterator[_Written]:
    """An attribute wherever it is written and not blank; what nodes have from their graph stands there."""
    whole = survey.graph.get(name, str, "")
    if whole.strip():
        yield _Written(survey.graph, name, whole)
    for node in survey.graph.nodes.values():
        text = literal_text(node.attrs[name]) if name in node.attrs else ""
        if text.strip() and (name in node.attr_spans or text != whole):
            yield _Written(node, name, text)


def _address(text: str) -> tuple[str, str]:
    """Scheme and host of an address; empty ones for what is none."""
    try:
        parts = urlsplit(text.strip())
        return parts.scheme.lower(), (parts.hostname or "").lower()
    except ValueError:
        return "", ""


def _respelled(span: Span | None, name: str, meant: str) -> Fix | None:
    """The fix that writes a name rightly where it stands, in a declaration or an attribute's value."""
    if span is None or name not in span.text:
        return None
    start = span.start + span.text.rindex(name)
    fix = replacing(span.source.span(start, start + len(name)), meant, f'write "{meant}"')
    return outward(fix) if span.source.host else fix


RULES: Final = (
    attach_unused,
    tools_known,
    servers_declared,
    fallback_valid,
    base_url_valid,
    endpoint_valid,
    fallback_on_known,
    extra_valid,
    cache_files_inside,
    provider_known,
    model_provider,
    carry_known,
)
