"""Runs on a server of ours: begun, gone on with, forked, stopped and answered from the command line."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.account import signed_here
from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.option_choices import ANSWERED_BY
from attractor_nb.cli.remote_runs.server_client import Client, ServerAddress, as_mapping
from attractor_nb.cli.remote_runs.server_events import follow_events, status_at_rest
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.run_settings import Settings
from attractor_nb.cli.source_inputs import STDIN, read_params, read_prompt, read_text
from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.vocabulary.option_meanings import FLAGS
from attractor_nb.runtime.prepare.text_sources import with_text_files
from attractor_nb.views.columns import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.cli.option_choices import GivenAnswer, GraphChange, OnInterrupted

NOT_OF_A_SERVER: Final = {
    "is_simulated": "--simulate",
    "is_trusted": "--trust",
    "gates": "--gates",
    "cache": "--cache",
    "is_verbose": "--verbose",
}
"""What a server is not asked for, by its name in the settings."""
_HOW_TO_TRUST: Final = "allow its commands by their hash: --trust-hash HASH"


def submit_file(file: str, address: ServerAddress, settings: Settings, *, params: Mapping[str, Any]) -> ExitCode:
    """Have a server run the pipeline of a file, and print where it is to be found.

    Args:
        file: The file, or ``-`` for stdin.
        address: The server.
        settings: Backend, bounds and trust.
        params: Values for the context.
    """
    source = read_text(file)
    if file != STDIN:  # the server has no file of ours
        source = with_text_files(source, Path(file))
    wanted = {"params": dict(params)}
    client = Client(address)
    answer = client.post(body={"source": source.text, **_with_settings(settings, wanted)})
    return _show_begun(client, answer, settings)


def resume_on(
    address: ServerAddress,
    settings: Settings,
    *,
    on_graph_change: GraphChange,
    on_interrupted: OnInterrupted | None,
    rewind_to: str | None,
    visit: int | None,
) -> ExitCode:
    """Have a server go on with a run, or go back in it; it is not waited for."""
    _refuse_what_is_local(settings)
    wanted = {
        "on_graph_change": on_graph_change.value,
        "on_interrupted": on_interrupted.value if on_interrupted else None,
        "rewind_to": rewind_to,
        "visit": visit,
    }
    client = Client(address)
    answer = client.post(address.run_id, "resume", body=_with_settings(settings, wanted))
    return _show_begun(client, answer, settings)


def fork_on(
    address: ServerAddress,
    node: str,
    settings: Settings,
    *,
    visit: int | None,
    values: Iterable[str],
    prompt: Path | None,
) -> ExitCode:
    """Have a server begin a run that goes another way; it is not waited for."""
    _refuse_what_is_local(settings)
    wanted = {
        "node": node,
        "visit": visit,
        "context": read_params(values, "--set"),
        "prompt": None if prompt is None else read_prompt(prompt),
    }
    client = Client(address)
    answer = client.post(address.run_id, "fork", body=_with_settings(settings, wanted))
    return _show_begun(client, answer, settings)


def cancel_on(address: ServerAddress, *, is_json: bool) -> ExitCode:
    """Have a server stop a run, and wait until it stands: what is committed stays, and it can be resumed."""
    client = Client(address)
    client.post(address.run_id, "cancel", body={})
    for _ in follow_events(client, address.run_id):
        pass  # it has stopped when nothing follows
    known = status_at_rest(client, address.run_id)
    status = one_line(str(known.get("status", "")))
    url = client.url_of(address.run_id)
    if is_json:
        print_json({"id": address.run_id, "url": url, "status": status})
        return ExitCode.SUCCESS
    print(f"{address.run_id} is {status}")
    if known.get("is_resumable"):
        print(f"Continue with `attractor-nb resume {url}`", file=sys.stderr)
    return ExitCode.SUCCESS


def answer_on(address: ServerAddress, given: GivenAnswer, *, is_json: bool) -> ExitCode:
    """Hand in an answer at a server."""
    wanted: dict[str, Any] = {"choice": given.choice, "text": given.text, "form": dict(given.fields)}
    body = {name: value for name, value in wanted.items() if value}
    body["answered_by"] = signed_here(ANSWERED_BY)
    client = Client(address)
    answer = as_mapping(client.post(address.run_id, "questions", given.gate, "answer", body=body))
    gate = str(answer.get("stage") or given.gate)
    if is_json:
        print_json(
            {
                "gate": gate,
                "question_id": str(answer.get("question", "")),
                "answer": given.choice or given.text or None,
                "id": address.run_id,
                "url": client.url_of(address.run_id),
            }
        )
    else:
        print(f"✓ {one_line(gate)}: {one_line(given.choice or given.text) or 'filled in'}")
    return ExitCode.SUCCESS


def tell_on(address: ServerAddress, node: str | None, text: str, *, is_json: bool) -> ExitCode:
    """Tell a run on a server something."""
    body = {"text": text, "given_by": ANSWERED_BY, **({"node": node} if node else {})}
    client = Client(address)
    taken = as_mapping(client.post(address.run_id, "messages", body=body))
    if is_json:
        told = {name: taken.get(name) for name in ("node", "stage", "reach", "words")}
        print_json({"text": text, **told, "id": address.run_id, "url": client.url_of(address.run_id)})
    else:
        print(f"✓ {one_line(str(taken.get('words', '')))}")
    return ExitCode.SUCCESS


def _with_settings(settings: Settings, own: Mapping[str, Any]) -> dict[str, Any]:
    """A request's body: what was said, and nothing of what was not."""
    wanted = {
        **own,
        "backend": settings.backend.value if settings.backend else None,
        "trust": settings.trust_hash,
        **{name: value for name, value in settings.options.items() if FLAGS[name].is_remote},
    }
    return {name: value for name, value in wanted.items() if value not in (None, "", {})}


def _refuse_what_is_local(settings: Settings) -> None:
    """Refuse options that a server would not hear of, in place of passing them over."""
    usual = Settings()
    for each in fields(Settings):
        option = NOT_OF_A_SERVER.get(each.name)
        if option is not None and getattr(settings, each.name) != getattr(usual, each.name):
            hint = _HOW_TO_TRUST if each.name == "is_trusted" else "remove it"
            raise _local(option, hint)
    for name, value in settings.options.items():
        if not FLAGS[name].is_remote and value != FLAGS[name].default:
            raise _local(f"--{name.replace('_', '-')}")


def _local(option: str, hint: str = "remove it") -> OptionError:
    return OptionError(f"{option} applies to local runs, and this run is on a server", hint=hint)


def _show_begun(client: Client, answer: object, settings: Settings) -> ExitCode:
    """Say where the run is that a server has begun, or goes on with."""
    plain = as_mapping(answer)
    run_id = one_line(str(plain.get("id", "")))
    if not run_id:
        raise RunError(f"the server at {client.address.url} did not return the id of the run")
    url = client.url_of(run_id)
    if settings.is_json:
        print_json({"id": run_id, "url": url, "status": str(plain.get("status", ""))})
        return ExitCode.SUCCESS
    print(f"{run_id}\n{url}")
    if not settings.is_quiet:
        print(f"watch it with `attractor-nb watch {url}`", file=sys.stderr)
    return ExitCode.SUCCESS
