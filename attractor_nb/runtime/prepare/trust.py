"""Trust in the commands of a graph: the question before a run, and the answers to it.

Text in the caller's own cell or call is the caller's; what was read from a file, a run directory or a
stream is not, and the user has to trust its commands. The question is about the graph that will run,
not about the place it came from: what changes there afterwards changes nothing here.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from attractor_nb.decisions.planning.executable_surface import (
    COMMAND,
    FOREIGN,
    OF_A_DIRECTORY,
    SHOWN_DIGITS,
    Command,
    ExecutableSurface,
    executable_surface,
    is_hash,
)
from attractor_nb.errors import AttractorError, OptionError, UntrustedSource
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.model.vocabulary.isolation import IN_PLACE
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.storage.manifest_file import MANIFEST_NAME, read_manifest
from attractor_nb.storage.map_directory import read_map
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.trust_file import TrustFile
from attractor_nb.views.shown_commands import (
    are_commands,
    command_count,
    command_diff,
    cut,
    listed_commands,
    spelled_out,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import Processes
    from attractor_nb.runtime.prepare.run_options import RunOptions

Origin = str | Path
"""Origin of a text: a file, whose answers are remembered, or a stream that only has a name."""
_PART_NAME: Final = re.compile(r"(restart|row)-[0-9]+\Z")
_DIFF_LINES: Final = 60


class TrustQuestion(Struct, frozen=True):
    """Commands from elsewhere that are not trusted yet."""

    surface: ExecutableSurface  #: The commands.
    origin: Origin  #: Their origin.
    #: The commands that were trusted there before; None when there were none, or when they were too long to be kept or
    #: held a secret.
    before: tuple[Command, ...] | None = None
    was_trusted: bool = False  #: True if others were trusted there before.
    place: str = ""  #: Their working directory, in words.
    logs_root: Path | None = None  #: The run directory that shall continue, if any.

    @property
    def diff(self) -> list[str]:
        """The changes since it was trusted, as a unified diff; empty when the earlier commands are not known."""
        return command_diff(self.before, self.surface.commands) if self.before is not None else []

    @property
    def headline(self) -> str:
        """The subject of the question, in one sentence."""
        verb = "runs" if are_commands(self.surface.commands) else "has"
        what = (
            f"{spelled_out(str(self.origin))} {verb} {command_count(self.surface.commands)} (hash {self.surface.hash})"
        )
        if self.was_trusted:
            return f"{what}, and they are not those that were trusted before"
        return f"{what} and needs your trust"

    @property
    def where(self) -> str:
        """The place in which they would run, as a separate line; empty without commands."""
        has_any = any(entry.kind == COMMAND for entry in self.surface.commands)
        return f"commands run in {spelled_out(self.place)}" if self.place and has_any else ""

    def remember(self) -> str:
        """Note that a person has read these commands and let them run; a mere name has no memory.

        Returns:
            The hash that names them from now on: a run directory counts as the user's own then.
        """
        of_graph, recorded = _parts(self.surface)
        own = ExecutableSurface(tuple(entry for entry in recorded.commands if not _is_foreign(entry)))
        if of_graph:
            for place in _places(self.origin):
                _note(place, of_graph, is_synced=True)
                break
        if self.logs_root is not None:
            _note_own(self.logs_root, _identity(self.logs_root), is_synced=True)
            if own:
                _note(_place(self.logs_root / MANIFEST_NAME), own, is_synced=True)
        return ExecutableSurface((*of_graph.commands, *own.commands)).full_hash


def trust_question(
    graph: Graph,
    origin: Origin | None,
    logs_root: Path | None = None,
    *,
    place: str = "",
    recorded: Sequence[Command] = (),
    acts_unasked: bool = False,
) -> TrustQuestion | None:
    """The open question before a graph may run, or None.

    It is answered by the origin (None: the caller's own text), by ``ATTRACTOR_TRUST``, by a person who
    let the same commands of the same file run before, or, for a run directory that this user began
    here, by that beginning.

    Args:
        graph: The graph as it will run.
        origin: Where it came from.
        logs_root: The run directory to resume, if any.
        place: Where its commands would run, as ``where_commands_run`` says.
        recorded: What the run directory would choose by itself, as ``recorded_choices`` says.
        acts_unasked: As of ``executable_surface``.
    """
    surface = _surface_of(graph, origin, recorded, acts_unasked=acts_unasked)
    if not surface or any(surface.is_named_by(text) for text in _hashes_of_environment()):
        return None
    of_graph, _ = _parts(surface)
    own = [] if origin is None else _places(origin)
    places = [*own, *(_places(logs_root / SOURCE_NAME) if logs_root else ())]
    known = [found for place in places if (found := TrustFile().recall(place))]
    is_graph_known = not of_graph or any(found.full_hash == of_graph.full_hash for found in known)
    if is_graph_known and are_choices_known(recorded, logs_root):
        return None
    before = next((found.commands for found in known if found.commands is not None), None)
    commands = None if before is None or recorded else tuple(Command(*row) for row in before)
    return TrustQuestion(
        surface,
        (logs_root or "") if origin is None else origin,
        commands,
        was_trusted=bool(known) and not is_graph_known,
        place=place,
        logs_root=logs_root,
    )


def are_choices_known(recorded: Sequence[Command], logs_root: Path | None) -> bool:
    """True if this user chose what a run directory records, here: when the run began, or in an earlier question.

    Args:
        recorded: As ``recorded_choices`` says.
        logs_root: The run directory.
    """
    if not recorded:
        return True
    rows = {(entry.node_id, entry.attribute, entry.text) for entry in recorded}
    for place in _places(logs_root / MANIFEST_NAME) if logs_root else ():
        found = TrustFile().recall(place)
        if found and (
            found.full_hash == ExecutableSurface(tuple(recorded)).full_hash or rows <= set(found.commands or ())
        ):
            return True
    return False


def is_own_directory(logs_root: Path) -> bool:
    """True if this user began the run or the map of a directory here, or has trusted what is in it.

    The directory is told by its place and by the id of its run: another one in its place is another user's.
    A restart is part of its run, and a row of its map.
    """
    directory, identity = logs_root, _identity(logs_root)
    while identity:
        if (found := TrustFile().recall(_own_place(directory))) and found.full_hash == identity:
            return True
        if not _PART_NAME.match(directory.name):
            return False
        is_row, whole = directory.name.startswith("row-"), _identity(directory.parent)
        directory, identity = directory.parent, whole if is_row or identity == whole else ""
    return False


def _identity(directory: Path) -> str:
    """The id of the run or the map in a directory; empty when there is none."""
    facts: Mapping[str, Any] = read_manifest(directory)[0] or {}
    if run_id := facts.get("run_id"):
        return str(run_id)
    try:
        return str(read_map(directory).get("map_id", ""))
    except AttractorError:
        return ""


def _own_place(directory: Path) -> str:
    """The name under which a directory of the user's own is noted: no file has it."""
    return _place(directory) + os.sep


def _note_own(directory: Path, identity: str, *, is_synced: bool) -> None:
    if identity:
        TrustFile().remember(_own_place(directory), identity, None, is_synced=is_synced)


def where_commands_run(graph: Graph, isolation: str | None, workdir: str | Path | None) -> str:
    """The place in which the commands of a run would run, in words (ruling 41)."""
    own = isolation or graph.get("isolation", str, "") or IN_PLACE
    if own != IN_PLACE:
        return f"a {own} of the run's own"
    return str(here() if workdir is None else Path(workdir).absolute())


class HasCommands(Protocol):
    """A pipeline, to the question of trust."""

    @property
    def graph(self) -> Graph:
        """The graph as it will run."""
        ...

    def origin_for(self, *, acts_unasked: bool) -> Origin | None:
        """The origin of its commands; None when they are the caller's own."""
        ...


def check_trust(
    pipeline: HasCommands, options: RunOptions, logs_root: Path | None = None, recorded: Sequence[Command] = ()
) -> None:
    """Refuse to run commands that are not trusted. To be called before anything is made on the disk.

    Args:
        pipeline: What would run.
        options: How it would run.
        logs_root: The run directory to resume, if any.
        recorded: What that directory would choose by itself, as ``recorded_choices`` says.
    """
    if options.trust is True:
        return
    acts_unasked, graph = options.acts_unasked, pipeline.graph
    origin = pipeline.origin_for(acts_unasked=acts_unasked)
    if not _are_commands_run(options.processes):  # a backend is asked all the same
        origin = None
        recorded = [entry for entry in recorded if not _is_foreign(entry)]
    place = "" if options.executor else where_commands_run(graph, options.isolation, options.workdir)
    if isinstance(options.trust, str):
        surface = _surface_of(graph, origin, recorded, acts_unasked=acts_unasked)
        if surface and not surface.is_named_by(options.trust):
            source = (logs_root or "") if origin is None else origin
            raise _not_named(TrustQuestion(surface, source, place=place), options.trust)
    elif question := trust_question(
        graph, origin, logs_root, place=place, recorded=recorded, acts_unasked=acts_unasked
    ):
        raise untrusted(question)


def note_run(graph: Graph, logs_root: Path, options: RunOptions, recorded: Sequence[Command], identity: str) -> None:
    """Note the commands of a run that begins here, so that its directory can resume without a question.

    The commands of a rehearsal are not noted: what it did not run was not trusted.

    Args:
        graph: What runs.
        logs_root: Its directory.
        options: How it runs.
        recorded: What its directory records of the choices of the user, as ``recorded_choices`` says.
        identity: The id of the run or the map.
    """
    is_synced = options.durability == "full"
    surface = executable_surface(graph, acts_unasked=options.acts_unasked)
    if surface and _are_commands_run(options.processes):
        _note(_place(logs_root / SOURCE_NAME), surface, is_synced=is_synced)
        _note_own(logs_root, identity, is_synced=is_synced)
    note_choices(recorded, logs_root, is_synced=is_synced)


def note_choices(recorded: Sequence[Command], logs_root: Path, *, is_synced: bool) -> None:
    """Note what this user has chosen for a run, which its directory records."""
    if recorded:
        _note(_place(logs_root / MANIFEST_NAME), ExecutableSurface(tuple(recorded)), is_synced=is_synced)


def absolute_origin(origin: Origin | None) -> Origin | None:
    """An origin that stays the same when the working directory changes or a link is turned elsewhere."""
    if origin is None or isinstance(origin, str):
        return origin
    if not isinstance(origin, os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"origin must be a path or a name, not {type(origin).__name__}", hint='origin="https://…"')
    try:
        return Path(_place(origin))
    except ValueError:  # a NUL character, with which there can be no file
        return str(origin)


def untrusted(question: TrustQuestion) -> UntrustedSource:
    """The refusal where no person can be asked."""
    digits = question.surface.hash
    shown = _shortened(question.diff) or listed_commands(question.surface.commands)
    return UntrustedSource(
        "\n".join([question.headline, *filter(None, [question.where]), *shown]),
        surface_hash=question.surface.full_hash,
        hint=f"read them (`{_reading(question.origin)}` prints them whole), then trust them: "
        f'run(trust="{digits}") or resume(…, trust="{digits}") in Python, '
        f"--trust on the command line, or {environment_variables.TRUST}={digits} where nobody can be asked",
    )


def _reading(origin: Origin) -> str:
    """The command that prints all commands of a source."""
    return shlex.join(["attractor-nb", "commands", str(origin) if isinstance(origin, Path) else "FILE"])


def _surface_of(
    graph: Graph, origin: Origin | None, recorded: Sequence[Command], *, acts_unasked: bool
) -> ExecutableSurface:
    """The surface to be trusted: nothing of the caller's own text, and in any case what the directory chooses."""
    commands = () if origin is None else executable_surface(graph, acts_unasked=acts_unasked).commands
    return ExecutableSurface((*commands, *recorded))


def _parts(surface: ExecutableSurface) -> tuple[ExecutableSurface, ExecutableSurface]:
    """The commands of the graph, and those of the run directory's manifest."""
    recorded = tuple(
        entry for entry in surface.commands if not entry.node_id and entry.attribute.startswith(OF_A_DIRECTORY)
    )
    return ExecutableSurface(surface.commands[: len(surface.commands) - len(recorded)]), ExecutableSurface(recorded)


def _is_foreign(entry: Command) -> bool:
    return not entry.node_id and entry.attribute.startswith(FOREIGN)


def _not_named(question: TrustQuestion, given: str) -> UntrustedSource:
    """The refusal of a hash that is given: a caller that pins commands wants these and no others."""
    refusal = untrusted(question)
    return UntrustedSource(
        f"trust names {given[:SHOWN_DIGITS]}, but {refusal.message}",
        surface_hash=question.surface.full_hash,
        hint=refusal.hint,
    )


def _are_commands_run(processes: Processes | None) -> bool:
    return not getattr(processes, "starts_nothing", False)


def _hashes_of_environment() -> Iterable[str]:
    found = re.split(r"[,\s]+", os.environ.get(environment_variables.TRUST, "").strip())
    for text in filter(None, found):
        if not is_hash(text):
            raise OptionError(
                f"{environment_variables.TRUST} holds {text!r}, which is not a hash of commands",
                hint=f"list hashes of at least {SHOWN_DIGITS} hexadecimal digits; "
                "`attractor-nb commands FILE` prints them",
            )
    return filter(None, found)


def _places(origin: Origin) -> list[str]:
    """Under which names answers about an origin are kept, the nearest first.

    A restart's directory is part of the run in whose directory it is, and a row's of its map.
    """
    if not isinstance(origin, Path):
        return []
    found = [_place(origin)]
    directory = origin.parent
    while origin.name in {SOURCE_NAME, MANIFEST_NAME} and _PART_NAME.match(directory.name):
        directory = directory.parent
        found.append(_place(directory / origin.name))
    return found


def _place(path: Path) -> str:
    return os.path.realpath(path)


def _note(place: str, surface: ExecutableSurface, *, is_synced: bool) -> None:
    rows = [(entry.node_id, entry.attribute, entry.text) for entry in surface.commands]
    holds_secret = any(redacted(text) != text for _, _, text in rows)
    TrustFile().remember(place, surface.full_hash, None if holds_secret else rows, is_synced=is_synced)


def _shortened(diff: Sequence[str]) -> list[str]:
    lines = [f"  {cut(line)}" for line in diff[:_DIFF_LINES]]
    return lines if len(diff) <= _DIFF_LINES else [*lines, f"  and {len(diff) - _DIFF_LINES} more lines"]
