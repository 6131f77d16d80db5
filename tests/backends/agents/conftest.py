"""Stub agents on the PATH, which speak as the real ones are documented to."""

import json
import os
from pathlib import Path

import pytest

STUBS = Path(__file__).with_name("stubs")


class Stubs:
    """Says what the stubs shall do, and knows what they were asked."""

    secret = "^~s3cret" + "value0123456789"
    """A value that is secret when the environment says so; written in the mode ``secret``."""
    key = "sk-ant-" + "api03-0123456789abcdefABCDEF"
    """Secret by its form."""

    def __init__(self, monkeypatch, log):
        self._monkeypatch = monkeypatch
        self._log = log
        # Backwards: no command inherits a value that holds a secret (ruling 43).
        monkeypatch.setenv("STUB_PLANTED", f"{self.secret} {self.key}"[::-1])

    def do(self, mode):
        self._monkeypatch.setenv("STUB_MODE", mode)

    @property
    def records(self):
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    @property
    def calls(self):
        return [record for record in self.records if "task" in record]

    @property
    def pids(self):
        return [record["pid"] for record in self.calls] + [
            record["child"] for record in self.records if "child" in record
        ]


@pytest.fixture
def stubs(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{STUBS}{os.pathsep}{os.environ['PATH']}")
    log = tmp_path / "stubs.jsonl"
    monkeypatch.setenv("STUB_LOG", str(log))
    monkeypatch.delenv("STUB_MODE", raising=False)
    return Stubs(monkeypatch, log)


@pytest.fixture(params=["claude", *(pytest.param(name, marks=pytest.mark.campaign) for name in ("codex", "gemini"))])
def agent(request):
    """Each agent; `make test` runs the others in `test_agent_runs` alone."""
    return request.param
