"""The backend that asks providers: text as it arrives, usage and prices, chains of models, tools, threads."""

import asyncio
import json
import pickle
import sys

import pytest

from attractor_nb import Context, Pipeline, ProviderBackend, Usage
from attractor_nb.backends import resolve_backend
from attractor_nb.backends.llm.metered_requests import PacedText, price_of
from attractor_nb.errors import OptionError, RetryableError, TerminalError
from attractor_nb.extras import install_command
from attractor_nb.model.calls.providers import read_model
from attractor_nb.model.graph import Node
from attractor_nb.testing import ManualClock

FRAME = """digraph talk {{
    graph [llm_model="{model}", llm.base_url="{url}"]
    start [shape=Mdiamond]  done [shape=Msquare]
    {body}
}}"""
ONE = 'plan [prompt="Plan it"{more}]  start -> plan -> done'


@pytest.fixture
def run(models, tmp_path):
    """Run statements against a server in one of its forms; the result and all events."""

    def start(server, body, shape="openai", backend=None, **options):
        events = []
        text = FRAME.format(model=models[shape], url=server.base_url(shape), body=body)
        options = {"logs_root": tmp_path / "run", "clock": ManualClock(), **options}
        result = Pipeline(text).run(
            wait=True, backend=backend or ProviderBackend(), observers=[events.append], **options
        )
        return result, events

    return start


def named(events, name):
    return [event for event in events if type(event).__name__ == name]


@pytest.mark.parametrize("shape", ["openai", "anthropic", "google"])
def test_an_answer_streams_is_counted_and_is_priced(shape, serve, reply, models, run):
    words = "One two three four five six"
    result, events = run(serve(reply(words, usage=(1000, 100))), ONE.format(more=""), shape)
    assert result.status == "success", result.reason
    assert "".join(event.text for event in named(events, "StageOutput")) == words
    assert (result.logs_root / "plan/response.md").read_text() == words
    (call,) = named(events, "ModelCallEnded")
    price = price_of(read_model(models[shape]), Usage(1000, 100))
    assert (call.model, call.finish, call.error) == (f"{shape}:{models[shape]}", "stop", "")
    assert call.usage == result.usage == Usage(1000, 100, price, 1)
    assert price > 0


def test_the_model_that_answered_is_told_as_its_server_names_it(serve, reply, models, run):
    server = serve(reply("One", model="gpt-5.2-2026-05-01"), reply("Two", model="x" * 5000))
    text = 'plan [prompt="Plan it"] write [prompt="Write it"] start -> plan -> write -> done'
    first, second = named(run(server, text, "openai")[1], "ModelCallEnded")
    assert (first.model, first.answered_by) == (f"openai:{models['openai']}", "gpt-5.2-2026-05-01")
    assert len(second.answered_by) == 200


def test_a_model_without_a_price_is_unpriced_and_not_free(serve, reply, asked):
    server = serve(reply("Hello", usage=(10, 5)))
    response = asked(ProviderBackend("home-made", base_url=server.base_url("openai")))
    assert response.usage == Usage(10, 5, None, 1)
    assert response.usage.unpriced_calls == 1
    assert "max_completion_tokens" not in server.asked[0].body


def test_options_reach_the_wire(serve, reply, backend_for, asked):
    server = serve(reply("Hello"))
    attrs = {"llm.temperature": 0.5, "llm.max_tokens": 90, "llm.system_prompt": "Be brief."}
    asked(backend_for(server), "Say hello", **attrs)
    body = server.asked[0].body
    assert (body["temperature"], body["max_completion_tokens"], body["model"]) == (0.5, 90, "gpt-5.2")
    assert [message["content"] for message in body["messages"]] == ["Be brief.", "Say hello"]
    asked(backend_for(server), reasoning_effort="low")
    assert server.asked[1].body["reasoning_effort"] == "low"
    assert "temperature" not in server.asked[1].body


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 429, "error": "slow down"}, "busy or failing"),
        ({"status": 404, "error": "no such model"}, "is not known"),
        ({"status": 401, "error": "who"}, "refused the key"),
        ({"text": "half of it was said", "ends": "cut"}, "broke off"),
    ],
)
def test_the_next_model_of_a_chain_answers_and_the_notes_say_so(fault, reason, serve, reply, run):
    server = serve(reply(**fault), reply("From the second", usage=(10, 5)))
    result, events = run(server, ONE.format(more=', llm_fallback="openai:gpt-5-mini"'))
    assert result.status == "success"
    assert [came.body["model"] for came in server.asked] == ["gpt-5.2", "gpt-5-mini"]
    notes = result.outcomes["plan"].notes
    assert "answered by openai:gpt-5-mini in place of openai:gpt-5.2" in notes
    assert reason in notes
    first, second = named(events, "ModelCallEnded")
    assert reason in first.error
    assert (second.error, result.usage.calls) == ("", 1)


@pytest.mark.parametrize("fault", [{"status": 400, "error": "bad"}, {"text": "no", "finish": "refusal"}])
def test_a_request_that_is_refused_itself_is_not_taken_elsewhere(fault, serve, reply, backend_for, asked):
    server = serve(reply(**fault), reply("From the second"))
    with pytest.raises(TerminalError):
        asked(backend_for(server, fallback=["openai:gpt-5-mini"]))
    assert len(server.asked) == 1


def test_a_chain_that_fails_may_be_tried_again_when_one_of_its_models_may(serve, reply, backend_for, asked):
    server = serve(reply(status=404, error="gone"), reply(status=429, error="slow", headers={"retry-after": "9"}))
    with pytest.raises(RetryableError, match=r"no model of the chain answered: .*\(404\).*\(429\)") as caught:
        asked(backend_for(server, fallback=["openai:gpt-5-mini"]))
    assert caught.value.retry_after_seconds == 9.0
    server = serve(reply(status=404, error="gone"))
    with pytest.raises(TerminalError, match="no model of the chain answered"):
        asked(backend_for(server, fallback=["openai:gpt-5-mini"]))


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_tools_are_called_between_requests_and_all_of_it_is_counted(shape, serve, reply, run, tmp_path):
    calls = [("write_file", {"path": "a.txt", "content": "hello"}), ("read_file", {"path": "a.txt"})]
    server = serve(
        reply(tool_calls=[calls[0]], usage=(10, 5)),
        reply(tool_calls=[calls[1]], usage=(20, 5)),
        reply("It is written", usage=(30, 5)),
    )
    work = tmp_path / "work"
    work.mkdir()
    result, events = run(server, ONE.format(more=', allowed_tools="read,write"'), shape, workdir=work, trust=True)
    assert result.status == "success", result.reason
    assert (work / "a.txt").read_text() == "hello"
    assert [event.tool for event in named(events, "ToolCallEnded")] == ["write_file", "read_file"]
    assert [event.finish for event in named(events, "ModelCallEnded")] == ["tool_call", "tool_call", "stop"]
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.calls) == (60, 15, 3)
    assert "hello" in json.dumps(server.asked[2].body)


def test_a_mistake_of_a_tool_is_not_taken_for_an_unreadable_answer(serve, reply, run, tmp_path, monkeypatch):
    """It fails its stage by its own name."""
    from attractor_nb.backends.llm.tools.tool_calls import ToolCalls

    async def mistaken(*_):
        raise TypeError("an argument too many")

    monkeypatch.setattr(ToolCalls, "run", mistaken)
    server = serve(reply(tool_calls=[("list_files", {})]))
    result, _ = run(server, ONE.format(more=', allowed_tools="list"'), workdir=tmp_path, trust=True)
    assert result.reason == "TypeError: an argument too many"
    assert len(server.asked) == 1


def test_a_model_that_never_stops_calling_tools_is_stopped(serve, reply, run, tmp_path):
    server = serve(reply(tool_calls=[("list_files", {})]))
    backend = ProviderBackend(max_requests=3)
    result, _ = run(server, ONE.format(more=', allowed_tools="list"'), backend=backend, workdir=tmp_path, trust=True)
    assert result.status == "fail"
    assert "kept calling tools" in result.reason
    assert len(server.asked) == 3
    assert result.usage.calls == 3


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_response_schema_binds_a_model_that_can_be_bound(shape, serve, reply, run):
    schema = '{\\"type\\": \\"object\\", \\"properties\\": {\\"score\\": {\\"type\\": \\"integer\\"}}, \\"required\\": [\\"score\\"]}'
    server = serve(reply('{"score": 7}'))
    result, _ = run(server, ONE.format(more=f', response_schema="{schema}"'), shape)
    assert result.status == "success", result.reason
    assert result.context["plan.verdict"] == {"score": 7}
    body = server.asked[0].body
    bound = body["response_format"] if shape == "openai" else body.get("output_config", body)
    assert "score" in json.dumps(bound)


def test_what_breaks_its_schema_is_judged_here_and_not_asked_again(serve, reply, run):
    schema = '{\\"type\\": \\"object\\", \\"required\\": [\\"score\\"]}'
    server = serve(reply('{"points": 7}'))
    result, _ = run(server, ONE.format(more=f', response_schema="{schema}"'))
    assert result.status == "fail"
    assert "does not satisfy response_schema" in result.reason
    assert len(server.asked) == 1


def test_a_thread_is_gone_on_with_under_full_fidelity(serve, reply, run):
    server = serve(reply("The plan is A"), reply("The text of A"))
    body = (
        'graph [default_fidelity=full, thread_id=main] plan [prompt="Plan it"] '
        'write [prompt="Write it"] start -> plan -> write -> done'
    )
    result, events = run(server, body)
    assert result.status == "success", result.reason
    said = [(message["role"], message["content"]) for message in server.asked[1].body["messages"]]
    assert [role for role, _ in said] == ["user", "assistant", "user"]
    assert said[1][1] == "The plan is A"
    assert said[2][1].endswith("Write it")
    assert [event.thread for event in named(events, "ModelCallEnded")] == ["main", "main"]


def test_what_cannot_be_asked_is_found_before_anything_is_made(tmp_path):
    text = 'digraph g { start [shape=Mdiamond] plan [llm_model="small"] done [shape=Msquare] start -> plan -> done }'
    with pytest.raises(OptionError, match="the provider is unknown for the model 'small'"):
        Pipeline(text).run(wait=True, backend="llm", logs_root=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_the_extra_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(OptionError, match="pydantic_ai, which is not installed") as caught:
        resolve_backend("llm")
    assert caught.value.hint == install_command("llm")


@pytest.mark.parametrize(
    "options", [{"max_requests": 0}, {"read_timeout_seconds": float("inf")}, {"connect_timeout_seconds": "3"}]
)
def test_bounds_are_bounds(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        ProviderBackend("gpt-5.2", **options)


def test_a_backend_travels_without_its_connections(serve, reply, asked):
    server = serve(reply("Hello"))
    backend = pickle.loads(pickle.dumps(ProviderBackend("gpt-5.2", base_url=server.base_url("openai"))))
    assert asked(backend) == "Hello"


def test_runs_of_a_loop_share_connections_and_the_last_one_closes_them(serve, reply, backend_for):
    server = serve(reply("Hello"))

    async def twice():
        backend = backend_for(server)
        await backend.open()
        await backend.open()
        first = backend._pools
        await backend.run(Node("a", {}), "Say", Context())
        await backend.close()
        await backend.run(Node("b", {}), "Say", Context())
        pool = first._by_loop[asyncio.get_running_loop()]
        await backend.close()
        return pool.clients, len(first._by_loop)

    clients, left = asyncio.run(twice())
    assert [client.is_closed for client in clients._http.values()] == [True]
    assert left == 0


def test_text_is_handed_on_at_a_pace_and_no_tail_is_lost():
    async def paced():
        pieces = []
        text = PacedText(pieces.append, seconds=3600)
        for piece in ("a", "b", "", "c"):
            text.add(piece)
        before = list(pieces)
        text.flush()
        text.flush()
        return before, pieces

    assert asyncio.run(paced()) == (["a"], ["a", "bc"])


def test_what_waits_is_handed_on_when_its_time_has_come():
    async def paced():
        pieces, handed = [], asyncio.Event()

        def take(piece):
            pieces.append(piece)
            if "".join(pieces) == "abc":
                handed.set()

        text = PacedText(take, seconds=0.01)
        text.add("a")
        text.add("b")
        text.add("c")
        await asyncio.wait_for(handed.wait(), 60)
        return pieces

    assert asyncio.run(paced())[0] == "a"
