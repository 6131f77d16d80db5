"""``cassette=``: the calls of a run recorded or replayed (docs/cassettes.md)."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from attractor_nb import cassettes
from attractor_nb.backends import AGENTS, NAMED, UNINSTALLED, resolve_backend
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.interviewers import RefusingInterviewer
from attractor_nb.runtime.begin import name_of_backend
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.disk import Disk

if TYPE_CHECKING:
    from attractor_nb.cassettes import CassetteReport, Tape
    from attractor_nb.protocols import CodergenBackend, Interviewer
    from attractor_nb.runtime.plugs.executor import Plugs
    from attractor_nb.runtime.prepare.run_options import RunOptions


def with_cassette(options: RunOptions, *, is_resume: bool = False) -> tuple[RunOptions, Tape | None]:
    """The options of a run with a cassette, and its tape; the same and None for a run without.

    A replay starts no command, makes no backend and has no workers. Without ``backend=`` the recorded one
    is taken. The rest of a run that goes on is added to what was recorded.
    """
    if options.cassette is None:
        return options, None
    mode = options.cassette_mode or getattr(options.cassette, "mode", None) or cassettes.AUTO
    tape = cassettes.Tape.of_file(
        as_path(options.cassette, "cassette"),
        cassettes.AUTO if is_resume and mode == cassettes.RECORD else mode,
        options.disk or Disk(),
    )
    if options.backend is None and tape.mode == cassettes.AUTO and tape.backend in AGENTS:
        raise OptionError(
            f"{tape.path} names the agent {tape.backend}, which would be started for what it does not have",
            hint=f'say so: backend="{tape.backend}", or replay what is there: cassette_mode="replay"',
        )
    if options.backend is None and tape.mode != cassettes.RECORD and tape.backend in NAMED:
        options = replace(options, backend=tape.backend)
    if tape.mode == cassettes.AUTO and options.backend is None and tape.backend:
        raise OptionError(
            f"{tape.path} was recorded with a backend of somebody's own: {tape.backend}",
            hint='give it again, backend=…, or replay what is there: cassette_mode="replay"',
        )
    if tape.is_replay:
        options = replace(options, processes=cassettes.NoProcesses(), executor=None, cassette_mode=tape.mode)
    elif not tape.backend or tape.mode == cassettes.RECORD:
        tape.name_backend(name_of_backend(options.backend))
    return options, tape


def answering_backend(options: RunOptions, tape: Tape | None) -> CodergenBackend:
    """What answers prompts: the backend, opened only if a call needs it, or by a worker; in a replay nobody."""
    spec = options.backend
    if tape is None or tape.mode == cassettes.RECORD or options.executor is not None:
        return resolve_backend(spec)
    if tape.mode == cassettes.AUTO:
        return cassettes.OnDemandBackend(resolve_backend(spec))
    if spec is None:
        return cassettes.AbsentBackend(None)
    try:
        return cassettes.AbsentBackend(resolve_backend(spec))
    except OptionError:
        if isinstance(spec, str) and spec in NAMED:
            describing = UNINSTALLED.get(spec)  # it is not installed here, and nothing of it is called
            return cassettes.AbsentBackend(describing() if describing else None)
        raise


def on_tape(plugs: Plugs, answering: CodergenBackend, tape: Tape | None) -> Plugs:
    """What stands behind model and tool stages, with the tape before it."""
    if tape is None:
        return plugs
    return structs.replace(
        plugs,
        backend=cassettes.RecordedBackend(tape, plugs.backend, cassettes.DescribedCalls.of(answering)),
        processes=cassettes.RecordedProcesses(tape, plugs.processes),
    )


def people_behind(interviewer: Interviewer, tape: Tape | None) -> Interviewer:
    """Who is asked behind the gates: in a replay nobody."""
    if tape is None:
        return interviewer
    return cassettes.PresetInterviewer(RefusingInterviewer() if tape.is_replay else interviewer)


def people_before(gates: Interviewer, tape: Tape | None) -> Interviewer:
    """Whom stages ask."""
    return gates if tape is None else cassettes.RecordedPeople(tape, gates)


class Recording(Struct):
    """The end of a recording, for whoever ends the run."""

    tape: Tape

    def end(self, status: str) -> CassetteReport:
        """Write what is to be written: a run that was interrupted replaces no cassette."""
        try:
            return self.tape.end(is_whole=status != "interrupted")
        except (OptionError, StorageError) as error:
            raise StorageError(
                f"the run has ended, and its cassette was not written: {error.message}",
                path=str(self.tape.path),
                hint=error.hint,
            ) from None

    def keep(self) -> None:
        """Keep what was recorded of a run that broke off, as far as the disk takes it."""
        with contextlib.suppress(OptionError, StorageError):
            self.tape.end(is_whole=False)
