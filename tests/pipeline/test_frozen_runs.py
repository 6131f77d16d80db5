"""Directories of runs, frozen, of this version and of earlier ones: they are read for ever.

The golden files tests/golden/runs/<name>.txt are the tree and the logs of every example and of one run that has
everything. Whoever changes one says which reader takes the old form; removed ones are written anew. The archives in
tests/golden/run_directories are as version 0.1.0 left them, with form 1 of the log (``rich_run.py`` made them). None
is ever written anew: a version that leaves another form adds its own.
"""

import importlib.util
import re
import sys
import tarfile
from pathlib import Path

import pytest

from attractor_nb import Run, runs
from attractor_nb.model.events import PipelineStarted
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ManualClock, SeededRandomness

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden" / "runs"
KEPT = TESTS / "golden" / "run_directories"


def _load(path):
    """A module that lies beside the tests."""
    spec = importlib.util.spec_from_file_location(f"frozen_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


examples = _load(TESTS / "examples" / "test_examples.py")
rich_run = _load(TESTS / "pipeline" / "rich_run.py")


def frozen(folder):
    """The tree of a folder and the texts of its logs and cassettes, without what differs between machines."""
    files = sorted(path for path in folder.rglob("*"))
    names = [f"{path.relative_to(folder)}{'/' * path.is_dir()}" for path in files]
    parts = ["\n".join(names)]
    for path in files:
        if path.name == "events.jsonl":
            read_log(path.parent)  # each checksum is right
        if path.name in {"events.jsonl", "rich.json"}:
            parts.append(f"== {path.relative_to(folder)}\n{_plain(path.read_text(), folder)}")
    return "\n\n".join(parts) + "\n"


def _plain(text, folder):
    text = re.sub(r',"crc":"[0-9a-f.]+"', "", text.rstrip("\0\n"))
    text = re.sub(r'"checksum": ?"[0-9a-f]+"', '"checksum":"…"', text)
    text = re.sub(r'(\s*"A long answer\.",){9,}', '"(long)",', text)
    text = re.sub(r"in \d+\.\d\ds", "in 0.02s", text)
    return text.replace(sys.executable, "python").replace(str(folder), "/project")


def check_golden(name, text):
    place = GOLDEN / f"{name}.txt"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        pytest.fail("the golden file was missing and has been written: read it")
    assert text == place.read_text()


@examples.every_example
def test_what_an_example_leaves_is_the_golden_file(example, tmp_path, monkeypatch):
    for name, value in (("COLUMNS", "80"), ("PYTEST_ADDOPTS", "-p no:cacheprovider")):
        monkeypatch.setenv(name, value)
    for name in ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    (tmp_path / "test_here.py").write_text("def test_that_passes(): pass\n")
    pipeline = examples.load(example, backend="simulated", interviewer="auto")
    options = {"clock": ManualClock(), "randomness": SeededRandomness(), "params": example.params}
    pipeline.run(wait=True, logs_root=tmp_path / "run", workdir=tmp_path, trust=True, **options)
    (tmp_path / "test_here.py").unlink()
    check_golden(example.name, frozen(tmp_path))


def test_what_a_run_that_has_everything_leaves_is_the_golden_file(tmp_path):
    assert rich_run.ended(tmp_path).status == "completed"
    check_golden("everything", frozen(tmp_path))


def test_each_golden_file_has_its_run():
    names = {"everything", *(example.name for example in examples.TABLE)}
    assert {path.stem for path in GOLDEN.glob("*.txt")} == names


STATUS = {
    "ended": "completed",
    "waiting": "interrupted",
    "killed_in_branch": "abandoned",
    "killed_in_child": "abandoned",
}
every_kept = pytest.mark.parametrize("name", STATUS)
every_unfinished = pytest.mark.parametrize("name", [name for name in STATUS if name != "ended"])


@pytest.fixture
def unpacked(tmp_path):
    """A kept run directory, somewhere else than it was made."""

    def unpack(name):
        with tarfile.open(KEPT / f"{name}.tar.gz") as archive:
            # An argument only from Python 3.11.4 on; as an attribute every version takes it.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(tmp_path)
        return tmp_path / "run"

    return unpack


def test_each_kind_of_run_is_kept():
    assert {path.name.removesuffix(".tar.gz") for path in KEPT.iterdir()} == set(rich_run.KEPT) == set(STATUS)


@every_kept
def test_its_log_says_in_which_form_it_is(unpacked, name):
    first = read_run(unpacked(name)).events[0]
    assert isinstance(first, PipelineStarted)
    assert first.schema_version == 1


@every_kept
def test_it_is_listed(unpacked, name):
    [row] = runs(unpacked(name).parent)
    assert (row.status, row.pipeline_name) == (STATUS[name], "rich")


@every_kept
def test_its_stages_are_inspected(unpacked, name):
    run = Run.load(unpacked(name), rich_run.rich_pipeline())
    stage = run.inspect("plan")
    assert (stage.prompt.splitlines()[-1], stage.response) == ("Plan it in EUR.", "plan:\n- done")
    assert [attempt.status for attempt in stage.attempts] == ["retry", "success"]
    assert run.inspect("code").response == rich_run.LONG


@every_unfinished
def test_it_is_resumed_to_its_end(unpacked, name, tmp_path):
    options = {"trust": True, "workdir": tmp_path, **rich_run.seams()}  # where it was made there is no folder now
    result = rich_run.rich_pipeline().resume(unpacked(name), **options).result(60)
    assert (result.status, result.reason) == ("success", "")
    assert result.completed_nodes == ("start", *rich_run.PATH)
    assert result.context["parallel.success_count"] == 2
    assert result.context["found"] == "look:\n- done"


def test_one_that_has_ended_is_rewound_to_its_end(unpacked, tmp_path):
    run = Run.load(unpacked("ended"), rich_run.rich_pipeline())
    assert len(run.replay()) > 20
    result = run.rewind("research", trust=True, workdir=tmp_path, **rich_run.seams()).result(60)
    assert (result.status, result.completed_nodes) == ("success", rich_run.PATH)


@every_kept
def test_it_is_read_without_its_checkpoint_too(unpacked, name):
    root = unpacked(name)
    for path in root.rglob("checkpoint*.json"):
        path.unlink()
    run = Run.load(root, rich_run.rich_pipeline())
    assert run.inspect("plan").response == "plan:\n- done"
