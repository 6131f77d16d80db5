"""Section 11.9 of the specification, row by row: each condition decides which edge a run takes."""

import pytest

from attractor_nb import Outcome, StageStatus


@pytest.mark.parametrize(
    ("condition", "is_taken"),
    [
        pytest.param("context.env=prod", True, id="equals"),
        pytest.param("context.env=PROD", False, id="equals_is_case_sensitive"),
        pytest.param("context.env!=test", True, id="not_equals"),
        pytest.param("context.env!=prod", False, id="not_equals_the_same"),
        pytest.param("outcome=success && context.env=prod", True, id="and"),
        pytest.param("outcome=success && context.env=test", False, id="and_of_one_false"),
        pytest.param("context.env=prod && outcome=success && context.n=3", True, id="and_of_three"),
        pytest.param("outcome=success", True, id="outcome"),
        pytest.param("outcome=fail", False, id="another_outcome"),
        pytest.param("preferred_label=Ship", True, id="preferred_label"),
        pytest.param("context.ready=true", True, id="boolean_value"),
        pytest.param("context.n=3", True, id="integer_value"),
        pytest.param("context.missing=x", False, id="a_missing_key_is_empty"),
        pytest.param("context.missing!=x", True, id="a_missing_key_differs"),
    ],
)
def test_11_9_a_condition_decides(run_dot, condition, is_taken):
    reply = Outcome(StageStatus.SUCCESS, preferred_label="Ship", context_updates={"env": "prod", "n": 3, "ready": True})
    result = run_dot(
        f'a yes no start -> a a -> yes [condition="{condition}"] a -> no yes -> done no -> done', {"a": reply}
    )
    assert result.completed_nodes[2] == ("yes" if is_taken else "no")


def test_11_9_an_empty_condition_is_always_true(run_dot):
    assert run_dot('a start -> a a -> done [condition=""]').status == "success"
