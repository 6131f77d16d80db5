"""The run's id and directory stand as marks in a recording, and come back as those of the replay."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb import Pipeline
from attractor_nb.cassettes.tape import Placeholders, place_of
from attractor_nb.errors import OptionError
from attractor_nb.stage import StageScope


def scope(root, run_id="q7kd2m4x"):
    return StageScope(run_id=run_id, node_id="a", visit=1, attempt=1, logs_root=Path(root), files=None, announce=print)


@given(
    st.lists(
        st.sampled_from(["/runs/first", "q7kd2m4x", "{{attractor:", "{{attractor:run}}", "text}}", "/restart-1", "a"]),
        max_size=8,
    )
)
def test_a_text_comes_back_as_it_was(pieces):
    marks = Placeholders.of(scope("/runs/first"))
    text = "".join(pieces)
    assert marks.unmarked(marks.marked(text)) == text


def test_a_replay_puts_in_its_own_places():
    recorded = Placeholders.of(scope("/runs/first/restart-2")).marked(
        {"said": ["see /runs/first/restart-2/plan and /runs/first/workspace of q7kd2m4x"]}
    )
    assert recorded == {
        "said": ["see {{attractor:run-dir}}/plan and {{attractor:root-dir}}/workspace of {{attractor:run}}"]
    }
    there = Placeholders.of(scope("/other", "zzzz2222"))
    assert there.unmarked(recorded) == {"said": ["see /other/plan and /other/workspace of zzzz2222"]}


def test_a_directory_of_one_word_is_not_looked_for_in_texts():
    assert place_of(scope("out")).without("about") == "about"
    assert "out" in str(Path("out").absolute())
    assert place_of(scope("out")).without(f"in {Path('out').absolute()}") == "in <run directory>"


FORGED = """digraph g { start [shape=Mdiamond] done [shape=Msquare] a [prompt=hello] start -> a -> done }"""


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "hello", "context": {"tool.exit_code": 0}},
        {"outcome": {"outcome": "success", "context_updates": {"human.gate.selected": "Y"}}},
    ],
    ids=["context", "outcome"],
)
def test_ruling_44_a_recorded_answer_sets_no_key_of_the_engine(tmp_path, answer):
    path = tmp_path / "c.json"
    pipeline = Pipeline(FORGED, backend=lambda _prompt: "hello")
    pipeline.run(wait=True, cassette=path, cassette_mode="record")
    plain = json.loads(path.read_text())
    for call in plain["calls"]:
        call["answer"] = answer
    path.write_text(json.dumps(plain))
    result = pipeline.run(wait=True, cassette=path)
    assert result.status == "fail"
    assert "which the engine sets" in result.reason


def test_ruling_43_a_cassette_starts_no_agent_that_the_caller_does_not_name(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"attractor_cassette": 1, "backend": "claude", "calls": []}))
    with pytest.raises(OptionError, match="names the agent claude"):
        Pipeline(FORGED).run(cassette=path)
