"""The tour as a reader finds it, and that the solutions of its exercises do what they say.

Its outputs are compared by nbval, which is a run of its own: see the target ``test`` of the Makefile.
"""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest
from pydantic import BaseModel

from attractor_nb import FunctionBackend, Outcome, Pipeline, QueueInterviewer, Run, current_stage, heat, lineage, runs
from attractor_nb.evaluation import matches

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
PRIVATE = re.compile(r"/tmp/|/home/|/root/|/work/|widget-view|\d{4}-\d\d-\d\dT\d\d")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def test_they_are_numbered_and_each_leads_back_and_on():
    read = [nbformat.read(path, as_version=4) for path in NOTEBOOKS]
    titles = [notebook.cells[0].source.partition("\n")[0].removeprefix("# ") for notebook in read]
    assert [int(path.name[:2]) for path in NOTEBOOKS] == list(range(1, len(NOTEBOOKS) + 1))
    for number, (path, notebook) in enumerate(zip(NOTEBOOKS, read, strict=True), 1):
        assert titles[number - 1].startswith(f"{number} · "), path.name
        ways = notebook.cells[-2].source
        if number > 1:
            assert f"Back: [{titles[number - 2]}]({NOTEBOOKS[number - 2].name})" in ways, path.name
        if number < len(NOTEBOOKS):
            assert f"Next: [{titles[number]}]({NOTEBOOKS[number].name})" in ways, path.name


def test_each_says_its_route_how_long_it_takes_and_what_it_is_for(notebook):
    route = notebook.cells[0].source.split("\n\n")[1]
    assert re.match(r"\*[A-Z][\w ]+, \d of \d: \d+ minutes; needs .+\. Afterwards you can .+\.\*$", route, re.DOTALL), (
        route
    )


def test_a_notebook_begins_with_a_title_and_the_extension(notebook):
    title, load = notebook.cells[:2]
    assert title.source.startswith("# ")
    assert load.source == "%load_ext attractor_nb"


def test_a_notebook_ends_with_an_exercise_and_a_folded_solution(notebook):
    exercise, empty = notebook.cells[-2:]
    assert exercise.source.startswith("## Exercise")
    assert "<details>" in exercise.source
    assert empty.source.startswith("#")


def test_each_cell_was_executed_in_order(notebook):
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_outputs_hold_nothing_of_the_machine_that_made_them(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert outputs
    assert not PRIVATE.search(json.dumps(outputs))
    assert not any("execution" in cell.metadata for cell in notebook.cells)


def test_only_the_models_words_are_left_uncompared(notebook):
    left_out = [cell for cell in notebook.cells if "nbval-ignore-output" in cell.metadata.get("tags", ())]
    assert all('backend="local"' in cell.source for cell in left_out)


# -- solutions of the exercises ----------------------------------------------------------------------

ENDS = "start [shape=Mdiamond] done [shape=Msquare] "


def test_exercise_1_the_new_stage_is_told_what_was_written():
    review = Pipeline(f"""digraph {{ {ENDS}
        write [prompt="a"] shorten [label="Shorten", prompt="Say it in one sentence. ${{write.response}}"]
        start -> write -> shorten -> done }}""")
    result = review.run(wait=True, backend=lambda node, prompt, context: f"text of {node.id}")
    assert result["shorten"].prompt.endswith("Say it in one sentence. text of write")


RELEASE = f"""digraph {{ {ENDS}
    draft [prompt="a"] publish [prompt="b"] sign_off [shape=hexagon, label="Publish?"]
    director [shape=hexagon, label="Director: publish?", human.timeout="20ms", human.default_choice="draft"]
    start -> draft -> sign_off
    sign_off -> publish [label="[A] Approve"]
    sign_off -> draft [label="[R] Revise"]
    sign_off -> director [label="[E] Escalate"]
    director -> publish [label="[P] Publish"]
    director -> draft [label="[N] Not yet"]
    publish -> done }}"""


def test_exercise_2_an_empty_queue_decides_nothing():
    result = Pipeline(RELEASE).run(wait=True, interviewer=QueueInterviewer(["E"]))
    assert (result.status, result.next_node or result.completed_nodes[-1]) == ("fail", "director")


def test_exercise_2_when_nobody_answers_the_default_sends_the_draft_back():
    run = Pipeline(RELEASE).run()
    run.wait_for_gate("sign_off")
    run.answer("sign_off", "E")
    run.wait_for_gate("sign_off", timeout=30)
    run.answer("sign_off", "A")
    assert run.result().visits["draft"] == 2


def test_exercise_3_the_value_of_the_new_input_stands_in_the_prompt():
    answer = Pipeline(f"""digraph {{ {ENDS} inputs="ticket, language=English"
        reply [prompt="Answer the customer in $language. $ticket"]
        start -> reply -> done }}""")
    result = answer.run(wait=True, params={"ticket": "Bonjour", "language": "French"})
    assert result["reply"].prompt.endswith("Answer the customer in French. Bonjour")


def test_exercise_4_the_test_is_repaired_and_run_again():
    build = Pipeline(f"""digraph {{ {ENDS}
        test [shape=parallelogram, goal_gate=true, retry_target="repair",
              tool_command="cd \\"$ATTRACTOR_LOGS_ROOT\\"; test -e mark || {{ touch mark; exit 1; }}"]
        repair [label="Repair", prompt="Repair what failed"]
        start -> test -> done
        repair -> test }}""")
    result = build.run(wait=True)
    assert result.completed_nodes == ("start", "test", "repair", "test", "done")
    assert result.status == "success"


def test_exercise_15_the_status_file_of_the_first_visit_is_kept():
    essay = Pipeline(f"""digraph {{ {ENDS}
        write [prompt="a"] check [prompt="b"]
        start -> write -> check
        check -> done [condition="outcome=success"]
        check -> write [condition="outcome=fail"] }}""")

    def agent(node, prompt, context):
        if node.id == "check" and current_stage().visit == 1:
            verdict = {"outcome": "fail", "suggested_next_ids": ["write"]}
            current_stage().files.write_text("status.json", json.dumps(verdict))
        return "text"

    result = essay.run(wait=True, backend=agent)
    first = json.loads((result.logs_root / "check" / "visits" / "1.1" / "status.json").read_text())
    assert (result.status, first["outcome"]) == ("success", "fail")


def test_exercise_5_the_editor_gives_up_its_child():
    worker = f"""digraph {{ {ENDS} outline [prompt="a"] draft [prompt="b", max_retries=3]
        start -> outline -> draft -> done }}"""
    strict = Pipeline(
        f"""digraph {{ {ENDS}
        editor [shape=house, stack.child_pipeline="worker", manager.escalate="context.stack.child.retries=1"]
        start -> editor -> done }}""",
        pipelines={"worker": worker},
    )

    def writer(node, prompt, context):
        return Outcome.retry("nobody understands a word") if node.id == "draft" else "text"

    result = strict.run(wait=True, backend=writer)
    assert (result.status, "Escalated" in result.reason) == ("fail", True)


def whole_cell(number, cell_id):
    """The text of a cell of a notebook."""
    (path,) = [path for path in NOTEBOOKS if path.name.startswith(number)]
    (cell,) = [cell for cell in nbformat.read(path, as_version=4).cells if cell.id == cell_id]
    return cell.source


def cell_source(number, cell_id):
    """The pipeline in a cell of a notebook."""
    return whole_cell(number, cell_id).split("\n", 1)[1]


def test_exercise_6_a_cheap_draft_and_a_second_model():
    text = cell_source("06", "sheet")
    release = Pipeline(text)
    text = text.replace("claude-haiku-4-5; reasoning_effort: low", "gpt-5-mini").replace(".hard   ", "#write  ")
    text = text.replace("            #review { llm_model: gpt-5.2; }\n", "")
    cheap = Pipeline(text)
    assert [choice.name.model for choice in cheap.models()] == [
        "gpt-5-mini",
        "claude-opus-4-6",
        "gpt-5-mini",
        "gpt-5-mini",
    ]
    safe = Pipeline(cheap.to_dot().replace('label="Write",', 'label="Write", llm_fallback="gpt-5.2",'))
    before, after = cheap.estimate(), safe.estimate()
    assert after.expected == before.expected
    assert after["write"].worst.calls == 2
    assert after.worst.cost_usd > before.worst.cost_usd
    assert release.estimate().expected.cost_usd > before.expected.cost_usd


def test_exercise_8_a_file_that_a_stage_depends_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []

    def model(prompt):
        asked.append(prompt.splitlines()[-1])
        return f"An answer to: {asked[-1]}"

    model.version = "1"
    text = cell_source("08", "essay").replace(
        'prompt="Write the essay."', 'prompt="Write the essay.", cache.files="style.txt"'
    )
    (tmp_path / "style.txt").write_text("plain")
    styled = Pipeline(text)
    for _ in range(2):
        styled.run(wait=True, backend=model, cache="cache", workdir=".")
    assert len(asked) == 3
    (tmp_path / "style.txt").write_text("ornate")
    result = styled.run(wait=True, backend=model, cache="cache", workdir=".")
    assert asked[3:] == ["Write the essay."]
    assert "style.txt" in str(result.why("write"))


def test_the_recording_of_notebook_6_is_that_of_its_pipeline():
    """Else: python tests/notebooks/record_cassettes.py, then refresh.py."""
    cassette = NOTEBOOKS[0].parent / "cassettes" / "release.json"
    release = Pipeline(cell_source("06", "sheet"))
    way = ["start", "outline", "write", "review", "polish", "done"]
    assert release.check(cassette, path=way, outcome="success", backend="llm").is_success


def test_the_recording_of_notebook_18_is_that_of_its_example():
    """Else: python tests/notebooks/record_cassettes.py ticket, then refresh.py."""
    example = Pipeline(NOTEBOOKS[0].parents[1] / "examples" / "ticket_to_release.dot")
    way = ["start", "research", "reviewers", "plan", "judge", "test", "fix", "repair", "test", "approve", "done"]
    checked = example.check(
        NOTEBOOKS[0].parent / "cassettes" / "ticket.json",
        path=way,
        outcome="success",
        params={"ticket": "0.1 + 0.2 is printed as 0.30000000000000004"},
    )
    assert checked.is_success
    assert "AssertionError" in checked["fix"].prompt


def test_the_recording_of_notebook_19_has_both_prompts_for_each_ticket():
    """Else: python tests/notebooks/record_cassettes.py replies, then refresh.py."""
    place = NOTEBOOKS[0].parent / "cassettes"
    guided = ast.literal_eval(whole_cell("19", "guided").split("=", 1)[1].strip())["reply.prompt"]
    written = [json.loads(line) for line in (place / "replies.jsonl").read_text("utf-8").splitlines()]
    calls = json.loads((place / "replies.json").read_text("utf-8"))["calls"]
    told = {
        (call["inputs"]["context"]["ticket"], guided.split("$")[0] in call["inputs"]["prompt"]): call for call in calls
    }
    for row in written:
        assert told[row["ticket"], False]["answer"]["text"] == row["plain"]
        assert told[row["ticket"], True]["answer"]["text"] == row["guided"]


def solution(number):
    """The code under the fold of a notebook's exercise."""
    (path,) = [path for path in NOTEBOOKS if path.name.startswith(number)]
    exercise = nbformat.read(path, as_version=4).cells[-2].source
    (code,) = re.findall(r"```(?:python)?\n(.*?)```", exercise, re.DOTALL)
    return code


def test_exercise_19_stored_runs_are_scored_again(tmp_path, capsys):
    pipeline = Pipeline(cell_source("19", "desk"), backend=lambda prompt: "go on " * 12, runs_dir=tmp_path)
    rows = [{"ticket": str(number)} for number in range(3)]
    comparison = pipeline.compare({"guided": {"reply.prompt": "Briefly: $ticket"}}, rows, matches("."))
    exec(solution("19"), {"comparison": comparison})
    assert (
        capsys.readouterr().out
        == "baseline 3 rows   brief 0 of 3, at most 56 %\nguided 3 rows   brief 0 of 3, at most 56 %\n"
    )


def test_exercise_9_the_goal_gate_is_why_draft_was_visited_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"Pipeline": Pipeline, "FunctionBackend": FunctionBackend, "Outcome": Outcome}
    exec(solution("09"), names)
    run = names["run"]
    assert run.result(30).visits["draft"] == 2
    assert run.explain_loop("draft").statement.endswith("because goal gate `check` was not satisfied")
    assert "gate" in str(run.explain("draft", 2))


def test_exercise_7_the_new_field_is_listed_as_required_and_used():
    class Sorted(BaseModel):
        urgent: bool
        reason: str

    desk = Pipeline(
        f"""digraph {{ {ENDS} sort [prompt="Sort it", response_schema=Sorted] reply [prompt="Because ${{sort.verdict.reason}}"]
        start -> sort -> reply -> done }}""",
        schemas={"Sorted": Sorted},
    )
    result = desk.run(wait=True, backend=lambda prompt: '{"urgent": true, "reason": "it is down"}')
    assert '"required": ["urgent", "reason"]' in result["sort"].prompt
    assert result["reply"].prompt.endswith("Because it is down")


def test_exercise_10_a_pinned_check_is_the_last_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"fixing": Pipeline(cell_source("10", "cell-02"))}
    exec(solution("10"), names)
    assert names["result"].completed_nodes == ("start", "plan", "repair", "check", "repair", "check", "done")


def test_exercise_13_the_run_with_most_visits_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    review = Pipeline(f"""digraph {{ {ENDS} plan [prompt="a"] decide [shape=hexagon, label="Merge it?"]
        start -> plan -> decide
        decide -> done [label="[M] Merge"]
        decide -> plan [label="[A] Again"] }}""")
    for name, choices in [("monday", "M"), ("wednesday", "AAM")]:
        review.run(wait=True, logs_root=f"kept/{name}", interviewer=QueueInterviewer(list(choices)))
    *before, last = solution("13").splitlines()
    names: dict = {"heat": heat, "runs": runs}
    exec("\n".join(before), names)
    assert re.search(r"^plan +2 +3 +2 ", capsys.readouterr().out, re.MULTILINE)
    assert eval(last, names) == "wednesday"


def test_exercise_14_three_edits_touch_few_lines():
    editor = Pipeline(cell_source("14", "release")).fixed().edit()
    editor.rename("build", "implement").rename("plan", "think")
    before = editor.source.splitlines()
    exec(solution("14"), {"editor": editor})
    after = editor.source.splitlines()
    assert len([line for line in before if line not in after]) == 1
    assert len([line for line in after if line not in before]) == 5
    assert ("think", "review") in [(edge.source, edge.target) for edge in editor.pipeline().graph.edges]


@pytest.mark.campaign
def test_exercise_16_what_the_killed_server_left_is_ended_by_another(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {"review": Pipeline(cell_source("16", "review"))}
    for cell in ("imports", "serve", "ask", "events"):
        text = whole_cell("16", cell)
        for call in ("os.chdir", "server, address", "json.load(ask", "for last_id"):  # what the notebook does at once
            text = text.partition(f"\n{call}")[0]
        exec(text, names)
    try:
        exec(solution("16"), names)
        assert names["server"].wait(60) == 0
    finally:
        names["server"].kill()
    said = capsys.readouterr().out.splitlines()
    assert said == ["['start', 'draft', 'gate', 'gate', 'done']"]
    assert Run.load(tmp_path / "served" / names["run"]).status == "completed"


def test_exercise_12_a_lenient_reviewer_ends_one_run_sooner_and_sends_one_back(tmp_path):
    text = cell_source("12", "share-02")
    release = Pipeline(text)

    def writer(*points):
        left = list(points)

        def answer(node, prompt, context):
            if node.id == "review":
                return Outcome.success(context_updates={"points": left.pop(0)})
            return "text"

        return answer

    runs = [
        release.run(wait=True, backend=writer(*points), logs_root=tmp_path / str(len(points)))
        for points in ((5,), (3, 5))
    ]
    first, second = (verdict.expected.turn for verdict in Pipeline(text.replace("=5", "=3")).hindsight(runs))
    assert (first.now, first.known) == ("draft", "not known from draft on")
    assert (second.now, second.visit, second.known) == ("done", 1, "the run would end at done")


def test_exercise_11_a_fork_before_the_first_plan_does_all_of_it_anew(tmp_path):
    release = Pipeline(cell_source("11", "travel-02"))
    names: dict = {}
    exec(cell_source("11", "travel-04").partition("\n\n\n")[0], names)
    run = release.run(backend=names["answer"], runs_dir=tmp_path)
    run.result(30)
    other = run.fork("plan", prompt="Plan less", backend=names["answer"])
    assert other.result(30).context["tests"] == 3
    assert other["plan"].response.startswith("Plan less")
    assert "fork before plan, visit 1" in str(lineage(run))


def test_exercise_18_the_fix_carries_the_whole_research(capsys):
    exec(solution("18"), {"release": Pipeline(NOTEBOOKS[0].parents[1] / "examples" / "ticket_to_release.dot")})
    assert capsys.readouterr().out == "research.response\n"
