"""A judge that asks a provider's model over HTTP: what is sent, what is paid, what an error page leaves."""

import json

import pytest

from attractor_nb import Pipeline
from attractor_nb.evaluation import judge

TEXT = """digraph answering {
    inputs="ticket"
    start [shape=Mdiamond]
    answer [prompt="$ticket"]
    done [shape=Msquare]
    start -> answer -> done
}"""
GOOD = json.dumps({"reason": "it is polite", "verdict": True})


def evaluated(tmp_path, scorer):
    pipeline = Pipeline(TEXT, backend=lambda prompt: "Sorry.", runs_dir=tmp_path / "runs")
    return pipeline.evaluate([{"id": "a", "ticket": "It crashes"}], scorer, wait=True)


@pytest.mark.parametrize("shape", ["openai", "anthropic", "google"])
def test_a_verdict_of_each_provider_is_read_priced_and_kept(serve, reply, backend_for, models, tmp_path, shape):
    server = serve(reply(GOOD, usage=(1000, 100)))
    backend = backend_for(server, shape)
    scorer = judge("The reply is polite.", model=models[shape], backend=backend, cache=tmp_path / "kept")
    evaluation = evaluated(tmp_path, scorer)
    score = evaluation[0].scores["judge"][0]
    assert (score.value, score.reason) == (True, "it is polite")
    assert 0 < score.cost_usd < 0.1
    asked = json.dumps(server.asked[0].body)
    assert "The reply is polite." in asked
    assert "It crashes" in asked
    again = evaluated(tmp_path, scorer)
    assert (again[0].scores["judge"][0].value, again.scorer_cost_usd, len(server.asked)) == (True, 0.0, 1)
    assert not list((evaluation.directory / "row-00000").rglob("request*.json")), "the run asked no model"


def test_a_refused_key_leaves_the_row_unmeasured(serve, reply, backend_for, models, tmp_path):
    server = serve(reply(status=401, error="bad key"))
    scorer = judge("Polite.", model=models["openai"], backend=backend_for(server), cache=False)
    score = evaluated(tmp_path, scorer)[0].scores["judge"][0]
    assert score.state == "unmeasured"
    assert score.reason.startswith("the judge could not be asked: ")
    assert len(server.asked) == 1


def test_a_busy_server_is_asked_again(serve, reply, backend_for, models, tmp_path):
    server = serve(reply(status=429, error="slow down", headers={"retry-after": "0"}), reply(GOOD))
    scorer = judge("Polite.", model=models["openai"], backend=backend_for(server), cache=False)
    assert evaluated(tmp_path, scorer)[0].scores["judge"][0].value is True
    assert len(server.asked) == 2
