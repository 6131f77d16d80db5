"""Whether a graph's commands may run: the question before a run, and who has answered it.

Text in the caller's own cell or call is the caller's; what was read from a file, a run directory or a
stream is not, and somebody has to trust its commands. The question is about the graph that will run,
not about the place it came from: what changes there afterwards changes nothing here.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from attractor_nb.decisions.planning.executable_surface import (
    SHOWN_DIGITS,
    Command,
    ExecutableSurface,
    executable_surface,
    is_hash,
)
from attractor_nb.errors import OptionError, UntrustedSource
from attractor_nb.model.vocabulary.isolation import IN_PLACE
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.trust_file import TrustFile
from attractor_nb.views.shown_commands import command_count, command_diff, cut, listed_commands, spelled_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import Processes
    from attractor_nb.runtime.prepare.run_options import RunOptions

Origin = str | Path
"""Where a text came from: a file, whose answers are remembered, or a stream that only has a name."""
TRUST_VARIABLE: Final = "ATTRACTOR_TRUST"
_PART_NAME: Final = re.compile(r"(restart|row)-[0-9]+\Z")
_DIFF_LINES: Final = 60


class TrustQuestion(Struct, frozen=True):
    """Commands from elsewhere that are not trusted yet.

    Attributes:
        surface: The commands.
        origin: Where they came from.
        before: The commands that were trusted there before; None when there were none, or when they
            were too long to be kept or held a secret.
        was_trusted: Whether others were trusted there before.
        place: Where they would run, in words.
    """

    surface: ExecutableSurface
    origin: Origin
    before: tuple[Command, ...] | None = None
    was_trusted: bool = False
    place: str = ""

    @property
    def diff(self) -> list[str]:
        """What changed since somebody trusted it, as a unified diff; empty when that cannot be told."""
        return command_diff(self.before, self.surface.commands) if self.before is not None else []

    @property
    def headline(self) -> str:
        """What is asked about, in one sentence."""
        what = f"{command_count(self.surface.commands)} (hash {self.surface.hash})"
        name = spelled_out(str(self.origin))
        if self.was_trusted:
            return f"{name} runs {what}, and they are not those that were trusted before"
        return f"{name} runs {what} that nobody has trusted yet"

    @property
    def where(self) -> str:
        """Where they would run, as a line of its own."""
        return f"commands run in {spelled_out(self.place)}" if self.place else ""

    def remember(self) -> None:
        """Note that a person has read these commands and let them run; a mere name has no memory."""
        for place in _places(self.origin):
            _note(place, self.surface, is_synced=True)
            break


def trust_question(
    graph: Graph, origin: Origin | None, logs_root: Path | None = None, *, place: str = ""
) -> TrustQuestion | None:
    """The question that stands open before a graph may run, or None.

    It is answered by the origin (None: the caller's own text), by ``ATTRACTOR_TRUST``, by a person who
    let the same commands of the same file run before, or, for a run directory that this user began
    here, by that beginning.

    Args:
        graph: The graph as it will run.
        origin: Where it came from.
        logs_root: The run directory that shall go on, if any.
        place: Where its commands would run, as ``where_commands_run`` says.

    Raises:
        OptionError: ``ATTRACTOR_TRUST`` holds something else than hashes.
    """
    if origin is None:
        return None
    surface = executable_surface(graph)
    if not surface or any(surface.is_named_by(text) for text in _hashes_of_environment()):
        return None
    places = [*_places(origin), *(_places(logs_root / SOURCE_NAME) if logs_root else ())]
    known = [found for place in places if (found := TrustFile().recall(place))]
    if any(found.full_hash == surface.full_hash for found in known):
        return None
    before = next((found.commands for found in known if found.commands is not None), None)
    commands = None if before is None else tuple(Command(*row) for row in before)
    return TrustQuestion(surface, origin, commands, was_trusted=bool(known), place=place)


def where_commands_run(graph: Graph, isolation: str | None, workdir: str | Path | None) -> str:
    """Where the commands of a run would run, in words (ruling 41)."""
    own = isolation or graph.get("isolation", str, "") or IN_PLACE
    if own != IN_PLACE:
        return f"a {own} of the run's own"
    return str(here() if workdir is None else Path(workdir).absolute())


def check_trust(graph: Graph, origin: Origin | None, options: RunOptions, logs_root: Path | None = None) -> None:
    """Refuse to run commands that are not trusted. To be called before anything is made on the disk.

    Raises:
        UntrustedSource: Shows the commands, and the hash by which they are trusted.
    """
    if origin is None or options.trust is True or not _are_commands_run(options.processes):
        return
    place = "" if options.executor else where_commands_run(graph, options.isolation, options.workdir)
    if isinstance(options.trust, str):
        _check_hash(graph, origin, options.trust, place)
    elif question := trust_question(graph, origin, logs_root, place=place):
        raise untrusted(question)


def note_run(graph: Graph, logs_root: Path, options: RunOptions) -> None:
    """Note what a run that begins here runs, so that its directory can go on without being asked about.

    A rehearsal is not noted: what it did not run was not trusted.
    """
    if _are_commands_run(options.processes) and (surface := executable_surface(graph)):
        _note(_place(logs_root / SOURCE_NAME), surface, is_synced=options.durability == "full")


def absolute_origin(origin: Origin | None) -> Origin | None:
    """An origin that stays the same when the working directory changes or a link is turned elsewhere.

    Raises:
        OptionError: It is neither a name nor a path.
    """
    if origin is None or isinstance(origin, str):
        return origin
    if not isinstance(origin, os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"origin must be a path or a name, not {type(origin).__name__}", hint='origin="https://…"')
    try:
        return Path(_place(origin))
    except ValueError:  # a NUL character, with which there can be no file
        return str(origin)


def untrusted(question: TrustQuestion) -> UntrustedSource:
    """The refusal of a question that nobody can be asked."""
    digits = question.surface.hash
    shown = _shortened(question.diff) or listed_commands(question.surface.commands)
    return UntrustedSource(
        "\n".join([question.headline, *filter(None, [question.where]), *shown]),
        surface_hash=question.surface.full_hash,
        hint=f"read them (`{_reading(question.origin)}` prints them whole), then trust them: "
        f'run(trust="{digits}") or resume(…, trust="{digits}") in Python, '
        f"--trust on the command line, or {TRUST_VARIABLE}={digits} where nobody can be asked",
    )


def _reading(origin: Origin) -> str:
    """The command that prints all commands of a source."""
    return shlex.join(["attractor-nb", "commands", str(origin) if isinstance(origin, Path) else "FILE"])


def _check_hash(graph: Graph, origin: Origin, given: str, place: str) -> None:
    """A hash that is given decides alone: whoever pins commands wants these and no others."""
    surface = executable_surface(graph)
    if not surface or surface.is_named_by(given):
        return
    refusal = untrusted(TrustQuestion(surface, origin, place=place))
    raise UntrustedSource(
        f"trust names {given[:SHOWN_DIGITS]}, but {refusal.message}", surface_hash=surface.full_hash, hint=refusal.hint
    )


def _are_commands_run(processes: Processes | None) -> bool:
    return not getattr(processes, "starts_nothing", False)


def _hashes_of_environment() -> Iterable[str]:
    found = re.split(r"[,\s]+", os.environ.get(TRUST_VARIABLE, "").strip())
    for text in filter(None, found):
        if not is_hash(text):
            raise OptionError(
                f"{TRUST_VARIABLE} holds {text!r}, which is not a hash of commands",
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
    while origin.name == SOURCE_NAME and _PART_NAME.match(directory.name):
        directory = directory.parent
        found.append(_place(directory / SOURCE_NAME))
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
