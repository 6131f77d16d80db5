"""Section 11.5 of the specification, row by row."""

import pytest

from attractor_nb import Outcome
from attractor_nb.testing import ManualClock, ScriptedBackend


class FixedChance:
    """Jitter that always gives the same share of its range."""

    def __init__(self, share):
        self.share = share

    def uniform(self, low, high):
        return low + (high - low) * self.share

    def new_id(self):
        return "aaaaaaaa"


def tried(run_dot, attrs, reply, *, chance=0.5):
    """The result of a pipeline of one stage, how often it was tried, and the delays."""
    clock, backend = ManualClock(), ScriptedBackend({"a": reply})
    result = run_dot(
        f'a [{attrs}] start -> a a -> done [condition="outcome=success"] a -> mend [condition="outcome=fail"]'
        " mend mend -> done",
        clock=clock,
        backend=backend,
        randomness=FixedChance(chance),
    )
    return result, len([call for call in backend.calls if call.node_id == "a"]), clock.sleeps


@pytest.mark.parametrize("bad", [Outcome.retry("busy"), Outcome.fail("wrong")], ids=["retry", "fail"])
def test_11_5_a_node_with_max_retries_is_retried_on_retry_and_fail(run_dot, bad):
    result, attempts, _ = tried(run_dot, "max_retries=2", [bad, bad, "fine"])
    assert (result.status, attempts) == ("success", 3)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_11_5_the_limit_is_kept_for_each_node(run_dot, retries):
    result, attempts, _ = tried(run_dot, f"max_retries={retries}", Outcome.retry("busy"))
    assert attempts == retries + 1
    assert result.visits["a"] == 1


@pytest.mark.parametrize(
    ("preset", "delays"),
    [
        ("standard", [0.2, 0.4, 0.8, 1.6]),
        ("aggressive", [0.5, 1.0, 2.0, 4.0]),
        ("linear", [0.5, 0.5, 0.5, 0.5]),
        ("patient", [2.0, 6.0, 18.0, 54.0]),
    ],
)
def test_11_5_delays_are_constant_linear_or_exponential_as_configured(run_dot, preset, delays):
    _, _, slept = tried(run_dot, f"max_retries=4, retry_policy={preset}", Outcome.retry("busy"))
    assert slept == pytest.approx(delays)


@pytest.mark.parametrize(("share", "factor"), [(0, 0.5), (0.5, 1.0), (1, 1.5)])
def test_11_5_jitter_is_applied_to_delays(run_dot, share, factor):
    _, _, slept = tried(run_dot, "max_retries=2", Outcome.retry("busy"), chance=share)
    assert slept == pytest.approx([0.2 * factor, 0.4 * factor])


def test_11_5_after_exhaustion_the_final_outcome_selects_the_edge(run_dot):
    result, attempts, _ = tried(run_dot, "max_retries=1", Outcome.retry("busy"))
    assert attempts == 2
    assert result.completed_nodes == ("start", "a", "mend", "done")
    assert "max retries exceeded: busy" in result.outcomes["a"].failure_reason
