"""`prompt="@prompts/plan.md"`: a text in a file is the text itself, wherever a pipeline goes (issue 16)."""

import os
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import GraphChanged, OptionError, ValidationError
from attractor_nb.model.events import RunWarning
from attractor_nb.server.run_service import posted_pipeline
from attractor_nb.transforms import MergeTransform

GRAPH = """digraph Plan { goal="ship it"
    start [shape=Mdiamond] plan [%s] done [shape=Msquare]  start -> plan -> done }"""
TEXT = GRAPH % 'prompt="@prompts/plan.md"'
PROMPT = 'Plan for $goal.\n\n\tKeep "quotes" and \\\\n.\n'
AS_SENT = PROMPT.replace("$goal", "ship it")


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "pipelines"
    (place / "prompts").mkdir(parents=True)
    (place / "plan.dot").write_text(TEXT)
    (place / "prompts" / "plan.md").write_text(PROMPT)
    return place


@pytest.fixture
def file(folder):
    return folder / "plan.dot"


def problem(pipeline):
    (found,) = [each for each in pipeline.diagnostics if each.rule == "text_file"]
    assert found.is_error
    return found


def test_the_text_of_a_file_is_the_prompt_from_any_working_directory(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pipeline = Pipeline(Path("pipelines/plan.dot"))
    monkeypatch.chdir("/")
    assert pipeline.graph.nodes["plan"].prompt == AS_SENT
    result = pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert AS_SENT.strip() in result["plan"].prompt


def test_the_text_of_a_cell_has_the_working_directory(file, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert Pipeline(TEXT).graph.nodes["plan"].prompt == AS_SENT


@pytest.mark.parametrize("attribute", ["prompt", "llm.system_prompt", "human.prompt", "manager.instructions"])
def test_each_attribute_that_is_a_text_may_be_a_file(folder, attribute):
    file = folder / "one.dot"
    file.write_text(GRAPH % f'{attribute}="@prompts/plan.md", label=plan')
    assert Pipeline(file).graph.nodes["plan"].get(attribute, str).startswith("Plan for ")


def test_a_label_is_a_name_and_no_file(folder):
    file = folder / "one.dot"
    file.write_text(GRAPH % 'label="@ada"')
    assert Pipeline(file).graph.nodes["plan"].label == "@ada"


def test_two_marks_are_one_at_the_beginning_of_a_text():
    pipeline = Pipeline(GRAPH % 'prompt="@@ada asks"')
    assert pipeline.graph.nodes["plan"].prompt == "@ada asks"
    assert Pipeline(pipeline.to_dot()).graph.nodes["plan"].prompt == "@ada asks"


def test_a_default_block_may_name_a_file_for_many_nodes(folder):
    file = folder / "many.dot"
    file.write_text("""digraph { start [shape=Mdiamond] done [shape=Msquare] node [prompt="@prompts/plan.md"]
        one; two; start -> one -> two -> done }""")
    pipeline = Pipeline(file)
    assert {pipeline.graph.nodes[name].prompt for name in ("one", "two")} == {PROMPT}
    assert pipeline.to_dot().count("Keep ") == 1


@pytest.mark.parametrize("text", ["@prompts/other.md", "$goal and more", "a\r\nb\r\n", "\ufeffwith a mark"])
def test_whatever_a_file_says_is_the_text_of_the_whole_source_too(file, folder, text):
    (folder / "prompts" / "plan.md").write_bytes(text.encode())
    pipeline = Pipeline(file)
    expected = text.replace("\r\n", "\n").removeprefix("\ufeff").replace("$goal", "ship it")
    assert pipeline.graph.nodes["plan"].prompt == expected
    alone = Pipeline(pipeline.to_dot(), origin="elsewhere")
    assert alone.graph.nodes["plan"].prompt == expected
    assert alone.graph.content_hash == pipeline.graph.content_hash


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../secret.md", "may lead out of"),
        ("/etc/hostname", "may lead out of"),
        ("prompts/../../secret.md", "may lead out of"),
        ("out.md", "leads out of {folder} by a link"),
        ("linked/secret.md", "leads out of {folder} by a link"),
        ("prompts.md", "is a directory"),
        ("pipe.md", "it is not a file"),
        (".env", "is hidden"),
        (".git/config", "is hidden"),
        ("prompts/.notes.md", "is hidden"),
        ("shown.md", "is hidden"),
        ("key.pem", "is none of .css .json .md .prompt .txt .yaml"),
        ("named.md", "is none of .css .json .md .prompt .txt .yaml"),
        ("latin.md", "is not UTF-8 text (line 2)"),
        ("nul.md", "NUL"),
        ("empty.md", "is empty"),
        ("large.md", "has more than 1048576 bytes"),
        ("", "is not a file name"),
        ("prompts/plam.md", 'it was looked for in {folder}; did you mean "prompts/plan.md"?'),
    ],
)
def test_a_file_that_cannot_be_had_is_an_error_ruling_43(folder, name, message):
    (folder.parent / "secret.md").write_text("secret")
    (folder / "out.md").symlink_to(folder.parent / "secret.md")
    (folder / "linked").symlink_to(folder.parent)
    (folder / "shown.md").symlink_to(folder / ".env")
    (folder / "named.md").symlink_to(folder / "key.pem")
    for secret in (".env", ".git/config", "prompts/.notes.md", "key.pem"):
        (folder / secret).parent.mkdir(exist_ok=True)
        (folder / secret).write_text("secret")
    (folder / "prompts.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / "latin.md").write_bytes(b"a\n\xe9")
    (folder / "nul.md").write_bytes(b"a\0")
    (folder / "empty.md").write_text(" \n")
    (folder / "large.md").write_text("x" * (1024 * 1024 + 1))
    file = folder / "one.dot"
    file.write_text(GRAPH % f'prompt="@{name}"')
    pipeline = Pipeline(file)
    found = problem(pipeline)
    assert message.format(folder=os.path.realpath(folder)) in found.message
    assert found.span.text == f'"@{name}"'
    assert "secret" not in pipeline.graph.nodes["plan"].prompt.replace("secret.md", "")
    with pytest.raises(ValidationError):
        pipeline.run(durability="none")


@pytest.mark.parametrize("name", ["a.md", "a.TXT", "a.prompt", "a.json", "a.yaml", "a.css", "./prompts/plan.md"])
def test_a_text_file_is_of_one_of_these_kinds_ruling_43(folder, name):
    (folder / name).write_text("Plan it.")
    (folder / "one.dot").write_text(GRAPH % f'prompt="@{name}"')
    assert Pipeline(folder / "one.dot").graph.nodes["plan"].prompt == "Plan it."


def test_a_hidden_file_is_not_suggested_ruling_43(folder):
    (folder / ".plan.md").write_text("secret")
    (folder / "one.dot").write_text(GRAPH % 'prompt="@aplan.md"')
    assert "did you mean" not in problem(Pipeline(folder / "one.dot")).message


def test_a_link_that_stays_in_the_folder_is_followed(file, folder):
    (folder / "prompts" / "plan.md").rename(folder / "real.md")
    (folder / "prompts" / "plan.md").symlink_to(folder / "real.md")
    assert Pipeline(file).graph.nodes["plan"].prompt == AS_SENT


def test_the_fix_names_the_file_that_was_meant(folder):
    file = folder / "one.dot"
    file.write_text(GRAPH % 'prompt="@prompts/plam.md"')
    fixed = Pipeline(file).fixed()
    assert fixed.graph.nodes["plan"].prompt == AS_SENT
    assert fixed.written == TEXT


@pytest.mark.parametrize(
    "make", [posted_pipeline, lambda text: Pipeline(text, origin="stdin")], ids=["posted to a server", "from stdin"]
)
def test_a_pipeline_from_elsewhere_reads_no_file_here(file, folder, monkeypatch, make):
    monkeypatch.chdir(folder)
    pipeline = make(TEXT)
    assert "is not read: the pipeline came from" in problem(pipeline).message
    assert pipeline.graph.nodes["plan"].prompt == "@prompts/plan.md"


def test_lint_sees_the_text(file, folder):
    (folder / "prompts" / "plan.md").write_text("Plan $tikcet.")
    file.write_text(TEXT.replace("goal=", 'inputs="ticket" goal='))
    (found,) = [each for each in Pipeline(file).diagnostics if each.rule == "variable_unknown"]
    assert 'did you mean "ticket"?' in found.message
    assert found.span.text == '"@prompts/plan.md"'


def test_a_change_of_the_file_is_a_change_of_the_graph(file, folder):
    before = Pipeline(file).graph.content_hash
    (folder / "prompts" / "plan.md").write_text("Plan less.")
    assert Pipeline(file).graph.content_hash != before


def test_what_was_read_is_what_runs(file, folder):
    pipeline = Pipeline(file)
    (folder / "prompts" / "plan.md").write_text("Something else.")
    pipeline.register("own", lambda _: "done")
    assert pipeline.graph.nodes["plan"].prompt == AS_SENT


def test_a_run_directory_goes_on_without_the_files(file, folder, tmp_path):
    Pipeline(file).run(logs_root=tmp_path / "run", stop_after=1, wait=True)
    (folder / "prompts" / "plan.md").unlink()
    file.unlink()
    result = Run.load(tmp_path / "run").resume().result(60)
    assert result.status == "success"
    assert AS_SENT.strip() in result["plan"].prompt


def test_a_resume_warns_of_a_changed_file_of_a_text(file, folder, tmp_path):
    Pipeline(file).run(logs_root=tmp_path / "run", stop_after=1, wait=True)
    same = Run.load(tmp_path / "run")
    assert same.pipeline.graph.nodes["plan"].prompt == AS_SENT
    (folder / "prompts" / "plan.md").write_text("Plan less.")
    run = same.resume()
    assert AS_SENT.strip() in run.result(60)["plan"].prompt
    (warning,) = (event.message for event in run.events() if isinstance(event, RunWarning))
    assert warning.startswith(f"{file} has changed since this run began, or a file of its texts")


def test_a_resume_is_quiet_when_nothing_has_changed(file, tmp_path):
    Pipeline(file).run(logs_root=tmp_path / "run", stop_after=1, wait=True)
    run = Run.load(tmp_path / "run").resume()
    assert run.result(60).status == "success"
    assert not [event for event in run.events() if isinstance(event, RunWarning)]


def test_the_changed_pipeline_is_refused_for_the_run_as_a_changed_graph_is(file, folder, tmp_path):
    Pipeline(file).run(logs_root=tmp_path / "run", stop_after=1, wait=True)
    (folder / "prompts" / "plan.md").write_text("Plan less.")
    with pytest.raises(GraphChanged):
        Pipeline(file).resume(tmp_path / "run")


def test_a_child_has_its_texts_beside_its_own_file(folder, tmp_path):
    (folder / "parts" / "prompts").mkdir(parents=True)
    (folder / "parts" / "child.dot").write_text(TEXT)
    (folder / "parts" / "prompts" / "plan.md").write_text("The child plans.")
    parent = folder / "parent.dot"
    parent.write_text(GRAPH % 'shape=tab, type=pipeline, pipeline.dotfile="parts/child.dot"')
    pipeline = Pipeline(parent)
    assert pipeline.family.children["plan"].graph.nodes["plan"].prompt == "The child plans."
    pipeline.run(logs_root=tmp_path / "run", stop_after=1, wait=True, trust=True)
    (folder / "parts" / "prompts" / "plan.md").unlink()
    kept = Run.load(tmp_path / "run").pipeline
    assert kept.family.children["plan"].graph.nodes["plan"].prompt == "The child plans."


def test_the_editor_leaves_the_name_alone(file):
    editor = Pipeline(file).edit().set("plan", label="Plan")
    assert 'prompt="@prompts/plan.md"' in editor.source
    assert editor.pipeline().graph.nodes["plan"].prompt == AS_SENT


def test_a_pipeline_put_in_place_of_a_node_brings_its_texts(file, folder):
    (folder / "prompts" / "plan.md").write_text("@ada plans")
    host = Pipeline(GRAPH % 'prompt="Plan."')
    joined = host.node("plan").replace(Pipeline(file))
    assert joined.graph.nodes["plan_plan"].prompt == "@ada plans"


def test_a_pipeline_with_a_missing_text_is_put_nowhere(file, folder):
    (folder / "prompts" / "plan.md").unlink()
    with pytest.raises(OptionError, match="is not there"):
        Pipeline(GRAPH % 'prompt="Plan."').node("plan").replace(Pipeline(file))


def test_a_merged_text_names_no_file(file):
    with pytest.raises(OptionError, match=r'prompt of "plan" names a file'):
        MergeTransform(TEXT, prefix="qa_")
    merged = Pipeline(GRAPH % 'prompt="Plan."', transforms=[MergeTransform(Pipeline(file), prefix="qa_")])
    assert merged.graph.nodes["qa_plan"].prompt == AS_SENT


def test_a_map_keeps_the_text(file, folder, tmp_path):
    done = Pipeline(file).map([{"n": 1}], wait=True, map_dir=tmp_path / "map")
    assert done.status == "success"
    (folder / "prompts" / "plan.md").unlink()
    assert "Plan for $goal" in (tmp_path / "map" / "pipeline.dot").read_text()


# -- a stylesheet in a file --------------------------------------------------------------------------

STYLED = """digraph Plan { model_stylesheet="@styles/models.css"
    start [shape=Mdiamond] plan [prompt="Plan", class=hard] done [shape=Msquare]  start -> plan -> done }"""
SHEET = "* { llm_model: gpt-5-mini; }\n.hard { llm_model: claude-opus-4-6; }\n"


@pytest.fixture
def styled(folder):
    (folder / "styles").mkdir()
    (folder / "styles" / "models.css").write_text(SHEET)
    (folder / "styled.dot").write_text(STYLED)
    return folder / "styled.dot"


def test_a_stylesheet_in_a_file_gives_nodes_their_models(styled):
    pipeline = Pipeline(styled)
    assert not pipeline.diagnostics
    assert pipeline.graph.nodes["plan"].llm_model == "claude-opus-4-6"
    (choice,) = pipeline.models()
    assert choice.model.reason == "stylesheet .hard, styles/models.css line 2"


@pytest.mark.parametrize("text", [SHEET, '* { llm_model: "a\\b"; } /* "@" */\n'], ids=["plain", "quotes"])
def test_the_source_of_a_pipeline_contains_its_stylesheet(styled, text):
    (styled.parent / "styles" / "models.css").write_text(text)
    whole = Pipeline(styled).to_dot()
    assert "@styles" not in whole
    assert Pipeline(whole).graph.model_stylesheet == text


def test_a_run_directory_goes_on_with_the_stylesheet_that_was_read(styled, tmp_path):
    run = Pipeline(styled).run(stop_after=1, wait=True, logs_root=tmp_path / "run", interviewer="auto")
    assert run.status == "paused"
    (styled.parent / "styles" / "models.css").write_text("* { llm_model: other; }")
    again = Run.load(tmp_path / "run")
    assert again.pipeline.graph.nodes["plan"].llm_model == "claude-opus-4-6"
    assert again.resume().result(60).status == "success"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("@styles/model.css", 'did you mean "styles/models.css"'),
        ("@../models.css", "below that folder"),
        ("@.hidden.css", "hidden"),
        ("@styles/models.py", ".css"),
    ],
)
def test_a_stylesheet_that_cannot_be_had_is_an_error_at_its_attribute(styled, name, message):
    for hidden in (styled.parent / ".hidden.css", styled.parent / "styles" / "models.py"):
        hidden.write_text(SHEET)
    styled.write_text(STYLED.replace("@styles/models.css", name))
    pipeline = Pipeline(styled)
    found = problem(pipeline)
    assert message in f"{found.message} {found.fix.title}"
    assert [each.rule for each in pipeline.diagnostics if each.is_error] == ["text_file"]
    assert (found.message.split(":")[0], found.node_id, found.span.text) == ("model_stylesheet", "", f'"{name}"')
    with pytest.raises(ValidationError):
        pipeline.run()


def test_the_fix_names_the_stylesheet_that_was_meant(styled):
    styled.write_text(STYLED.replace("models.css", "model.css"))
    assert Pipeline(styled).fixed().written == STYLED


def test_a_stylesheet_of_a_pipeline_from_elsewhere_is_not_read(styled, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert "is not read" in problem(posted_pipeline(STYLED)).message


@pytest.mark.parametrize(
    ("sheet", "rule", "message"),
    [
        ("* { llm_model }", "stylesheet_syntax", "(styles/models.css:1:15)"),
        ("\n* { llm_modl: small }", "unknown_property", "(styles/models.css:2:5)"),
        ("\n\n#plann { llm_model: small }", "unused_selector", "(styles/models.css:3:1)"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_with_its_place_there(styled, sheet, rule, message):
    (styled.parent / "styles" / "models.css").write_text(sheet)
    (found,) = [each for each in Pipeline(styled).diagnostics if each.rule == rule]
    assert message in found.message
    assert found.span.text == '"@styles/models.css"'
    assert not found.fix.edits, "nothing is edited in a text that is elsewhere"


def test_an_address_in_a_stylesheet_file_needs_trust_as_one_in_the_graph(styled):
    (styled.parent / "styles" / "models.css").write_text("* { llm_model: m; base_url: http://h.example/v1; }")
    inside = STYLED.replace("@styles/models.css", "* { llm_model: m; base_url: http://h.example/v1; }")
    commands = [executable_surface(Pipeline(source).graph).commands for source in (styled, inside)]
    assert commands[0]
    assert commands[0] == commands[1]


def test_a_graph_with_a_stylesheet_file_that_was_not_read_is_not_merged():
    with pytest.raises(OptionError, match="model_stylesheet names a file that was not read"):
        MergeTransform(STYLED, prefix="a_")
