"""Writes the pages, and parts of pages, of docs/ that say what a table of the project says.

    python tests/docs/generate.py

docs/errors.md comes from the tables of malformed sources, docs/rules.md from the docstrings of the lint
rules, docs/options.md from the options of runs, maps and pipelines, two tables of docs/language.md from
the tables of shapes and attributes, the Python API, commands, HTTP, events, settings and limits from the code
(reference_pages.py), the table of hosts in docs/platforms.md from marks of tests, that of docs/install.md from the
extras, and that of docs/statistics.md from simulations. A test compares. hatch_build.py makes the files of the
extension of JupyterLab.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attractor_nb import errors
from attractor_nb.lint import BUILT_IN_RULES
from attractor_nb.lint.rules import path_rules
from attractor_nb.lint.survey import Rule
from attractor_nb.model.texts import shown
from attractor_nb.model.vocabulary.attribute_table import TABLE, AttributeSpec
from attractor_nb.model.vocabulary.option_meanings import OF_A_MAP, OF_A_PIPELINE, OF_A_RUN, OF_AN_EVALUATION
from attractor_nb.model.vocabulary.shapes import SHAPE_ALIASES, SHAPE_TO_TYPE
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import EvaluationOptions, MapOptions, RunOptions
from hatch_build import SCOPES, TYPES, default_of, meaning_of
from tests.docs import reference_pages
from tests.docs.hosts import FEATURES, extras_rows, hosts_rows, reason_numbers
from tests.docs.skill_page import skill_page
from tests.evaluation.statistics_table import statistics_table

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
MALFORMED = REPOSITORY / "tests" / "languages" / "malformed"
LANGUAGES = {
    "dot": ("DOT", "malformed"),
    "condition": ("Conditions", "case"),
    "stylesheet": ("Model stylesheets", "case"),
}
LONG = 90
SEVERITIES = {
    "error": "Error: the pipeline does not run.",
    "warning": "Warning: it runs, perhaps not as intended.",
    "info": "Info: worth knowing.",
}


def code(text: str) -> str:
    """Text as inline code that survives in a Markdown table; control characters are their escapes."""
    text = shown(" ".join(text.split()))
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def prose(text: str) -> str:
    """Text of ours in a Markdown table: an angle bracket is no markup."""
    return (
        shown(" ".join(text.split())).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


# -- language.md -------------------------------------------------------------------------------------


def shapes_table() -> str:
    aliases = {shape: alias for alias, shape in SHAPE_ALIASES.items()}
    rows = [
        (code(shape) + (f" (also {code(aliases[shape])})" if shape in aliases else ""), code(kind), TYPES[kind])
        for shape, kind in SHAPE_TO_TYPE.items()
    ]
    return table(("shape", "type", "the stage is"), rows)


def attributes_tables() -> str:
    parts: list[str] = []
    for scope, scope_words in SCOPES.items():
        rows = [
            (code(spec.name), _kind(spec), code(default_of(spec)), meaning_of(spec).replace("|", "\\|"))
            for spec in TABLE
            if spec.scope is scope
        ]
        parts += [f"### Of {scope_words}\n", table(("attribute", "value", "default", "meaning"), rows)]
    return "\n".join(parts)


def _kind(spec: AttributeSpec) -> str:
    return ", ".join(code(choice) for choice in spec.choices) if spec.choices else spec.type.value


def language_page(now: str) -> str:
    """The page with its generated tables made anew; everything else is written by hand."""
    return with_generated(now, shapes=shapes_table(), attributes=attributes_tables())


def platforms_page(now: str) -> str:
    """The page with its table of hosts made anew; everything else is written by hand."""
    reasons = "\n".join(f"{number}. {reason}" for reason, number in reason_numbers().items())
    return with_generated(now, hosts=table(["", *FEATURES], hosts_rows()) + "\n" + reasons + "\n")


def install_page(now: str) -> str:
    """The page with its table of extras made anew; everything else is written by hand."""
    return with_generated(now, extras=table(["extra", "for", "calls that name it where it is missing"], extras_rows()))


def statistics_page(now: str) -> str:
    """The page with its table of simulations made anew; everything else is written by hand."""
    return with_generated(now, simulations=statistics_table() + "\n")


def with_generated(now: str, **parts: str) -> str:
    """A page with its generated parts made anew, each between two comments with its name."""
    for name, content in parts.items():
        begin, end = f"<!-- {name}: made by `make docs` -->\n", f"<!-- end of {name} -->"
        before, _, rest = now.partition(begin)
        _, _, after = rest.partition(end)
        now = f"{before}{begin}\n{content}\n{end}{after}"
    return now


# -- errors.md ---------------------------------------------------------------------------------------


def errors_page() -> str:
    tree = "\n".join(
        line.removeprefix("    ")
        for line in (errors.__doc__ or "").splitlines()
        if re.match(r"    (AttractorError|├|└|│|    )", line)
    )
    parts = [
        "# Errors\n",
        "<!-- made by `make docs` from the tables of malformed sources -->\n",
        (
            "Every error says what is wrong, where, and what to do. Carets mark the whole offending text; an error in a condition or\n"
            "stylesheet is marked in the DOT text around it.\n"
        ),
        "```\n" + example_report() + "\n```\n",
        "All of them have one base class, so `except AttractorError` catches the errors of this package and no others:\n",
        f"```\n{tree}\n```\n",
        "## When an error occurs, and what to do\n",
        table(("error", "when", "what to do"), map(_class_row, _classes(errors.AttractorError))),
        (
            'A failed stage raises nothing: `run()` returns a result with `status == "fail"`. The tables below\n'
            "list the syntax errors by language; the lint findings are in [rules.md](rules.md).\n"
        ),
    ]
    for name, (title, key) in LANGUAGES.items():
        cases = tomllib.loads((MALFORMED / f"{name}.toml").read_text("utf-8"))[key]
        parts += [f"## {title}\n", table(("message", "for example", "remedy"), map(_error_row, cases))]
    return "\n".join(parts)


def _classes(base: type[errors.AttractorError]) -> Iterable[type[errors.AttractorError]]:
    """The classes of the tree below one, in the order of the tree."""
    for each in base.__subclasses__():
        if each.__module__ == errors.__name__:
            yield each
            yield from _classes(each)


def _class_row(error: type[errors.AttractorError]) -> tuple[str, str, str]:
    """Its first two paragraphs: the occasion, and the remedy."""
    occasion, remedy, *_ = (inspect.getdoc(error) or "").split("\n\n")

    def words(text: str) -> str:
        return prose(text).replace("``", "`").replace("\\_", "_")

    return code(error.__name__), words(occasion), words(remedy)


def example_report() -> str:
    from attractor_nb import Pipeline

    try:
        Pipeline("digraph Review {\n    start [shape=Mdiamond]\n    plan [label=]\n}")
    except errors.AttractorError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("the example is malformed")


def _error_row(case: dict[str, Any]) -> tuple[str, str, str]:
    line = int(case["place"].partition(":")[0])
    lines = case["source"].splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1].strip() or case["source"].strip()
    example = f"{case['name']}: {code(shown)}" if 0 < len(shown) <= LONG else case["name"]
    strict = " (with `strict=True`)" if case.get("strict") else ""
    return prose(case["message"]) + strict, example, prose(case["hint"])


# -- rules.md ----------------------------------------------------------------------------------------


def rules_page() -> str:
    def listed(rules: Iterable[Rule]) -> str:
        rows = [(f"[{rule.name}](#{rule.name})", rule.severity.value, rule.page.partition("\n")[0]) for rule in rules]
        return table(("rule", "severity", "what it says"), rows)

    parts = [
        "# Lint rules\n",
        "<!-- made by `make docs` from the docstrings of the rules -->\n",
        (
            "`pipeline.lint()` lists the findings, `pipeline.lint().fix()` shows what their fixes would change, and\n"
            '`Pipeline(..., severity={"dead_end": Severity.ERROR})` changes how much a rule matters. Rules of your own are objects with a\n'
            "`name` and `apply(graph)`: `Pipeline(..., rules=[rule])`.\n"
        ),
        listed(BUILT_IN_RULES),
        (
            "On demand, `pipeline.analyse()` and `attractor-nb analyse FILE` also apply these. They look at all ways through a graph, and most\n"
            "findings are facts to know rather than mistakes ([before-a-run.md](before-a-run.md#analyse-all-runs)).\n"
        ),
        listed(path_rules.RULES),
    ]
    for rule in (*BUILT_IN_RULES, *path_rules.RULES):
        parts += [f"## {rule.name}\n", f"*{SEVERITIES[rule.severity.value]}*\n", f"{fenced(rule.page)}\n"]
    return "\n".join(parts)


def fenced(page: str) -> str:
    """A docstring's indented snippets as fenced code."""

    def fence(found: re.Match[str]) -> str:
        lines = [line.removeprefix("    ") for line in found[0].strip("\n").splitlines()]
        return "\n```dot\n" + "\n".join(lines) + "\n```\n\n"

    return re.sub(r"(?:^(?:    .*)?\n?)*^    .*(?:\n|\Z)(?:^(?:    .*)?\n)*", fence, page, flags=re.MULTILINE).strip()


# -- options.md ----------------------------------------------------------------------------------------


def default_text(default: object) -> str:
    return "" if default is None or default is dataclasses.MISSING or default == () else code(repr(default))


def options_page() -> str:
    """Every keyword of runs, maps and pipelines."""

    def rows(entries: Iterable[tuple[str, str, object]], meanings: dict[str, str]) -> Iterable[list[str]]:
        for name, annotation, default in entries:
            words = " or ".join(part.strip() for part in annotation.removesuffix("| None").split("|"))
            yield [code(name), code(words), default_text(default), prose(meanings[name])]

    def of_fields(options: type) -> Iterable[tuple[str, str, object]]:
        return [(entry.name, str(entry.type), entry.default) for entry in dataclasses.fields(options)]

    parameters = inspect.signature(Definition).parameters
    made = [(name, str(parameters[name].annotation), parameters[name].default) for name in OF_A_PIPELINE]
    head = ["option", "type", "default", "meaning"]
    return "\n".join(
        [
            "# Options",
            "",
            "Keywords, with the meanings that `help(pipeline.run)`, Shift-Tab and Tab show. A keyword that is none of them is an error that",
            "names the nearest. `BackendSpec`, `InterviewerSpec` and `ExecutorSpec` are a name, a function or an object; `DurationSpec` is seconds, a",
            "`Duration`, or its text, as `15m`.",
            "",
            "## Of a run",
            "",
            "`pipeline.run`, `run_async`, `form`, `step`, `check`, `resume`, `run.resume`, `rewind`, `fork`, `run.debugger.rerun`, `run_pipeline`; the",
            "options of the command line of the same name say the same ([cli.md](cli.md)). Some of these calls refuse some: a resume keeps the inputs of its run.",
            '`run_async` has `host="kernel"`, `check` has `durability="none"` and `is_shown=False`, `rerun` has `is_shown=False`, and a later `step` what the first had.',
            "",
            table(head, rows(of_fields(RunOptions), OF_A_RUN)),
            "",
            "## Of a map",
            "",
            "`pipeline.map`, `map_async` and `resume_map`, beside those of a run, which hold for each row, but for `logs_root`, `breakpoints`, `pins` and `stop_after`.",
            "",
            table(head, rows(of_fields(MapOptions), OF_A_MAP)),
            "",
            "## Of an evaluation",
            "",
            "`pipeline.evaluate`, `compare` and `compare_async`, beside those of a map and its rows.",
            "",
            table(head, rows(of_fields(EvaluationOptions), OF_AN_EVALUATION)),
            "",
            "## Of a pipeline",
            "",
            "`Pipeline(source, …)`, and `load_pipeline(directory, …)` without `origin`.",
            "",
            table(head, rows(made, OF_A_PIPELINE)),
            "",
        ]
    )


REFERENCE = re.compile(r"\s*\((?:spec|rulings?|appendix)\b[^()]*\)", re.IGNORECASE)
"""A reference for contributors: to a section of the specification, or to a ruling."""


def _for_users(page: Callable[[str], str]) -> Callable[[str], str]:
    """A page of the documentation without references for contributors; docs/conformance.md has them."""
    return lambda now: REFERENCE.sub("", page(now))


def _unread(page: Callable[[], str]) -> Callable[[str], str]:
    """A page that has no part written by hand."""
    return lambda now: page()


GENERATED: dict[str, Callable[[str], str]] = {
    "docs/language.md": language_page,
    "docs/errors.md": lambda now: errors_page(),
    "docs/rules.md": lambda now: rules_page(),
    "docs/options.md": lambda now: options_page(),
    "docs/platforms.md": platforms_page,
    "docs/install.md": install_page,
    "docs/statistics.md": statistics_page,
    "attractor_nb/cli/SKILL.md": _unread(skill_page),
    **{name: _unread(page) for name, page in reference_pages.PAGES.items()},
}
PAGES = {name: _for_users(page) if name.startswith("docs/") else page for name, page in GENERATED.items()}
"""Each generated file as a function of what is written there now."""


if __name__ == "__main__":
    for name, page in PAGES.items():
        path = REPOSITORY / name
        path.write_text(page(path.read_text("utf-8") if path.exists() else ""), encoding="utf-8")
