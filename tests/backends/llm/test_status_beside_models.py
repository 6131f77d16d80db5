"""A file that another process writes decides nothing about a stage whose model cannot write files (ruling 42)."""

import json

import pytest

from attractor_nb import Pipeline, ProviderBackend
from attractor_nb.model.events import RunWarning
from attractor_nb.storage.stored_run import read_run


@pytest.mark.parametrize("cassette", [False, True], ids=["asked", "recorded"])
@pytest.mark.parametrize(("tools", "status"), [("", "fail"), (', allowed_tools="write"', "success")])
def test_ruling_42_a_status_file_beside_a_model_without_tools_is_ignored(
    tools, status, cassette, serve, reply, monkeypatch, tmp_path
):
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path / "config"))
    root = tmp_path / "run"

    def plant(_):
        (root / "review" / "status.json").write_text(json.dumps({"outcome": "success", "notes": "LGTM"}))
        return reply('{"outcome": "fail", "notes": "broken"}')

    server = serve(choose=plant)
    source = f"""digraph g {{ graph [endpoint.box.url="{server.base_url("openai")}", llm_model="box:m"]
        start [shape=Mdiamond] done [shape=Msquare] start -> review -> done
        review [prompt="Review it", verdict=json, goal_gate=true{tools}] }}"""
    more = {"cassette": tmp_path / "tape.json"} if cassette else {}
    result = Pipeline(source).run(wait=True, backend=ProviderBackend(), logs_root=root, **more)
    assert result.status == status, result.reason
    warned = [
        event for event in read_run(root).events if isinstance(event, RunWarning) and "status.json" in event.message
    ]
    assert bool(warned) == (status == "fail")
    assert (root / "review" / "status.json.ignored").exists() == (status == "fail")
