"""Planted keys appear in no file, event, output or traceback, wherever a provider puts them."""

import logging
import traceback

import pytest

from attractor_nb import Context, Pipeline, ProviderBackend
from attractor_nb.model.graph import Node

KEYS = {
    "openai": ("OPENAI_API_KEY", "sk-planted-openai-0123456789abcdefghij"),
    "anthropic": ("ANTHROPIC_API_KEY", "sk-ant-planted-0123456789abcdefghijklmnop"),
}
TEXT = """digraph keys {{
    graph [llm_model="{model}", default_fidelity=full, default_max_retries=1]
    start [shape=Mdiamond]  plan [prompt="Plan"]  write [prompt="Write"]  done [shape=Msquare]
    start -> plan -> write -> done
}}"""


@pytest.fixture(params=sorted(KEYS))
def planted(request, monkeypatch):
    """A provider whose key is in the environment; its form and the key."""
    variable, key = KEYS[request.param]
    monkeypatch.setenv(variable, key)
    return request.param, key


def said_with(key):
    """The answer of a careless provider."""
    return f"Your key {key} is no good (Bearer {key})"


def all_files(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("fault", ["answer", "error", "pieces", "page"])
def test_a_planted_key_is_in_no_file_event_output_or_report(
    fault, planted, serve, reply, models, tmp_path, caplog, capsys, monkeypatch
):
    shape, key = planted
    caplog.set_level(logging.DEBUG)
    replies = {
        "answer": [reply(said_with(key)), reply(f"{key} again")],
        "error": [reply("The plan"), reply(status=401, error=said_with(key))],
        "pieces": [reply(" ".join(key)), reply(f"a {key} b c d {key[:12]}")],
        "page": [reply(status=500, raw=said_with(key).encode())],
    }[fault]
    server = serve(*replies)
    seen = []
    monkeypatch.setenv(f"{shape.upper()}_BASE_URL", server.base_url(shape))
    text = TEXT.format(model=models[shape])
    result = Pipeline(text).run(
        wait=True, backend=ProviderBackend(), observers=[seen.append], logs_root=tmp_path / "run"
    )
    assert key in str(server.asked[0].headers.values())
    found = [str(path) for path, data in all_files(tmp_path).items() if key.encode() in data]
    assert not found
    assert not [event for event in seen if key in repr(event.to_plain())]
    out, err = capsys.readouterr()
    assert key not in f"{result}{result!r}{result.reason}{out}{err}"
    assert key not in caplog.text
    assert all_files(tmp_path / "run")


def test_a_planted_key_is_in_no_traceback(planted, serve, reply, asked, backend_for):
    shape, key = planted
    server = serve(reply(status=400, error=said_with(key)))
    try:
        asked(backend_for(server, shape))
    except Exception as error:  # noqa: BLE001 - whatever it is, a notebook would show it
        shown = "".join(traceback.format_exception(error))
    assert "refused the request" in shown
    assert key not in shown


def test_a_planted_key_is_no_input_of_a_call(planted, backend_for, serve, reply):
    shape, key = planted
    backend = backend_for(serve(reply("Hello")), shape)
    assert key not in repr(backend)
    assert key not in repr(backend.call_inputs(Node("plan", {}), Context()))
