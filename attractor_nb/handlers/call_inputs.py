"""What goes into a call of a backend: texts with their values (ruling 34), attachments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.decisions.replays.cache_keys import PlaceOfCall, model_call
from attractor_nb.errors import ContextValueError, TerminalError
from attractor_nb.model.calls.attachment import (
    ATTACH,
    KINDS,
    MAX_ATTACHED_BYTES,
    MAX_ATTACHMENT_BYTES,
    Attachment,
    attached_names,
    is_attachment,
)
from attractor_nb.model.calls.call_content import CallInputs, StageCall
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.model.vocabulary.variables import MISSING, RENDERED_ATTRIBUTES, lookup_in, rendered, whole_variable
from attractor_nb.protocols import DescribesCalls, takes_attachments
from attractor_nb.storage.files.confined import Outside, names_below, read_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CodergenBackend
    from attractor_nb.stage import StageScope

PROMPT_FILE = "prompt.md"
SILENT = "the backend does not say what its answers depend on; give it a version, or call_inputs"
_JUDGED_BY = ("verdict", "response_schema")
"""Node attributes by which a response becomes an outcome."""


def rendered_node(node: Node, graph: Graph, get: Callable[[str, Any], Any]) -> Node:
    """A node with the values of the variables in what models and people read of it.

    Args:
        node: The node as the graph has it.
        graph: Its graph, which has the goal.
        get: Gives a value of the context by its key, or what it is given as a default.
    """
    changes: dict[str, str] = {}
    for name in RENDERED_ATTRIBUTES:
        text = node.attrs.get(name)
        if isinstance(text, str) and "$" in text:
            changes[name] = rendered(text, lookup_in(graph.goal, get))
    return node.with_attrs(changes) if changes else node


def place_of(scope: StageScope) -> PlaceOfCall:
    """Where a stage is executed: what its inputs must not depend on."""
    written = str(scope.logs_root)
    is_path = os.sep in written  # a single word may stand in any text
    return PlaceOfCall(scope.run_id, (*((written,) if is_path else ()), str(scope.logs_root.absolute())))


def backend_call(backend: CodergenBackend, node: Node, prompt: str, context: Context, scope: StageScope) -> StageCall:
    """The call of a backend by a stage that sends it ``prompt``."""
    described: Mapping[str, Any] | None = None
    if isinstance(backend, DescribesCalls):
        described = backend.call_inputs(node, context)
    if described is None:
        return StageCall(None, SILENT)
    judged = {name: node.attrs[name] for name in _JUDGED_BY if name in node.attrs}
    around = getattr(backend, "cache_inputs", None)
    place = dict(around(node)) if around is not None else {}
    inputs = model_call(
        node.id,
        prompt,
        {**judged, **described, **place},
        place=place_of(scope),
        preamble=scope.preamble,
        conversation=scope.conversation.read() if scope.conversation else "",
        attachments=(each.digest for each in scope.attachments),
    )
    has_effects = bool(getattr(backend, "has_effects", False)) or bool(node.get("allowed_tools", str, ""))
    return StageCall(inputs, has_effects=has_effects, files={PROMPT_FILE: prompt})


def with_values(call: StageCall, values: Mapping[str, Any]) -> StageCall:
    """A call whose stage depends on more than goes into the call itself."""
    if call.inputs is None:
        return call
    inputs = CallInputs(call.inputs.kind, call.inputs.node_id, {**call.inputs.values, **values})
    return StageCall(inputs, has_effects=call.has_effects, files=call.files)


def attachments_of(
    node: Node, graph: Graph, get: Callable[[str, Any], Any], scope: StageScope
) -> tuple[Attachment, ...]:
    """What a node attaches, read.

    Args:
        node: The node as the graph has it.
        get: Gives a value of the context by its key, or what it is given as a default.
        scope: The attempt, which knows the working directory.
    """
    text = node.get(ATTACH, str, "")
    if not text.strip():
        return ()
    found: list[Attachment] = []
    for part in attached_names(text):
        try:
            found.extend(_named(part, graph, get, scope))
        except ContextValueError as error:
            raise TerminalError(f"{node.id}: {error.message}", hint=error.hint) from None
    size = sum(len(each.data) for each in found)
    if size > MAX_ATTACHED_BYTES:
        raise TerminalError(
            f"{node.id} attaches {size:,} bytes; a stage may attach {MAX_ATTACHED_BYTES:,}",
            hint="attach less, or in several stages",
        )
    return tuple(found)


def check_takes_attachments(backend: CodergenBackend, node: Node) -> None:
    """Refuse to ask a backend that would never see what a node attaches."""
    if node.get(ATTACH, str, "").strip() and not takes_attachments(backend):
        raise TerminalError(
            f"{node.id} attaches files, but {type(backend).__name__} accepts only text",
            hint='leave attach out, or ask a model that sees images: backend="llm"',
        )


def _named(part: str, graph: Graph, get: Callable[[str, Any], Any], scope: StageScope) -> Iterator[Attachment]:
    lookup = lookup_in(graph.goal, get)
    if name := whole_variable(part):
        value = lookup(name)
        if value is MISSING:
            raise ContextValueError(f"attach names {part}, and the run has no such value")
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            yield _given(part, each, scope)
    else:
        yield _file(rendered(part, lookup), scope)


def _given(part: str, value: Any, scope: StageScope) -> Attachment:
    if is_attachment(value):
        return Attachment.from_plain(value)
    if isinstance(value, str):
        return _file(value.strip(), scope)
    raise ContextValueError(
        f"attach names {part}, which is neither an attachment nor the path of a file",
        hint='params={"photo": Path("photo.png")}, or bytes',
    )


def _file(name: str, scope: StageScope) -> Attachment:
    shown = f'the attached file "{name[:200]}"'
    if scope.workplace is None:
        raise ContextValueError(
            f"{shown} cannot be read: this stage is not done where the run's working directory is",
            hint='give the file to the run: params={"photo": Path("photo.png")}, and attach="${photo}"',
        )
    base = Path(os.path.realpath(scope.workplace.directory))
    try:
        data = read_below(base, name, max_bytes=MAX_ATTACHMENT_BYTES)
    except Outside as problem:
        raise ContextValueError(f"{shown} {problem.message}", hint=problem.remedy) from None
    except (FileNotFoundError, NotADirectoryError):
        near = did_you_mean(name, names_below(base))
        raise ContextValueError(
            f"{shown} is not there; it was looked for in {base}{near}",
            hint=f"a path is relative to the working directory of the run; the file is {KINDS}",
        ) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ContextValueError(f"{shown} cannot be read: {reason}", hint="repair the file") from None
    return Attachment(data, Path(name).name)
