"""The run's key-value store (spec 5.1; ruling 31): the one shared mutable object of a run.

Values are JSON values and must survive a round trip unchanged, so that a resumed run sees exactly
what a live one saw. Containers are copied on the way in and on the way out: nobody can change a
stored value behind the store's back, and a clone is isolated however deep its values are, at the
price of copying one dict. Large values are handed to a value store and read back transparently.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from attractor_nb.errors import ContextValueError, TerminalError
from attractor_nb.model.redacted import SCALARS, copied, is_encodable, is_plain, is_reference
from attractor_nb.model.texts import no_such_key
from attractor_nb.redaction import redacted, redacted_value

ARTIFACT_THRESHOLD_BYTES = 100 * 1024
"""Values above this size are kept outside the context (spec 5.5)."""


class ValueStore(Protocol):
    """A store of large values."""

    def externalize(self, key: str, value: Any) -> dict[str, Any]:
        """Store a value and return its reference: a dict whose ``type`` is ``artifact_ref``."""
        ...

    def resolve(self, reference: Mapping[str, Any]) -> Any:
        """The value behind a reference."""
        ...


class _External:
    """A value that lives in the value store."""

    __slots__ = ("reference",)

    def __init__(self, reference: dict[str, Any]) -> None:
        self.reference = reference


class Context(Mapping[str, Any]):
    """A thread-safe key-value store shared by all stages of a run: a mapping that has ``set``, too.

    ``context["key"]`` of a key that is not there is an error (``NoSuchKey``), ``get`` gives the default.

    >>> context = Context({"context.tests": 3})
    >>> context.set("context.tests", 4)
    >>> context.get("context.tests"), context.get_string("nothing", "-")
    (4, '-')
    """

    def __init__(self, values: Mapping[str, Any] | None = None, *, store: ValueStore | None = None) -> None:
        self._lock = threading.RLock()
        self._values: dict[str, Any] = {}
        self._logs: list[str] = []
        self._changed: dict[str, Any] = {}
        self._new_logs: list[str] = []
        self._before: dict[str, Any] = {}
        self._store = store
        for key, value in (values or {}).items():
            self.set(key, value)

    def set(self, key: str, value: Any) -> None:
        """Set a key.

        Args:
            key: Its name.
            value: A value that JSON can hold.

        Raises:
            ContextValueError: The value would not survive a JSON round trip, or the key is not text.
        """
        kept = value if is_plain(key, value) else self._checked(key, value)
        with self._lock:
            if key not in self._before:
                self._before[key] = self._values.get(key, _NOTHING)
            self._values[key] = self._changed[key] = kept

    def _checked(self, key: str, value: Any) -> Any:
        if not isinstance(key, str) or not key or not is_encodable(key):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise ContextValueError(f"context keys must be non-empty text, not {key!r}")
        kept, size = copied(value, key, 0)
        kept = redacted_value(kept)  # at its entry, so that a resumed run sees what a live one saw
        if size > ARTIFACT_THRESHOLD_BYTES and self._store is not None:
            return _External(self._store.externalize(key, kept))
        return kept

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key; a copy, when it is a container.

        Args:
            key: Its name.
            default: The value if there is no such key.
        """
        value = self._values.get(key, default)
        if type(value) in SCALARS:
            return value
        if isinstance(value, _External):
            assert self._store is not None, "only a store makes external values"
            return self._store.resolve(value.reference)
        return copied(value, key, 0)[0] if isinstance(value, dict | list) else value

    @property
    def kept(self) -> Mapping[str, Any]:
        """The stored value of each key, read-only; containers and large values are read with ``get`` alone."""
        return self._values

    def resolved(self, key: str, recorded: Any) -> Any:
        """The value that ``get`` would give for a key if a recorded value were restored; nothing is."""
        if type(recorded) in SCALARS:
            return recorded
        if is_reference(recorded):
            assert self._store is not None, "only a store makes external values"
            return self._store.resolve(recorded)
        return copied(recorded, key, 0)[0]

    def get_string(self, key: str, default: str = "") -> str:
        """The value as text, spelled as JSON spells it; ``default`` when it is missing or null.

        Args:
            key: Its name.
            default: The text if the value is missing or null.
        """
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def append_log(self, entry: str) -> None:
        """Add an entry to the run log.

        Args:
            entry: A line; secrets are removed from it.
        """
        with self._lock:
            entry = redacted(str(entry))
            self._logs.append(entry)
            self._new_logs.append(entry)

    @property
    def logs(self) -> tuple[str, ...]:
        """The run log so far."""
        with self._lock:
            return tuple(self._logs)

    def snapshot(self) -> dict[str, Any]:
        """All values as JSON values; large ones as references."""
        with self._lock:
            items = list(self._values.items())
        return {key: _plain(value, key) for key, value in items}

    def begin(self) -> None:
        """Take the present values as the beginning of the run, whatever its stages change."""
        with self._lock:
            self._before.clear()

    def committed(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Values and logs as of the last commit, as JSON values: without those of the stage under way."""
        with self._lock:
            values = {**self._values, **self._before}
            logs = tuple(self._logs[: len(self._logs) - len(self._new_logs)])
        return {key: _plain(value, key) for key, value in values.items() if value is not _NOTHING}, logs

    def clone(self) -> Context:
        """An independent copy: no change on either side is ever seen on the other."""
        copy = Context(store=self._store)
        with self._lock:
            copy._values = dict(self._values)
            copy._logs = list(self._logs)
        return copy

    def apply_updates(self, updates: Mapping[str, Any]) -> None:
        """Set many keys: all of them, or none when one is refused.

        Args:
            updates: The values by key.
        """
        kept = self._all_checked(updates)
        with self._lock:
            self._take(kept)

    def _all_checked(self, updates: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value if is_plain(key, value) else self._checked(key, value) for key, value in updates.items()}

    def _take(self, kept: Mapping[str, Any]) -> None:
        """Take checked values. With the lock held."""
        for key in kept:
            if key not in self._before:
                self._before[key] = self._values.get(key, _NOTHING)
        self._values.update(kept)
        self._changed.update(kept)

    def amend(self, updates: Mapping[str, Any]) -> dict[str, Any]:
        """Set keys by hand, apart from what the stage under way changes; all of them, or none.

        Returns:
            What was set, as JSON values, for its own record.

        Raises:
            ContextValueError: A value would not survive a JSON round trip, or a key is not text.
        """
        kept = self._all_checked(updates)
        with self._lock:
            self._values.update(kept)
            for key in kept:
                self._before.pop(key, None)
                if key in self._changed:
                    self._changed[key] = kept[key]
        return {key: _plain(value, key) for key, value in kept.items()}

    def take_changes(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The values set and entries logged since the last call, as JSON values; called at each commit."""
        with self._lock:
            changed, self._changed = self._changed, {}
            logs, self._new_logs = tuple(self._new_logs), []
            self._before.clear()
        for key, value in changed.items():
            if type(value) not in SCALARS:
                changed[key] = _plain(value, key)
        return changed, logs

    def restore(self, values: Mapping[str, Any], logs: tuple[str, ...] = ()) -> None:
        """Take over recorded values: references become external values again. Not a change."""
        with self._lock:
            for key, value in values.items():
                self._values[key] = _External(dict(value)) if is_reference(value) else value
            self._logs.extend(logs)

    def __getitem__(self, key: str) -> Any:
        if key not in self._values:
            raise no_such_key("the context", "key", key, self._values)
        return self.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        return f"<Context of {len(self._values)} keys>"


class AttemptContext(Context):
    """The run's context as one attempt sees it: the same values, which it cannot change after its end.

    A handler that was given up may continue in its thread. A value that it sets then would belong to another stage.
    """

    def __init__(self, shared: Context) -> None:
        self._shared = shared
        self._lock, self._store = shared._lock, shared._store  # noqa: SLF001 - one store, two faces
        self._values, self._logs = shared._values, shared._logs  # noqa: SLF001 - one store, two faces
        self._is_over = False
        self._own_keys: dict[str, None] = {}
        self._own_logs: list[str] = []

    @property
    def own_changes(self) -> dict[str, Any]:
        """The values that this attempt has set."""
        return {key: self.get(key) for key in self._own_keys}

    @property
    def own_logs(self) -> tuple[str, ...]:
        """The entries that this attempt has added to the run log."""
        return tuple(self._own_logs)

    def set(self, key: str, value: Any) -> None:
        """Set a key; raises as ``Context.set`` does, and ``TerminalError`` when the attempt is over."""
        self.apply_updates({key: value})

    def apply_updates(self, updates: Mapping[str, Any]) -> None:
        """Set many keys: all of them, or none when one is refused or the attempt is over."""
        self._check()  # before a large value is stored
        kept = self._shared._all_checked(updates)  # noqa: SLF001 - one store, two faces
        with self._lock:
            self._check()
            self._shared._take(kept)  # noqa: SLF001 - one store, two faces
            self._own_keys.update(dict.fromkeys(kept))

    def append_log(self, entry: str) -> None:
        """Add an entry to the run log."""
        with self._lock:
            self._check()
            self._shared.append_log(entry)
            self._own_logs.append(entry)

    def close(self) -> None:
        """The attempt is over. For the engine alone."""
        with self._lock:
            self._is_over = True

    def _check(self) -> None:
        if self._is_over:
            raise TerminalError(
                "the attempt is over, and its context takes no more values", hint="end when the call ends"
            )


def check_values(values: Mapping[str, Any]) -> None:
    """True if a context would take these values, without one."""
    for key, value in values.items():
        if not is_plain(key, value):
            Context({key: value})


_NOTHING: Any = object()
"""Stands for the value of a key that was not there."""


def _plain(value: Any, key: str) -> Any:
    if isinstance(value, _External):
        return dict(value.reference)
    return value if type(value) in SCALARS else copied(value, key, 0)[0]
