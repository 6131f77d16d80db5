"""Providers that are clouds: Azure has an address and a key, Vertex and Bedrock sign in by themselves."""

import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from attractor_nb import Pipeline, ProviderBackend
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.extras import install_command
from attractor_nb.model.graph import Node

KEY, GEMINI = "planted-azure-0123456789", "planted-gemini-0123456789"
SOURCE = """digraph {{ start [shape=Mdiamond]  plan [prompt=Plan, llm_model="{}"]  done [shape=Msquare]
    start -> plan -> done }}"""


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", GEMINI)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


@pytest.fixture
def serve_token():
    """Start a server that signs everybody in; its address."""
    servers = []

    def start(token):
        class Desk(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                body = json.dumps(token).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Desk))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}/token"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_azure_is_asked_at_its_address_with_its_key(serve, reply, asked, monkeypatch):
    server = serve(reply("From Azure"))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.base_url("openai"))
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    response = asked(ProviderBackend("azure:gpt-5.2"))
    assert response == "From Azure"
    assert response.usage.cost_usd > 0
    (came,) = server.asked
    assert KEY in (came.headers.get("api-key"), came.headers.get("authorization", "").removeprefix("Bearer "))
    assert came.body["model"] == "gpt-5.2"


def test_at_another_address_azure_gets_no_key(serve, reply, asked, monkeypatch):
    server = serve(reply("From elsewhere"))
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    backend = ProviderBackend("azure:gpt-5.2", base_url=server.base_url("openai"))
    assert asked(backend) == "From elsewhere"
    assert KEY not in str(server.asked[0].headers)


@pytest.mark.parametrize(
    ("model", "given", "missing"),
    [
        ("azure:gpt-5.2", {}, "AZURE_OPENAI_ENDPOINT is not set"),
        ("azure:gpt-5.2", {"AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:1/v1"}, "AZURE_OPENAI_API_KEY is not set"),
        ("vertex:gemini-2.5-pro", {}, "GOOGLE_CLOUD_PROJECT is not set"),
        ("bedrock:amazon.nova-pro-v1:0", {}, "AWS_DEFAULT_REGION is not set"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_by_its_name(model, given, missing, asked, monkeypatch):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TerminalError, match=missing):
        asked(ProviderBackend(model))
    findings = Pipeline(SOURCE.format(model)).doctor("llm")
    assert any(missing in finding.message for finding in findings)


def test_vertex_without_credentials_says_so_and_takes_no_key_of_another_interface(asked, monkeypatch):
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "planned")
    with pytest.raises(TerminalError, match=r"vertex:gemini-2\.5-pro cannot be asked: .*[Cc]redentials"):
        asked(ProviderBackend("vertex:gemini-2.5-pro"))


def test_vertex_is_asked_with_the_credentials_that_its_client_finds(
    serve, serve_token, reply, asked, monkeypatch, tmp_path
):
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization as forms

    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )
    token = {"access_token": "planted-token", "expires_in": 3600, "token_type": "Bearer"}
    signing_in = serve_token(token)
    facts = {
        "type": "service_account",
        "project_id": "planned",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "a@b.example",
        "client_id": "1",
        "token_uri": signing_in,
    }
    (tmp_path / "key.json").write_text(json.dumps(facts))
    server = serve(reply("From Vertex"))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "planned")
    monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", server.address)
    assert asked(ProviderBackend("vertex:gemini-2.5-pro")) == "From Vertex"
    (came,) = server.asked
    assert came.headers.get("authorization") == "Bearer planted-token"
    assert "projects/planned" in came.path
    assert GEMINI not in str(came.headers)


@pytest.mark.parametrize("model", ["vertex:gemini-2.5-pro", "bedrock:amazon.nova-pro-v1:0"])
def test_credentials_go_to_no_other_address(model):
    with pytest.raises(TerminalError, match="signs in by itself"):
        ProviderBackend(model, base_url="http://127.0.0.1:1").targets_of(Node("plan", {}))


@pytest.mark.skipif(importlib.util.find_spec("boto3") is not None, reason="its client is installed")
def test_a_client_that_is_not_installed_is_said_before_the_run(tmp_path):
    pipeline = Pipeline(SOURCE.format("bedrock:amazon.nova-pro-v1:0"))
    with pytest.raises(OptionError, match="needs boto3, which is not installed") as caught:
        pipeline.run(wait=True, backend="llm", logs_root=tmp_path / "run")
    assert caught.value.hint == install_command("bedrock")
    assert not (tmp_path / "run").exists()
