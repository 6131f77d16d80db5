"""An attempt that could not be made for a reason outside the pipeline is no failure of the pipeline (ruling 51)."""

import errno
import os

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.cli.entry import run_command_line
from attractor_nb.errors import StageError, StorageError, TerminalError
from attractor_nb.model.events import PipelineInterrupted, StageFailed
from attractor_nb.pipeline.runs import runs
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.stored_run import read_run

FRAME = "digraph d {{ {attrs} start [shape=Mdiamond] done [shape=Msquare] {body} }}"
LINE = FRAME.format(attrs="", body="a [prompt=a] b [prompt=b] start -> a -> b -> done")


class HttpError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status


class Refusing:
    """Answers all prompts but those of one node, as long as it refuses."""

    def __init__(self, error, refused="b"):
        self.error, self.refused, self.asked = error, refused, []

    def run(self, node, prompt, context):
        self.asked.append(node.id)
        if self.error is not None and node.id == self.refused:
            raise self.error
        return "fine"


NO_CREDIT = TerminalError("the account has no credit left", is_unmeasured=True)
OUTSIDE = [
    pytest.param(NO_CREDIT, id="no credit"),
    pytest.param(HttpError(401), id="refused key"),
    pytest.param(HttpError(402), id="payment"),
    pytest.param(HttpError(403), id="no access"),
    pytest.param(ConnectionRefusedError(errno.ECONNREFUSED, "refused"), id="no network"),
    pytest.param(OSError(errno.EMFILE, "Too many open files"), id="open files"),
    pytest.param(OSError(errno.ENFILE, "Too many open files in system"), id="open files of the machine"),
]


@pytest.mark.parametrize("error", OUTSIDE)
@pytest.mark.parametrize("retries", [0, 2])
def test_ruling_51_a_failure_from_outside_that_nothing_routes_interrupts_the_run_which_goes_on_later(
    tmp_path, error, retries
):
    source = FRAME.format(
        attrs=f'retry_policy="none" default_max_retries={retries}' if retries else "",
        body="a [prompt=a] b [prompt=b] start -> a -> b -> done",
    ).replace('retry_policy="none"', "")
    backend = Refusing(error)
    run = Pipeline(source).run(backend=backend, logs_root=tmp_path / "run")
    result = run.result(60)
    assert (result.status, result.completed_nodes) == ("interrupted", ("start", "a"))
    assert result.reason.startswith("b could not be executed: ")
    *_, last = read_run(tmp_path / "run").events
    assert isinstance(last, PipelineInterrupted)
    assert all(event.will_retry for event in read_run(tmp_path / "run").events if isinstance(event, StageFailed))
    assert runs(tmp_path)[0].is_resumable
    backend.error = None
    again = Run.load(tmp_path / "run", pipeline=Pipeline(source)).resume(backend=backend).result(60)
    assert again.status == "success", again.reason
    assert backend.asked[-1] == "b"
    assert backend.asked.count("a") == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('b -> done [condition="outcome=success"] b -> c [condition="outcome=fail"]', id="fail edge"),
        pytest.param("b [retry_target=c] b -> done", id="retry target"),
        pytest.param('d [shape=diamond] b -> d d -> c [condition="outcome=fail"] d -> done', id="diamond"),
    ],
)
def test_ruling_51_a_failure_from_outside_that_the_graph_routes_is_recorded_and_routed(tmp_path, body):
    source = FRAME.format(
        attrs="", body=f"a [prompt=a] b [prompt=b] c [prompt=x] start -> a -> b {body} c -> done a -> c [weight=-1]"
    )
    result = Pipeline(source).run(wait=True, backend=Refusing(NO_CREDIT), logs_root=tmp_path / "run")
    assert result.status == "success", result.reason
    assert "c" in result.completed_nodes
    assert result["b"].outcome.failure_reason == "the account has no credit left"


def test_ruling_51_what_the_pipeline_got_wrong_itself_is_a_failure(tmp_path):
    for error in (TerminalError("no such model"), StageError("odd"), HttpError(400), ValueError("no")):
        result = Pipeline(LINE).run(wait=True, backend=Refusing(error), durability="none")
        assert result.status == "fail"


FAN_OUT = """fan [shape=component{policy}] join [shape=tripleoctagon]
a [prompt=a] b [prompt=b] c [prompt=c] start -> fan fan -> a -> join fan -> b -> join fan -> c -> join join -> done"""


def test_ruling_51_too_few_open_files_in_a_branch_is_no_failure_of_it_and_a_resume_does_all_of_it(tmp_path):
    source = FRAME.format(attrs="", body=FAN_OUT.format(policy=""))
    backend = Refusing(OSError(errno.EMFILE, "Too many open files"))
    result = Pipeline(source).run(wait=True, backend=backend, logs_root=tmp_path / "run")
    assert (result.status, "Too many open files" in result.reason) == ("interrupted", True)
    backend.error = None
    again = Run.load(tmp_path / "run", pipeline=Pipeline(source)).resume(backend=backend).result(60)
    assert again.status == "success", again.reason
    assert [entry["status"] for entry in again.context["parallel.results"]] == ["success"] * 3


@pytest.mark.parametrize("policy", [", error_policy=ignore", ", join_policy=first_success"])
def test_ruling_51_a_branch_that_may_fail_is_recorded_as_failed(policy):
    source = FRAME.format(attrs="", body=FAN_OUT.format(policy=policy))
    result = Pipeline(source).run(wait=True, backend=Refusing(NO_CREDIT), durability="none")
    assert result.status == "success", result.reason


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(", join_policy=first_success", id="first_success"),
        pytest.param(", join_policy=k_of_n, join_k=3", id="k_of_n"),
        pytest.param(", join_policy=quorum, join_quorum=1.0", id="quorum"),
        pytest.param(", error_policy=ignore", id="ignore"),
    ],
)
def test_ruling_51_a_fan_out_that_fails_for_want_of_branches_that_could_not_be_executed_is_left_open(tmp_path, policy):
    source = FRAME.format(attrs="", body=FAN_OUT.format(policy=policy))

    class RefusingMany(Refusing):
        def run(self, node, prompt, context):
            if self.error is not None and (node.id == "b" or ("k_of_n" not in policy and "quorum" not in policy)):
                raise self.error
            return "fine"

    backend = RefusingMany(NO_CREDIT)
    result = Pipeline(source).run(wait=True, backend=backend, logs_root=tmp_path / "run")
    assert (result.status, "no credit" in result.reason) == ("interrupted", True), result.reason
    backend.error = None
    again = Run.load(tmp_path / "run", pipeline=Pipeline(source)).resume(backend=backend).result(60)
    assert again.status == "success", again.reason


def test_ruling_51_a_fan_out_that_fails_whatever_its_unmeasured_branches_had_done_is_a_failure():
    source = FRAME.format(attrs="", body=FAN_OUT.format(policy=", join_policy=k_of_n, join_k=3"))

    class Mixed:
        def run(self, node, prompt, context):
            if node.id == "a":
                raise StageError("no answer that fits")
            if node.id == "b":
                raise NO_CREDIT
            return "fine"

    result = Pipeline(source).run(wait=True, backend=Mixed(), durability="none")
    assert result.status == "fail", result.reason


def test_ruling_51_a_command_that_cannot_be_started_for_want_of_files_leaves_its_stage_open(tmp_path, monkeypatch):
    source = FRAME.format(attrs="", body='t [shape=parallelogram, tool_command="true"] start -> t -> done')

    def refuse(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr("attractor_nb.processes.local.ChildProcess", refuse)
        result = Pipeline(source).run(wait=True, logs_root=tmp_path / "run")
    assert (result.status, "too many open files" in result.reason) == ("interrupted", True)
    assert Run.load(tmp_path / "run").resume().result(60).status == "success"


class FewFiles(Disk):
    """From its nth descriptor on, or from a directory of that name on, there are none left.

    Attributes:
        count: The descriptors that were asked for.
        refused: The name of what was refused first, or empty.
    """

    def __init__(self, last=10**9, *, name=""):
        self.last, self.name, self.count, self.refused = last, name, 0, ""

    def _take(self, name):
        self.count += 1
        if self.count > self.last or self.name == str(name):
            self.last, self.refused = 0, self.refused or str(name)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(name))

    def open_directory(self, name, parent=None):
        self._take(name)
        return super().open_directory(name, parent)

    def create(self, name, parent):
        self._take(name)
        return super().create(name, parent)

    def open_update(self, name, parent, *, is_append=False):
        self._take(name)
        return super().open_update(name, parent, is_append=is_append)


LARGE = FAN_OUT.replace("start -> fan", "big [prompt=big] start -> big -> fan")


class Long:
    """Answers one prompt with a text that becomes an artifact."""

    def run(self, node, prompt, context):
        return "x" * 150_000 if node.id == "big" else "fine"


def test_ruling_51_too_few_files_for_the_directory_of_a_branch_interrupt_the_run(tmp_path):
    pipeline = Pipeline(FRAME.format(attrs="", body=LARGE.format(policy="")), backend=Long())
    disk = FewFiles(name="branches")
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", disk=disk)
    assert disk.refused == "branches"
    assert (result.status, result.is_unmeasured) == ("interrupted", True)
    assert "too many open files" in result.reason
    (row,) = runs(tmp_path)
    assert (row.status, row.is_resumable) == ("interrupted", True)
    again = pipeline.resume(tmp_path / "run").result(60)
    assert (again.status, again.visits["big"]) == ("success", 1)


@pytest.mark.parametrize("share", [0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9])  # as above
def test_ruling_51_too_few_files_anywhere_in_a_run_raise_nothing_and_a_resume_does_the_rest(tmp_path, share):
    pipeline = Pipeline(FRAME.format(attrs="", body=LARGE.format(policy="")), backend=Long())
    counted = FewFiles()
    pipeline.run(wait=True, logs_root=tmp_path / "counted", durability="fast", disk=counted)
    root, disk = tmp_path / "run", FewFiles(int(counted.count * share))
    result = pipeline.run(wait=True, logs_root=root, durability="fast", disk=disk)
    assert disk.refused
    if result.status == "interrupted":
        assert result.is_unmeasured
        assert pipeline.resume(root).result(60).status == "success"
    assert (Run.load(root).status, result.status) in {("completed", "interrupted"), ("completed", "success")}


def test_ruling_51_an_artifact_that_cannot_be_opened_for_want_of_files_is_not_damaged(tmp_path):
    source = FRAME.format(attrs="", body="big [prompt=big] a [prompt=a] start -> big -> a -> done")
    disk = FewFiles()

    class Reading(Long):
        def run(self, node, prompt, context):
            if node.id == "a":
                disk.last = 0
                return context.get("big.response")[:4]
            return super().run(node, prompt, context)

    pipeline = Pipeline(source, backend=Reading())
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", disk=disk)
    assert (result.status, result.is_unmeasured) == ("interrupted", True), result.reason
    disk.last = 10**9
    assert Pipeline(source, backend=Long()).resume(tmp_path / "run").result(60).status == "success"


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])  # a busy run asks for a few more than a quiet one
def test_ruling_51_too_few_files_in_a_map_raise_nothing_and_a_resume_does_the_rest(tmp_path, share):
    pipeline, rows = Pipeline(LINE, backend=Long()), [{"n": 0}, {"n": 1}]
    counted = FewFiles()
    pipeline.map(rows, wait=True, map_dir=tmp_path / "counted", disk=counted)
    result = pipeline.map(rows, wait=True, map_dir=tmp_path / "map", disk=FewFiles(int(counted.count * share)))
    assert (result.status, "too many open files" in result.reason) == ("interrupted", True)
    assert pipeline.resume_map(tmp_path / "map").result(60).status == "success"


def test_ruling_51_too_few_files_before_the_first_record_are_an_error_for_there_is_nothing_to_resume(tmp_path):
    with pytest.raises(StorageError, match="too many open files"):
        Pipeline(LINE).run(wait=True, backend=Long(), logs_root=tmp_path / "run", disk=FewFiles(2))


def test_ruling_51_a_child_that_could_not_be_executed_interrupts_its_parent(tmp_path):
    source = FRAME.format(attrs="", body='sub [type="pipeline", pipeline.name="child"] start -> sub -> done')
    pipeline = Pipeline(source, pipelines={"child": Pipeline(LINE)})
    backend = Refusing(NO_CREDIT)
    result = pipeline.run(wait=True, backend=backend, logs_root=tmp_path / "run")
    assert (result.status, "no credit" in result.reason) == ("interrupted", True)
    backend.error = None
    again = pipeline.resume(tmp_path / "run", backend=backend).result(60)
    assert again.status == "success", again.reason
    assert backend.asked.count("a") == 1


def test_ruling_51_after_the_first_such_answer_a_map_starts_no_further_row(tmp_path):
    backend = Refusing(NO_CREDIT)
    pipeline = Pipeline(LINE)
    result = pipeline.map(
        [{"n": n} for n in range(5)], wait=True, backend=backend, map_dir=tmp_path / "map", max_parallel=1
    )
    assert result.status == "interrupted"
    assert "row 0 could not be run" in result.reason
    assert [row.status for row in result.rows] == ["interrupted"] + ["not_started"] * 4
    assert backend.asked == ["a", "b"]
    backend.error = None
    again = pipeline.resume_map(tmp_path / "map", backend=backend).result(60)
    assert [row.status for row in again.rows] == ["success"] * 5
    assert backend.asked.count("a") == 5


def test_ruling_51_the_command_ends_with_1_and_says_how_to_go_on(tmp_path, monkeypatch, capfd):
    source = FRAME.format(attrs="", body='t [shape=parallelogram, tool_command="true"] start -> t -> done')
    (tmp_path / "p.dot").write_text(source)

    def refuse(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("attractor_nb.processes.local.ChildProcess", refuse)
    root = str(tmp_path / "run")
    assert run_command_line(["run", str(tmp_path / "p.dot"), "--trust", "--logs-root", root]) == 1
    said = "".join(capfd.readouterr())
    assert "t could not be executed" in said
    assert "resume" in said
