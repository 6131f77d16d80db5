"""Rules about secrets in a source: it is stored, shown and handed on; the environment is not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from attractor_nb.lint.survey import Finding, Survey, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.graph import Edge, Node
from attractor_nb.model.redacted import redacted_graph
from attractor_nb.redaction import holds_secret, secret_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.source import Span

_NOWHERE: Final = (sys.maxsize, sys.maxsize)
_REMEDY: Final = "store it in an environment variable that the command or the backend reads"


@rule(Severity.WARNING)
def secret_in_source(survey: Survey) -> Iterator[Finding]:
    """No key, token or password stands in a pipeline.

    A source is shown, stored and sent around. A run works with it, and everything that is kept or shown of
    the run has `[redacted]` in its place: `pipeline.dot` of the run directory too, so that the run can be
    resumed with your own pipeline only. Secrets belong in the environment. Put one into a variable and
    change the one that stood here: it is known by now.

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


@rule(Severity.ERROR)
def secret_in_id(survey: Survey) -> Iterator[Finding]:
    """No node is called like a key.

    A node's id names its directory and is how a stored run finds its place again: there it cannot be
    replaced by `[redacted]`.

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


RULES: Final = (secret_in_source, secret_in_id)
