"""Trust before run: nothing that came from elsewhere reaches a shell before a user trusted it.

The attacker writes the DOT file or the run directory, changes it while a person reads, and prints what
deceives the reader. He does not write to the user's state directory.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline, load_pipeline
from attractor_nb.errors import AttractorError, OptionError, UntrustedSource
from attractor_nb.runtime.prepare.trust import trust_question
from attractor_nb.storage.trust_file import TrustFile
from attractor_nb.testing import FakeProcesses

WRITER = Path(__file__).parent / "workers" / "trust_writer.py"
TRUST = "attractor_nb/runtime/prepare/trust.py"
TRUST_FILE = "attractor_nb/storage/trust_file.py"


def text(command):
    """A pipeline with one command."""
    return f"""digraph Build {{
        start [shape=Mdiamond]
        build [shape=parallelogram, tool_command="{command}"]
        done  [shape=Msquare]
        start -> build -> done
    }}"""


GOOD, EVIL = text("touch $ATTRACTOR_LOGS_ROOT/../good"), text("touch $ATTRACTOR_LOGS_ROOT/../evil")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "build.dot"
    path.write_text(GOOD)
    return path


def asked(pipeline):
    """The question that a person would be shown."""
    question = trust_question(pipeline.graph, pipeline.origin)
    assert question is not None
    return question


def effects():
    """The traces of commands in the directory of the test."""
    return {name for name in ("good", "evil") if Path("out", name).exists()}


def is_refused(call):
    """True if a call is refused, and nothing is made on the disk."""
    before = sorted(Path().rglob("*"))
    try:
        run = call()
    except UntrustedSource:
        assert sorted(Path().rglob("*")) == before
        return True
    run.result(60)
    return False


@pytest.mark.protects(TRUST, "        raise untrusted(question)", instead="        return")
def test_commands_from_elsewhere_are_refused_and_nothing_is_made(file, figures):
    """Protection: an open question is a refusal."""
    ways = [
        lambda: Pipeline("build.dot").run(logs_root="out/run"),
        lambda: Pipeline(file).run(logs_root="out/run"),
        lambda: Pipeline(GOOD, origin="a mail").run(logs_root="out/run"),
        lambda: Pipeline(file).run(durability="none"),
        lambda: Pipeline(file).run(runs_dir="runs"),
    ]
    refused = sum(is_refused(way) for way in ways)
    assert (refused, effects()) == (len(ways), set())
    figures.record(
        0, "commands from elsewhere, nobody to ask", f"{refused} of {len(ways)} refused, nothing on the disk"
    )


@pytest.mark.protects(
    "attractor_nb/runtime/definition.py", "self._source = read_source(source)", instead="self._source = source"
)
def test_the_file_changes_after_it_was_looked_at(file):
    """Protection: a file is read once, so that plugging a handler in does not read other commands."""
    pipeline = Pipeline(file)
    assert asked(pipeline).surface.commands[0].text.endswith("good")
    file.write_text(EVIL)
    pipeline.register("notify", lambda node, context: "done")
    pipeline.run(wait=True, logs_root="out/run", trust=True)
    assert effects() == {"good"}
    assert "evil" not in Path("out/run/pipeline.dot").read_text()


@pytest.mark.protects(
    TRUST, "if surface and not surface.is_named_by(options.trust):", instead="if surface and not options.trust:"
)
def test_the_file_changes_between_the_question_and_the_run(file):
    """Protection: a yes is the hash of what was shown, and a hash that is given must be that of the graph."""
    shown = asked(Pipeline(file)).surface.full_hash
    file.write_text(EVIL)
    assert is_refused(lambda: Pipeline(file).run(logs_root="out/run", trust=shown))
    assert effects() == set()


@pytest.mark.protects(
    TRUST, "if surface and not surface.is_named_by(options.trust):", instead="if surface and not options.trust:"
)
def test_the_hash_of_another_file_trusts_nothing(file, tmp_path):
    """Protection: as above; the first 12 digits decide as the whole hash does."""
    (tmp_path / "evil.dot").write_text(EVIL)
    other = asked(Pipeline("evil.dot")).surface
    for given in (other.full_hash, other.hash):
        assert is_refused(lambda given=given: Pipeline(file).run(logs_root="out/run", trust=given))


@pytest.mark.protects(TRUST, "found.full_hash == of_graph.full_hash", instead="found")
def test_commands_that_change_after_a_yes_are_asked_about_again(file):
    """Protection: what is remembered is the hash, not the file alone."""
    asked(Pipeline(file)).remember()
    Pipeline(file).run(wait=True, logs_root="out/run")
    file.write_text(EVIL)
    assert is_refused(lambda: Pipeline(file).run())
    diff = asked(Pipeline(file)).diff
    assert [line[:1] for line in diff if "touch" in line] == ["-", "+"]


@pytest.mark.protects(TRUST, "return os.path.realpath(path)", instead="return os.path.abspath(path)")
def test_a_link_that_is_turned_to_another_file_is_asked_about(tmp_path):
    """Protection: an answer is kept under the real path; the same words mean something else elsewhere."""
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "build.dot").write_text(text("sh ./build.sh"))
    link = tmp_path / "link.dot"
    link.symlink_to("mine/build.dot")
    asked(Pipeline(link)).remember()
    assert trust_question(Pipeline(link).graph, Pipeline(link).origin) is None
    link.unlink()
    link.symlink_to("theirs/build.dot")
    assert is_refused(lambda: Pipeline(link).run(logs_root="out/run"))


@pytest.mark.protects(
    "attractor_nb/runtime/resume.py",
    "on_graph_change)\n    check_trust(pipeline, options, logs_root, recorded)\n",
    instead="on_graph_change)\n",
)
def test_a_run_directory_whose_pipeline_was_altered_is_asked_about(figures):
    """Protection: a resume asks as a run does."""
    Pipeline(GOOD).run(wait=True, logs_root="out/run", stop_after=1)
    Path("out/run/pipeline.dot").write_text(EVIL)
    for on_graph_change in ("error", "warn", "accept"):
        assert is_refused(lambda how=on_graph_change: load_pipeline("out/run").resume("out/run", on_graph_change=how))
    assert effects() == set()
    with pytest.raises(UntrustedSource, match="not those that were trusted before"):
        load_pipeline("out/run").resume("out/run", on_graph_change="accept")
    Path("out/run/pipeline.dot").write_text(GOOD)
    assert load_pipeline("out/run").resume("out/run").result(60).status == "success"
    assert effects() == {"good"}
    figures.record(0, "pipeline.dot of a run directory altered", "3 of 3 resumes refused; unaltered it continues")


@pytest.mark.protects(TRUST, "if surface and _are_commands_run(options.processes):", instead="if surface:")
def test_a_rehearsal_trusts_nothing(file):
    """Protection: a run that starts no command is not noted as one that the user began."""
    Pipeline(file).run(wait=True, logs_root="out/run", stop_after=1, processes=FakeProcesses())
    assert is_refused(lambda: load_pipeline("out/run").resume("out/run"))
    assert effects() == set()


@pytest.mark.protects(
    "attractor_nb/decisions/planning/executable_surface.py",
    'rf"[0-9a-f]{{{SHOWN_DIGITS},64}}\\Z"',
    instead='r"[0-9a-f*]*\\Z"',
)
def test_the_environment_takes_12_digits_and_no_wildcard(file, monkeypatch):
    """Protection: what is shorter than 12 digits, or no hash, names nothing."""
    full = asked(Pipeline(file)).surface.full_hash
    for value in ("*", full[:1], full[:11], f"{full}*", full[1:13] + "g"):
        monkeypatch.setenv("ATTRACTOR_TRUST", value)
        with pytest.raises(OptionError, match="not a hash of commands"):
            Pipeline(file).run(logs_root="out/run")
    for value in ("", "  ", full[1:13], "0" * 64):
        monkeypatch.setenv("ATTRACTOR_TRUST", value)
        assert is_refused(lambda: Pipeline(file).run(logs_root="out/run"))
    monkeypatch.setenv("ATTRACTOR_TRUST", full[:12])
    Pipeline(file).run(wait=True, logs_root="out/run")
    assert effects() == {"good"}


@pytest.mark.protects(
    "attractor_nb/views/shown_commands.py", "if char.isprintable() and not _INVISIBLE.match(char)", instead="if char"
)
def test_what_is_shown_has_no_character_that_deceives(file, figures):
    """Protection: whatever moves the cursor, reverses the text or shows as nothing is spelled out."""
    hidden = [
        *map(chr, range(1, 32)),
        *map(chr, range(127, 160)),
        *"\xa0\xad\u034f\u061c\u115f\u180e\u200b\u200e\u2028\u202a\u202e\u2060\u2066\u2069\u3164\ufe0f\ufeff",
    ]
    hidden = [char for char in hidden if char not in '\n"\\']
    shown = 0
    for char in hidden:
        file.write_bytes(text(f"true {char}; touch evil").encode())
        try:
            pipeline = Pipeline(file)
        except AttractorError:  # not every character may stand in DOT
            continue
        with pytest.raises(UntrustedSource) as caught:
            pipeline.run()
        assert char not in str(caught.value), ascii(char)
        assert "touch evil" in str(caught.value)
        shown += 1
    assert shown > 20
    figures.record(0, "commands with characters that deceive", f"{shown} of {shown} spelled out")


@pytest.mark.protects(TRUST_FILE, "if self._directory is None or not is_private(self._directory):", instead="if False:")
def test_a_memory_that_others_can_write_is_not_believed(file):
    """Protection: only a state directory that no other user can write to says that something was trusted."""
    asked(Pipeline(file)).remember()
    state = Path(os.environ["ATTRACTOR_STATE_DIR"])
    state.chmod(0o777)
    assert is_refused(lambda: Pipeline(file).run(logs_root="out/run"))
    state.chmod(0o700)
    assert not is_refused(lambda: Pipeline(file).run(logs_root="out/run"))


@pytest.mark.protects(
    TRUST_FILE,
    "except (JsonProblem, StorageError):\n            return {}",
    instead="except ZeroDivisionError:\n            return {}",
)
def test_a_damaged_memory_trusts_nothing_and_fails_nothing(file, campaign, figures):
    """Protection: a memory that is torn, altered or no file at all is no memory, and never an error."""
    asked(Pipeline(file)).remember()
    memory = Path(os.environ["ATTRACTOR_STATE_DIR"], "trust.json")
    whole = memory.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    images = campaign.pick([*flipped, *(whole[:size] for size in range(len(whole)))], sample=120)
    pipeline = Pipeline(file)
    for image in images:
        memory.write_bytes(image)
        assert trust_question(pipeline.graph, pipeline.origin) is not None
    for plant in (os.mkfifo, Path.mkdir, lambda place: place.symlink_to("/dev/zero")):
        memory.unlink()
        plant(memory)
        assert is_refused(lambda: Pipeline(file).run(logs_root="out/run"))
        Pipeline(GOOD).run(wait=True)
        if memory.is_dir():
            memory.rmdir()
            memory.touch()
    figures.record(
        0, "memory of what was trusted, damaged", f"{len(images) + 3} of {len(images) + 3}: asked again, no error"
    )


@pytest.mark.protects(TRUST_FILE, "with self._lock():", instead="with open(os.devnull):")
@pytest.mark.campaign
def test_writers_of_the_memory_do_not_lose_one_anothers_words(campaign, figures):
    """Protection: the memory is read and written under a lock."""
    writers, each = 4, campaign.count(sample=25, full=70)
    processes = [
        subprocess.Popen(
            [sys.executable, str(WRITER), f"writer{number}", str(each)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        process.stdin.write(b"\n")
        process.stdin.close()
    for process in processes:
        assert process.wait(100) == 0
        process.stdout.close()
    memory = TrustFile()
    places = [f"/writer{number}/{index}.dot" for number in range(writers) for index in range(each)]
    kept = sum(memory.recall(place) is not None for place in places)
    assert kept == len(places)
    figures.record(0, f"{writers} processes remember at once", f"{kept} of {len(places)} words kept")
