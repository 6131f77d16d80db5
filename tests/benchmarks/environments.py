"""The peers, each in an environment of its own under ``.bench-envs/``, so that none changes another."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

from measuring import ENVIRONMENTS, MissingPeer

PACKAGES = {
    "langgraph": ("langgraph", "langgraph-checkpoint-sqlite"),
    "langgraph-llm": ("langgraph", "langgraph-checkpoint-sqlite", "pydantic-ai-slim"),
    "burr": ("apache-burr[tracking]",),
    "pydot": ("pydot",),
    "py-attractor": ("py-attractor",),
}
NOT_ON_A_REGISTRY = {"sjk": "samueljklee/attractor, a public repository that no package registry has"}


@cache
def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, which is made if need be.

    Raises:
        MissingPeer: It cannot be installed; says why.
    """
    if peer in NOT_ON_A_REGISTRY:
        raise MissingPeer(f"missing: {NOT_ON_A_REGISTRY[peer]}")
    place = ENVIRONMENTS / peer
    python = place / "bin" / "python"
    installed = place / ".installed"
    if not installed.exists():
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(place))
        _uv("pip", "install", "--quiet", "--python", str(python), *PACKAGES[peer])
        installed.touch()
    return str(python)


@cache
def versions(peer: str) -> str:
    """Names and versions of a peer's packages."""
    names = [package.partition("[")[0] for package in PACKAGES[peer]]
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    done = subprocess.run([python_of(peer), "-c", code, *names], capture_output=True, text=True, check=True)
    return ", ".join(f"{name} {number}" for name, number in zip(names, done.stdout.split(), strict=True))


def _uv(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "uv", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingPeer(f"missing: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
