"""The reference of the Python interface: the names of `attractor_nb.__all__`, their public methods, and each parameter.

Signatures are those of the live objects, since `takes` composes their options; texts are their docstrings, as griffe reads them. The
options of runs, maps and pipelines are described once, in options.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import griffe

import attractor_nb
from attractor_nb.model.vocabulary.option_meanings import OF_A_MAP, OF_A_PIPELINE, OF_A_RUN

GROUPS = {
    "api-pipelines": "Pipelines: Pipeline load_pipeline run_pipeline validate validate_or_raise parse_dot write_dot",
    "api-runs": "Runs: Run RunResult runs gates diff heat lineage diagnose_run load_checkpoint redact_also Tracing",
    "api-backends": "Backends and stages: FunctionBackend ProviderBackend LocalModelBackend SimulatedBackend ClaudeBackend "
    "CodexBackend GeminiBackend CommandLineBackend current_stage Context Outcome StageStatus Usage Attachment",
    "api-questions": "Questions and answers: Question QuestionType Option Answer AnswerValue AutoApproveInterviewer "
    "CallbackInterviewer ConsoleInterviewer QueueInterviewer RecordingInterviewer",
    "api-graphs": "Graphs, findings and errors: Graph Node Edge Diagnostic Severity AttractorError ValidationError "
    "RetryableError TerminalError load_ipython_extension unload_ipython_extension",
}
"""Each page: its title, and the names that it describes."""

INTERNAL = {
    "Pipeline": "compile join_of origin_for refuse_errors run_defaults run_diagnostics run_kind take_over whole written",
    "Run": "view outcomes changes",
    "RunResult": "view",
    "Context": "amend begin committed kept resolved restore take_changes",
    "Graph": "mirrored",
    "Outcome": "complaint is_unmeasured with_updates without_updates",
    "Usage": "beyond with_price",
}
"""Methods that other layers of the package call, and users do not."""
PROTOCOL = frozenset(
    [
        "acts_unasked",
        "add_note",
        "answers_only",
        "ask",
        "ask_multiple",
        "cache_inputs",
        "call_inputs",
        "check_graph",
        "close",
        "dialect",
        "from_plain",
        "has_effects",
        "inform",
        "installed",
        "keeps_sessions",
        "open",
        "own_model",
        "pauses_run",
        "rebuilt",
        "recorded",
        "refuses_all",
        "report_lines",
        "reserves_requests",
        "takes_attachments",
        "targets_of",
        "to_plain",
        "waits_for_others",
        "works_in_turns",
    ]
)
"""Methods between a value, a backend or an interviewer and the engine."""
MADE_BY_CALLS = {"Run", "Context"}
"""Classes that users do not call."""
OPTIONS = {
    "options.md#of-a-run": ("a run", OF_A_RUN),
    "options.md#of-a-map": ("a map", OF_A_MAP),
    "options.md#of-a-pipeline": ("a pipeline", OF_A_PIPELINE),
}
MANY = 12
"""A signature with more parameters than this refers to the options."""


@dataclass
class Entry:
    """A function, class, method or property of the reference."""

    name: str
    prose: str
    signature: str = ""
    parameters: list[tuple[str, str, str]] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    others: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    members: list[Entry] = field(default_factory=list)


def names(page: str) -> list[str]:
    """The names that a page describes."""
    return GROUPS[page].partition(": ")[2].split()


def entries(page: str) -> Iterator[Entry]:
    """The entries of a page."""
    for name in names(page):
        value = getattr(attractor_nb, name)
        made = _entry(name, value)
        if inspect.isclass(value):
            made.members = [_entry(f"{name}.{member}", found) for member, found in _members(value)]
        yield made


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, each once, without those of built-in classes."""
    known = {*PROTOCOL, *INTERNAL.get(kind.__name__, "").split()}
    known |= {"run"} if kind.__name__.endswith("Backend") else set()
    for owner in kind.__mro__:
        for name, value in vars(owner).items() if owner.__module__.startswith("attractor_nb") else ():
            is_member = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
            if is_member and not name.startswith("_") and name not in known:
                known.add(name)
                yield name, value


def _parts(value: Any) -> dict[str, Any]:
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return {part.kind.value: part.value for part in griffe.Docstring(text).parse("google", warnings=False)}


def _meanings(function: Any) -> dict[str, str]:
    """The meaning of each parameter; of a class also those that its bases describe."""
    bases = reversed(function.__mro__) if inspect.isclass(function) else ()
    texts = [_parts(text) for base in bases for text in (base, vars(base).get("__init__"))] or [_parts(function)]
    described = [each for text in texts for kind in ("parameters", "attributes") for each in text.get(kind, [])]
    return {each.name.lstrip("*"): each.description for each in described}


def _entry(name: str, value: Any) -> Entry:
    if isinstance(value, property):
        return Entry(name, _prose(value.fget))
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    parts = _parts(function)
    made = Entry(name, parts.get("text", ""))
    meanings = _meanings(function)
    is_enumeration = inspect.isclass(function) and hasattr(function, "__members__")
    is_called = not is_enumeration and name not in MADE_BY_CALLS
    parameters = {} if not is_called else inspect.signature(function).parameters
    shown: list[str] = []
    for parameter in parameters.values():
        if parameter.name in {"self", "cls", "unknown"} or parameter.name.startswith("_"):
            continue
        link = next((link for link, (_, known) in OPTIONS.items() if parameter.name in known), "")
        if link and len(parameters) > MANY and parameter.kind is parameter.KEYWORD_ONLY:
            made.options += [link] if link not in made.options else []
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown and not any(each[0] == "*" for each in shown):
            shown.append("*")
        shown.append(_short(parameter))
        meaning = meanings.get(parameter.name) or next(
            (known[parameter.name] for _, known in OPTIONS.values() if parameter.name in known), ""
        )
        made.parameters.append((parameter.name, _type(parameter), meaning))
    if made.options:
        shown.append("**options")
    made.signature = "" if not is_called else f"{name}({', '.join(shown)})"
    for title in ("returns", "raises"):
        if parts.get(title):
            made.others[title] = [(str(each.annotation or ""), each.description) for each in parts[title]]
    if is_enumeration:
        made.others["values"] = [(repr(each.value), each.name) for each in function]
    return made


def _prose(value: Any) -> str:
    return _parts(value).get("text", "")


def _short(parameter: inspect.Parameter) -> str:
    bare = str(parameter.replace(annotation=parameter.empty))
    return re.sub(r"=<[^>]*>", "=…", bare)


def _type(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return "" if annotation is parameter.empty else text.removesuffix(" | None")


# -- as Markdown -----------------------------------------------------------------------------------------


def _text(docstring: str) -> str:
    """A docstring as Markdown: its code has two backquotes, and an example of the interpreter is a block."""
    text = re.sub(r"``([^`]+)``", r"`\1`", docstring.strip())
    return re.sub(r"^>>> (?:.+\n?)+", lambda found: _block(found[0]), text, flags=re.MULTILINE)


def _block(lines: str) -> str:
    body = re.sub(r"^<BLANKLINE>$", "", lines.strip(), flags=re.MULTILINE)
    return f"```pycon\n{body}\n```\n"


def _cell(text: str) -> str:
    words = " ".join(_text(" ".join(text.split())).split())
    return words.replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _written(entry: Entry, level: int) -> Iterator[str]:
    yield f"{'#' * level} {entry.name}\n"
    if entry.signature:
        yield f"```text\n{entry.signature}\n```\n"
    yield f"{_text(entry.prose)}\n"
    if entry.options:
        links = " and ".join(f"[{OPTIONS[link][0]}]({link})" for link in entry.options)
        yield f"`**options` are those of {links}.\n"
    if entry.parameters:
        rows = (f"| {_code(name)} | {_code(kind)} | {_cell(meaning)} |" for name, kind, meaning in entry.parameters)
        yield "\n".join(["| parameter | type | meaning |", "| --- | --- | --- |", *rows]) + "\n"
    for title, rows in entry.others.items():
        yield "\n".join(f"- *{title}* {_code(name)} {_cell(meaning)}".rstrip() for name, meaning in rows) + "\n"
    for member in entry.members:
        yield from _written(member, level + 1)


def api_page(page: str) -> str:
    """A page of the reference."""
    head = [f"# {GROUPS[page].partition(': ')[0]}\n", "<!-- made by `make docs` from docstrings -->\n"]
    return "\n".join([*head, *(part for each in entries(page) for part in _written(each, 2))]).rstrip() + "\n"


def api_index() -> str:
    """The page that lists all names."""
    parts = [
        "# Python API\n",
        "<!-- made by `make docs` from docstrings -->\n",
        "All names are imported from `attractor_nb`. What is not listed is internal and may change.\n",
    ]
    for page, title in GROUPS.items():
        rows = (
            f"| [`{each.name}`]({page}.md#{each.name.lower()}) | {_cell(each.prose.partition(chr(10) * 2)[0])} |"
            for each in entries(page)
        )
        parts += [f"## {title.partition(': ')[0]}\n", "| name | meaning |\n| --- | --- |\n" + "\n".join(rows) + "\n"]
    return "\n".join(parts).rstrip() + "\n"
