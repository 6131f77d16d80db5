"""Rules about attributes: their names, their values, and secrets in them (appendix A, the attribute table)."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from attractor_nb.languages.dot.writer import spell
from attractor_nb.lint.entailed_findings import with_attribute_named
from attractor_nb.lint.survey import (
    BUILT_IN_TYPES,
    Finding,
    Survey,
    Suspect,
    Thing,
    name_span,
    renaming,
    replacing_value,
    rule,
    value_span,
)
from attractor_nb.model.allowed_tools import server_attribute
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.graph import Edge, Node
from attractor_nb.model.redacted import redacted_graph
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.model.vocabulary.attribute_table import (
    CHILD_FILES,
    FIDELITY_MODES,
    FOREIGN_NAMES,
    AttributeSpec,
    AttrType,
    AttrValue,
    Scope,
)
from attractor_nb.model.vocabulary.attributes import attributes_of, literal_text
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE
from attractor_nb.model.vocabulary.value_forms import Duration
from attractor_nb.redaction import holds_secret, secret_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.source import Span


_FIDELITY: Final = frozenset({"fidelity", "default_fidelity"})
_HARMLESS: Final = frozenset({"reasoning_effort", "rankdir"})
"""Choices that a provider may extend, or that only the drawing reads."""

_KINDS: Final[dict[AttrType, tuple[type, ...]]] = {
    AttrType.INTEGER: (int,),
    AttrType.FLOAT: (int, float),
    AttrType.DURATION: (Duration,),
}
_INTEGERS: Final = {
    scope: frozenset(row.name for row in attributes_of(scope) if row.type is AttrType.INTEGER) for scope in Scope
}
_POINTED: Final = re.compile(r'= *"?[+-]?[0-9]+\.')
_IN_OTHER_UNITS: Final = {
    "max_attempts": "max_retries, which counts the attempts after the first: one less than {}",
    "timeout_ms": 'timeout="{}ms"',
    "timeout_seconds": 'timeout="{}s"',
}
_RENAMED_SAFELY: Final = frozenset(
    {"model", "provider", "system", "system_prompt", "temperature", "max_tokens", "retries", "instruction"}
    | {"instructions", "stylesheet", "cond", "when", "guard", "if", "priority"}
)
"""Those whose value means the same under our name; the others say only what to write (ruling 40)."""
_ARTICLES: Final = {Scope.GRAPH: "the", Scope.NODE: "a", Scope.EDGE: "an"}
_SWITCHES: Final = {"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False}
_WORDED_DURATION: Final = re.compile(
    r"\s*(?P<count>\d+)\s*"
    r"(?P<unit>milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\s*\Z",
    re.IGNORECASE,
)


@rule(Severity.ERROR, is_local=True)
def bad_value(survey: Survey) -> Iterator[Finding]:
    """An attribute value has the wrong type, is not one of the choices, or is too small.

    A value that cannot be read counts as missing: `goal_gate=yes` would silently guard nothing. `rankdir` and
    `reasoning_effort`, which cannot mislead a run, are WARNINGs.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", goal_gate=yes, retry_target=work]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", goal_gate=true, retry_target=work]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for suspect in survey.suspects:
        row, value = suspect.row, suspect.value
        if row is None or row.name in _FIDELITY or _is_of_the_stylesheet(survey, suspect):
            continue
        if row.type in _KINDS and isinstance(value, _KINDS[row.type]) and not isinstance(value, bool):
            message, meant = _too_small(row, value), None
        elif row.type is AttrType.DURATION:
            continue
        else:
            message, meant = _wrong_type(row, value)
        severity = Severity.WARNING if row.name in _HARMLESS else Severity.ERROR
        fix = None
        if meant is not None:
            fix = replacing_value(suspect.thing, row.name, meant, f"write {literal_text(meant)}")
        span = value_span(suspect.thing, row.name)
        yield Finding(message, span, suspect.node_id, suspect.ends, fix, severity)


def _is_of_the_stylesheet(survey: Survey, suspect: Suspect) -> bool:
    """True if the stylesheet gave the value, where ``style_value`` says that it is none."""
    thing, name = suspect.thing, suspect.name
    return (
        isinstance(thing, Node)
        and name == "reasoning_effort"
        and name not in thing.explicit
        and name not in thing.attr_spans
        and bool(survey.graph.model_stylesheet)
    )


def _too_small(row: AttributeSpec, value: AttrValue) -> str:
    if isinstance(value, Duration):
        return f'{row.name} "{value}" must be longer than 0'
    return f"{row.name} {literal_text(value)} is below {row.minimum}"


def _wrong_type(row: AttributeSpec, value: AttrValue) -> tuple[str, AttrValue | None]:
    """The message, and the value that was probably meant."""
    text = literal_text(value)
    match row.type:
        case AttrType.CHOICE:
            near = nearest(text, row.choices)
            return f'{row.name} "{text}" is not one of {", ".join(row.choices)}{suggestion(near)}', near or None
        case AttrType.BOOLEAN:
            return f'{row.name} "{text}" must be true or false', _SWITCHES.get(text.lower())
        case AttrType.INTEGER:
            return f'{row.name} "{text}" is not a whole number', None
        case _:
            return f'{row.name} "{text}" is not a number', None


@rule(Severity.WARNING, is_local=True)
def whole_number(survey: Survey) -> Iterator[Finding]:
    """A whole number is written with a decimal point.

    `weight=2.0` is read as 2. Other tools for these pipelines may refuse it, because the specification requires an
    integer (spec 2.4, appendix A).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [weight=2.0] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [weight=2] }
    """
    source = survey.graph.source
    if source is None or _POINTED.search(source.text) is None:
        return
    for thing, node_id, ends, names in _with_whole_numbers(survey):
        for name, value in thing.attrs.items():
            span = thing.attr_spans[name].value if name in names and name in thing.attr_spans else None
            if span is not None and isinstance(value, int) and "." in span.text:
                message = f"{name} {span.text} is read as the whole number {value}"
                fix = replacing_value(thing, name, value, f"write {value}")
                yield Finding(message, span, node_id, ends, fix)


def _with_whole_numbers(survey: Survey) -> Iterator[tuple[Thing, str, tuple[str, str] | None, frozenset[str]]]:
    """The graph, its nodes and its edges, each with the names of its attributes that are integers."""
    yield survey.graph, "", None, _INTEGERS[Scope.GRAPH]
    for node in survey.graph.nodes.values():
        yield node, node.id, None, _INTEGERS[Scope.NODE]
    for edge in survey.graph.edges:
        yield edge, "", (edge.source, edge.target), _INTEGERS[Scope.EDGE]


@rule(Severity.ERROR, is_local=True)
def bad_duration(survey: Survey) -> Iterator[Finding]:
    """A duration is not a number with a unit, such as `250ms`, `900s`, `15m`, `1.5h`, `1d`.

    An invalid duration counts as missing, and a stage without its timeout may wait forever (spec 2.4). A number without
    a unit means seconds.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", timeout="5 minutes"] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", timeout="5m"] exit [shape=Msquare]
            start -> work -> exit }
    """
    for suspect in survey.suspects:
        row, value = suspect.row, suspect.value
        if row is not None and row.type is AttrType.DURATION and not isinstance(value, Duration):
            message = f'{row.name} "{literal_text(value)}" is not a duration'
            span = value_span(suspect.thing, row.name)
            yield Finding(message, span, suspect.node_id, suspect.ends, _duration_fix(suspect))


def _duration_fix(suspect: Suspect) -> Fix:
    if found := _WORDED_DURATION.match(literal_text(suspect.value)):
        unit = found["unit"].lower()
        short = "ms" if unit.startswith(("ms", "milli")) else unit[0]
        duration = f"{found['count']}{short}"
        return replacing_value(suspect.thing, suspect.name, duration, f'write "{duration}"')
    return Fix('write a number and a unit, such as "15m"')


@rule(Severity.WARNING, is_local=True)
def fidelity_valid(survey: Survey) -> Iterator[Finding]:
    """A fidelity is not one of the six modes.

    Any other word counts as missing, and the stage gets `compact` (spec 5.4, 7.2).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", fidelity=ful] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", fidelity=full] exit [shape=Msquare]
            start -> work -> exit }
    """
    for suspect in survey.suspects:
        if suspect.row is None or suspect.name not in _FIDELITY:
            continue
        text = literal_text(suspect.value)
        message = f'{suspect.name} "{text}" is not one of {", ".join(FIDELITY_MODES)}'
        fix = Fix(f"use one of {', '.join(FIDELITY_MODES)}")
        if near := nearest(text, FIDELITY_MODES):
            message += suggestion(near)
            fix = replacing_value(suspect.thing, suspect.name, near, f'write "{near}"')
        span = value_span(suspect.thing, suspect.name)
        yield Finding(message, span, suspect.node_id, suspect.ends, fix)


@rule(Severity.INFO, is_local=True)
def attribute_typo(survey: Survey) -> Iterator[Finding]:
    """An attribute's name is almost that of a known one.

    Unknown attributes are kept for custom handlers (ruling 5), so no error reveals a misspelling. One of `prompt` on a
    node with a label is a WARNING: the model would get the label.

    Bad:

        digraph { start [shape=Mdiamond] work [label="Work", promt="Do it"] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [label="Work", prompt="Do it"] exit [shape=Msquare]
            start -> work -> exit }
    """
    suggestions: dict[tuple[Scope, str], str] = {}
    for suspect in survey.suspects:
        if suspect.row is not None:
            continue
        scope, name = suspect.scope, suspect.name
        if name in FOREIGN_NAMES[scope] or (scope is Scope.GRAPH and server_attribute(name)):
            continue
        if (scope, name) not in suggestions:
            suggestions[scope, name] = nearest(name, [row.name for row in attributes_of(scope)])
        if near := suggestions[scope, name]:
            message = f'"{name}" is not an attribute of {_ARTICLES[scope]} {scope}; did you mean "{near}"?'
            # Where the known attribute is there too, renaming would replace its value.
            fix = Fix(f'remove "{name}", or keep it for a custom handler')
            if near not in suspect.thing.attrs:
                fix = renaming(suspect.thing, name, near, f'write "{near}"')
            meant = with_attribute_named(scope, name, near)
            span = name_span(suspect.thing, name)
            severity = None
            if near == "prompt" and (label := _label_as_prompt(survey, suspect)):
                message += f' As it stands, the label of "{suspect.node_id}" would be its prompt: "{label}"'
                severity = Severity.WARNING
            yield Finding(message, span, suspect.node_id, suspect.ends, fix, severity, meant)


def _label_as_prompt(survey: Survey, suspect: Suspect) -> str:
    """The label that a model gets in place of a misspelled prompt, or empty."""
    attrs = suspect.thing.attrs
    is_asked = survey.types.get(suspect.node_id) == DEFAULT_TYPE and not attrs.get("prompt")
    return str(attrs.get("label", "")) if is_asked else ""


@rule(Severity.WARNING, is_local=True)
def foreign_attribute(survey: Survey) -> Iterator[Finding]:
    """An attribute has the name that another runner uses for it.

    Files written for other runners bound a loop by `max_visits` on a node, or name a model by `model`. Such a name is
    kept for custom handlers (ruling 5) and has no other effect: the loop has no bound. A handler of your own may read
    it, so it is not reported on a node of such a handler. `dot_file` on a node without a prompt is read as
    `pipeline.dotfile`; otherwise its name would be sent to a model as the prompt.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", max_visits=3] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { max_node_visits=3  start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work -> exit }
    """
    for suspect in survey.suspects:
        scope, name, thing = suspect.scope, suspect.name, suspect.thing
        place, ours = FOREIGN_NAMES[scope].get(name, (scope, ""))
        if suspect.row is not None or not ours or _has_own_handler(survey, suspect):
            continue
        if name in CHILD_FILES and thing.attrs.get(ours) == suspect.value:
            yield _read_as_child(suspect, ours)
            continue
        where = f'the attribute "{ours}"' if place is scope else f'the {place}\'s attribute "{ours}"'
        message = f'"{name}" has no effect on {_ARTICLES[scope]} {scope}; {where} does that'
        fix = Fix(f'write {ours}={spell(suspect.value)} on the {place}, or remove "{name}"')
        if name in _IN_OTHER_UNITS:
            fix = Fix(f"write {_IN_OTHER_UNITS[name].format(literal_text(suspect.value))}")
        elif place is scope and ours not in thing.attrs and name in _RENAMED_SAFELY:
            fix = renaming(thing, name, ours, f'write "{ours}"')
        yield Finding(message, name_span(thing, name), suspect.node_id, suspect.ends, fix)


def _read_as_child(suspect: Suspect, ours: str) -> Finding:
    """A sub-pipeline in the words of another dialect."""
    message = f'"{suspect.name}" is read as "{ours}": "{suspect.node_id}" runs that pipeline'
    fix = renaming(suspect.thing, suspect.name, f"type=pipeline, {ours}", f'write type=pipeline and "{ours}"')
    return Finding(message, name_span(suspect.thing, suspect.name), suspect.node_id, suspect.ends, fix)


def _has_own_handler(survey: Survey, suspect: Suspect) -> bool:
    """True if a handler of the caller's own executes the node, and may read what it likes."""
    kind = survey.types.get(suspect.node_id, "")
    return bool(kind) and (kind not in BUILT_IN_TYPES or kind in survey.options.taken_over)


RULES: Final = (bad_value, whole_number, bad_duration, fidelity_valid, attribute_typo, foreign_attribute)


# Rules about secrets in a source: it is stored, shown and handed on; the environment is not.

_NOWHERE: Final = (sys.maxsize, sys.maxsize)
_REMEDY: Final = "store it in an environment variable that the command or the backend reads"


@rule(Severity.WARNING, is_local=True)
def secret_in_source(survey: Survey) -> Iterator[Finding]:
    """A pipeline contains a key, token or password.

    A source is shown, stored and sent around. A run can use the secret, but all files and views of the run have
    `[redacted]` in its place. That includes `pipeline.dot` of the run directory, so the run can be resumed only with
    your own pipeline. Secrets belong in the environment: move the secret into a variable, and replace it, because
    others may have seen it.

    Bad:

        digraph { start [shape=Mdiamond]  exit [shape=Msquare]
            fetch [shape=parallelogram, tool_command="curl https://me:open-sesame-42@example.org/data"]
            start -> fetch -> exit }

    Good:

        digraph { start [shape=Mdiamond]  exit [shape=Msquare]
            fetch [shape=parallelogram, tool_command="curl --netrc https://example.org/data"]
            start -> fetch -> exit }
    """
    graph, source = survey.graph, survey.graph.source
    is_text_clean = source is None or not holds_secret(source.text)
    if is_text_clean and redacted_graph(graph) is graph:
        return
    reported: list[Span] = []
    for thing in (graph, *graph.nodes.values(), *graph.edges):
        for name, value in thing.attrs.items():
            if not isinstance(value, str) or not holds_secret(value):
                continue
            span = value_span(thing, name)
            if span is not None:
                reported.append(span.outermost())
            node_id = thing.id if isinstance(thing, Node) else ""
            ends = (thing.source, thing.target) if isinstance(thing, Edge) else None
            yield Finding(f"{name} contains a secret", span, node_id, ends, Fix(_REMEDY))
    if source is not None:
        for start, end in _outside(secret_places(source.text), reported):
            yield Finding("the source contains a secret", source.span(start, end), fix=Fix(_REMEDY))


def _outside(places: Iterable[tuple[int, int]], spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """The places that no span touches. The places are in order; both are gone through once."""
    behind = iter(sorted((span.start, span.end) for span in spans))
    first, last = next(behind, _NOWHERE)
    for start, end in places:
        while last <= start:
            first, last = next(behind, _NOWHERE)
        if end <= first:
            yield start, end


@rule(Severity.ERROR, is_local=True)
def secret_in_id(survey: Survey) -> Iterator[Finding]:
    """A node's id looks like a key.

    A node's id names its directory and identifies its stage in a stored run, so it cannot be replaced by `[redacted]`.

    Bad:

        digraph { start [shape=Mdiamond]  exit [shape=Msquare]
            hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa [prompt="Do it"]
            start -> hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -> exit }

    Good:

        digraph { start [shape=Mdiamond]  exit [shape=Msquare]
            fetch [prompt="Do it"]
            start -> fetch -> exit }
    """
    if not holds_secret("\n".join(survey.graph.nodes)):
        return
    for node in survey.graph.nodes.values():
        if holds_secret(node.id):
            yield Finding("the id of a node is a secret", node.span, node.id, fix=Fix("use another id"))


SECRET_RULES: Final = (secret_in_source, secret_in_id)
