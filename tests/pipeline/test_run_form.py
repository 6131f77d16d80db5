"""The form of a pipeline's declared inputs: what is filled in becomes the params of a run."""

import pytest
from pydantic import BaseModel

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError

ASK = """digraph ask {
    %s
    start [shape=Mdiamond]
    ask [prompt="Answer $ticket in a $tone voice."]
    done [shape=Msquare]
    start -> ask -> done
}"""


class Ticket(BaseModel):
    ticket: str
    count: int = 1
    is_urgent: bool = False
    tags: list[str] = []
    tone: str = "plain"


def asking(declaration, **options):
    return Pipeline(ASK % declaration, **options)


def test_what_is_filled_in_reaches_the_prompt_and_empty_fields_are_defaults():
    form = asking('inputs="ticket, tone=plain"').form(durability="none")
    run = form.submit({"ticket": "the printer", "tone": "  "})
    assert form.run is run
    assert run.result().is_success
    assert run.result()["ask"].prompt.endswith("Answer the printer in a plain voice.")


def test_fields_of_a_model_have_their_types():
    form = asking('inputs_schema="Ticket"', schemas={"Ticket": Ticket}).form(durability="none")
    assert [each.type for each in form.inputs] == ["string", "integer", "boolean", "array", "string"]
    filled = {"ticket": "x", "count": "3", "is_urgent": True, "tags": '["a", "b"]', "tone": ""}
    context = form.submit(filled).result().context
    assert [context[name] for name in filled] == ["x", 3, True, ["a", "b"], "plain"]


@pytest.mark.parametrize(
    ("filled", "says"),
    [
        ({"ticket": ""}, "ticket"),
        ({"ticket": "x", "tags": "a, b"}, "tags is not a JSON array: a, b"),
        ({"ticket": "x", "count": "many"}, "count"),
    ],
    ids=["missing", "no JSON", "no number"],
)
def test_what_does_not_fit_is_refused_and_nothing_is_started(filled, says):
    form = asking('inputs_schema="Ticket"', schemas={"Ticket": Ticket}).form(durability="none")
    with pytest.raises(OptionError, match=says):
        form.submit(filled)
    assert form.run is None


def test_the_form_as_text_says_how_to_run_it():
    assert str(asking('inputs="ticket, tone=plain"').form()).splitlines() == [
        "ticket  required",
        "tone    plain",
        'run it with pipeline.run(params={"ticket": …})',
    ]
