"""Outcomes without secrets, whatever a handler put in them."""

import pytest

from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.redacted import redacted_outcome

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 10


@pytest.mark.parametrize("notes", ["fine", 3, None, ["a list"]], ids=repr)
def test_a_secret_beside_what_is_no_text_is_taken_out(notes):
    outcome = Outcome(StageStatus.FAIL, notes=notes, failure_reason=f"refused {SECRET}")
    clean = redacted_outcome(outcome)
    assert (clean.notes, clean.failure_reason) == (notes, "refused [redacted]")


def test_an_outcome_without_secrets_is_given_back_as_it_is():
    outcome = Outcome(StageStatus.FAIL, notes="fine", context_updates={"a": 1, "b": "text"})
    assert redacted_outcome(outcome) is outcome
