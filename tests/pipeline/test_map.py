"""``pipeline.map``: one pipeline over many inputs, each row a run of its own."""

import asyncio
import json
import sys
import threading
from math import nan

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, QueueInterviewer, Run, Usage
from attractor_nb.errors import (
    ContextValueError,
    OptionError,
    RunError,
    RunInterrupted,
    StorageError,
    UntrustedSource,
    ValidationError,
)
from attractor_nb.model.calls.call_content import Response
from attractor_nb.sessions import SessionRecorder
from attractor_nb.storage.map_directory import MAP_NAME, read_inputs, read_map

TWO_STAGES = """digraph demo {
    start [shape=Mdiamond]
    plan [prompt="Plan"]
    write [prompt="Write"]
    done [shape=Msquare]
    start -> plan -> write -> done
}"""
GATE = """digraph gated {
    start [shape=Mdiamond]
    gate [shape=hexagon, label="Good?"]
    done [shape=Msquare]
    other [prompt="Other"]
    start -> gate
    gate -> done [label="[Y] Yes"]
    gate -> other [label="[N] No"]
    other -> done
}"""
TOOL = """digraph tooled {
    start [shape=Mdiamond]
    build [shape=parallelogram, tool_command="true"]
    done [shape=Msquare]
    start -> build -> done
}"""


def failing_on(*bad):
    """A backend that fails the rows whose ``n`` is one of these."""

    def answer(node, prompt, context):
        if context["n"] in bad:
            return Outcome.fail(f"no {context['n']}")
        return f"{node.id} {context['n']}"

    return FunctionBackend(answer)


def rows(count):
    return [{"n": number} for number in range(count)]


class RouteGap:
    """A backend whose prompts wait until it is opened; counts how many wait at the same time."""

    def __init__(self):
        self.is_open = asyncio.Event()
        self.inside = 0
        self.most = 0
        self.came = []
        self.loop = None
        self.arrivals = threading.Semaphore(0)

    async def run(self, node, prompt, context):
        self.loop = asyncio.get_running_loop()
        self.came.append(context["n"])
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.arrivals.release()
        try:
            await self.is_open.wait()
        finally:
            self.inside -= 1
        return "through"

    def wait_for(self, count):
        for _ in range(count):
            assert self.arrivals.acquire(timeout=30)

    def open(self):
        self.loop.call_soon_threadsafe(self.is_open.set)


# -- results ----------------------------------------------------------------------------------------------


def test_every_row_is_a_complete_run_with_its_own_inputs():
    result = Pipeline(TWO_STAGES, backend=failing_on()).map(rows(5), wait=True)
    assert result.is_success
    assert (result.status, result.reason, len(result)) == ("success", "", 5)
    for row in result:
        run = result.run(row.row)
        assert run["write"].response == f"write {row.row}"
        assert run.result().context["n"] == row.row
        assert run.id == row.run_id
        assert Run.load(result.directory / row.directory).status == "completed"


def test_failures_are_kept_apart_with_their_reasons():
    result = Pipeline(TWO_STAGES, backend=failing_on(1, 3)).map(rows(5), wait=True)
    assert result.status == "fail"
    assert result.reason == "2 of 5 rows failed"
    assert list(result.failures) == [1, 3]
    assert list(result.results) == [0, 2, 4]
    assert "no 3" in result.failures[3].reason
    assert result.counts == {"success": 3, "fail": 2, "interrupted": 0, "not_started": 0}
    assert result.unfinished == {}


def test_only_the_outputs_that_were_asked_for_are_kept():
    result = Pipeline(TWO_STAGES, backend=failing_on()).map(
        rows(2), wait=True, outputs=["last_response", "n", "nothing"]
    )
    assert result[1].outputs == {"last_response": "write 1", "n": 1}
    assert result.unset_outputs == ["nothing"]
    assert '! no row has the output "nothing"' in str(result)


@pytest.mark.parametrize(
    ("outputs", "meant"),
    [("write.respons", "write.response"), ("laststage", "last_stage"), ("tool.stdout", "tool.output"), ("nn", "n")],
)
def test_an_output_that_is_certainly_a_slip_is_refused(tmp_path, outputs, meant):
    """Behind a stage that may set any key, as for variables of prompts."""
    with pytest.raises(OptionError, match=f'sets the output "{outputs}"; did you mean "{meant}"'):
        Pipeline(TWO_STAGES).map(rows(1), wait=True, map_dir=tmp_path / "map", outputs=[outputs])
    assert not (tmp_path / "map").exists()


def test_an_output_is_refused_where_no_stage_can_set_it():
    text = "digraph { start [shape=Mdiamond] a [shape=diamond] done [shape=Msquare] start -> a -> done }"
    with pytest.raises(OptionError, match=r'sets the output "answer"\n hint: .*: n, last_response'):
        Pipeline(text).map(rows(1), wait=True, outputs=["answer"])


def test_ruling_50_an_output_may_continue_into_a_structured_value():
    inputs = [{"rate": {"level": "high", "files": ["a.py"]}}]
    result = Pipeline(TWO_STAGES).map(inputs, wait=True, outputs=["rate.level", "rate.files.0", "context.rate.level"])
    assert result[0].outputs == {"rate.level": "high", "rate.files.0": "a.py", "context.rate.level": "high"}
    assert result.unset_outputs == []


def test_a_resume_refuses_another_output_that_nothing_sets(tmp_path):
    Pipeline(TWO_STAGES).map(rows(2), wait=True, map_dir=tmp_path / "map", outputs=["n"])
    with pytest.raises(OptionError, match=r'sets the output "write\.respons"'):
        Pipeline(TWO_STAGES).resume_map(tmp_path / "map", outputs=["write.respons"])


def test_usage_is_that_of_all_rows():
    backend = FunctionBackend(lambda prompt: Response("x", usage=Usage(10, 5, 0.5, 1)))
    result = Pipeline(TWO_STAGES, backend=backend).map(rows(3), wait=True)
    assert result.usage == Usage(60, 30, 3.0, 6)
    assert result[0].usage == Usage(20, 10, 1.0, 2)


def test_the_pipelines_own_params_are_every_rows():
    result = Pipeline(TWO_STAGES, params={"team": "a", "n": 9}).map([{"n": 1}, {}], wait=True, outputs=["team", "n"])
    assert [row.outputs for row in result] == [{"team": "a", "n": 1}, {"team": "a", "n": 9}]


def test_a_result_is_a_sequence_of_rows():
    result = Pipeline(TWO_STAGES).map(rows(3), wait=True, durability="none")
    assert [row.row for row in result if row.is_success] == [0, 1, 2]
    assert result[-1] is result[2]
    assert [row.row for row in result[1:]] == [1, 2]
    assert result[2] in result
    with pytest.raises(OptionError, match="no row 3"):
        result[3]


def test_a_result_reads_well_as_text():
    result = Pipeline(TWO_STAGES, backend=failing_on(1)).map(rows(3), wait=True)
    assert str(result) == (
        "✕ failed   3 of 3 rows   2 completed, 1 failed   1 of 3 rows failed\n\n✕ failed  1  no 1\n\nsee result.run(1)"
    ).replace("✕", "\N{MULTIPLICATION X}")
    assert "2 more" in result.table(1)


def test_nothing_is_kept_on_disk_without_durability(tmp_path):
    result = Pipeline(TWO_STAGES).map(rows(3), wait=True, durability="none")
    assert result.is_success
    assert result.directory is None
    assert not (tmp_path / ".attractor").exists()
    with pytest.raises(OptionError, match="nothing is kept of row 1"):
        result.run(1)


def test_a_frame_has_inputs_ends_and_outputs():
    pd = pytest.importorskip("pandas")
    params = pd.DataFrame({"n": [0, 1], "status": ["open", "shut"]})
    result = Pipeline(TWO_STAGES, backend=failing_on(1)).map(params, wait=True, outputs=["last_stage"])
    frame = result.to_frame()
    assert list(frame.index) == [0, 1]
    assert list(frame["inputs.status"]) == ["open", "shut"]
    assert list(frame["status"]) == ["success", "fail"]
    assert list(frame["n"]) == [0, 1]
    assert frame["directory"][1] == "row-00001"
    assert frame["last_stage"][0] == "write"


def test_without_pandas_the_frame_says_what_is_missing(monkeypatch):
    result = Pipeline(TWO_STAGES).map(rows(1), wait=True, durability="none")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OptionError, match="pandas"):
        result.to_frame()


# -- inputs -----------------------------------------------------------------------------------------------


def test_numpy_numbers_and_missing_cells_become_plain():
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": np.array([1, 2]), "share": [0.5, None], "word": ["a", None]})
    result = Pipeline(TWO_STAGES).map(frame, wait=True, outputs=["n", "share", "word"])
    assert [row.outputs for row in result] == [
        {"n": 1, "share": 0.5, "word": "a"},
        {"n": 2, "share": None, "word": None},
    ]
    plain = Pipeline(TWO_STAGES).map(
        [{"n": np.int64(3), "deep": [{"x": np.float32(0.5)}]}], wait=True, outputs=["n", "deep"]
    )
    assert plain[0].outputs == {"n": 3, "deep": [{"x": 0.5}]}
    assert type(plain[0].outputs["n"]) is int


def test_pandas_is_not_imported_for_dicts():
    import subprocess

    program = (
        "from attractor_nb import Pipeline; import sys\n"
        f"p = Pipeline({TWO_STAGES!r})\n"
        "assert p.map([{'n': 1}], wait=True, durability='none').is_success\n"
        "print(sorted({'pandas', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ([{"n": 1}, {"n": {1}}], ContextValueError, r"params\[1\]"),
        ([{"n": 1}, {"n": nan}], ContextValueError, r"params\[1\]"),
        ([{"n": 1}, {2: 1}], ContextValueError, r"params\[1\]"),
        ([{"n": 1}, [2]], OptionError, r"params\[1\] must be a dict, not list"),
        ([{"n": 1}, {"graph.goal": "x"}], OptionError, r"params\[1\].*engine's own"),
        ([], OptionError, "no rows"),
        ("abc", OptionError, "a list of dicts"),
        ({"n": 1}, OptionError, "a list of dicts"),
        (7, OptionError, "a list of dicts"),
        (None, OptionError, "a list of dicts"),
    ],
)
def test_bad_rows_are_refused_before_anything_runs(params, error, words, tmp_path):
    calls = []
    pipeline = Pipeline(TWO_STAGES, backend=FunctionBackend(lambda prompt: calls.append(prompt) or "x"))
    with pytest.raises(error, match=words):
        pipeline.map(params, wait=True)
    assert calls == []
    assert not (tmp_path / ".attractor").exists()


OPEN = """digraph Open {{ start [shape=Mdiamond] done [shape=Msquare]
    {}
}}"""
FIRST = 'read [prompt="Read {}."] start -> read -> done'
SECOND = 'work [prompt="Do it."] read [prompt="Read {}."] start -> work -> read -> done'
BEHIND_GATE = """ask [shape=hexagon, label="Which?"] read [prompt="Read {}."]
    start -> ask; ask -> read [label="One"]; ask -> done [label="None"]; read -> done"""

UNFILLED = {
    "a slip": (FIRST, "$ticket", ["tikcet", "n"], 'no value for $ticket in prompt of "read"; did you mean "tikcet"?'),
    "another case": (FIRST, "$ticket", ["Ticket"], 'did you mean "Ticket"?'),
    "nothing like it": (FIRST, "$ticket", ["subject"], 'no value for $ticket in prompt of "read"'),
    "braces": (FIRST, "${ticket:head 9}", ["subject"], "no value for $ticket"),
    "the context's": (FIRST, "${context.ticket}", ["subject"], "no value for $ticket"),
    "a field": (FIRST, "${ticket.title}", ["tikcet"], "no value for ${ticket.title}"),
    "behind a gate": (BEHIND_GATE, "$ticket", ["subject"], "no value for $ticket"),
    "a slip behind a stage": (SECOND, "$ticket", ["tikcet"], 'did you mean "tikcet"?'),
}


@pytest.mark.parametrize("case", UNFILLED)
def test_a_variable_that_no_column_fills_is_refused_before_the_first_row(case, tmp_path):
    body, variable, columns, words = UNFILLED[case]
    calls = []
    pipeline = Pipeline(OPEN.format(body.format(variable)), backend=lambda prompt: calls.append(prompt) or "x")
    with pytest.raises(OptionError) as refused:
        pipeline.map([dict.fromkeys(columns, "x")] * 2, wait=True, interviewer="auto")
    assert words in refused.value.message
    assert refused.value.message.startswith("params[0]: ")
    assert calls == []
    assert not (tmp_path / ".attractor").exists()


def test_the_row_that_lacks_a_value_is_named():
    pipeline = Pipeline(OPEN.format(FIRST.format("$ticket")))
    with pytest.raises(OptionError, match=r"params\[2\]: no value for \$ticket"):
        pipeline.map([{"ticket": 1}, {"ticket": None}, {"tic": 3}], wait=True)


FILLED = {
    "a column": (FIRST, "$ticket", {"ticket": "x"}),
    "a missing value": (FIRST, "$ticket", {"ticket": None}),
    "a field": (FIRST, "${ticket.title}", {"ticket": {"title": "x"}}),
    "a name with a dot": (FIRST, "${ticket.title}", {"ticket.title": "x"}),
    "a default": (FIRST, "${ticket:default none}", {"n": 1}),
    "a dollar sign": (FIRST, "$$ticket for $5", {"n": 1}),
    "what the engine sets": (FIRST, "$goal $outcome ${graph.label}", {"n": 1}),
    "what a stage may set": (SECOND, "$ticket ${work.response}", {"n": 1}),
}


@pytest.mark.parametrize("case", FILLED)
def test_a_variable_that_something_fills_is_no_error(case):
    body, variable, row = FILLED[case]
    assert Pipeline(OPEN.format(body.format(variable))).map([row], wait=True, durability="none").is_success


def test_values_for_all_rows_fill_variables():
    text = OPEN.format(FIRST.format("$ticket $team"))
    assert Pipeline(text, params={"team": "a"}).map([{"ticket": 1}], wait=True, durability="none").is_success


def test_no_value_and_the_text_null_are_different_values():
    text = OPEN.format(
        """read [prompt="Read ${ticket:default nothing}."] told [prompt="x"] empty [prompt="x"]
        start -> read; read -> told [condition="context.ticket=null"]; read -> empty [condition="context.ticket!=null"]
        told -> done; empty -> done"""
    )
    result = Pipeline(text).map([{"ticket": None}, {"ticket": "null"}], wait=True, outputs=["ticket"])
    assert [row.outputs["ticket"] for row in result] == [None, "null"]
    assert [set(result.run(number).result().outcomes) & {"told", "empty"} for number in (0, 1)] == [{"empty"}, {"told"}]
    prompts = [(result.run(number).logs_root / "read" / "prompt.md").read_text() for number in (0, 1)]
    assert ["Read nothing." in prompts[0], "Read null." in prompts[1]] == [True, True]


def test_columns_that_make_no_inputs_are_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(OptionError, match="column 0 of params is not text"):
        Pipeline(TWO_STAGES).map(pd.DataFrame([[1]]))
    with pytest.raises(OptionError, match="column 'n' twice"):
        Pipeline(TWO_STAGES).map(pd.DataFrame([[1, 2]], columns=["n", "n"]))
    with pytest.raises(ContextValueError, match=r"params\[0\]"):
        Pipeline(TWO_STAGES).map(pd.DataFrame({"day": pd.to_datetime(["2026-01-01"])}))


def test_rows_without_end_are_refused(monkeypatch):
    from attractor_nb.maps import map_work as inputs

    monkeypatch.setattr(inputs, "MAX_ROWS", 10)
    with pytest.raises(OptionError, match="more than 10 rows"):
        Pipeline(TWO_STAGES).map({"n": 1} for _ in iter(int, 1))


# -- options ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_parallel": 0}, "max_parallel"),
        ({"max_parallel": "4"}, "max_parallel"),
        ({"max_parallel": True}, "max_parallel"),
        ({"on_failure": "retry"}, "on_failure must be continue or stop"),
        ({"max_paralel": 4}, "did you mean"),
        ({"logs_root": "here"}, "map_dir"),
        ({"stop_after": 1}, "stop_after"),
        ({"outputs": "answer"}, "outputs must be a list"),
        ({"outputs": [1]}, "keys of the context"),
        ({"max_budget_usd_all": -1}, "max_budget_usd_all"),
        ({"max_tokens_all": 1.5}, "max_tokens_all"),
        ({"max_duration_all": "soon"}, "max_duration_all"),
        ({"max_steps": 0}, "max_steps"),
        ({"session": 3}, "session must be True or a directory"),
        ({"map_dir": "x", "durability": "none"}, "no map_dir"),
        ({"interviewer": "deferred"}, "cannot be answered by hand"),
        ({"backend": "gpt"}, "no backend"),
        ({"host": "cloud"}, "unknown host"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(options, words, tmp_path):
    with pytest.raises(OptionError, match=words):
        Pipeline(TWO_STAGES).map(rows(2), **options)
    assert list(tmp_path.iterdir()) == []


def test_a_pipeline_with_errors_is_not_mapped():
    broken = Pipeline("digraph d { start [shape=Mdiamond] done [shape=Msquare] start -> dne }")
    with pytest.raises(ValidationError):
        broken.map(rows(1))


def test_commands_from_elsewhere_are_asked_about_once_for_all_rows(tmp_path):
    (tmp_path / "tool.dot").write_text(TOOL)
    with pytest.raises(UntrustedSource):
        Pipeline(tmp_path / "tool.dot").map(rows(2), wait=True)
    assert not (tmp_path / ".attractor").exists()
    result = Pipeline(tmp_path / "tool.dot").map(rows(2), wait=True, trust=True)
    assert result.is_success
    # What stands in its own directory is trusted, and so are its rows.
    from attractor_nb import load_pipeline

    again = load_pipeline(result.directory).resume_map(result.directory).result()
    assert again.is_success
    rewound = load_pipeline(result.directory / "row-00001").resume(result.directory / "row-00001", rewind_to="build")
    assert rewound.result().is_success


# -- at the same time -------------------------------------------------------------------------------------


def test_no_more_rows_run_at_a_time_than_were_allowed():
    door = RouteGap()
    handle = Pipeline(TWO_STAGES, backend=door).map(rows(10), max_parallel=3, durability="none")
    door.wait_for(3)
    assert sorted(handle.view.under_way) == [0, 1, 2]
    assert {entry.stage for entry in handle.view.under_way.values()} == {"plan"}
    door.open()
    assert handle.result(30).is_success
    assert door.most == 3


def test_on_failure_stop_starts_no_further_rows():
    result = Pipeline(TWO_STAGES, backend=failing_on(1)).map(rows(6), wait=True, max_parallel=1, on_failure="stop")
    assert result.counts == {"success": 1, "fail": 1, "interrupted": 0, "not_started": 4}
    assert result.status == "fail"
    assert result[5].reason == "row 1 failed, and on_failure is stop"
    assert list(result.unfinished) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ({"max_budget_usd_all": 2}, "max_budget_usd_all=2 reached: $2.0000 spent"),
        ({"max_tokens_all": 45}, "max_tokens_all=45 reached: 45 tokens used"),
        ({"max_duration_all": 0}, "max_duration_all=0s reached: 0.0 s have passed"),
    ],
)
def test_a_bound_of_all_rows_starts_no_further_ones(bound, reason):
    backend = FunctionBackend(lambda prompt: Response("x", usage=Usage(10, 5, 0.5, 1)))
    result = Pipeline(TWO_STAGES, backend=backend).map(rows(9), wait=True, max_parallel=1, **bound)
    assert result.status == "fail"
    assert result.reason == reason
    assert result.counts["fail"] == 0
    ended = {"max_budget_usd_all": (2, 0), "max_tokens_all": (1, 1), "max_duration_all": (0, 0)}[next(iter(bound))]
    assert (result.counts["success"], result.counts["interrupted"]) == ended  # within a row, too
    assert result.counts["not_started"] == 9 - sum(ended)


def test_a_bound_of_a_row_is_each_rows_own():
    result = Pipeline(TWO_STAGES).map(rows(2), wait=True, max_steps=2)
    assert result.counts["fail"] == 2
    assert "max_steps=2 reached" in result[0].reason


def test_gates_without_an_interviewer_fail_with_the_reason():
    result = Pipeline(GATE).map(rows(2), wait=True)
    assert result.counts["fail"] == 2
    assert "needs an answer, and no interviewer" in result[0].reason


def test_gates_are_answered_by_the_interviewer():
    result = Pipeline(GATE).map(rows(3), wait=True, interviewer="auto")
    assert result.is_success
    queue = QueueInterviewer(["Y"])
    result = Pipeline(GATE).map(rows(1), wait=True, interviewer=queue)
    assert result.is_success


def test_a_backend_is_opened_once_for_all_rows():
    calls = []

    class Lasting:
        async def open(self):
            calls.append("open")

        async def close(self):
            calls.append("close")

        async def run(self, node, prompt, context):
            calls.append("run")
            return "x"

    assert Pipeline(TWO_STAGES, backend=Lasting()).map(rows(2), wait=True).is_success
    assert calls == ["open", *["run"] * 4, "close"]


def test_a_backend_that_does_not_start_runs_no_row():
    class Down:
        async def open(self):
            raise ConnectionRefusedError("port 9")

        async def close(self):
            pass

        async def run(self, node, prompt, context):
            raise AssertionError

    result = Pipeline(TWO_STAGES, backend=Down()).map(rows(2), wait=True)
    assert result.status == "fail"
    assert result.counts["not_started"] == 2
    assert "the backend did not start" in result[1].reason


def test_a_row_that_cannot_be_run_is_a_failure_of_its_own(tmp_path):
    def plant(prompt):
        (tmp_path / "kept" / "row-00001").write_text("in the way")
        return prompt

    result = Pipeline(TWO_STAGES).map(rows(3), wait=True, map_dir=tmp_path / "kept", backend=plant, max_parallel=1)
    assert [row.status for row in result] == ["success", "fail", "success"]
    assert "StorageError" in result[1].reason


def test_ruling_37_a_map_is_refused_where_other_files_are(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "inputs.jsonl").write_text("mine")
    with pytest.raises(StorageError, match=r"contains files that no run wrote: inputs.jsonl"):
        Pipeline(TWO_STAGES).map(rows(3), wait=True, map_dir=tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["inputs.jsonl"]


# -- the directory ----------------------------------------------------------------------------------------


def test_the_directory_says_what_runs_over_what(tmp_path):
    result = Pipeline(TWO_STAGES).map(rows(2), wait=True, map_dir=tmp_path / "kept", outputs=["n"])
    facts = read_map(tmp_path / "kept")
    assert result.directory == tmp_path / "kept"
    assert (facts["status"], facts["map_id"], facts["outputs"]) == ("completed", result.map_id, ["n"])
    assert [entry["directory"] for entry in facts["rows"]] == ["row-00000", "row-00001"]
    assert read_inputs(result.directory, facts) == rows(2)
    assert (result.directory / "pipeline.dot").read_text() == TWO_STAGES
    assert json.loads((result.directory / MAP_NAME).read_text())["graph_hash"]


def test_maps_are_made_where_runs_are(tmp_path):
    result = Pipeline(TWO_STAGES, runs_dir=tmp_path / "out").map(rows(1), wait=True)
    assert result.directory.parent == tmp_path / "out"


def test_a_directory_that_holds_something_is_refused(tmp_path):
    pipeline = Pipeline(TWO_STAGES)
    pipeline.map(rows(1), wait=True, map_dir=tmp_path / "map")
    with pytest.raises(StorageError, match="holds a map already"):
        pipeline.map(rows(1), wait=True, map_dir=tmp_path / "map")
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    with pytest.raises(StorageError, match="holds a run already"):
        pipeline.map(rows(1), wait=True, map_dir=tmp_path / "run")


def test_secrets_in_inputs_are_nowhere_in_the_directory(tmp_path):
    secret = "sk-ant-" + "a1B2" * 12
    result = Pipeline(TWO_STAGES).map([{"n": 1, "key": secret}], wait=True, map_dir=tmp_path / "map", outputs=["key"])
    assert result.is_success
    assert result[0].outputs == {"key": "[redacted]"}
    for path in (tmp_path / "map").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


# -- handles ----------------------------------------------------------------------------------------------


def test_map_async_runs_in_the_loop_of_the_caller():
    async def main():
        return await Pipeline(TWO_STAGES).map_async(rows(3), durability="none")

    assert asyncio.run(main()).is_success


def test_a_handle_can_be_awaited():
    async def main():
        return await Pipeline(TWO_STAGES).map(rows(3), durability="none")

    assert asyncio.run(main()).is_success


def test_waiting_in_the_loop_that_runs_it_is_refused():
    async def main():
        with pytest.raises(OptionError, match="blocking call"):
            Pipeline(TWO_STAGES).map(rows(3), wait=True, host="kernel")
        handle = Pipeline(TWO_STAGES).map(rows(3), host="kernel", durability="none")
        with pytest.raises(RunError, match="the map runs in this event loop"):
            handle.result()
        return await handle

    assert asyncio.run(main()).is_success


def test_stop_lets_running_rows_come_to_their_end():
    door = RouteGap()
    handle = Pipeline(TWO_STAGES, backend=door).map(rows(9), max_parallel=2)
    door.wait_for(2)
    handle.stop()
    door.open()
    result = handle.result(30)
    assert (result.status, result.reason) == ("interrupted", "stopped")
    assert result.counts == {"success": 2, "fail": 0, "interrupted": 0, "not_started": 7}
    assert handle.status == "interrupted"
    assert read_map(result.directory)["status"] == "interrupted"


def test_cancel_interrupts_running_rows():
    door = RouteGap()
    handle = Pipeline(TWO_STAGES, backend=door).map(rows(9), max_parallel=2)
    door.wait_for(2)
    with pytest.raises(TimeoutError, match="it is still running"):
        handle.result(0.01)
    handle.cancel()
    result = handle.result(30)
    assert result.status == "interrupted"
    assert result.counts == {"success": 0, "fail": 0, "interrupted": 2, "not_started": 7}
    assert door.inside == 0
    assert f'resume_map("{result.directory}")' in str(result)


def test_a_cancelled_await_stops_the_map():
    door = RouteGap()

    async def main():
        task = asyncio.create_task(Pipeline(TWO_STAGES, backend=door).map_async(rows(4)))
        await asyncio.to_thread(door.wait_for, 1)
        task.cancel()
        with pytest.raises(RunInterrupted, match="the map was stopped after 0 of 4 rows"):
            await task

    asyncio.run(main())


def test_observers_hear_the_events_of_all_rows():
    heard = []
    pipeline = Pipeline(TWO_STAGES)
    pipeline.on_event(lambda event: heard.append((event.run_id, event.type)))
    result = pipeline.map(rows(3), wait=True, durability="none")
    assert {run_id for run_id, name in heard if name == "PipelineCompleted"} == {row.run_id for row in result}


# -- sessions ---------------------------------------------------------------------------------------------


def test_rows_are_agents_of_a_session(tmp_path):
    from attractor_nb.sessions import get_active_session, load_session_status

    result = Pipeline(TWO_STAGES, backend=failing_on(1)).map(rows(3), wait=True, session=tmp_path)
    session = load_session_status(get_active_session(tmp_path))
    assert [(agent["name"], agent["status"]) for agent in session["agents"]] == [
        ("row 0", "complete"),
        ("row 1", "failed"),
        ("row 2", "complete"),
    ]
    assert session["status"] == "failed"
    # Rows that had ended before are not cancelled.
    Pipeline(TWO_STAGES).resume_map(result, session=tmp_path, backend="simulated").result()
    session = load_session_status(get_active_session(tmp_path))
    assert [agent["status"] for agent in session["agents"]] == ["complete", "failed", "complete"]


# -- from plain data --------------------------------------------------------------------------------------


def test_a_row_can_be_run_from_plain_data_alone(tmp_path):
    import pickle

    from attractor_nb.maps.row_run import perform_row
    from attractor_nb.workers.task import FORM

    work = {
        "source": TWO_STAGES,
        "row": 7,
        "inputs": {"n": 7},
        "run_id": "demo-00007",
        "backend": "simulated",
        "has_directory": True,
        "outputs": ["n"],
        "options": {"durability": "fast"},
    }
    task = {"id": "1", "form": FORM, "kind": "row", "work": work}
    report = perform_row(json.loads(json.dumps(task)), pickle.dumps((Pipeline, None, {})))
    ended, files = report["value"], report["files"]
    assert (ended["row"], ended["status"], ended["outputs"]) == (7, "success", {"n": 7})
    assert json.loads(json.dumps(ended)) == ended
    for name, data in files.items():
        path = tmp_path / "row-00007" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert Run.load(tmp_path / "row-00007").id == ended["run_id"] == "demo-00007"


# -- memory -----------------------------------------------------------------------------------------------


@pytest.mark.campaign
def test_a_row_that_has_ended_leaves_only_its_result():
    """The parts of a row are let go; how many bytes stay is measured by goal M1 of the benchmarks."""
    import gc
    import weakref

    contexts = []

    def remember(node, prompt, context):
        contexts.append(weakref.ref(context))
        return "x" * 10_000

    result = Pipeline(TWO_STAGES, backend=FunctionBackend(remember)).map(rows(300), wait=True, durability="none")
    assert result.is_success
    gc.collect()
    assert sum(kept() is not None for kept in contexts) < 10


def test_the_example_measures_each_text():
    from pathlib import Path

    from attractor_nb.runtime.prepare.row_files import read_params_file

    examples = Path(__file__).resolve().parents[2] / "examples"
    texts = read_params_file(examples / "measure_texts.jsonl")
    result = Pipeline((examples / "measure_texts.dot").read_text()).map(texts, wait=True, outputs=["tool.output"])
    assert [int(row.outputs["tool.output"]) for row in result] == [len(text["text"].split()) for text in texts]


# -- faults beside the rows -------------------------------------------------------------------------------


def test_an_observer_that_raises_is_logged_and_the_others_hear_of_each_row(caplog):
    heard = []

    def broken(result):
        raise ZeroDivisionError("by nothing")

    door = RouteGap()
    handle = Pipeline(TWO_STAGES, backend=door).map(rows(2), max_parallel=2)
    door.wait_for(2)
    handle.on_row(broken)
    handle.on_row(lambda result: heard.append(result.row))
    door.open()
    assert handle.result(30).is_success
    assert sorted(heard) == [0, 1]
    assert [record.message for record in caplog.records if "observer" in record.message] == [
        f"an observer raised on row {row} of a map" for row in heard
    ]


def test_a_map_that_is_cancelled_while_its_backend_opens_is_interrupted_and_runs_no_row():
    reached, closed = threading.Event(), []

    class Slow:
        async def open(self):
            reached.set()
            await asyncio.Event().wait()

        async def close(self):
            closed.append(True)

        async def run(self, node, prompt, context):
            raise AssertionError

    handle = Pipeline(TWO_STAGES, backend=Slow()).map(rows(2))
    assert reached.wait(30)
    handle.cancel()
    result = handle.result(30)
    assert (result.status, result.reason, closed) == ("interrupted", "cancelled", [True])
    assert result.counts["not_started"] == 2
    assert read_map(result.directory)["status"] == "interrupted"


def test_a_row_that_is_cancelled_before_it_begins_has_not_started(monkeypatch):
    async def cancelled(*_):
        raise asyncio.CancelledError

    monkeypatch.setattr("attractor_nb.maps.map_work.run_row", cancelled)
    result = Pipeline(TWO_STAGES).map(rows(2), wait=True)
    assert result.counts == {"success": 0, "fail": 0, "interrupted": 0, "not_started": 2}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (StorageError("no space", path="status"), "the session's status cannot be written: no space"),
        (asyncio.CancelledError(), "the session's status was not waited for"),
    ],
    ids=["disk", "stopped twice"],
)
def test_what_keeps_the_sessions_status_from_being_written_is_no_fault_of_the_map(
    tmp_path, monkeypatch, caplog, fault, told
):
    def refuse(recorder):
        close(recorder)
        raise fault

    close = SessionRecorder.close
    monkeypatch.setattr(SessionRecorder, "close", refuse)
    result = Pipeline(TWO_STAGES).map(rows(2), wait=True, session=tmp_path)
    assert result.is_success
    assert told in [record.message for record in caplog.records]
