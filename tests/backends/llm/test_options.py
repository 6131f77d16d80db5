"""Options that are passed on to a provider, also from a stylesheet; the record of a request; wrong addresses."""

import json

import pytest

from attractor_nb import Pipeline, ProviderBackend, parse_dot
from attractor_nb.backends.llm import exchange
from attractor_nb.backends.llm.model_requests import RequestDefaults, read_request
from attractor_nb.errors import OptionError, RetryableError, TerminalError, ValidationError
from attractor_nb.model.calls.model_options import read_option

KEY = "sk-planted-openai-0123456789"
FRAME = """digraph talk {{
    graph [llm_model="gpt-4o", {graph}]
    start [shape=Mdiamond]  done [shape=Msquare]
    plan [prompt="Plan it"{more}]  start -> plan -> done
}}"""


@pytest.fixture
def run(monkeypatch, tmp_path):
    def start(server, graph="", more="", **options):
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
        return Pipeline(FRAME.format(graph=graph, more=more)).run(
            wait=True, backend=ProviderBackend(), logs_root=tmp_path / "run", **options
        )

    return start


def test_options_are_passed_on_by_node_and_graph(serve, reply, run):
    server = serve(reply("Hello"))
    result = run(
        server,
        "llm.extra.seed=7, llm.extra.top_p=0.5",
        ', llm.extra.top_p="0.9", llm.extra.stop="END", llm.extra.min_p="0.1"',
    )
    assert result.status == "success", result.reason
    body = server.asked[0].body
    assert (body["seed"], body["top_p"], body["stop"], body["min_p"]) == (7, 0.9, ["END"], 0.1)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("top_p", "much", "a number"),
        ("seed", 1.5, "a whole number"),
        ("seed", True, "a whole number"),
        ("temperature", 1, "write llm.temperature"),
        ("api_key", "sk-1", "key_env"),
        ("mcp_servers", "[]", "write mcp.NAME.command"),
        ("system", "Obey", "write llm.system_prompt"),
        ("instructions", "Obey", "write llm.system_prompt"),
        ("models", "[]", "write llm_fallback"),
        ("conversation", "c1", "llm.extra.conversation is not passed on"),
        ("plugins", "[]", "llm.extra.plugins is not passed on"),
        ("min_p", '{"a": 1}', "a number"),
    ],
)
def test_an_option_that_is_wrong_or_not_let_through_says_what_to_write_ruling_43(name, value, said):
    with pytest.raises(ValueError, match=said):
        read_option(name, value)


def test_a_wrong_option_is_found_before_anything_is_made(serve, reply, run, tmp_path):
    with pytest.raises(ValidationError, match=r"llm\.extra\.stream"):
        run(serve(reply("Hello")), "", ", llm.extra.stream=false")
    assert not (tmp_path / "run").exists()


def test_lint_sees_an_option_that_is_almost_a_known_one():
    found = Pipeline(FRAME.format(graph="", more=", llm.extra.topp=1")).lint()
    (notice,) = [each for each in found if each.rule == "extra_valid"]
    assert notice.is_error
    assert 'did you mean "llm.extra.top_p"' in notice.message


def test_a_request_has_no_option_that_its_provider_is_not_known_to_take_ruling_43(serve, reply, run):
    server = serve(reply("Hello"))
    more = ', llm_provider=mistral, llm_model="mistral:small", llm_fallback="openai:gpt-4o", llm.extra.safe_prompt=true'
    with pytest.raises(OptionError, match=r"llm\.extra\.safe_prompt is not passed on to openai:gpt-4o"):
        run(server, "", ", llm.extra.safe_prompt=true")
    assert exchange.model_settings(_request(more), "openai", {}, read_seconds=1.0).get("extra_body") is None
    sent = exchange.model_settings(_request(more), "mistral", {}, read_seconds=1.0)
    assert sent["extra_body"] == {"safe_prompt": True}


def _request(more):
    return read_request(parse_dot(FRAME.format(graph="", more=more)).nodes["plan"], RequestDefaults())


def test_a_stylesheet_says_temperature_limit_and_address(serve, reply, run):
    server, other = serve(reply("Hello")), serve(reply("From there"))
    sheet = f"* {{ temperature: 0.25; max_tokens: 90; base_url: '{other.base_url('openai')}' }}"
    result = run(server, f'model_stylesheet="{sheet}"')
    assert result.status == "success", result.reason
    body = other.asked[0].body
    assert (body["temperature"], body["max_completion_tokens"]) == (0.25, 90)
    assert KEY not in str(other.asked[0].headers)


def test_a_number_of_a_stylesheet_that_is_none_is_a_warning():
    found = Pipeline(FRAME.format(graph='model_stylesheet="* { temperature: warm }"', more="")).lint()
    assert [each.message for each in found if each.rule == "style_value"]


def test_each_request_is_recorded_before_it_is_made_without_its_key(serve, reply, run):
    server = serve(reply(status=503, error="busy"), reply("From the second"))
    more = ', llm_fallback="gpt-4o-mini", llm.max_tokens=100, llm.system_prompt="Be brief.", llm.extra.seed=7'
    result = run(server, "", more)
    assert result.status == "success", result.reason
    first, second = (
        json.loads((result.logs_root / "plan" / name).read_text()) for name in ("request.json", "request-2.json")
    )
    assert (first["model"], second["model"]) == ("openai:gpt-4o", "openai:gpt-4o-mini")
    assert (first["max_tokens"], first["system_prompt"], first["extra"]) == (100, "Be brief.", {"seed": 7})
    assert first["address"] == server.base_url("openai")
    assert first["estimated_input_tokens"] > 0
    assert 0 < first["at_most_usd"] < 0.01
    assert KEY not in json.dumps([first, second])


@pytest.mark.parametrize("shape", ["openai", "anthropic", "google"])
def test_a_page_says_its_content_type_and_what_the_address_should_end_in(shape, serve, reply, backend_for, asked):
    server = serve(reply(raw=b"<html>hello</html>", content_type="text/html; charset=utf-8"))
    with pytest.raises(RetryableError, match="answered with text/html, which is not an API response") as caught:
        asked(backend_for(server, shape))
    assert "/v1" in caught.value.hint
    assert len(server.asked) == 1


def test_an_address_without_its_end_is_said_with_it(serve, reply, asked):
    server = serve(reply(status=404, error="no such path"))
    with pytest.raises(TerminalError, match="is not known") as caught:
        asked(ProviderBackend("qwen3", base_url=server.address))
    assert f"{server.address}/v1" in caught.value.hint
