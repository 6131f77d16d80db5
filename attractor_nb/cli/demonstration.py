"""``demo`` and ``model install``: a real pipeline on a real model, on this machine and offline."""

from __future__ import annotations

import asyncio
import sys
from importlib.resources import files
from typing import TYPE_CHECKING

from attractor_nb.backends.local_model import INSTALL_MODEL, MODEL_SIZE, check_server, find_model, install_model
from attractor_nb.cli.option_choices import BackendName, GateMode, Settings
from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.run_execution import run_pipeline
from attractor_nb.errors import OptionError
from attractor_nb.interviewers import ConsoleInterviewer
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.processes import LocalProcesses
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from pathlib import Path

DEMO_NAME = "demo.dot"
"""Package data; the same text as ``examples/demo.dot``, which a test compares."""


def demo_source() -> SourceText:
    """The pipeline of the demonstration."""
    return SourceText(files("attractor_nb.cli").joinpath(DEMO_NAME).read_text("utf-8"), DEMO_NAME)


def show_demo(*, is_simulated: bool, is_auto_approved: bool, runs_dir: Path | None, is_json: bool = False) -> ExitCode:
    """Run the demonstration; its gate is asked at a terminal and approved, with a notice, elsewhere."""
    if not is_simulated:
        _check_model()
    pipeline = Pipeline(demo_source())
    gates = GateMode.AUTO if is_auto_approved else GateMode.CONSOLE
    if not is_auto_approved and not ConsoleInterviewer().is_terminal:
        gates = GateMode.AUTO
        print("there is no terminal: the gate `review` is approved automatically", file=sys.stderr)
    if not is_simulated:
        print("the model is SmolLM2 with 135 million parameters, offline, on this machine", file=sys.stderr)
    settings = Settings(
        backend=None if is_simulated else BackendName.LOCAL,
        is_simulated=is_simulated,
        gates=gates,
        is_verbose=True,
        is_json=is_json,
    )
    return run_pipeline(pipeline, settings, {"runs_dir": runs_dir})


def _check_model() -> None:
    try:
        check_server()
        find_model()
    except OptionError as error:
        hint = f"{error.hint}; or without a model: attractor-nb demo --simulate"
        raise OptionError(error.message, hint=hint) from None


def install_local_model(*, is_json: bool = False) -> ExitCode:
    """Install the model file, saying its size first; the engine must be installed before anything is downloaded."""
    try:
        check_server()
    except OptionError as error:
        hint = f"{error.hint}; then: {INSTALL_MODEL}"
        raise OptionError(f"{error.message}; nothing was downloaded", hint=hint) from None

    def announce(text: str) -> None:
        print(text, file=sys.stderr)

    announce(f"SmolLM2-135M-Instruct: {MODEL_SIZE}, Apache-2.0")
    path = asyncio.run(install_model(LocalProcesses(), announce))
    if is_json:
        print_json({"path": str(path)})
    else:
        print(path)
    return ExitCode.SUCCESS
