"""What goes into a call of a backend, as far as the backend says (``protocols.DescribesCalls``)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.replays.cache_keys import PlaceOfCall, model_call
from attractor_nb.model.calls.call_content import CallInputs, StageCall
from attractor_nb.protocols import DescribesCalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node
    from attractor_nb.protocols import CodergenBackend
    from attractor_nb.stage import StageScope

PROMPT_FILE = "prompt.md"
SILENT = "the backend does not say what its answers depend on; give it a version, or call_inputs"
_JUDGED_BY = ("verdict", "response_schema")
"""Node attributes by which a response becomes an outcome."""


def place_of(scope: StageScope) -> PlaceOfCall:
    """Where a stage is executed: what its inputs must not depend on."""
    written = str(scope.logs_root)
    is_path = os.sep in written  # a single word may stand in any text
    return PlaceOfCall(scope.run_id, (*((written,) if is_path else ()), str(scope.logs_root.absolute())))


def backend_call(
    backend: CodergenBackend, node: Node, prompt: str, context: Context, scope: StageScope
) -> StageCall:
    """The call of a backend by a stage that sends it ``prompt``."""
    described: Mapping[str, Any] | None = None
    if isinstance(backend, DescribesCalls):
        described = backend.call_inputs(node, context)
    if described is None:
        return StageCall(None, SILENT)
    judged = {name: node.attrs[name] for name in _JUDGED_BY if name in node.attrs}
    inputs = model_call(
        node.id,
        prompt,
        {**judged, **described},
        place=place_of(scope),
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
