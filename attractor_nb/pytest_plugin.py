"""The fixture ``cassette`` for tests of pipelines, and the option ``--cassette-mode`` (docs/cassettes.md).

Installed with the package (``pytest11``). It imports nothing of this package: every pytest session loads it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MODES: Final = ("replay", "auto", "record")
DIRECTORY: Final = "cassettes"
_ODD: Final = re.compile(r"[^A-Za-z0-9_.=-]+")


class CassetteFile(os.PathLike[str]):
    """The recording of a test: a path that knows its mode, for ``run(cassette=…)`` and ``check(cassette=…)``.

    Attributes:
        mode: ``replay``, ``auto`` or ``record``.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        self.mode = mode

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"CassetteFile({str(self.path)!r}, {self.mode!r})"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--cassette-mode``."""
    parser.getgroup("attractor_nb").addoption(
        "--cassette-mode",
        choices=MODES,
        default=None,
        help="replay: make no calls; record: make and record all calls; auto: record missing calls. "
        "Default: replay where CI is set, else auto.",
    )


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> CassetteFile:
    """The recording of this test: ``cassettes/<module>.<test>.json`` beside its file."""
    node: Any = request.node
    mode: str | None = request.config.getoption("--cassette-mode")
    name = f"{node.path.stem}.{node.name}"
    file = f"{_ODD.sub('-', name).strip('-')}.json"
    return CassetteFile(node.path.parent / DIRECTORY / file, mode or _default_mode())


def _default_mode() -> str:
    from attractor_nb.model.vocabulary import environment_variables  # noqa: PLC0415 - pytest starts without the package

    return "replay" if os.environ.get(environment_variables.CI) else "auto"
