"""Answers that count: halves of characters, words for its end, one request, no more than asked (ruling 13)."""

import json

import pytest
from pydantic import BaseModel, Field
from pydantic_ai.messages import ModelResponse, TextPart

from attractor_nb import Pipeline, ProviderBackend, Usage
from attractor_nb.backends.llm.exchange import bound_object, is_closed
from attractor_nb.backends.llm.metered_requests import answer_ending, price_of
from attractor_nb.backends.llm.provider_failures import Ending, ending_of
from attractor_nb.decisions.response_schemas import ResponseSchema
from attractor_nb.errors import RetryableError, TerminalError
from attractor_nb.model.calls.providers import ModelName, read_model
from attractor_nb.testing import ManualClock

SHAPES = ("openai", "anthropic", "google")
HALVES = ("half \ud83d", "\ude00 whole, lone \ud83d", " end")
WHOLE = "half 😀 whole, lone \ufffd end"
FRAME = """digraph talk {{
    graph [llm_model="{model}", llm.base_url="{url}"]
    start [shape=Mdiamond]  done [shape=Msquare]
    {body}
}}"""


@pytest.fixture
def run(models, tmp_path):
    """Run statements against a server in one of its forms; the result and all events."""

    def start(server, body, shape="openai", **options):
        events = []
        text = FRAME.format(model=models[shape], url=server.base_url(shape), body=body)
        result = Pipeline(text).run(
            wait=True,
            backend=ProviderBackend(),
            observers=[events.append],
            logs_root=tmp_path / "run",
            clock=ManualClock(),
            **options,
        )
        return result, events

    return start


def named(events, name):
    return [event for event in events if type(event).__name__ == name]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_character_cut_in_two_chunks_is_joined_and_a_lone_half_replaced(shape, serve, reply, run):
    body = 'graph [default_fidelity=full, thread_id=t] plan [prompt="Plan"] start -> plan -> done'
    result, events = run(serve(reply(pieces=HALVES)), body, shape)
    assert result.status == "success", result.reason
    assert (result.logs_root / "plan/response.md").read_text() == WHOLE
    streamed = "".join(event.text for event in named(events, "StageOutput"))
    assert streamed == WHOLE


def test_halves_in_the_arguments_of_a_tool_are_joined(serve, reply, run, tmp_path):
    """The inner JSON holds the halves themselves, as a server sends them that escapes once."""
    arguments = '{"path": "a.txt", "content": "a \ud83d\ude00 and \ud83d"}'

    class Written(dict):
        """A value that the scripted server sends unchanged."""

    server = serve(reply(tool_calls=[("write_file", Written())]), reply("Done"))
    work = tmp_path / "work"
    work.mkdir()
    original = json.dumps

    def dumped(value, **options):
        return arguments if isinstance(value, Written) else original(value, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json, "dumps", dumped)
        result, _ = run(
            server, 'plan [prompt="Plan", allowed_tools="write"] start -> plan -> done', workdir=work, trust=True
        )
    assert result.status == "success", result.reason
    assert (work / "a.txt").read_text() == "a 😀 and \ufffd"


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
@pytest.mark.parametrize("word", ["eos", "eos_token", "from_the_future"])
def test_an_unknown_word_for_the_end_is_an_answer_with_a_warning(word, shape, serve, reply, run):
    result, events = run(serve(reply("All of it", finish=word)), 'plan [prompt="Plan"] start -> plan -> done', shape)
    assert result.status == "success", result.reason
    (call,) = named(events, "ModelCallEnded")
    assert (call.finish, call.error) == (word, "")
    assert any(word in event.message for event in named(events, "RunWarning"))


@pytest.mark.parametrize("word", ["max_tokens", "MAX_TOKENS", "model_length", "max_new_tokens"])
def test_every_word_for_the_limit_is_truncation(word, serve, reply, backend_for, asked):
    assert asked(backend_for(serve(reply("As far as", finish=word)))).is_truncated


@pytest.mark.parametrize(
    ("word", "kind", "said"),
    [
        ("content_filter", TerminalError, "refused to answer"),
        ("SAFETY", TerminalError, "refused to answer"),
        ("error", RetryableError, "no end"),
        ("aborted", RetryableError, "no end"),
    ],
)
def test_a_stream_that_ends_with_a_failure_is_no_answer(word, kind, said, serve, reply, backend_for, asked):
    with pytest.raises(kind, match=said):
        asked(backend_for(serve(reply("Half of it", finish=word))))


@pytest.mark.parametrize("odd", [["refusal"], {"type": "refusal"}, 7, True], ids=repr)
def test_ruling_47_an_end_that_is_no_word_is_no_answer(odd):
    said = ModelResponse([TextPart("All of it")], provider_details={"finish_reason": odd})
    assert answer_ending(said) is Ending.BROKEN


@pytest.mark.parametrize("odd", ["I cannot.", ["no"], {"why": "no"}, True], ids=repr)
def test_ruling_47_a_refusal_beside_an_answer_is_a_refusal(odd):
    said = ModelResponse([TextPart("All of it")], finish_reason="stop", provider_details={"refusal": odd})
    assert answer_ending(said) is Ending.REFUSED


def test_a_word_of_the_library_that_we_do_not_know_is_unknown():
    assert ending_of("a word of next year", "") is Ending.UNKNOWN
    assert ending_of(None, "") is Ending.BROKEN


def test_a_system_prompt_of_the_stage_before_is_not_carried_along(serve, reply, run):
    """Its messages hold it; a stage that has none is asked without one."""
    server = serve(reply("A"), reply("B"))
    body = (
        'graph [default_fidelity=full, thread_id=t] plan [prompt="Plan", llm.system_prompt="Be brief."] '
        'write [prompt="Write"] start -> plan -> write -> done'
    )
    result, _ = run(server, body)
    assert result.status == "success", result.reason
    roles = [[message["role"] for message in came.body["messages"]] for came in server.asked]
    assert roles == [["system", "user"], ["user", "assistant", "user"]]


def test_a_request_has_a_limit_in_all(serve, reply, backend_for, asked):
    server = serve(reply("half", ends="hang", after=1))
    with pytest.raises(RetryableError, match=r"took too long: more than 0\.2 s"):
        asked(backend_for(server, request_timeout_seconds=0.2))
    assert server.asked[0].gone.wait(30)


def test_what_nobody_counted_is_counted_by_estimate_and_marked(serve, reply, backend_for, asked):
    response = asked(backend_for(serve(reply("Hello there, you", usage=None))), "Say hello")
    price = price_of(read_model("gpt-5.2"), Usage(3, 4))
    assert response.usage == Usage(3, 4, price, 1, estimated_calls=1)
    assert Usage.from_plain(response.usage.to_plain()) == response.usage


NUMBER = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "closed"),
    [
        ({"type": "object", "properties": {"n": NUMBER}}, True),
        ({"type": "object", "properties": {"n": {"type": "array", "items": NUMBER}}}, True),
        ({"type": "object"}, False),
        ({"type": "object", "properties": {"n": {"type": "object"}}}, False),
        ({"type": "object", "properties": {"n": {"type": "array"}}}, False),
        ({"type": "object", "properties": {"n": {}}}, False),
        ({"type": "object", "properties": {"n": {"anyOf": [NUMBER, {"type": "object"}]}}}, False),
        ({"type": "object", "properties": {"n": NUMBER}, "additionalProperties": NUMBER}, False),
        ({"type": "object", "properties": {"n": {"$ref": "#/$defs/A"}}, "$defs": {"A": NUMBER}}, True),
        ({"type": "object", "properties": {"n": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "object"}}}, False),
    ],
)  # fmt: skip
def test_a_closed_schema_binds_strictly_and_an_open_one_keeps_its_freedom(schema, closed):
    assert is_closed(schema) is closed
    bound = bound_object(schema, {"supports_json_schema_output": True})
    assert bound["output_object"].strict is (True if closed else None)
    assert bound_object(schema, {}) == {}


def test_a_closed_schema_is_strict_on_the_wire(serve, reply, run):
    schema = '{\\"type\\": \\"object\\", \\"properties\\": {\\"n\\": {\\"type\\": \\"integer\\"}}}'
    server = serve(reply('{"n": 7}'))
    result, _ = run(server, f'plan [prompt="Plan", response_schema="{schema}"] start -> plan -> done')
    assert result.status == "success", result.reason
    bound = server.asked[0].body["response_format"]["json_schema"]
    assert bound["strict"] is True
    assert bound["schema"]["additionalProperties"] is False


class Order(BaseModel):
    count: int = Field(ge=1)
    note: str


@pytest.mark.parametrize("answer", ['{"count": 2, "note": "x"}', '{"count": 2}', '{"count": "two", "note": "x"}'])
def test_the_schema_that_is_sent_is_the_one_that_the_answer_is_checked_against(answer, serve, reply, tmp_path):
    server = serve(reply(answer))
    source = """digraph { start [shape=Mdiamond] plan [prompt=Plan, response_schema=Order] done [shape=Msquare]
        start -> plan -> done }"""
    backend = ProviderBackend("gpt-5.2", base_url=server.base_url("openai"))
    pipeline = Pipeline(source, schemas={"Order": Order}, backend=backend)
    result = pipeline.run(wait=True, logs_root=tmp_path / "run")
    sent = server.asked[0].body["response_format"]["json_schema"]["schema"]
    complaint = ResponseSchema(json.dumps(sent)).complaint_about(json.loads(answer))
    assert (result.status == "success") == (complaint == ""), (result.reason, complaint)
    assert sent["properties"].keys() == Order.model_json_schema()["properties"].keys()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_schema_beside_a_verdict_binds_nothing(shape, serve, reply, backend_for, tmp_path):
    """A strict schema would forbid the outcome that the same prompt asks for."""
    server = serve(reply('{"n": 7, "outcome": "fail", "notes": "too many"}'))
    schema = '{\\"type\\": \\"object\\", \\"properties\\": {\\"n\\": {\\"type\\": \\"integer\\"}}}'
    source = f"""digraph {{ start [shape=Mdiamond] done [shape=Msquare] start -> plan -> done
        plan [prompt="Plan", verdict=json, response_schema="{schema}"] }}"""
    result = Pipeline(source).run(wait=True, logs_root=tmp_path / "run", backend=backend_for(server, shape))
    assert (result.status, result.reason) == ("fail", "too many")
    body = server.asked[0].body
    assert not {"response_format", "text"} & body.keys()
    assert "format" not in body.get("output_config", {})
    assert "responseJsonSchema" not in body.get("generationConfig", {})
    assert '"n"' in json.dumps(body).replace("\\", "")


def test_prices_are_those_of_the_list_for_all_of_its_models():
    from genai_prices import calc_price
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import Usage as Priced

    for provider in get_snapshot().providers:
        for model in provider.models:
            try:
                tokens = Priced(input_tokens=123_457, output_tokens=3210)
                listed = float(calc_price(tokens, model.id, provider_id=provider.id).total_price)
            except (LookupError, ValueError):
                listed = None
            ours = price_of(ModelName(model.id, provider.id), Usage(123_457, 3210))
            assert ours == (None if listed is None else pytest.approx(listed, rel=1e-9)), model.id


TALK = """a [prompt="Do it."] b [prompt="Go on: ${a.response}"] start -> a -> b -> done"""
THOUGHT = ("<th", "ink>", "secret ", "musings", "</thi", "nk>", "The plan", " is short.")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pieces", [THOUGHT, ("<think>", "secret musings", "</think>", "The plan is short.")])
def test_ruling_46_reasoning_reaches_neither_stream_nor_next_prompt(serve, reply, run, shape, pieces):
    server = serve(reply(pieces=pieces), reply("ok"))
    result, events = run(server, TALK, shape)
    assert result.status == "success", result.reason
    assert result.context.get("a.response") == "The plan is short."
    streamed = "".join(event.text for event in events if type(event).__name__ == "StageOutput" and event.name == "a")
    assert streamed == "The plan is short."
    assert "musings" not in json.dumps(server.asked[1].body)
    assert (result.logs_root / "a" / "reasoning.md").read_text() == "secret musings"


def test_ruling_46_a_model_that_thinks_up_to_its_limit_is_asked_once_and_then_the_next(serve, reply, run):
    server = serve(reply("<think>Hm.", finish="length"), reply("Four."))
    url = server.base_url("openai")
    body = f"""a [prompt="2+2?", llm_fallback="box:other", endpoint.box.url="{url}", max_retries=2]"""
    result, _ = run(server, f"{body} start -> a -> done")
    assert (result.status, len(server.asked)) == ("success", 2), result.reason
    assert "reached its token limit before an answer" in result.outcomes["a"].notes


def test_a_running_total_of_usage_is_counted_once_and_not_asked_for(serve, reply, run):
    server = serve(reply(pieces=("one ", "two ", "three"), usage=(1000, 3), running=True))
    result, _ = run(server, 'a [prompt="Count.", llm.extra.seed=7] start -> a -> done', max_tokens_total=1500)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (1000, 3)
    body = server.asked[0].body
    assert (body["stream_options"], body["seed"]) == ({"include_usage": True}, 7)
