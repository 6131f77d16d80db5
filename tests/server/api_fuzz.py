"""Requests that no client would send, to a real server, judged by its own OpenAPI document.

``python tests/server/api_fuzz.py --requests 20000`` (``make api-fuzz``). The server is a process of its own, with
runs of every kind under its root: ended, failed, restarted, waiting, damaged. Schemathesis makes requests that fit
the document and requests that do not; a part of them is steered to what is there, or broken once more. No answer
may be a 5xx, have a status or a media type that the document does not name, or a body that does not fit; what
violates the document must not be taken. The last line is a JSON object with the figures; exit status 1 if anything
was found.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import requests
import schemathesis
from api_fuzz_stock import Stock
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

TOKEN = "t" * 43
WORKER = Path(__file__).parent / "workers" / "served.py"
ALWAYS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SEGMENT = 2_500
"""Requests to one server: then its root has so many runs that lists take long."""
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
PARTS = ("path_parameters", "query", "headers", "body")
STEERED, BROKEN = 3, 0.15
"""Repetitions of a case that are led to the stock; and the number of those that are broken once more."""
TIMEOUT = 60
"""Seconds without a byte of an answer: that would be a finding, too."""


class Counting(requests.Session):
    """A session that counts what it sends and how it is answered."""

    def __init__(self):
        super().__init__()
        self.trust_env = False
        self.headers["Authorization"] = f"Bearer {TOKEN}"
        self.count = 0
        self.statuses = collections.Counter()

    def send(self, request, **more):
        self.count += 1
        answer = super().send(request, **more)
        self.statuses[answer.status_code] += 1
        return answer


def findings_of(case, response, *, is_as_made=True) -> list[str]:
    """The fault of a response; only to what was sent as it was made, the violation of it is known."""
    is_taken = response.status_code < 400
    try:
        case.validate_response(response, checks=[*ALWAYS, *[negative_data_rejection] * (is_as_made and is_taken)])
    except FailureGroup as group:
        return [f"{failure.title}: {str(failure)[:600]}" for failure in group.exceptions]
    return []


class Segment:
    """The requests to one server."""

    def __init__(self, base, stock, session):
        self.stock = stock
        self.session = session
        self.base = base
        self.findings = {}
        self.operations = collections.Counter()
        document = stock.get("/openapi.json")
        del document["security"]  # the tests' matrix is for that; here every request shows the token
        self.schema = schemathesis.openapi.from_dict(document)
        self.all = [found.ok() for found in self.schema.get_all_operations()]

    def run(self, count, number):
        """Send so many requests, the same for the same number."""
        limit, turn = self.session.count + count, 0
        most = max(1, min(8, count // (len(self.all) * len(MODES) * (1 + STEERED))))
        while self.session.count < limit:
            for operation in self.all:
                self.stock.refill()
                for mode in MODES:
                    self._run(operation, mode, most, number * 1_000_003 + turn)
                    turn += 1
                    if self.session.count >= limit:
                        return

    def _run(self, operation, mode, examples, number):
        cases = operation.as_strategy(generation_mode=mode)

        @seed(number)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, dice=st.integers(0, 2**64))
        def send(case, dice):
            self._send(case, random.Random(dice))

        with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with what has no parameter
            send()

    def _send(self, case, dice):
        """Send a case as it was made, and then led to what is there, again and again."""
        made = {name: copy.deepcopy(getattr(case, name)) for name in PARTS}
        for number in range(1 + STEERED):
            for name, value in made.items():
                setattr(case, name, copy.deepcopy(value))
            if number:
                self.stock.steer(case, dice)
            more = self.stock.broken(case, dice) if number and dice.random() < BROKEN else {}
            self._send_once(case, more, is_as_made=not number)

    def _send_once(self, case, more, *, is_as_made):
        sent = {**more, "headers": {**more.get("headers", {}), "Authorization": f"Bearer {TOKEN}"}}
        self.operations[case.operation.label] += 1
        try:
            response = case.call(base_url=self.base, session=self.session, timeout=TIMEOUT, **sent)
        except requests.RequestException as error:
            self._note(case, [f"no answer: {type(error).__name__}: {error}"], None)
            return
        self._note(case, findings_of(case, response, is_as_made=is_as_made), response)

    def _note(self, case, found, response):
        for words in found:
            key = f"{case.operation.label}: {words.splitlines()[0]}"
            if key not in self.findings:
                told = "" if response is None else f"{response.status_code} {response.text[:600]}"
                self.findings[key] = f"{words}\n  asked: {case.as_curl_command()[:1500]}\n  told: {told}"


@contextmanager
def server(place: Path) -> Iterator[str]:
    """A server over a root of its own, and its address."""
    root = place / "runs"
    command = [sys.executable, str(WORKER), str(root), TOKEN]
    with (
        (place / "log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=place) as process,
    ):
        try:
            line = process.stdout.readline().strip()
            assert line, (place / "log").read_text()
            yield f"http://127.0.0.1:{urlsplit(line).port}"
        finally:
            process.kill()


def campaign(count: int, number: int) -> dict:
    """Send so many requests; the figures."""
    statuses, operations, findings = collections.Counter(), collections.Counter(), {}
    began, sent = time.monotonic(), 0
    while sent < count:
        place = Path(tempfile.mkdtemp(prefix="api-fuzz-"))
        try:
            with server(place) as base, Counting() as session, Counting() as beside:
                stock = Stock(base, place / "runs", beside)
                stock.fill()
                segment = Segment(base, stock, session)
                segment.run(min(SEGMENT, count - sent), number + sent)
                sent += session.count
                statuses += session.statuses
                operations += segment.operations
                findings |= segment.findings
                print(f"{sent} requests, {len(findings)} findings", file=sys.stderr, flush=True)
            if log := (place / "log").read_text("utf-8", "replace"):
                findings["the server's log"] = log[-3000:]
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return {
        "requests": sent,
        "operations": len(operations),
        "least": min(operations.values()),
        "statuses": {str(status): statuses[status] for status in sorted(statuses)},
        "seconds": round(time.monotonic() - began),
        "findings": findings,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given_options = parser.parse_args()
    figures = campaign(given_options.requests, given_options.seed)
    for key, words in figures.pop("findings").items():
        print(f"FOUND {key}\n  {words}\n", file=sys.stderr)
        figures["found"] = figures.get("found", 0) + 1
    print(json.dumps(figures))
    return 1 if "found" in figures else 0


if __name__ == "__main__":
    sys.exit(main())
