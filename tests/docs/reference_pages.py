"""Pages of reference that say what the code's own tables say: commands, HTTP, events, settings, limits."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
import typer
import typer.main

from attractor_nb import Pipeline
from attractor_nb.backends.llm.tools import catalog, file_tools, tool_calls
from attractor_nb.cassettes import recorded_commands, tape
from attractor_nb.cli.command_tree import app
from attractor_nb.decisions.ambiguity import MAX_LOST_WORKERS
from attractor_nb.decisions.bounds import RunBounds
from attractor_nb.decisions.gate_choices import MAX_FIELDS
from attractor_nb.decisions.retries import MAX_ASKED_DELAY_SECONDS, PRESETS
from attractor_nb.engine.stage_cache import COMPARED_ENTRIES
from attractor_nb.evaluation.variants import MAX_VARIANTS
from attractor_nb.given_files import MAX_FILE_BYTES
from attractor_nb.handlers import fan_out, manager_loop
from attractor_nb.languages.dot.syntax_recovery import MAX_CHARACTERS, MAX_MISTAKES
from attractor_nb.lint.paths import MAX_CYCLES
from attractor_nb.maps.map_work import MAX_ROWS
from attractor_nb.model.calls.messages import MAX_ATTACHED_BYTES, MAX_ATTACHMENT_BYTES
from attractor_nb.model.calls.providers import PROVIDERS
from attractor_nb.model.events import EVENT_TYPES
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.model.vocabulary.option_meanings import OF_A_RUN
from attractor_nb.model.vocabulary.value_forms import DEFAULT_MAX_ITEMS
from attractor_nb.runtime.prepare import child_pipelines
from attractor_nb.runtime.prepare.run_options import BOUNDS
from attractor_nb.runtime.workspace import workspace
from attractor_nb.server.operations import openapi_document
from attractor_nb.server.server_settings import DEFAULT_MAX_RUNS, DEFAULT_MAX_STREAMS
from attractor_nb.storage.cache_store import MAX_ENTRY_BYTES
from attractor_nb.studio.export_page import MAX_BYTES
from attractor_nb.testing import ManualClock
from attractor_nb.workers import task
from tests.docs import api_pages

MIB = 2**20
SHARED = 3
"""An option with one meaning in this many commands is described once."""


def cell(text: str) -> str:
    """Text in a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)) + "\n"


def page(title: str, source: str, *parts: str) -> str:
    return "\n".join([f"# {title}\n", f"<!-- made by `make docs` from {source} -->\n", *parts]).rstrip() + "\n"


# -- commands ------------------------------------------------------------------------------------------


def commands() -> list[tuple[str, Any]]:
    """All commands, those of groups with the name of their group."""
    return list(_below(typer.main.get_command(app), ""))


def _below(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _below(command, f"{before}{name} ")
        else:
            yield before + name, command


def _option(option: Any) -> tuple[str, str]:
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if getattr(option, "is_flag", False) else f" {option.metavar or 'VALUE'}"
    return names + value, option.help or ""


def commands_page() -> str:
    """Every command: its usage, examples, arguments and options."""
    found = commands()
    parameters = {name: command.get_params(typer.Context(command)) for name, command in found}
    options = {
        name: [_option(each) for each in every if each.param_type_name == "option" and each.name != "help"]
        for name, every in parameters.items()
    }
    counts = Counter(option for each in options.values() for option in each)
    shared = sorted(option for option, count in counts.items() if count >= SHARED)
    parts = [
        (
            "Results go to stdout, progress and reports to stderr. Exit codes, and how commands are used together, are in\n"
            "[cli.md](cli.md).\n"
        ),
        table(
            ("command", "what it does"),
            ([f"[`{name}`](#{_anchor(name)})", cell(_first(command))] for name, command in found),
        ),
    ]
    for name, command in found:
        usage = " ".join(command.collect_usage_pieces(typer.Context(command)))
        own = [option for option in options[name] if option not in shared]
        common = [
            f"[`{option[0].split()[0].rstrip(',')}`](#shared-options)" for option in options[name] if option in shared
        ]
        text = inspect.cleandoc(command.help or "")
        parts += [f"## {name}\n", f"```text\nattractor-nb {name} {usage}\n```\n", _help(text)]
        if own:
            parts.append(table(("option", "meaning"), ([code(names), cell(meaning)] for names, meaning in own)))
        if common:
            parts.append(f"Also {', '.join(common)}.\n")
    parts += [
        "## Shared options\n",
        table(("option", "meaning"), ([code(names), cell(meaning)] for names, meaning in shared)),
    ]
    return page("Every command", "the command line's own help", *parts)


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _first(command: Any) -> str:
    return inspect.cleandoc(command.help or "").partition("\n")[0]


def _help(text: str) -> str:
    """Help as Markdown: a paragraph after a mark of no wrapping is code."""
    parts = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            lines = [line.removeprefix("  ") for line in paragraph.splitlines()[1:]]
            parts.append("```text\n" + "\n".join(lines) + "\n```\n")
        else:
            parts.append(paragraph.replace("<", "&lt;") + "\n")
    return "\n".join(parts)


# -- HTTP ----------------------------------------------------------------------------------------------


def http_page() -> str:
    """Every request of the server, from its OpenAPI document."""
    document = openapi_document("")
    schemas = document["components"]["schemas"]
    parts = [
        (
            "A request sends `Authorization: Bearer TOKEN`. A request that fails is answered with a problem document (`application/problem+json`). The page\n"
            "[server.md](server.md) explains the server; `GET /openapi.json` of a server is the document from which this page is made.\n"
        )
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += [f"## {method.upper()} {path}\n", f"{operation['summary']}.\n"]
            rows = [
                [code(each["name"]), each["in"], _schema(each["schema"]), cell(each.get("description", ""))]
                for each in operation["parameters"]
            ]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            rows += _fields(body, schemas) if body else []
            if rows:
                parts.append(table(("name", "in", "value", "meaning"), rows))
            statuses = ", ".join(
                f"{status} {each['description'].rstrip('.').lower() if status >= '400' else _answer(each)}".strip()
                for status, each in operation["responses"].items()
            )
            parts.append(f"Answers: {statuses}.\n")
    return page("HTTP requests", "the OpenAPI document", *parts)


def _answer(response: dict[str, Any]) -> str:
    found = [each.get("schema", {}).get("$ref", "") for each in response.get("content", {}).values()]
    return ", ".join(f"`{name.rpartition('/')[2]}`" for name in found if name)


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> list[list[str]]:
    found = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return [
        [code(name), "body", _schema(each), cell(each.get("description", "") or OF_A_RUN.get(name, ""))]
        for name, each in found.get("properties", {}).items()
    ]


def _schema(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return code(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_schema(each) for each in schema["anyOf"] if each.get("type") != "null"))
    if "enum" in schema:
        return ", ".join(code(str(each)) for each in schema["enum"])
    bounds = [f"{words} {schema[key]:,}" for key, words in (("minimum", "from"), ("maximum", "to")) if key in schema]
    default = [f"default `{json.dumps(schema['default'])}`"] if schema.get("default") not in {None, ""} else []
    return cell(", ".join([str(schema.get("type", "any")), *bounds, *default]))


# -- events --------------------------------------------------------------------------------------------

COMMON = ("sequence", "time", "run_id")


def event_types_page() -> str:
    """Every kind of event, its fields, and the log of a small run."""
    parts = [
        (
            "Observers, `run.events()` and the server give these; `events.jsonl` of a run directory has those that last ([events.md](events.md)). Every event has\n"
            "`type`, `sequence` (its number in the run, from 1), `time` (seconds since 1970) and `run_id`.\n"
        ),
        "Two lines of a log, without `run_id`:\n",
        "```json\n" + "\n".join(_log()) + "\n```\n",
    ]
    for name, kind in sorted(EVENT_TYPES.items()):
        meanings, types = field_meanings(kind), field_types(kind)
        rows = [
            [code(each.name), code(types.get(each.name, "")), cell(meanings.get(each.name, ""))]
            for each in msgspec.structs.fields(kind)
            if each.name not in COMMON
        ]
        parts += [f"## {name}\n", f"{inspect.getdoc(kind).partition('Attributes:')[0].strip()}\n"]
        parts += [table(("field", "type", "meaning"), rows)] if rows else []
    return page("Event types", "the classes of events", *parts)


def field_meanings(kind: type) -> dict[str, str]:
    """The meaning of each field: a comment behind or above it, or its line of the docstring."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if not owner.__module__.startswith("attractor_nb"):
            continue
        source = inspect.getsource(owner)
        for above, name, behind in re.findall(
            r"((?:^    #: .*\n)*)^    (\w+): .*?(?:  #: (.*))?$", source, re.MULTILINE
        ):
            meaning = behind or " ".join(re.findall(r"#: (.*)", above))
            if meaning:
                found[name] = meaning.replace("``", "`")
        for name, meaning in re.findall(r"^        (\w+): ((?:.*\n)(?:            .*\n)*)", source, re.MULTILINE):
            found.setdefault(name, meaning.replace("``", "`"))
    return found


def field_types(kind: type) -> dict[str, str]:
    """The type of each field, as its class writes it."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        found |= {name: str(each) for name, each in vars(owner).get("__annotations__", {}).items()}
    return {name: re.sub(r"\bCount\b", "int", text) for name, text in found.items()}


def _log() -> list[str]:
    lines: list[str] = []
    pipeline = Pipeline(
        "digraph { start [shape=Mdiamond] draft [prompt=Write] done [shape=Msquare] start -> draft -> done }",
        backend=lambda prompt: "Two nails.",
    )

    def note(event: Any) -> None:
        if event.is_durable:
            plain = {name: value for name, value in event.to_plain().items() if name != "run_id"}
            lines.append(json.dumps(plain, ensure_ascii=False))

    pipeline.run(wait=True, durability="none", clock=ManualClock(), observers=[note])
    return [line for line in lines if '"name": "draft"' in line]


# -- settings and limits ---------------------------------------------------------------------------------


def settings_page() -> str:
    """All environment variables, in one table each for those that are read and those that are given."""
    providers = [[each.name, ", ".join(map(code, each.keys)) or "none", code(each.address or "")] for each in PROVIDERS]
    return page(
        "Settings and environment variables",
        "model/vocabulary/environment_variables.py",
        "Options of a call are in [options.md](options.md), those of a node, an edge or a graph in [language.md](language.md), and those of JupyterLab in\n"
        "[jupyterlab.md](jupyterlab.md#settings). A process also reads these variables:\n",
        table(
            ("variable", "meaning"),
            ([code(name), cell(words)] for name, words in environment_variables.SETTINGS.items()),
        ),
        "## Keys and addresses of providers\n",
        "A key comes from the environment alone. The first variable that is set counts ([models.md](models.md)).\n",
        table(("provider", "key", "address"), providers),
        "## Variables of commands\n",
        "Commands of tool stages, hooks and MCP servers get these, and no key of a provider:\n",
        table(
            ("variable", "meaning"),
            ([code(name), cell(words)] for name, words in environment_variables.OF_COMMANDS.items()),
        ),
    )


LIMITS = {
    "Texts and files": [
        ("characters of a DOT text", MAX_CHARACTERS),
        ("syntax errors that are reported at once", MAX_MISTAKES),
        ("bytes of a file that is read", MAX_FILE_BYTES),
        ("bytes of an attachment", MAX_ATTACHMENT_BYTES),
        ("bytes of all attachments of a prompt", MAX_ATTACHED_BYTES),
        ("loops that an analysis lists", MAX_CYCLES),
        ("bytes of an exported page, without drawing and script", MAX_BYTES),
    ],
    "Runs": [
        ("branches of a fan-out at a time, by default", fan_out.DEFAULT_MAX_PARALLEL),
        ("items of a list, by default", DEFAULT_MAX_ITEMS),
        ("seconds between two looks of a manager, by default", manager_loop.DEFAULT_POLL_SECONDS),
        (
            "pipelines within one another, by default and at most",
            f"{child_pipelines.DEFAULT_DEPTH} and {child_pipelines.MAX_DEPTH}",
        ),
        ("nodes of all children of a pipeline", child_pipelines.MAX_NODES),
        ("seconds that a provider may ask to wait", MAX_ASKED_DELAY_SECONDS),
        ("fields of a form", MAX_FIELDS),
        ("files and bytes that are copied into a workspace", f"{workspace.MAX_FILES:,} and {workspace.MAX_BYTES:,}"),
        ("workers that a stage may lose", MAX_LOST_WORKERS),
        ("bytes and files that a worker returns", f"{task.MAX_RETURNED_BYTES:,} and {task.MAX_RETURNED_FILES:,}"),
    ],
    "Tools of a model": [
        ("calls of an attempt", tool_calls.MAX_CALLS),
        (
            "seconds of a command, by default and at most",
            f"{catalog.DEFAULT_COMMAND_SECONDS} and {catalog.MAX_COMMAND_SECONDS}",
        ),
        ("characters of a result", file_tools.MAX_RESULT_CHARACTERS),
        ("files of a listing", file_tools.MAX_LISTED),
    ],
    "Caches, cassettes, maps, evaluations": [
        ("entries of a node that a cache compares", COMPARED_ENTRIES),
        ("bytes of an entry of a cache", MAX_ENTRY_BYTES),
        (
            "files of a recorded command, and bytes of each",
            f"{recorded_commands.MAX_FILES} and {recorded_commands.MAX_FILE_BYTES:,}",
        ),
        ("bytes of all files of a recorded answer", tape.MAX_ANSWER_BYTES),
        ("rows of a map", MAX_ROWS),
        ("variants of a comparison", MAX_VARIANTS),
    ],
    "Server": [
        ("runs at a time, by default", DEFAULT_MAX_RUNS),
        ("streams of events at a time, by default", DEFAULT_MAX_STREAMS),
    ],
}
"""The limits that a user may reach, by subject."""


_DEFAULTS = {each.name: each.default for each in msgspec.structs.fields(RunBounds)}


def limits_page() -> str:
    """Presets of retries, bounds of a run, and fixed limits."""
    presets = [
        [
            code(name),
            str(policy.max_attempts),
            f"{policy.backoff.initial_delay_ms:,} ms" if policy.max_attempts > 1 else "",
            f"{policy.backoff.backoff_factor:g}" if policy.max_attempts > 1 else "",
        ]
        for name, policy in PRESETS.items()
    ]
    parts = [
        "## Presets of retries\n",
        "`retry_policy` of a node or graph names one ([language.md](language.md)).\n",
        table(("preset", "attempts", "first delay", "each delay times"), presets),
        "## Bounds of a run\n",
        "A run that reaches one stops, and can be resumed with a higher one. A graph can set those that are attributes ([language.md](language.md)).\n",
        table(
            ("option", "default", "meaning"),
            ([code(name), str(_DEFAULTS.get(name) or "none"), cell(OF_A_RUN[name])] for name in BOUNDS),
        ),
    ]
    for title, rows in LIMITS.items():
        shown = (
            [words, value if isinstance(value, str) else f"{value:,.10g}" if isinstance(value, float) else f"{value:,}"]
            for words, value in rows
        )
        parts += [f"## {title}\n", table(("most", "limit"), shown)]
    return page("Presets and limits", "the constants of the code", *parts)


PAGES = {
    "docs/api.md": api_pages.api_index,
    **{f"docs/{name}.md": partial(api_pages.api_page, name) for name in api_pages.GROUPS},
    "docs/commands.md": commands_page,
    "docs/http.md": http_page,
    "docs/event-types.md": event_types_page,
    "docs/settings.md": settings_page,
    "docs/limits.md": limits_page,
}
