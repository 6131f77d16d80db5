"""The number, the delay and the causes of retries of a stage (spec 3.5, 3.6; ruling 13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.commits import checked_outcome
from attractor_nb.decisions.retries import (
    PRESETS,
    BackoffConfig,
    RetryPolicy,
    build_retry_policy,
    delay_seconds,
    final_outcome,
    outcome_of_exception,
    should_retry,
)
from attractor_nb.errors import (
    ConditionSyntaxError,
    ContextValueError,
    OptionError,
    RetryableError,
    StageError,
    TerminalError,
    UntrustedSource,
    ValidationError,
)
from attractor_nb.model.outcome import Outcome, StageStatus

MAX_REASON_CHARACTERS = 4000

FAIL, RETRY = Outcome.fail("no"), Outcome.retry("later")
TERMINAL = Outcome.fail("no key", is_terminal=True)


def highest(_low: float, high: float) -> float:
    return high


POLICIES = {
    "nothing written": ({}, {}, 1, 200, False),
    "max_retries on the node": ({"max_retries": 3}, {}, 4, 200, True),
    "max_retries of zero": ({"max_retries": 0}, {}, 1, 200, True),
    "a negative number counts as zero": ({"max_retries": -2}, {}, 1, 200, True),
    "default_max_retries on the graph": ({}, {"default_max_retries": 2}, 3, 200, True),
    "its alias": ({}, {"default_max_retry": 2}, 3, 200, True),
    "the canonical name before its alias": ({}, {"default_max_retry": 9, "default_max_retries": 2}, 3, 200, True),
    "the node before the graph": ({"max_retries": 1}, {"default_max_retries": 5}, 2, 200, True),
    "a preset on the node": ({"retry_policy": "patient"}, {}, 3, 2000, False),
    "a preset on the graph": ({}, {"retry_policy": "aggressive"}, 5, 500, False),
    "the node's preset before the graph's": ({"retry_policy": "linear"}, {"retry_policy": "patient"}, 3, 500, False),
    "the node's preset before the graph's number": (
        {"retry_policy": "none"},
        {"default_max_retries": 5},
        1,
        200,
        False,
    ),
    "a number with the delays of a preset": ({"max_retries": 7, "retry_policy": "patient"}, {}, 8, 2000, True),
    "the graph's number with the graph's delays": (
        {},
        {"default_max_retries": 1, "retry_policy": "linear"},
        2,
        500,
        True,
    ),
    "an unknown preset counts as none": ({"retry_policy": "forever"}, {}, 1, 200, False),
}


@pytest.mark.parametrize(
    ("node_attrs", "graph_attrs", "attempts", "delay_ms", "retries_failures"), POLICIES.values(), ids=POLICIES
)
def test_a_policy_comes_from_the_nearest_place_that_names_one(
    build, node_attrs, graph_attrs, attempts, delay_ms, retries_failures
):
    graph = build.graph(nodes={"work": node_attrs}, **graph_attrs)
    policy = build_retry_policy(graph.nodes["work"], graph)
    assert (policy.max_attempts, policy.backoff.initial_delay_ms, policy.retries_failures) == (
        attempts,
        delay_ms,
        retries_failures,
    )


PRESET_DELAYS = {
    "standard": [0.2, 0.4, 0.8, 1.6, 3.2],
    "aggressive": [0.5, 1.0, 2.0, 4.0, 8.0],
    "linear": [0.5, 0.5, 0.5],
    "patient": [2.0, 6.0, 18.0],
}


@pytest.mark.parametrize(("name", "delays"), PRESET_DELAYS.items(), ids=PRESET_DELAYS)
def test_presets_have_the_attempts_and_delays_of_spec_3_6(name, delays):
    preset = PRESETS[name]
    no_jitter = lambda low, high: 1.0  # noqa: E731 - one word for the table
    assert [delay_seconds(preset.backoff, attempt, no_jitter) for attempt in range(1, len(delays) + 1)] == delays
    assert preset.max_attempts == len(delays)


def test_the_preset_none_never_retries():
    assert PRESETS["none"].max_attempts == 1


def test_ruling_13_jitter_is_applied_before_the_cap_so_the_cap_holds():
    backoff = BackoffConfig(initial_delay_ms=50_000, max_delay_ms=60_000)
    assert delay_seconds(backoff, 1, highest) == 60.0


def test_without_jitter_chance_is_never_asked():
    def refuse(_low: float, _high: float) -> float:
        raise AssertionError

    assert delay_seconds(BackoffConfig(has_jitter=False), 2, refuse) == 0.4


def test_jitter_multiplies_by_half_to_one_and_a_half():
    asked = []
    delay_seconds(BackoffConfig(), 1, lambda low, high: asked.append((low, high)) or 1.0)
    assert asked == [(0.5, 1.5)]


@given(
    st.builds(BackoffConfig, st.integers(0, 10**6), st.floats(0.0, 100.0), st.integers(0, 10**6), st.booleans()),
    st.integers(1, 10_000),
    st.floats(0.5, 1.5),
)
def test_every_delay_lies_between_zero_and_the_cap(backoff, attempt, chance):
    delay = delay_seconds(backoff, attempt, lambda low, high: chance)
    assert 0 <= delay <= backoff.max_delay_ms / 1000


BOTH = RetryPolicy(3, retries_failures=True)
ONLY_RETRY = RetryPolicy(3)
DECISIONS = {
    "RETRY with attempts left": (ONLY_RETRY, RETRY, 1, True),
    "RETRY at the last attempt": (ONLY_RETRY, RETRY, 3, False),
    "RETRY without any retries": (RetryPolicy(), RETRY, 1, False),
    "FAIL where nobody wrote max_retries": (ONLY_RETRY, FAIL, 1, False),
    "FAIL where max_retries is written": (BOTH, FAIL, 2, True),
    "FAIL at the last attempt": (BOTH, FAIL, 3, False),
    "terminal FAIL": (BOTH, TERMINAL, 1, False),
    "terminal RETRY": (BOTH, Outcome(StageStatus.RETRY, is_terminal=True), 1, False),
    "SUCCESS": (BOTH, Outcome.success(), 0, False),
    "PARTIAL_SUCCESS": (BOTH, Outcome(StageStatus.PARTIAL_SUCCESS), 0, False),
    "SKIPPED (ruling 20)": (BOTH, Outcome(StageStatus.SKIPPED), 0, False),
}


@pytest.mark.parametrize(("policy", "outcome", "failures", "expected"), DECISIONS.values(), ids=DECISIONS)
def test_ruling_13_retry_is_retried_and_fail_only_where_retries_are_written_and_it_is_not_terminal(
    policy, outcome, failures, expected
):
    assert should_retry(policy, outcome, failures) is expected


REFUSED = Outcome.retry("no verdict", complaint="It could not be used: no verdict.")
TERMINAL_RETRY = Outcome(StageStatus.RETRY, is_terminal=True)
UNTOLD = "it asked to be tried again, and no retry is allowed"
EXHAUSTED = {
    "retries made": ({"max_retries": 1}, RETRY, 2, "max retries exceeded: later"),
    "retries made, without a reason": ({"max_retries": 1}, Outcome(StageStatus.RETRY), 2, "max retries exceeded"),
    "no retry allowed": ({"max_retries": 0}, RETRY, 1, "later"),
    "no retry written": ({}, RETRY, 1, "later"),
    "no retry allowed, without a reason": ({"max_retries": 0}, Outcome(StageStatus.RETRY), 1, UNTOLD),
    "terminal at the first attempt": ({"max_retries": 3}, TERMINAL_RETRY, 1, UNTOLD),
    "the notes are the reason": ({}, Outcome(StageStatus.RETRY, notes="2 of 3"), 1, "2 of 3"),
    "terminal, whatever allow_partial says": ({"allow_partial": True}, TERMINAL_RETRY, 1, UNTOLD),
    "refused at a goal gate, whatever allow_partial says": (
        {"allow_partial": True, "goal_gate": True},
        REFUSED,
        1,
        "no verdict",
    ),
}


@pytest.mark.parametrize(("attrs", "outcome", "failures", "reason"), EXHAUSTED.values(), ids=EXHAUSTED)
def test_a_retry_that_is_not_made_is_a_failure_and_says_max_retries_only_where_some_were(
    build, attrs, outcome, failures, reason
):
    planned = build.plan(nodes={"work": attrs}).nodes["work"]
    final = final_outcome(planned, outcome, failures)
    assert (final.status, final.failure_reason) == (StageStatus.FAIL, reason)


@pytest.mark.parametrize(
    ("attrs", "outcome", "expected"),
    [
        ({"max_retries": 1}, Outcome(StageStatus.RETRY), "retries exhausted, partial accepted"),
        ({"max_retries": 1}, Outcome(StageStatus.RETRY, notes="2 of 3"), "retries exhausted, partial accepted: 2 of 3"),
        ({"max_retries": 0}, Outcome(StageStatus.RETRY, notes="2 of 3"), "partial accepted: 2 of 3"),
        ({"max_retries": 1, "goal_gate": True}, RETRY, "retries exhausted, partial accepted"),
        ({"max_retries": 1}, REFUSED, "retries exhausted, partial accepted"),
    ],
    ids=["no notes", "notes are kept", "no retries", "a goal gate", "a refused answer at no gate"],
)
def test_allow_partial_accepts_exhausted_retries_as_partial_success(build, attrs, outcome, expected):
    planned = build.plan(nodes={"work": {"allow_partial": True, **attrs}}).nodes["work"]
    final = final_outcome(planned, outcome, planned.retry.max_attempts)
    assert (final.status, final.notes, final.complaint) == (StageStatus.PARTIAL_SUCCESS, expected, "")


@pytest.mark.parametrize("outcome", [FAIL, TERMINAL, Outcome.success("fine")], ids=["fail", "terminal", "success"])
def test_any_other_outcome_is_final_as_it_is(build, outcome):
    planned = build.plan(nodes={"work": {"allow_partial": True}}).nodes["work"]
    assert final_outcome(planned, outcome, 1) is outcome


class HttpError(Exception):
    def __init__(self, status: object, name: str = "status_code") -> None:
        super().__init__(f"HTTP {status}")
        setattr(self, name, status)


class ResponseError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("bad response")
        self.response = HttpError(status)


class APIConnectionError(Exception):
    """Named like an SDK's own, which derives from nothing that we know."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Hostile(Exception):
    @property
    def status_code(self) -> int:
        raise RuntimeError


TRANSIENT = {
    "RetryableError": RetryableError("busy"),
    "connection refused": ConnectionRefusedError("refused"),
    "timeout": TimeoutError(),
    "an SDK's network error": APIConnectionError("gone"),
    "HTTP 408": HttpError(408),
    "HTTP 409": HttpError(409),
    "HTTP 429": HttpError(429),
    "HTTP 500": HttpError(500),
    "HTTP 529 on the response": ResponseError(529),
    "HTTP 503 as code": HttpError(503, "code"),
}
PERMANENT = {
    "TerminalError": TerminalError("no key"),
    "ValidationError": ValidationError([]),
    "OptionError": OptionError("no such backend"),
    "a text that does not parse": ConditionSyntaxError("bad"),
    "UntrustedSource": UntrustedSource("not yours"),
    "HTTP 400": HttpError(400),
    "HTTP 401": HttpError(401),
    "HTTP 403": HttpError(403),
    "HTTP 404 on the response": ResponseError(404),
    "HTTP 422": HttpError(422),
}
UNKNOWN = {
    "KeyError": KeyError("missing"),
    "StageError itself": StageError("odd"),
    "ContextValueError": ContextValueError("a set"),
    "a code that is no HTTP status": HttpError(7, "code"),
    "a status that is a text": HttpError("500"),
    "a status that raises": Hostile("odd"),
    "SystemExit": SystemExit(1),
}


@pytest.mark.parametrize("error", TRANSIENT.values(), ids=TRANSIENT)
def test_transient_exceptions_are_retried(error):
    assert outcome_of_exception(error).status is StageStatus.RETRY


@pytest.mark.parametrize("error", PERMANENT.values(), ids=PERMANENT)
def test_permanent_exceptions_fail_for_good(error):
    outcome = outcome_of_exception(error)
    assert (outcome.status, outcome.is_terminal) == (StageStatus.FAIL, True)


@pytest.mark.parametrize("error", UNKNOWN.values(), ids=UNKNOWN)
def test_any_other_exception_is_a_failure_that_may_be_retried(error):
    outcome = outcome_of_exception(error)
    assert (outcome.status, outcome.is_terminal) == (StageStatus.FAIL, False)


REASONS = {
    "class and message": (ValueError("too big"), "ValueError: too big"),
    "no message": (TimeoutError(), "TimeoutError"),
    "our hint": (TerminalError("no key", hint="set one"), "no key (set one)"),
    "a message that raises": (Unprintable(), "Unprintable: (its message cannot be shown)"),
    "a lone surrogate": (ValueError("a\ud800b"), r"ValueError: a\ud800b"),
}


@pytest.mark.parametrize(("error", "reason"), REASONS.values(), ids=REASONS)
def test_the_reason_names_the_exception(error, reason):
    assert outcome_of_exception(error).failure_reason == reason


def test_a_very_long_message_is_cut():
    reason = outcome_of_exception(ValueError("x" * 10**6)).failure_reason
    assert len(reason) < MAX_REASON_CHARACTERS + 100


@pytest.mark.parametrize(
    ("asked", "delay"),
    [(None, 0.2), (0.0, 0.2), (7.0, 7.0), (90.0, 90.0), (86_400.0, 600.0)],
    ids=["nobody_asked", "at_once", "seconds", "longer_than_the_cap_of_jitter", "a_day"],
)
def test_a_wait_that_is_asked_for_is_kept_within_ten_minutes(asked, delay):
    assert delay_seconds(BackoffConfig(has_jitter=False), 1, lambda low, high: high, asked) == delay


def test_how_long_a_failed_stage_must_wait_is_its_outcomes():
    outcome = outcome_of_exception(RetryableError("busy", retry_after_seconds=7.0))
    assert (outcome.status, outcome.retry_after_seconds) == (StageStatus.RETRY, 7.0)
    assert Outcome.from_plain(outcome.to_plain()) == outcome


@pytest.mark.parametrize("asked", ["7", -1.0, float("nan"), float("inf"), True])
def test_a_wait_that_is_no_number_of_seconds_fails_its_stage(asked):
    outcome = Outcome(StageStatus.RETRY, failure_reason="busy", retry_after_seconds=asked)
    assert "as retry_after_seconds" in checked_outcome(outcome, "plan").failure_reason
