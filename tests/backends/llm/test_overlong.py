"""A prompt that is too long, in the words that servers refuse it with; each row as the server sends it."""

import json

import pytest

from attractor_nb import Pipeline, ProviderBackend
from attractor_nb.backends.llm.provider_failures import WORDINGS, is_overlong

REFUSALS = [
    pytest.param(
        400,
        {
            "error": {
                "code": 400,
                "message": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 4390,
                "n_ctx": 4096,
            }
        },
        id="llama.cpp",
    ),
    pytest.param(
        500,
        {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}},
        id="llama.cpp, 500",
    ),
    pytest.param(
        400,
        {"error": {"message": "Requested tokens (2285) exceed context window of 2048", "type": "BadRequest"}},
        id="llama-cpp-python",
    ),
    pytest.param(
        400,
        {
            "error": "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded "
            "with context length of only 4096 tokens, which is not enough."
        },
        id="LM Studio",
    ),
    pytest.param(
        400,
        {"error": {"message": "input length exceeds the context length", "type": "api_error", "code": None}},
        id="Ollama",
    ),
    pytest.param(
        400,
        {
            "object": "error",
            "message": "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            "type": "BadRequestError",
            "code": 400,
        },
        id="SGLang",
    ),
    pytest.param(
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` "
            "tokens and 512 `max_new_tokens`",
            "error_type": "validation",
        },
        id="TGI",
    ),
    pytest.param(
        400,
        {
            "error": {
                "message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
                "type": "BadRequestError",
                "code": 400,
            }
        },
        id="vLLM",
    ),
    pytest.param(413, {"error": {"message": "Request too large", "code": "rate_limit_exceeded"}}, id="any with 413"),
]


@pytest.mark.parametrize(("status", "body"), REFUSALS)
def test_a_prompt_that_is_too_long_goes_to_the_fallback_whatever_the_servers_words(
    status, body, serve, reply, monkeypatch, tmp_path
):
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path / "config"))
    page = json.dumps(body).encode()
    small = serve(reply(status=status, raw=page))
    large = serve(reply("From the larger one"))
    result = Pipeline(f"""digraph g {{
        graph [endpoint.small.url="{small.base_url("openai")}", endpoint.big.url="{large.base_url("openai")}",
               llm_model="small:m"]
        start [shape=Mdiamond] done [shape=Msquare]
        plan [prompt="Plan it", llm_fallback="big:m", llm_fallback_on=overlong]
        start -> plan -> done
    }}""").run(wait=True, backend=ProviderBackend(), logs_root=tmp_path / "run")
    assert result.status == "success", result.reason
    assert (len(small.asked), len(large.asked)) == (1, 1)
    assert "does not fit" in result.outcomes["plan"].notes


def test_each_row_of_the_table_has_a_refusal_above_and_a_source():
    pages = [(row.values[0], json.dumps(row.values[1])) for row in REFUSALS]
    for row in WORDINGS:
        assert row.source
        assert any(is_overlong(status, page) for status, page in pages if status in row.statuses), row.server


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "this model exceeds the available context size"),
        (400, "the length of `messages` must be at least 1"),
        (400, "max_tokens exceeds the limit"),
    ],
)
def test_other_refusals_are_not_taken_for_it(status, message):
    assert not is_overlong(status, message)
