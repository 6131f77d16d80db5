"""Looks a stage up in the cache before it is executed, and keeps its result after.

Which stages are asked about and what a key is made of is decided in ``decisions/replays/cache_keys.py`` and
``decisions/replays/cache_keys.py``. The cache is an aid: whatever is wrong with it costs a warning and an
execution, never a run and never a wrong result.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from attractor_nb.decisions.replays.cache_keys import (
    FILES_ATTRIBUTE,
    READS_ATTRIBUTE,
    UNCACHED_TYPES,
    RunPaths,
    handler_call,
    nearest,
    of_stage,
    read_values,
    refusal,
)
from attractor_nb.errors import AttractorError, StorageError
from attractor_nb.model.calls.call_content import (
    INPUTS_FILE,
    CachedStage,
    CacheLook,
    CallInputs,
    StageCall,
    file_values,
)
from attractor_nb.model.events import RunWarning
from attractor_nb.model.inputs import forged_keys
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.vocabulary.value_forms import comma_list
from attractor_nb.protocols import DescribesStages, Handler
from attractor_nb.redaction import MARK, holds_secret
from attractor_nb.storage.cache_store import MAX_ENTRY_BYTES, CacheStore
from attractor_nb.storage.files.strict_json import JsonProblem
from attractor_nb.storage.run_directory import STATUS_NAME
from attractor_nb.storage.stage_contents import file_digests, stage_contents

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.context import AttemptContext
    from attractor_nb.decisions.planning.plan import PlannedNode
    from attractor_nb.model.graph import Graph
    from attractor_nb.stage import StageScope

COMPARED_ENTRIES = 20
"""Number of a node's newest entries that a missed stage is compared with."""
SHOWN_DIGITS = 16


class CacheLookup(msgspec.Struct):
    """The result of a cache lookup."""

    scope: StageScope  #: A scope with the values of the attempt's; it outlives the attempt's own.
    call: StageCall  #: The handler's description of the call.
    inputs: CallInputs | None  #: The inputs of the stage; None when the stage is not cached.
    record: CacheLook  #: The record of the lookup in the stage's directory.
    entry: CachedStage | None = None  #: The result that was found, or None.
    present: frozenset[str] = msgspec.field(default_factory=frozenset)  #: Files that were there before the call.
    conversation: str = ""  #: Under ``full`` fidelity: the conversation of the thread so far.


class StageCache(msgspec.Struct, frozen=True):
    """The cache of a run."""

    store: CacheStore  #: Store of the results.
    pipeline: str  #: The pipeline's name; a stage is compared with earlier ones of its own pipeline.
    workdir: Path  #: Working directory of commands, and base of the paths of ``cache.files``.

    async def look(
        self, planned: PlannedNode, handler: Handler, scope: StageScope, context: AttemptContext, graph: Graph
    ) -> CacheLookup | None:
        """Look a stage up, in the scope of its attempt; None for stages that are never cached."""
        if planned.handler_type in UNCACHED_TYPES:
            return None
        scope = structs.replace(scope)
        call = _call_of(planned, handler, scope, context, graph)
        refused = refusal(planned.node, planned.handler_type, call, scope.fidelity)
        inputs = None
        if not refused:
            inputs, refused = await self._inputs(planned, call, scope)
        if inputs is None:
            return _recorded(CacheLookup(scope, call, None, CacheLook(refused=refused)))
        entry = self._found(inputs, scope)
        if entry is not None and (problem := _refusal_of(entry, planned, handler, context, graph)):
            _warn(scope, f"the cached result of {scope.node_id} is no longer valid: {problem}; it is executed")
            entry = None
        record = CacheLook(inputs.digest, _digests(inputs.values))
        if entry is not None:
            record = structs.replace(record, is_hit=True, compared_with=entry.run_id)
        else:
            earlier = await asyncio.to_thread(self._earlier, scope.node_id)  # they may be large
            compared = nearest(earlier, inputs.values)
            record = structs.replace(record, changes=compared.changes, compared_with=compared.run_id)
        present = frozenset(stage_contents(scope.files, max_bytes=MAX_ENTRY_BYTES))
        conversation = scope.conversation.read() if scope.conversation else ""
        return _recorded(CacheLookup(scope, call, inputs, record, entry, present, conversation))

    def restore(self, look: CacheLookup, scope: StageScope, context: AttemptContext) -> CachedStage:
        """Bring back what a found result consists of beside its outcome, and give the result."""
        entry = look.entry
        assert entry is not None and look.inputs is not None, "only a hit is restored"  # noqa: PT018 - one fact
        for path, data in entry.file_contents.items():
            if path not in look.present:
                scope.files.write_bytes(path, data)
        for name, text in look.call.files.items():
            scope.files.write_text(name, text)
        if entry.changes:
            context.apply_updates(entry.changes)
        for line in entry.logs:
            context.append_log(line)
        if entry.conversation and scope.conversation is not None:
            scope.conversation.save(entry.conversation)
        self._note(look.inputs, scope)
        return entry

    def keep(self, look: CacheLookup, outcome: Outcome, context: AttemptContext, now: float) -> None:
        """Keep the result of a stage that was executed, if it may be kept.

        Args:
            look: Result of the lookup before it.
            outcome: How the stage ended, as it will be recorded.
            context: The context of the attempt.
            now: Seconds since 1970 (UTC).
        """
        if look.inputs is None:
            return
        reason = "only a success is kept" if outcome.status is not StageStatus.SUCCESS else ""
        if not reason:
            reason = self._kept(look, outcome, context, now)
        if reason:
            _recorded(structs.replace(look, record=structs.replace(look.record, not_kept=reason)))

    def _kept(self, look: CacheLookup, outcome: Outcome, context: AttemptContext, now: float) -> str:
        """Keep a success; why it is not kept, or empty."""
        assert look.inputs is not None, "a lookup without inputs is not stored"
        scope = look.scope
        conversation = scope.conversation.read() if scope.conversation else ""
        try:
            entry = CachedStage(
                run_id=scope.run_id,
                time=now,
                kind=look.inputs.kind,
                node_id=look.inputs.node_id,
                values=look.inputs.values,
                outcome=structs.replace(outcome, usage=None),
                usage=outcome.usage,
                changes=context.own_changes,
                logs=context.own_logs,
                files=file_values(_own_files(look)),
                conversation=conversation if conversation != look.conversation else "",
            )
        except StorageError as error:
            return error.message
        plain = entry.to_plain()
        if _is_secret(plain):
            return "it holds a secret, or the mark of one that was taken out"
        try:
            is_kept = self.store.write(look.inputs.digest, plain, group=self._group(scope.node_id))
        except AttractorError as error:
            _warn(scope, f"the result of {scope.node_id} could not be kept in the cache: {error.message}")
            return error.message
        return "" if is_kept else f"it has more than {MAX_ENTRY_BYTES} bytes"

    async def _inputs(self, planned: PlannedNode, call: StageCall, scope: StageScope) -> tuple[CallInputs | None, str]:
        """The inputs of a stage; or None, and the reason why they cannot be known."""
        assert call.inputs is not None, "a call without inputs is refused"
        patterns = comma_list(planned.node.get(FILES_ATTRIBUTE, str, ""))
        try:
            files = await asyncio.to_thread(file_digests, patterns, self.workdir) if patterns else None
        except StorageError as error:
            return None, f"cache.files: {error.message}"
        workdir = str(self.workdir) if call.has_effects else ""
        inputs = of_stage(call.inputs, visit=scope.visit, files=files, workdir=workdir)
        try:
            text = json.dumps(inputs.values, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            return None, f"what goes into it has no JSON form: {error}"
        if MARK in text or holds_secret(text):
            return None, "an input holds a secret, or the mark of one that was taken out"
        return inputs, ""

    def _found(self, inputs: CallInputs, scope: StageScope) -> CachedStage | None:
        """The entry of exactly these inputs; None when there is none, or it is not what it should be."""
        key = inputs.digest
        try:
            plain = self.store.read(key)
            if plain is None:
                return None
            entry = CachedStage.from_plain(plain)
        except StorageError as error:
            _warn(scope, f"the cache cannot be read for {scope.node_id}: {error.message}")
            return None
        except (JsonProblem, ValueError) as problem:
            _warn(scope, f"entry {key[:12]} of the cache {problem}; {scope.node_id} is executed instead")
            return None
        if entry.inputs.digest != key:
            other = "holds the result of other inputs"
            _warn(scope, f"entry {key[:12]} of the cache {other}; {scope.node_id} is executed instead")
            return None
        return entry

    def _earlier(self, node_id: str) -> list[tuple[Mapping[str, Any], str]]:
        """Inputs and run of the node's newest entries, the newest first."""
        found: list[tuple[Mapping[str, Any], str]] = []
        for plain in self.store.recent(self._group(node_id), limit=COMPARED_ENTRIES):
            try:
                entry = CachedStage.from_plain(plain)
            except ValueError:
                continue
            found.append((entry.values, entry.run_id))
        return found

    def _note(self, inputs: CallInputs, scope: StageScope) -> None:
        try:
            self.store.note(inputs.digest, group=self._group(scope.node_id))
        except StorageError as error:
            _warn(scope, f"the use of a result could not be noted in the cache: {error.message}")

    def _group(self, node_id: str) -> str:
        return f"{self.pipeline}\0{node_id}"


_PREFIXES: Final = {"tool": ("tool.",), "parallel.fan_in": ("parallel.",)}
"""Prefixes of the engine's keys that stages of a type set."""


def _refusal_of(
    entry: CachedStage, planned: PlannedNode, handler: Handler, context: AttemptContext, graph: Graph
) -> str:
    """The reason why an entry does not count today, or empty: answers are validated at each use (ruling 44)."""
    targets = {edge.edge.target for edge in planned.edges}
    if unknown := [name for name in entry.outcome.suggested_next_ids if name not in targets]:
        return f"it suggests {unknown[0]}, which no outgoing edge leads to"
    updates = (*entry.changes, *entry.outcome.context_updates)
    if forged := forged_keys(updates, planned.id, _PREFIXES.get(planned.handler_type, ())):
        return f"it sets {forged[0]}, which the engine sets"
    judge = getattr(handler, "refusal_of", None)
    if judge is None:
        return ""
    try:
        return str(judge(planned.node, context, graph, entry.outcome, entry.file_contents))
    except Exception as error:  # noqa: BLE001 - validators are the user's code
        return f"{type(error).__name__}: {error}"


def _code_of(handler: Handler) -> str:
    """The qualified name of a handler's code: the same version under another name is another handler."""
    handler = getattr(handler, "handler", handler)  # a shipped one stands for another
    code = getattr(handler, "function", None) or type(handler)
    return f"{getattr(code, '__module__', '')}.{getattr(code, '__qualname__', type(code).__qualname__)}"


def _call_of(
    planned: PlannedNode, handler: Handler, scope: StageScope, context: AttemptContext, graph: Graph
) -> StageCall:
    """The description of a call by its handler; a custom handler without one has only its version."""
    try:
        if isinstance(handler, DescribesStages):
            return handler.stage_call(planned.node, context, graph)
        version = getattr(handler, "version", None)
        if version is None:
            problem = f"the handler of type {planned.handler_type} has no version"
            return StageCall(None, f"{problem}; give it one that changes with what it does")
        values = {key: context.get(key) for key in context}
        declared = planned.node.get(READS_ATTRIBUTE, str)
        around = {
            "attributes": {name: str(value) for name, value in graph.attrs.items()},
            "edges": [[edge.edge.label, edge.edge.condition, edge.edge.target] for edge in planned.edges],
        }
        return StageCall(
            handler_call(
                planned.id,
                planned.handler_type,
                str(version),
                planned.node.attrs,
                read_values(values, None if declared is None else comma_list(declared)),
                place=RunPaths(scope.run_id, (str(scope.logs_root), str(scope.logs_root.absolute()))),
                graph=around,
                code=_code_of(handler),
            )
        )
    except Exception as error:  # noqa: BLE001 - whatever a user's description raises, the stage can run
        return StageCall(None, f"its inputs could not be determined: {type(error).__name__}: {error}")


def _recorded(look: CacheLookup) -> CacheLookup:
    """Write the lookup record into the stage's directory, and return it."""
    text = json.dumps(look.record.to_plain(), ensure_ascii=False, indent=2)
    look.scope.files.write_text(INPUTS_FILE, f"{text}\n")
    return look


def _own_files(look: CacheLookup) -> dict[str, bytes]:
    """The files that the attempt left in its directory, without those that each attempt writes anew."""
    left_out = {STATUS_NAME, INPUTS_FILE, *look.present, *look.call.files}
    contents = stage_contents(look.scope.files, max_bytes=MAX_ENTRY_BYTES)
    return {path: data for path, data in contents.items() if path not in left_out}


def _is_secret(plain: Mapping[str, Any]) -> bool:
    text = json.dumps(plain, ensure_ascii=False)
    return MARK in text or holds_secret(text)


def _digests(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: hashlib.sha256(
            json.dumps(value, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
        ).hexdigest()[:SHOWN_DIGITS]
        for name, value in values.items()
    }


def _warn(scope: StageScope, message: str) -> None:
    scope.announce(RunWarning(message=message, node=scope.node_id))
