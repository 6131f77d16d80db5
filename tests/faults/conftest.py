"""The size of a campaign, its measurements, and the line that each test protects."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

import attractor_nb
from attractor_nb import redact_also
from attractor_nb.redaction.redactor import REDACTOR

T = TypeVar("T")
SCALES = ("sample", "full")
collect_ignore = ["workers", "prove.py", "report.py", "simulate.py"]
"""Programs of their own: not to be imported for doctests."""
WORKERS = Path(__file__).with_name("workers")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "protects(path, snippet, instead): without that snippet of that file the test fails (make prove)"
    )
    mutated = os.environ.get("ATTRACTOR_PROVED_PACKAGE")
    if mutated and not attractor_nb.__file__.startswith(mutated):
        pytest.exit(f"make prove means to test {mutated}, and {attractor_nb.__file__} was imported", 3)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that a campaign does not end with a wait for one of them."""
    if os.environ.get("ATTRACTOR_CAMPAIGN") == "full":
        items.sort(key=_seconds_allowed, reverse=True)


def _seconds_allowed(item: pytest.Item) -> float:
    own = item.get_closest_marker("timeout")
    return own.args[0] if own else 0.0


@dataclass(frozen=True, slots=True)
class Campaign:
    """The part of a campaign that is run: a sample of it, as in CI, or all (``make faults``)."""

    scale: str

    @property
    def is_full(self) -> bool:
        return self.scale == "full"

    def count(self, *, sample: int, full: int) -> int:
        """The number of repetitions."""
        return full if self.is_full else sample

    def pick(self, cases: Sequence[T], *, sample: int, seed: int = 0) -> list[T]:
        """All cases; of a sample the first, the last, and others drawn by a fixed seed, in their order."""
        if self.is_full or len(cases) <= sample:
            return list(cases)
        places = {0, len(cases) - 1}
        rest = [place for place in range(len(cases)) if place not in places]
        places.update(random.Random(seed).sample(rest, sample - len(places)))
        return [cases[place] for place in sorted(places)]


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    scale = os.environ.get("ATTRACTOR_CAMPAIGN", "sample")
    assert scale in SCALES, f"ATTRACTOR_CAMPAIGN is one of {SCALES}"
    return Campaign(scale)


class Figures:
    """The measurements of a campaign, for the table of docs/campaigns.md."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def record(self, fault: int, subject: str, figure: str, **more: Any) -> None:
        """Keep one figure.

        Args:
            fault: Row of the fault list, 1 to 19; 0 for what belongs to none.
            subject: What was done, in a few words: the same in every run.
            figure: What came of it, with its numbers.
            **more: Further values for a program that reads them.
        """
        print(f"fault {fault}: {subject}: {figure}")
        if self._path is not None:
            test = os.environ["PYTEST_CURRENT_TEST"].partition("[")[0].removesuffix(" (call)")
            scale = os.environ.get("ATTRACTOR_CAMPAIGN", "sample")
            facts = {"fault": fault, "subject": subject, "figure": figure, "test": test, "scale": scale}
            line = json.dumps({**facts, **more})
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


@pytest.fixture(scope="session")
def figures() -> Figures:
    path = os.environ.get("ATTRACTOR_FIGURES")
    return Figures(Path(path) if path else None)


class KillWorker:
    """The worker of the kill campaign: takes a case, gives its verdict (``workers/kill_worker.py``)."""

    def __init__(self, library: str, script: str = "kill_worker.py") -> None:
        self._place = Path(tempfile.mkdtemp(prefix="attractor-kills-"))
        self._place.chmod(0o755)  # other users get as far as to the runs; pytest's own folders are private
        environment = {**os.environ, "CAMPAIGN_PLACE": str(self._place)}
        if library:
            environment.update(CAMPAIGN_LIBRARY=library, LD_PRELOAD=library)
        self._process = subprocess.Popen(
            [sys.executable, str(WORKERS / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def judge(self, graph: str, *faults: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The end of a run that these faults hit, one life after the other."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"graph": graph, "faults": faults, **more}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, f"the worker ended with {self._process.wait()}"
        return json.loads(answer)

    def close(self) -> None:
        """End the worker."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
        shutil.rmtree(self._place, ignore_errors=True)


@pytest.fixture
def kill_worker() -> Iterator[KillWorker]:
    """A worker without the preloaded library."""
    worker = KillWorker("")
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def interrupt_workers() -> Iterator[list[KillWorker]]:
    """Two workers whose runs are interrupted in place of killed (``workers/interrupt_worker.py``)."""
    workers = [KillWorker("", "interrupt_worker.py") for _ in range(2)]
    yield workers
    for worker in workers:
        worker.close()


@pytest.fixture(scope="session")
def killer_library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that kills at an operation (``workers/killer.c``), compiled."""
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler: .ci/system-packages installs one")
    library = tmp_path_factory.mktemp("killer") / "killer.so"
    options = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([compiler, *options, str(WORKERS / "killer.c"), "-ldl"], check=True)
    return str(library)


@pytest.fixture
def preloaded_worker(killer_library: str) -> Iterator[KillWorker]:
    """A worker with the preloaded library."""
    worker = KillWorker(killer_library)
    yield worker
    worker.close()


@pytest.fixture
def ask_worker() -> Callable[..., Any]:
    """Gives what a script of ``workers`` prints, as JSON: its name, the folder that it works in, more words."""

    def ask(script: str, *words: object, folder: Path, kills: Sequence[int] = ()) -> Any:
        folder.mkdir()
        command = [sys.executable, str(WORKERS / script), *map(str, (*words, folder, *kills))]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=ASKED_SECONDS, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        return json.loads(ended.stdout)

    return ask


ASKED_SECONDS = 110
WINDOW = 12
"""A piece of a key of this many characters counts as the key."""
WORD = string.ascii_letters + string.digits
CAPITAL = string.ascii_uppercase + string.digits


def drawn(count, alphabet=WORD):
    """Random characters, with a digit: made when the test runs, so that no scanner finds a key here."""
    return "".join(random.choices(alphabet, k=count - 1)) + "7"


@dataclass(frozen=True)
class Planted:
    """Keys by name, and the search for them."""

    keys: dict

    def __getitem__(self, name):
        return self.keys[name]

    def found_in(self, sinks):
        """Each key of which a piece is in a sink, as ``key in sink``."""
        hits = []
        for name, key in self.keys.items():
            for form in (key, json.dumps(key)[1:-1], base64.b64encode(key.encode()).decode()[:-4]):
                secret = form.removeprefix("github_pat_").removeprefix("-----BEGIN RSA PRIVATE KEY-----")
                secret = secret.removesuffix("-----END RSA PRIVATE KEY-----")
                pieces = [secret[at : at + WINDOW] for at in range(len(secret) - WINDOW + 1)]
                hits += [f"{name} in {sink}" for sink, text in sinks if any(piece in text for piece in pieces)]
        return sorted(set(hits))

    @staticmethod
    def files_below(directory):
        """All files of a directory, as names and texts."""
        return [
            (str(path.relative_to(directory)), path.read_bytes().decode("latin-1"))
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        ]


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.setattr(REDACTOR, "_values", dict(REDACTOR._values))  # nothing is learnt for other tests
    keys = {
        "openai": "sk-" + drawn(48),
        "anthropic": f"sk-ant-api03-{drawn(60)}-{drawn(30)}AA",
        "aws": "AKIA" + drawn(16, CAPITAL),
        "github": "ghp_" + drawn(36),
        "github_fine": f"github_pat_{drawn(22)}_{drawn(59)}",
        "google": "AIza" + drawn(35),
        "slack": f"xoxb-{drawn(12, string.digits)}-{drawn(24)}",
        "hugging_face": "hf_" + drawn(34),
        "gitlab": "glpat-" + drawn(20),
        "token": f"eyJ{drawn(30)}.eyJ{drawn(60)}.{drawn(43)}",
        "pem": "-----BEGIN RSA PRIVATE KEY-----\n"
        + "\n".join(drawn(64) for _ in range(4))
        + "\n-----END RSA PRIVATE KEY-----",
        "environment": drawn(40),
        "quoted": f'{drawn(14)}"\\{drawn(14)}',
        "told": "^~" + drawn(28),
    }
    monkeypatch.setenv("PLANTED_API_KEY", keys["environment"])
    monkeypatch.setenv("PLANTED_DB_PASSWORD", keys["quoted"])
    redact_also(keys["told"])
    yield Planted(keys)
    monkeypatch.undo()
    REDACTOR._compile()
