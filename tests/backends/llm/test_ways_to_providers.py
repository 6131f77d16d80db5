"""Proxies and certificates of the environment: what is on this machine is asked past them; what is broken is named."""

import os
import subprocess
import sys

import httpx2
import pytest

from attractor_nb import ProviderBackend
from attractor_nb.backends.llm import clients
from attractor_nb.errors import RetryableError, TerminalError

PROVIDERS = ("openai", "anthropic", "google")
NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_ruling_43_prompt_and_key_for_this_machine_never_go_to_a_proxy(
    provider, host, serve, reply, asked, models, monkeypatch
):
    proxy, server = serve(), serve(reply("Hello"))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.address)
    address = server.base_url(provider).replace("127.0.0.1", host)
    assert asked(ProviderBackend(models[provider], base_url=address)) == "Hello"
    assert proxy.asked == []


BROKEN = {
    "all_proxy": "socks5://127.0.0.1:9",
    "ALL_PROXY": "socks://127.0.0.1:9/",
    "https_proxy": "http://proxy:port",
    "SSL_CERT_FILE": "/nowhere/ca.pem",
    "SSL_CERT_DIR": "/nowhere",
    "SSLKEYLOGFILE": "/nowhere/keys.log",
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", BROKEN)
def test_a_server_on_this_machine_needs_neither_proxy_nor_certificates(
    provider, name, serve, reply, backend_for, asked, monkeypatch
):
    monkeypatch.setenv(name, BROKEN[name])
    assert asked(backend_for(serve(reply("Hello")), provider)) == "Hello"


@pytest.mark.parametrize("name", BROKEN)
def test_a_variable_that_keeps_requests_from_leaving_is_named_and_nothing_is_tried_again(name, asked, monkeypatch):
    monkeypatch.setenv(name, BROKEN[name])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdefghij")
    with pytest.raises(TerminalError) as caught:
        asked(ProviderBackend("gpt-5.2"))
    assert f"the environment variable {name} " in caught.value.message
    assert caught.value.hint


def test_an_entry_of_no_proxy_that_cannot_be_read_sends_nothing_to_the_proxy(serve, asked, monkeypatch):
    proxy = serve()
    monkeypatch.setenv("https_proxy", proxy.address)
    monkeypatch.setenv("no_proxy", "localhost,[::1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdefghij")
    with pytest.raises(TerminalError, match=r"no_proxy has the entry '\[::1', which is no host"):
        asked(ProviderBackend("gpt-5.2"))
    assert proxy.asked == []


def test_a_package_that_reads_the_variables_when_it_is_imported_is_no_riddle(serve, asked, backend_for, monkeypatch):
    def made(*_):
        raise FileNotFoundError(2, "No such file or directory", "/nowhere/keys.log")

    server = serve()
    monkeypatch.setattr(clients, "_made", made)
    with pytest.raises(RetryableError, match="broke off"):
        asked(backend_for(server))
    monkeypatch.setenv("SSLKEYLOGFILE", "/nowhere/keys.log")
    with pytest.raises(TerminalError, match=r"the environment variable SSLKEYLOGFILE names /nowhere/keys\.log"):
        asked(backend_for(server))


FIRST_ASKED = """
import asyncio, sys
from attractor_nb import Context, ProviderBackend
from attractor_nb.model.graph import Node
model, address = sys.argv[1:]
print(asyncio.run(ProviderBackend(model, base_url=address).run(Node("plan", {}), "Say hello", Context())))
"""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_that_a_process_asks_first_needs_no_log_of_keys_on_this_machine(provider, serve, reply, models):
    server = serve(reply("Hello"))
    done = subprocess.run(
        [sys.executable, "-c", FIRST_ASKED, models[provider], server.base_url(provider)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SSLKEYLOGFILE": "/nowhere/keys.log"},
    )
    assert (done.stdout, done.stderr) == ("Hello\n", "")


def test_what_the_library_itself_cannot_read_is_put_down_to_no_proxy(asked, monkeypatch):
    """Older versions refuse entries that newer ones pass over."""

    def refusing(**_):
        raise httpx2.InvalidURL("Invalid port: ':1'")

    monkeypatch.setattr(clients.httpx2, "AsyncClient", refusing)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdefghij")
    with pytest.raises(TerminalError, match="no_proxy cannot be read: Invalid port"):
        asked(ProviderBackend("gpt-5.2"))


def test_certificates_that_are_none_are_named(tmp_path, asked, monkeypatch):
    (tmp_path / "ca.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdefghij")
    with pytest.raises(TerminalError, match="SSL_CERT_FILE names what cannot be used for certificates"):
        asked(ProviderBackend("gpt-5.2"))


def test_a_proxy_that_does_not_answer_is_named(asked, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdefghij")
    with pytest.raises(RetryableError) as caught:
        asked(ProviderBackend("gpt-5.2"))
    assert "cannot be reached" in caught.value.message
    assert "the proxy that HTTPS_PROXY names" in caught.value.hint
