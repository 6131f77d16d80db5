"""Failures of agents, and their treatment: the class of Appendix D, nothing lost, no false success."""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb import ClaudeBackend, Node, Pipeline
from attractor_nb.backends.agents import agent_failures as failures
from attractor_nb.backends.agents.agent_events import Complained, Ended
from attractor_nb.backends.agents.agent_failures import (
    AgentFailure,
    FailureKind,
    error_of,
    kind_of,
    seconds_until_reset,
)
from attractor_nb.backends.agents.claude import Claude
from attractor_nb.backends.agents.output_reader import Transcript
from attractor_nb.context import Context
from attractor_nb.errors import RetryableError, StageError, TerminalError
from attractor_nb.processes import CommandOutput
from tests.waiting import is_alive

SOURCE = """digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]
    node [max_retries=1, retry_policy="none"]
    work [prompt="Mend it.", {}]
    start -> work -> exit }}"""
RETRIED, FAILED, TERMINAL = "retried", "failed, and retried where the node asks for it", "terminal"
OF_KIND = {
    "limit": (RETRIED, ""),
    "server": (RETRIED, ""),
    "auth": (TERMINAL, "log in once by starting"),
    "billing": (TERMINAL, "check the account"),
    "model": (TERMINAL, "llm_model"),
    "turns": (TERMINAL, "more turns"),
    "unknown": (FAILED, "the moon is in the wrong place"),
    "wordless": (FAILED, ""),
}

NOW = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)


def run(backend, attributes="", **options):
    events = []
    options = {"logs_root": "run", "durability": "fast", "wait": True, **options}
    result = Pipeline(SOURCE.format(attributes)).run(backend=backend, observers=[events.append], **options)
    return result, events


def named(events, kind):
    return [event for event in events if type(event).__name__ == kind]


def call(prompt="Mend it."):
    """A call outside a run, where its error is seen as it is raised."""
    return asyncio.run(ClaudeBackend().run(Node("work"), prompt, Context()))


@pytest.mark.parametrize("kind", OF_KIND)
def test_a_failure_has_its_class_and_says_what_helps(stubs, agent, kind):
    stubs.do(f"fail:{kind}")
    result, events = run(agent)
    how, words = OF_KIND[kind]
    assert len(stubs.calls) == (1 if how is TERMINAL else 2)
    if kind in {"auth", "billing"}:  # ruling 51: the account was refused
        assert (result.status, agent in result.reason, words in result.reason) == ("interrupted", True, True)
        return
    assert result.status == "fail"
    outcome = result.outcomes["work"]
    assert outcome.status == "fail"
    assert outcome.is_terminal == (how is TERMINAL)
    assert agent in outcome.failure_reason
    assert words in outcome.failure_reason
    assert not (result.logs_root / "work" / "response.md").exists()
    first = named(events, "ModelCallEnded")[0]
    assert first.error
    assert first.finish == ""


def test_what_a_failed_call_cost_is_counted(stubs):
    stubs.do("fail:limit")
    result, _ = run("claude")
    usage = result.usage_by_node["work"]
    assert (usage.input_tokens, usage.cost_usd, usage.calls) == (2 * 1210, 2 * 0.0125, 6)


CRASHES = {
    "unknown flag": ("--frobnicate", TerminalError, "may be too old"),
    "no such session": ("--resume=gone", TerminalError, "start a new thread"),
}


@pytest.mark.parametrize("name", CRASHES)
def test_a_program_that_refuses_its_command_line_is_a_terminal_error(stubs, name):
    flag, error, hint = CRASHES[name]
    with pytest.raises(error, match="claude ended with exit code 1") as caught:
        asyncio.run(ClaudeBackend(arguments=(flag,)).run(Node("work"), "Mend it.", Context()))
    assert hint in caught.value.hint


def test_codex_outside_of_a_repository_says_how_to_go_on(stubs, monkeypatch):
    monkeypatch.setenv("STUB_NO_GIT", "1")
    result, _ = run("codex", 'allowed_tools="write"', trust=True)
    assert "skip-git-repo-check" in result.reason
    assert "git repository" in result.reason


def test_exit_code_0_with_an_empty_answer_is_retried(stubs, agent):
    stubs.do("empty")
    result, _ = run(agent)
    assert (result.status, len(stubs.calls)) == ("fail", 2)
    assert "the response is empty" in result.reason


@pytest.mark.parametrize(
    ("mode", "words"), [("silent", "its output is not that of"), ("no_end", "cut off"), ("half_line", "cut off")]
)
def test_exit_code_0_without_a_word_on_how_it_went_is_retried(stubs, agent, mode, words):
    stubs.do(mode)
    result, _ = run(agent)
    assert (result.status, len(stubs.calls)) == ("fail", 2)
    assert words in result.reason


def test_an_error_after_the_end_is_no_success(stubs, agent):
    stubs.do("exits_badly_after_success")
    result, _ = run(agent)
    assert result.status == "fail"
    assert "exit code 7: fatal: something after the end" in result.reason


def test_what_went_wrong_on_the_way_and_was_mended_is_no_failure(stubs):
    """Codex says that it goes on; ruling 47: an error of the other two counts."""
    stubs.do("complains_and_recovers")
    result, _ = run("codex")
    assert (result.status, result.context.get("work.response")) == ("success", "Done all the same.")


def test_an_agent_that_is_killed_is_retried_and_its_open_call_is_told(stubs, agent):
    stubs.do("open_tool")
    result, events = run(agent)
    assert (result.status, len(stubs.calls)) == ("fail", 2)
    assert "was ended by SIGKILL" in result.reason
    tool = named(events, "ToolCallEnded")[0]
    assert (tool.call_id, tool.error) == ("call_1", "the agent ended before it did")


def test_an_agent_that_asks_finds_its_input_closed(stubs, agent):
    stubs.do("asks")
    result, _ = run(agent)
    assert result.status == "fail"
    assert "stdin is closed" in result.reason


def test_the_last_line_need_not_be_ended(stubs, agent):
    stubs.do("no_newline")
    result, _ = run(agent)
    assert result.context.get("work.response") == "Whole."


def test_a_line_of_ten_megabytes_is_passed_over(stubs, agent):
    stubs.do("huge_line")
    result, _ = run(agent)
    assert result.context.get("work.response") == "Done after a huge line."
    assert (result.logs_root / "work" / "agent.jsonl").stat().st_size < 1_000_100


def test_whatever_else_is_in_the_stream_is_passed_over(stubs, agent):
    stubs.do("noise")
    result, events = run(agent)
    assert result.context.get("work.response") == "Done after noise ?."
    streamed = "".join(event.text for event in named(events, "StageOutput"))
    assert "\x1b" not in streamed
    assert "a helper's words" not in streamed


@pytest.mark.parametrize("mode", ["secret", "secret_failure"])
def test_secrets_that_an_agent_writes_are_in_no_file_event_or_reason(stubs, agent, mode, monkeypatch):
    monkeypatch.setenv("SERVICE_TOKEN", stubs.secret)
    stubs.do(mode)
    result, events = run(agent)
    places = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    assert any(path.name == "agent.jsonl" for path in places)
    for what in (stubs.secret, stubs.key):
        assert [path for path, data in places.items() if what.encode() in data] == []
        assert what not in result.reason
        assert what not in repr(events)
    told = "".join(event.text for event in named(events, "StageOutput"))
    assert mode == "secret_failure" or "[redacted]" in told


def test_an_agent_that_never_ends_is_ended_by_its_stages_timeout(stubs, agent):
    """It ignores TERM, and has a child that does."""
    stubs.do("hangs_with_children")
    result, events = run(agent, "timeout=1500ms, max_retries=0")
    assert result.status == "fail"
    assert "timeout: work took more than 1500ms" in result.reason
    assert not any(is_alive(pid) for pid in stubs.pids)
    assert named(events, "ModelCallEnded")[0].error == "it was cut off"


def test_a_stop_ends_an_agent_and_leaves_no_process(stubs, agent):
    stubs.do("hangs_with_children")
    thinking = threading.Event()

    def watch(event):
        if type(event).__name__ == "StageOutput":
            thinking.set()

    options = {"logs_root": "run", "durability": "fast", "observers": [watch]}
    handle = Pipeline(SOURCE.format("")).run(backend=agent, **options)
    assert thinking.wait(60)
    handle.cancel()
    assert handle.result(60).status == "interrupted"
    assert not any(is_alive(pid) for pid in stubs.pids)
    assert len(stubs.pids) == 2


def test_children_that_an_agent_leaves_behind_end_with_it(stubs, agent):
    stubs.do("leaves_children")
    result, _ = run(agent)
    assert result.status == "success"
    assert len(stubs.pids) == 2
    assert not any(is_alive(pid) for pid in stubs.pids)


WORDS = [
    ("429 Too Many Requests", FailureKind.LIMIT),
    ("Claude AI usage limit reached|1760000000", FailureKind.LIMIT),
    ("You've hit your weekly limit", FailureKind.LIMIT),
    ("429 insufficient_quota: check your plan and billing details", FailureKind.BILLING),
    (
        "You exceeded your current quota, please check your plan and billing details. RESOURCE_EXHAUSTED",
        FailureKind.LIMIT,
    ),
    ("429 Quota exceeded for quota metric 'requests per minute'; check your billing", FailureKind.LIMIT),
    ("API Error: 500 Internal Server Error", FailureKind.SERVER),
    ("status code 529", FailureKind.SERVER),
    ("connect ECONNREFUSED 127.0.0.1:1", FailureKind.NETWORK),
    ("getaddrinfo ENOTFOUND api.anthropic.com", FailureKind.NETWORK),
    ("curl: (6) Could not resolve host: api.openai.com", FailureKind.NETWORK),
    ("read ECONNRESET", FailureKind.SERVER),
    ("request timed out", FailureKind.SERVER),
    ("API Error: 403 forbidden", FailureKind.ACCESS),
    ("OAuth token has expired", FailureKind.ACCESS),
    (
        (
            "Your access token could not be refreshed because your refresh token was already used. "
            "Please log out and sign in again."
        ),
        FailureKind.ACCESS,
    ),
    ("API Error: 400 credit balance is too low", FailureKind.BILLING),
    ("API Error: 400 messages: text content blocks must be non-empty", FailureKind.REQUEST),
    ("error: unexpected argument '--json' found", FailureKind.FLAGS),
    ("error: unknown option '--effort'", FailureKind.FLAGS),
    ("Unknown arguments: approval-mode", FailureKind.FLAGS),
    ("No conversation found with session ID: x", FailureKind.SESSION),
    ("Gemini CLI is not running in a trusted directory: untrusted workspace", FailureKind.TRUST),
    ("processed 429 files and 503 lines", FailureKind.UNKNOWN),
    ("", FailureKind.UNKNOWN),
]


@pytest.mark.parametrize(("words", "kind"), WORDS)
def test_an_agents_words_tell_what_went_wrong(words, kind):
    assert kind_of(AgentFailure(words), {}) is kind


def test_the_servers_status_counts_for_more_than_words():
    assert kind_of(AgentFailure("please log in", status=503), {}) is FailureKind.SERVER


def test_an_exit_code_counts_where_words_say_nothing():
    kinds = {41: FailureKind.ACCESS}
    assert kind_of(AgentFailure("hm", exit_code=41), kinds) is FailureKind.ACCESS
    assert kind_of(AgentFailure("rate limit", exit_code=41), kinds) is FailureKind.LIMIT


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_of_failure_is_an_error_that_can_be_shown(kind, monkeypatch):
    monkeypatch.setattr(failures, "kind_of", lambda *_: kind)
    error = error_of(AgentFailure("words", exit_code=1), Claude(), NOW)
    assert isinstance(error, StageError)
    is_transient = kind in {FailureKind.LIMIT, FailureKind.NETWORK, FailureKind.SERVER, FailureKind.ANSWER}
    assert isinstance(error, RetryableError) == is_transient
    assert isinstance(error, TerminalError) == (not is_transient and kind is not FailureKind.UNKNOWN)
    # Ruling 51: nothing was asked where the account was refused or the network was missing.
    is_outside = kind in {FailureKind.ACCESS, FailureKind.BILLING, FailureKind.NETWORK}
    assert getattr(error, "is_unmeasured", False) == is_outside
    assert error.message == "claude ended with exit code 1: words"
    assert "{" not in error.hint


def test_long_words_of_a_failure_are_cut_to_their_end():
    error = error_of(AgentFailure("x" * 10_000 + "the end"), Claude(), NOW)
    assert len(error.message) < 600
    assert error.message.endswith("the end")


def test_a_signal_without_a_name_has_its_number():
    assert "was ended by signal 999" in error_of(AgentFailure(exit_code=-999), Claude(), NOW).message


@pytest.mark.parametrize("exit_code", [-9, -15, 137, 143])
def test_who_was_ended_from_outside_is_tried_again(exit_code):
    assert isinstance(error_of(AgentFailure("invalid api key", exit_code=exit_code), Claude(), NOW), RetryableError)


def test_what_went_wrong_on_the_way_does_not_class_another_end():
    transcript = Transcript()
    transcript.take(Complained("overloaded", 529), 0.0)
    transcript.take(Ended(is_failure=True, error="error_max_turns"), 0.0)
    failure = transcript.failure(CommandOutput(1, "", ""))
    assert (failure.words, failure.status) == ("error_max_turns", 0)


def test_the_status_of_what_went_wrong_holds_for_an_end_that_repeats_it():
    transcript = Transcript()
    transcript.take(Complained("try later", 529), 0.0)
    transcript.take(Ended(is_failure=True, error="API Error: try later"), 0.0)
    assert transcript.failure(CommandOutput(1, "", "")).status == 529


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("authentication_failed", 401, FailureKind.ACCESS),
        ("billing_error", 402, FailureKind.BILLING),
        ("invalid_request", 400, FailureKind.REQUEST),
        ("rate_limit", 429, FailureKind.LIMIT),
        ("server_error", 500, FailureKind.SERVER),
        ("overloaded", 529, FailureKind.SERVER),
        ("unknown", 0, FailureKind.UNKNOWN),
    ],
)
def test_an_error_that_claude_names_has_the_status_of_its_server(name, status, kind):
    """The words say nothing here: the name alone tells what went wrong."""
    transcript = Transcript()
    message = {"content": [{"type": "text", "text": "It did not work."}]}
    for line in (
        {"type": "assistant", "error": name, "message": message},
        {"type": "result", "subtype": "success", "is_error": True, "result": "It did not work."},
    ):
        for event in Claude().read(line):
            transcript.take(event, 0.0)
    failure = transcript.failure(CommandOutput(1, "", ""))
    assert (failure.words, failure.status, kind_of(failure, {})) == ("It did not work.", status, kind)


def test_outside_of_a_run_a_failure_is_raised(stubs):
    stubs.do("fail:limit")
    with pytest.raises(RetryableError, match="429"):
        call()
    assert stubs.calls[0]["cwd"] == str(Path.cwd())


# Limits that say when they end

RESETS = {
    "Claude AI usage limit reached|1772373600": 3600,
    "Claude AI usage limit reached|1772373600000": 3600,
    "Claude usage limit reached. Your limit will reset at 3pm (Europe/Berlin).": 3600,
    "5-hour limit reached ∙ resets 3pm": 7200,
    "You've hit your limit · resets 3:30pm (America/New_York)": 27_000,
    "Weekly limit reached ∙ resets Mar 6, 5pm (UTC)": 446_400,
    "Limit reached, resets at 15:00": 7200,
    "Limit reached ∙ resets 12pm": 82_800,
    "Limit reached ∙ resets 12:55pm": 0,
    "You've hit your usage limit. Try again in 2 hours 5 minutes.": 7500,
    "You've hit your usage limit. Try again in 3 days, 2 hours and 1 minute": 266_460,
    "You've hit your usage limit. Or try again at Mar 7th, 2026 3:05 PM.": 525_900,
    "Rate limit reached for gpt-5. Please try again in 1.898s.": 1.898,
    "Rate limit reached for gpt-5. Please try again in 20ms.": 0.02,
    "RESOURCE_EXHAUSTED: Your quota will reset after 3h20m15s.": 12_015,
    "Quota exceeded. Please retry in 32.5s.": 32.5,
    "rate limit: retry 3 times": None,
    "rate limit: try again at 99pm": None,
    "rate limit: resets 3:99pm": None,
    "rate limit: resets Feb 31 at 3pm": None,
    "rate limit: resets 3pm (Mars/Base)": None,
    "rate limit: resets in 900 days": None,
    "rate limit|1999999999": None,
    "rate limit: try again later": None,
}


@pytest.mark.parametrize("words", RESETS)
def test_a_limit_that_says_when_it_ends_is_tried_again_then(words):
    error = error_of(AgentFailure(words), Claude(), NOW)
    assert isinstance(error, RetryableError)
    assert error.retry_after_seconds == (None if RESETS[words] is None else pytest.approx(RESETS[words]))


@given(st.text(alphabet="resttry again in at 0123456789:apm,()|\u0130\n"))
def test_no_words_about_a_limit_are_too_strange(words):
    seconds = seconds_until_reset(words, NOW)
    assert seconds is None or 0 <= seconds <= 31 * 86_400


def test_a_call_asks_to_be_left_alone_as_long_as_the_agent_says(stubs):
    stubs.do("limit_resets")
    backend = ClaudeBackend(now=lambda: datetime(2026, 3, 1, 13, 59, 50, tzinfo=UTC))
    with pytest.raises(RetryableError) as caught:
        asyncio.run(backend.run(Node("work", {}), "Mend it.", Context()))
    assert caught.value.retry_after_seconds == 10
