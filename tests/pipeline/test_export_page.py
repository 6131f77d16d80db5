"""``run.export_html``: a run as one page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, Run, redact_also
from attractor_nb.errors import RunNotFound, StorageError
from attractor_nb.studio import export_page as exporting
from attractor_nb.views.frontend import json_text

TEXT = """digraph review { graph [goal="ship"]
  start [shape=Mdiamond] done [shape=Msquare] plan [prompt="Plan"] check
  start -> plan -> check
  check -> done [condition="context.n=2"]
  check -> plan [condition="context.n!=2"] }"""


def exported(tmp_path, *, text=TEXT, words="a plan", name="run"):
    def answer(node, prompt, context):
        if node.id == "check":
            return Outcome.success(context_updates={"n": context.get("n", 0) + 1})
        return words

    run = Pipeline(text, backend=FunctionBackend(answer)).run(logs_root=tmp_path / name)
    run.result()
    return run, run.export_html(tmp_path / f"{name}.html").read_text()


def values_of(page):
    return json.loads(re.search(r'<script type="application/json" id="values">(.*?)</script>', page, re.DOTALL)[1])


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_a_page_holds_the_replay_and_every_visit_of_every_stage(tmp_path):
    run, page = exported(tmp_path)
    values = values_of(page)
    assert set(values["stages"]) == {"start@1", "plan@1", "check@1", "plan@2", "check@2", "done@1"}
    assert values["stages"]["plan@2"]["response"] == "a plan"
    assert len(values["replay"]["frames"]) == len(run.journal().events)
    assert values["caption"] == "review"
    assert "<h1>Run of review</h1>" in page


def test_it_loads_nothing_and_runs_its_own_script_only(tmp_path):
    _, page = exported(tmp_path)
    tags = Tags(page).found
    (policy,) = [attrs["content"] for tag, attrs in tags if attrs.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.partition("style-src")[0]
    assert [attrs.get("type") for tag, attrs in tags if tag == "script"] == ["application/json", "module"]
    assert not [attrs for _, attrs in tags if {"src", "href", "srcset", "action"} & attrs.keys()]
    assert not [name for _, attrs in tags for name in attrs if name.startswith("on")]


def test_a_loaded_run_and_a_path_of_ones_own(tmp_path, monkeypatch):
    run, page = exported(tmp_path)
    monkeypatch.chdir(tmp_path)
    path = Run.load(run.logs_root).export_html()
    assert path.name == f"run-{run.id}.html"
    assert values_of(path.read_text()) == values_of(page)


def test_secrets_made_known_after_the_run_are_not_in_the_page_and_neither_is_its_place(tmp_path):
    key = "planted-0a1b2c3d4e5f6789"
    run, _ = exported(tmp_path, words=f"the key is {key}", text=TEXT.replace("Plan", f"Plan {key}"))
    redact_also(key)
    page = run.export_html(tmp_path / "again.html").read_text()
    assert "planted" not in page
    assert "[redacted]" in page
    assert str(tmp_path) not in page


HOSTILE = '</script><script>alert(1)</script>--><img src=x onerror=alert(2)>\u2028"\\'


def test_hostile_texts_are_data(tmp_path):
    run, page = exported(tmp_path, words=HOSTILE, text=TEXT.replace('goal="ship"', 'goal="<script>alert(3)"'))
    assert len([tag for tag, _ in Tags(page).found if tag == "script"]) == 2
    assert not [tag for tag, _ in Tags(page).found if tag == "img"]
    assert values_of(page)["stages"]["plan@1"]["response"] == HOSTILE
    assert run.status == "completed"


def test_json_in_a_page_cannot_end_its_element():
    text = json_text({"<": "&>\u2028\ud800"})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"<": "&>\u2028\ud800"}


def chain(count):
    names = [f"s{n}" for n in range(count)]
    nodes = " ".join(f'{name} [prompt="{name}"]' for name in names)
    return (
        f"digraph big {{ start [shape=Mdiamond] done [shape=Msquare] {nodes} start -> {' -> '.join(names)} -> done }}"
    )


@pytest.mark.campaign
def test_fifty_stages_with_long_texts_stay_below_two_megabytes_and_the_page_says_what_was_cut(tmp_path):
    _, page = exported(tmp_path, text=chain(50), words="many words " * 5_000)
    assert len(page.encode()) <= 2_000_000
    assert "To keep this page small, texts are cut to" in page
    stage = values_of(page)["stages"]["s49@1"]
    assert stage["response"].startswith("many words")
    assert stage["cut"]["response"] == 55_000
    assert len(values_of(page)["stages"]) == 52


def test_beyond_that_the_first_visits_lose_their_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "MAX_BYTES", 60_000)
    _, page = exported(tmp_path, text=chain(20), words="many words " * 200)
    stages = values_of(page)["stages"]
    assert 0 < len(stages) < 22
    assert "done@1" in stages
    assert "visits are left out" in page


def test_a_run_that_goes_on_is_exported_as_far_as_it_has_come(tmp_path):
    run = Pipeline(TEXT.replace("check\n", "check [shape=hexagon]\n", 1), backend="simulated").run(
        logs_root=tmp_path / "live"
    )
    run.wait_for_gate("check", timeout=30)
    page = run.export_html(tmp_path / "live.html").read_text()
    run.cancel()
    assert values_of(page)["stages"]["plan@1"]["status"] == "success"
    assert "check@1" in values_of(page)["stages"]


def test_what_cannot_be_exported_says_why(tmp_path):
    unstored = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }").run(durability="none")
    unstored.result()
    with pytest.raises(RunNotFound, match="nothing of run"):
        unstored.export_html(tmp_path / "x.html")
    run, _ = exported(tmp_path)
    with pytest.raises(StorageError, match="cannot be written"):
        run.export_html(tmp_path / "nowhere" / "x.html")


def test_without_script_it_is_a_picture_and_a_table(tmp_path):
    _, page = exported(tmp_path)
    static = page.partition('<details id="static"')[2].partition('<script type="application/json"')[0]
    assert "<svg" in static
    assert 'aria-label="Stages"' in static
    assert "a plan" in static


def test_a_stage_that_cannot_be_read_keeps_nobody_from_the_others(tmp_path, monkeypatch):
    def inspect(run, past, known):
        if known.record.node_id == "plan":
            raise StorageError("cannot read plan")
        return inspect_visit(run, past, known)

    inspect_visit = exporting.inspect_visit
    monkeypatch.setattr(exporting, "inspect_visit", inspect)
    stages = values_of(exported(tmp_path)[1])["stages"]
    assert stages["plan@1"]["problems"] == ["cannot read plan"]
    assert stages["check@2"]["status"] == "success"
