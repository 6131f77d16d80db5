"""The part of the fuzzed requests that a run of CI sends; `make api-fuzz` sends 20,000."""

import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import urllib3

from attractor_nb.server.operations import OPERATIONS, openapi_document

HERE = Path(__file__).resolve().parent
REQUESTS = 9 * len(OPERATIONS)  # some for each


@pytest.mark.timeout(300)
@pytest.mark.campaign
def test_a_sample_of_hostile_requests_is_answered_as_the_document_says():
    command = [sys.executable, str(HERE / "api_fuzz.py"), "--requests", str(REQUESTS), "--seed", "1"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    figures = json.loads(ended.stdout.splitlines()[-1])
    assert figures["requests"] >= REQUESTS
    assert figures["operations"] == len(OPERATIONS)
    assert {"200", "404", "422"} <= set(figures["statuses"])


@pytest.fixture
def fuzzer(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    spec = importlib.util.spec_from_file_location("api_fuzz_under_test", HERE / "api_fuzz.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("status", "media", "body", "words"),
    [
        (200, "application/json", {"questions": []}, ""),
        (500, "application/problem+json", {}, "Server error"),
        (503, "application/problem+json", {}, "Server error"),
        (418, "application/problem+json", {}, "Undocumented status code"),
        (200, "text/html", {"questions": []}, "Undocumented Content-Type"),
        (200, "application/json", {"questions": 1}, "Response violates schema"),
        (401, "application/problem+json", {"detail": "no"}, "Response violates schema"),
    ],
)
def test_a_broken_promise_is_noticed(fuzzer, status, media, body, words):
    schema = fuzzer.schemathesis.openapi.from_dict(openapi_document("0"))
    case = schema["/questions"]["GET"].Case()
    content = io.BytesIO(json.dumps(body).encode())
    raw = urllib3.HTTPResponse(content, {"Content-Type": media}, status, preload_content=False)
    asked = requests.Request("GET", "http://127.0.0.1/questions").prepare()
    response = requests.adapters.HTTPAdapter().build_response(asked, raw)
    found = fuzzer.findings_of(case, response)
    assert (words in " ".join(found)) if words else found == []
