"""Claims of pages beside their blocks are true: figures, names of calls and fields, tables that list everything."""

import inspect
import re
from dataclasses import fields

import pytest
import typer.main

from attractor_nb import Pipeline, ProviderBackend, Run, evaluation
from attractor_nb.backends.agents.installed import DIALECTS
from attractor_nb.backends.llm.tools import catalog, file_tools, tool_calls
from attractor_nb.cassettes import MODES, recorded_commands, tape
from attractor_nb.cli.command_tree import app
from attractor_nb.decisions.ambiguity import MAX_LOST_WORKERS
from attractor_nb.decisions.retries import MAX_ASKED_DELAY_SECONDS
from attractor_nb.engine.stage_cache import COMPARED_ENTRIES
from attractor_nb.evaluation import scorers
from attractor_nb.lint import BUILT_IN_RULES
from attractor_nb.lint.paths import MAX_CYCLES
from attractor_nb.lint.rules import path_rules
from attractor_nb.maps.map_work import own_options
from attractor_nb.model.calls.providers import PROVIDERS
from attractor_nb.model.events import EVENT_TYPES, PipelineForked
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.attributes import attribute
from attractor_nb.model.vocabulary.option_meanings import CASSETTE_MODES
from attractor_nb.model.vocabulary.value_forms import DEFAULT_MAX_ITEMS
from attractor_nb.model.vocabulary.variables import FILTERS, RENDERED_ATTRIBUTES, variables
from attractor_nb.pipeline.runs import RunRow, RunTable
from attractor_nb.runtime.prepare.run_options import BOUNDS, RunOptions, worker_wait_seconds
from attractor_nb.server.answers.run_answers import MOST_QUESTIONS
from attractor_nb.server.event_channel import KEPT_BYTES, KEPT_FRAMES
from attractor_nb.server.recovery import AT_A_TIME, MAX_TRIES
from attractor_nb.server.request_calls import KEPT_SECONDS
from attractor_nb.server.server_settings import DEFAULT_MAX_RUNS, DEFAULT_MAX_STREAMS
from attractor_nb.server.serving import MOST_BYTES, MOST_SECONDS
from attractor_nb.storage.cache_store import MAX_ENTRY_BYTES
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.manifest_file import Manifest
from attractor_nb.storage.run_listing import MAX_CHECKED_BYTES, REMAINS_BEGINNING, TAGS_NAME
from attractor_nb.studio.compare.compare_runs import Comparison
from attractor_nb.studio.edit.editor import Editor
from attractor_nb.studio.estimate.estimated_usage import Assumptions
from attractor_nb.studio.export_page import MAX_BYTES
from attractor_nb.studio.history.history_table import STATUSES, Filter
from attractor_nb.studio.inspect.inspection import MAX_TEXT, StageInspection
from attractor_nb.studio.replay_frames import Moment, Replay
from attractor_nb.studio.timeline.heat_view import MEASURES
from attractor_nb.testing import ManualClock, ScriptedBackend
from attractor_nb.workers import lifelines, perform, task
from tests.docs.blocks import REPOSITORY, blocks_of
from tests.pipeline.test_for_each import PerItem

pytest_plugins = ["pytester"]

DOCS = REPOSITORY / "docs"
PAGES = {path.stem: path.read_text("utf-8") for path in DOCS.glob("*.md")}
PROVIDER_DEFAULTS = {name: each.default for name, each in inspect.signature(ProviderBackend).parameters.items()}
RULES = {rule.name for rule in BUILT_IN_RULES}


def words(page):
    """A page in one line."""
    return " ".join(PAGES[page].split())


def section(page, title):
    return PAGES[page].split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def first_block(page, language):
    return next(block.text for block in blocks_of(DOCS / f"{page}.md") if block.language == language)


FIGURES = {
    "before-a-run": [
        f"A response has {Assumptions().response_tokens:,} tokens",
        f"A preamble has {Assumptions().carried_tokens:,} tokens for each earlier stage",
        f"A node with tools makes {Assumptions().tool_requests:,} requests",
        f"`llm.max_tokens` or {Assumptions().max_response_tokens:,} tokens",
        f"{Assumptions().max_tool_requests:,} requests with tools",
        f"the first {MAX_CYCLES} are listed",
    ],
    "cache": [f"node's {COMPARED_ENTRIES} newest", f"over {MAX_ENTRY_BYTES // 2**20} MiB"],
    "cassettes": [
        f"{recorded_commands.MAX_FILES} files of {recorded_commands.MAX_FILE_BYTES // 2**20} MB each",
        f"and {tape.MAX_ANSWER_BYTES // 2**20} MB in total",
        {1.0: "at most once a second"}[tape.KEEP_SECONDS],
    ],
    "for-each": [f"`max_items` items ({DEFAULT_MAX_ITEMS} by default)"],
    "history": [f"up to {MAX_CHECKED_BYTES >> 20} MB", f"`{TAGS_NAME}`", f"`{REMAINS_BEGINNING}…`"],
    "inspecting": [f"{MAX_TEXT:,} characters"],
    "models": [
        f"silence for {PROVIDER_DEFAULTS['read_timeout_seconds']:g} s",
        f"more than {PROVIDER_DEFAULTS['request_timeout_seconds'] / 60:g} min",
        f"`max_requests={PROVIDER_DEFAULTS['max_requests']}`",
        {600: "at most ten minutes"}[MAX_ASKED_DELAY_SECONDS],
    ],
    "scale-out": [
        f"`worker_wait` ({worker_wait_seconds(RunOptions().worker_wait):g} s by default)",
        f"{task.MAX_RETURNED_BYTES // 2**20} MiB and {task.MAX_RETURNED_FILES:,} files at most",
        f"the first {task.MAX_OUTPUT_CHARACTERS // 2**20} MiB of each channel",
        {3: "after three lost workers"}[MAX_LOST_WORKERS],
        {60: "was not used for a minute"}[perform.IDLE_SECONDS],
        f"within {lifelines.POLL_SECONDS} s of the scheduler's message",
        f"takes less than {perform.HOLD_AFTER_SECONDS} s cannot be stopped",
    ],
    "server": [
        f"leaves {KEPT_BYTES // 1024} kB or {KEPT_FRAMES:,} events unread",
        f"at most {MOST_QUESTIONS}; `more_questions`",
        f"More than {DEFAULT_MAX_RUNS:,} active runs or {DEFAULT_MAX_STREAMS:,} streams",
        f"up to {MOST_BYTES // 2**20} MB for at most {MOST_SECONDS:g} seconds",
        {24 * 3600: "however often it is sent within a day"}[KEPT_SECONDS],
        {2: "two runs are resumed at a time"}[AT_A_TIME],
        {3: "after three attempts without a result"}[MAX_TRIES],
    ],
    "sharing": [f"{MAX_BYTES / 1e6:g} MB"],
    "time-travel": [f"`{TEMPORARY_PREFIX}…`"],
    "tools": [
        f"{file_tools.MAX_RESULT_CHARACTERS:,} characters at once",
        f"up to {file_tools.MAX_LISTED:,}.",
        f"{catalog.DEFAULT_COMMAND_SECONDS} s by default, {catalog.MAX_COMMAND_SECONDS} at most",
        f"{file_tools.MAX_RESULT_CHARACTERS // 2:,} characters",
        f"at most {tool_calls.MAX_CALLS} calls",
        f"exit code {tool_calls.TIMED_OUT}",
        f"exit code {tool_calls.NOT_STARTED}",
    ],
}

NAMED = {
    "agents": [f'| `"{each.name}"` | {each.title} | `{each.install}` |' for each in DIALECTS],
    "before-a-run": [f"`{rule.name}`" for rule in path_rules.RULES],
    "cli": [f"`{name}`" for name in typer.main.get_command(app).commands if name not in {"model", "skill"}],
    "history": [f"`{name}`" for name in (*STATUSES, *Filter.__slots__, *MEASURES)],
    "models": [f"`{provider.name}`" for provider in PROVIDERS],
    "prompts": [f"`{name}`" for name in (*FILTERS, *RENDERED_ATTRIBUTES)],
    "time-travel": [
        *(f"`{bound}`" for bound in BOUNDS if bound != "max_goal_gate_redirects"),
        *(f"{name}=" for name in ("context", "prompt", "visit", "pipeline")),
        "`fork_of`",
    ],
}


@pytest.mark.parametrize("page", FIGURES)
def test_the_figures_of_a_page_are_those_of_the_code(page):
    assert [text for text in FIGURES[page] if text not in words(page)] == []


@pytest.mark.parametrize("page", NAMED)
def test_a_page_names_all_that_there_is(page):
    assert len(NAMED[page]) > 2
    assert [text for text in NAMED[page] if text not in PAGES[page]] == []


def test_calls_that_pages_name_exist():
    for owner, name in re.findall(r"`(run|pipeline)\.(\w+)\(", "\n".join(PAGES.values())):
        assert hasattr({"run": Run, "pipeline": Pipeline}[owner], name), f"{owner}.{name}"
    for name in re.findall(r"`both\.(\w+)\(", PAGES["sharing"]):
        assert hasattr(Comparison, name), name
    edits = set(re.findall(r"editor\.(?!png)(\w+)", PAGES["editing"].replace("editor-dark.png", ""))) | set(
        re.findall(r"`\.(\w+)\(", PAGES["editing"])
    )
    assert {name for name in edits if not hasattr(Editor, name)} == set()
    assert len(edits) > 12
    of_rows = set(re.findall(r"runs\(\)\[0\]\.(\w+)\(", PAGES["history"]))
    of_tables = set(re.findall(r"runs\(\)\.(\w+)\(", PAGES["history"]))
    assert {"load", "tag", "resume", "delete"} <= of_rows <= set(dir(RunRow))
    assert {"where", "open", "refreshed", "to_frame"} <= of_tables <= set(dir(RunTable))


def test_fields_that_the_page_of_time_travel_names_exist():
    assert {"context", "prompt", "visit", "pipeline"} <= set(inspect.signature(Run.fork).parameters)
    assert hasattr(Replay, "at")
    assert {"view", "context"} <= set(Moment.__dataclass_fields__)
    assert "spent" in PipelineForked.__struct_fields__
    assert "fork_of" in Manifest.__struct_fields__


def test_the_table_of_an_inspection_has_its_fields():
    table = PAGES["inspecting"].split("| field | meaning |", 1)[1].split("\n\n", 1)[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)(?:\(\w+\))?`", row.split("|")[1])}
    known = {entry.name for entry in fields(StageInspection) if not entry.name.startswith("_")} | {"read"}
    assert named <= known
    assert known - named == {"node", "label", "handler", "visit", "attempt", "directory", "workdir"}


def test_rules_about_models_exist():
    named = re.search(r"## Lint rules about models\n\n(.*?)\n\n", PAGES["before-a-run"], re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", named)) <= RULES


def test_the_modes_of_cassettes_are_those_that_there_are():
    named = re.findall(r"^\| `(\w+)`", section("cassettes", "Modes"), re.MULTILINE)
    assert sorted(named[1:]) == sorted(MODES) == sorted(CASSETTE_MODES)


def test_the_test_on_the_page_of_cassettes_records_where_it_may_and_replays_in_ci(pytester, monkeypatch):
    plugin = ("-p", "attractor_nb.pytest_plugin", "-p", "no:randomly", "-p", "no:cacheprovider")
    code = re.search(r"^```python\n(.*?)^```", section("cassettes", "A test"), re.DOTALL | re.MULTILINE)[1]
    pytester.makepyfile(test_review=code)
    monkeypatch.delenv("CI", raising=False)
    pytester.runpytest_inprocess(*plugin).assert_outcomes(passed=1)
    recording = pytester.path / "cassettes" / "test_review.test_review_path.json"
    recorded = recording.read_bytes()
    monkeypatch.setenv("CI", "1")
    pytester.runpytest_inprocess(*plugin).assert_outcomes(passed=1)
    assert recording.read_bytes() == recorded


def test_the_table_of_scorers_names_all_that_exist():
    table = PAGES["evaluation"].split("| scorer | value |")[1].split("\n\n")[0]
    named = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)\(", line.split("|")[1])}
    made = {name for name in evaluation.__all__ if scorers.makes_scorer(getattr(evaluation, name))}
    assert named == made - {"judge"}


def test_events_that_the_page_names_exist():
    named = set(re.findall(r"`([A-Z]\w+)`", PAGES["events"])) - {"SERVER", "TOKEN", "GET", "ATTRACTOR_SERVER"}
    assert named <= set(EVENT_TYPES), named - set(EVENT_TYPES)


def test_the_options_of_a_map_exist():
    table = PAGES["map"].split("| option | meaning |")[1].split("\n\n")[0]
    named = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert len(named) == 9
    own = own_options(**dict.fromkeys(set(named) & {"max_budget_usd_all", "max_tokens_all", "max_duration_all"}))
    assert [name for name in named if not hasattr(own, name)] == []


def test_attributes_of_models_exist_where_the_page_says():
    table = PAGES["models"].split("## Which model", 1)[1].split("\n\n", 2)[1]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    assert len(rows) == 9
    for names, scopes in rows:
        for name in re.findall(r"`([^`]+)`", names):
            assert attribute(Scope.NODE, name), name
            assert ("graph" in scopes) == (attribute(Scope.GRAPH, name) is not None), name


def test_the_variables_of_prompts_are_read_as_variables():
    table = PAGES["prompts"].split("| variable |")[1].split("\n\n")[0]
    written = re.findall(r"`(\$[^`]+)`", table)
    assert len(written) == 20
    assert [text for text in written if text != "$$" and [len(text)] != [each.end for each in variables(text)]] == []


def test_the_table_of_tools_names_each_with_its_arguments():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)\((.*?)\)` \|", PAGES["tools"], re.MULTILINE)
    expected = [(tool.word, tool.name, ", ".join(entry.name for entry in tool.parameters)) for tool in catalog.TOOLS]
    assert rows == expected


def test_a_model_calls_the_function_of_the_page_of_tools(capsys):
    """Through a function that calls the tool as a model would, in place of the model."""
    from attractor_nb.stage import current_stage

    async def model(node, prompt, context):
        (tool,) = [catalog.function_tool(*entry) for entry in current_stage().workplace.functions.items()]
        assert (tool.name, tool.schema["required"]) == ("lookup", ["order"])
        return await tool.call({"order": "A-7"})

    program = first_block("tools", "python").replace('backend="llm"', 'backend=model, durability="none", trust=True')
    exec(compile(program, "docs/tools.md", "exec"), {"__name__": "page", "model": model})
    assert capsys.readouterr().out == "A-7: shipped on Monday\n"


def test_the_results_of_a_list_have_the_keys_of_the_page():
    pipeline = Pipeline(first_block("for-each", "dot"))
    result = pipeline.run(wait=True, backend=PerItem(), durability="none", params={"files": ["a.py", "b.py"]})
    assert result.context["review.outputs"] == ["read a.py", "read b.py"]
    row = next(line for line in PAGES["for-each"].splitlines() if line.startswith("| `<node>.results`"))
    assert set(re.findall(r"`(\w+)`", row)) == set(result.context["review.results"][0])


# -- verdicts.md ---------------------------------------------------------------------------------------

VERDICTS = re.findall(r"^\| `(.*)` \| (\w+)(?:: (.*))? \|$", PAGES["verdicts"], re.MULTILINE)


def judged(*answers, without=", retry_target=write"):
    backend = ScriptedBackend({"judge": list(answers)})
    pipeline = Pipeline(first_block("verdicts", "dot").replace(without, ""))
    result = pipeline.run(wait=True, backend=backend, durability="none", clock=ManualClock())
    return result, backend.prompts["judge"]


@pytest.mark.parametrize(("answer", "status", "reason"), VERDICTS, ids=[row[0][:30] for row in VERDICTS])
def test_an_answer_on_the_page_of_verdicts_has_the_outcome_that_it_says(answer, status, reason):
    result, _ = judged(answer, without=", max_retries=2, retry_target=write")
    assert result.status == ("success" if status == "success" else "fail")
    assert result.outcomes["judge"].failure_reason == reason
    _, prompts = judged(answer, '{"outcome": "success"}')
    told = ["not accepted" in prompt for prompt in prompts]
    assert told == {"success": [False], "fail": [False, False], "retry": [False, True]}[status]


def test_the_section_on_the_page_of_verdicts_is_the_one_that_is_sent():
    shown = re.search(r"^````text\n(.*?)^````", PAGES["verdicts"], re.DOTALL | re.MULTILINE)[1]
    _, prompts = judged('{"outcome": "splendid"}', '{"outcome": "success"}')
    assert prompts[1] == f"{prompts[0]}\n\n{shown.strip()}"
