"""The scripted server, and a short way to ask it as each provider is asked."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

from attractor_nb import Context, ProviderBackend
from attractor_nb.model.graph import Node

MODELS = {"openai": "gpt-5.2", "anthropic": "claude-opus-4-6", "google": "gemini-2.5-pro"}


def _load(name):
    """The program beside this file, as a module."""
    spec = importlib.util.spec_from_file_location(f"llm_{name}", Path(__file__).with_name(f"{name}.py"))
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_program = _load("scripted_server")


@pytest.fixture(scope="session")
def program():
    """The module of the scripted server."""
    return _program


@pytest.fixture(scope="session")
def models():
    """A model of each provider whose form the server speaks."""
    return MODELS


@pytest.fixture
def reply():
    """A function that makes a reply."""
    return _program.Reply


@pytest.fixture
def serve():
    """Start servers that give these replies, until the test ends."""
    servers = []

    def start(*replies, choose=None):
        servers.append(_program.ScriptedServer(*replies, choose=choose).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


@pytest.fixture
def backend_for():
    """A backend that asks a server as a provider is asked."""

    def make(server, shape="openai", **options):
        return ProviderBackend(MODELS[shape], base_url=server.base_url(shape), **options)

    return make


@pytest.fixture
def asked():
    """Ask a backend outside a run."""

    def ask(backend, prompt="Say hello", **attrs):
        return asyncio.run(backend.run(Node("plan", attrs), prompt, Context()))

    return ask
