"""A failure in the user's Python has its traceback: in the stage's files, in what is inspected, by ``run.error()``."""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import sys
import weakref
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from attractor_nb import CallbackInterviewer, FunctionBackend, Outcome, Pipeline, Run, redact_also
from attractor_nb.errors import OptionError, StageError, StorageError, TerminalError
from attractor_nb.studio.inspect import inspect_run

MAX_CHARACTERS = 60_000
MAX_KEPT = 3

TEXT = 'digraph d { start [shape=Mdiamond] done [shape=Msquare] plan [prompt="x"] start -> plan -> done }'


def look_up(table):
    return table["missing"]


def failing(node, prompt, context):
    return look_up({"found": 1})


async def failing_later(node, prompt, context):
    return look_up({"found": 1})


class FailingHandler:
    def execute(self, node, context, graph, logs_root):
        return look_up({"found": 1})


class Shipped:
    def run(self, node, prompt, context):
        return look_up({"found": 1})


def run_of(tmp_path, text=TEXT, **options):
    made = Pipeline(text, **options).run(logs_root=tmp_path / "run")
    made.result(60)
    return made


def of_backend(function):
    return lambda: {"backend": FunctionBackend(function)}


def functions_of(text):
    """The functions of a traceback's frames, outermost first."""
    return [line.rpartition(" in ")[2] for line in text.splitlines() if line.startswith("  File ")]


@pytest.mark.parametrize("backend", [failing, failing_later], ids=["plain", "async"])
def test_a_backend_that_raises_leaves_its_traceback_from_the_users_first_frame_on(tmp_path, backend):
    run = run_of(tmp_path, backend=FunctionBackend(backend))
    text = (tmp_path / "run" / "plan" / "traceback.txt").read_text()
    assert functions_of(text) == [backend.__name__, "look_up"]
    assert 'return table["missing"]' in text
    assert text.endswith("KeyError: 'missing'\n")
    found = run.inspect("plan")
    assert found.traceback == found.to_plain()["traceback"] == text
    assert "--- traceback" in str(found)
    assert "Traceback</summary>" in found._repr_mimebundle_()["text/html"]


def test_a_handler_that_raises_has_one(tmp_path):
    text = TEXT.replace("plan [", 'plan [type="mine" ')
    run = run_of(tmp_path, text, backend="simulated", handlers={"mine": FailingHandler()})
    assert functions_of(run.inspect("plan").traceback) == ["execute", "look_up"]


def test_an_interviewer_that_raises_has_one(tmp_path):
    text = TEXT.replace("plan [", "plan [shape=hexagon ").replace("plan -> done", "plan -> done [label=Go]")
    made = Pipeline(text).run(logs_root=tmp_path / "run", interviewer=CallbackInterviewer(lambda question: look_up({})))
    made.result(60)
    assert functions_of(made.inspect("plan").traceback)[-1] == "look_up"
    assert isinstance(made.error(), KeyError)


def test_a_stage_that_succeeds_or_fails_in_words_has_none(tmp_path):
    def refuse(node, prompt, context):
        return Outcome.fail("not today")

    run = run_of(tmp_path, backend=FunctionBackend(refuse))
    assert run.inspect("plan").traceback is None
    assert not list((tmp_path / "run").rglob("traceback.txt"))
    error = run.error()
    assert isinstance(error, StageError)
    assert "not today" in error.message
    fine = Pipeline(TEXT, backend="simulated").run(logs_root=tmp_path / "fine")
    fine.result(60)
    assert fine.error() is None


def test_each_attempt_has_its_own(tmp_path):
    tries = []

    def twice(node, prompt, context):
        tries.append(1)
        raise (ConnectionError if len(tries) == 1 else ValueError)(f"try {len(tries)}")

    run = run_of(tmp_path, TEXT.replace("plan [", "plan [max_retries=1 "), backend=FunctionBackend(twice))
    assert "try 1" in run.inspect("plan", attempt=1).traceback
    assert "try 2" in run.inspect("plan", attempt=2).traceback
    assert "try 1" not in run.inspect("plan", attempt=2).traceback


def test_an_exception_that_ends_programs_has_one_under_a_time_limit_too(tmp_path):
    def leave(node, prompt, context):
        raise SystemExit("enough")

    run = run_of(tmp_path, TEXT.replace("plan [", 'plan [timeout="30s" '), backend=FunctionBackend(leave))
    assert functions_of(run.inspect("plan").traceback) == ["leave"]


def test_secrets_are_taken_out_of_it(tmp_path):
    redact_also("hunter2hunter2")

    def told(node, prompt, context):
        raise ValueError("the password is hunter2hunter2")

    run = run_of(tmp_path, backend=FunctionBackend(told))
    text = (tmp_path / "run" / "plan" / "traceback.txt").read_text()
    assert "hunter2" not in text + run.inspect("plan").traceback + str(run.inspect("plan"))


def test_one_that_cannot_be_shown_and_an_endless_recursion_do_no_harm(tmp_path):
    class Bad(Exception):
        def __str__(self):
            raise RuntimeError("no")

    def deep(node, prompt, context):
        if node.id == "plan":
            raise Bad
        return deep(node, prompt, context)

    text = 'digraph d { start [shape=Mdiamond] done [shape=Msquare] plan deeper start -> plan plan -> deeper [condition="outcome=fail"] plan -> done deeper -> done }'
    run = run_of(tmp_path, text, backend=FunctionBackend(deep))
    assert "Bad" in run.inspect("plan").traceback
    assert "RecursionError" in run.inspect("deeper").traceback
    assert len(run.inspect("deeper").traceback) <= MAX_CHARACTERS + 100


def test_what_a_process_raised_travels_as_text(tmp_path):
    with ProcessPoolExecutor(1) as pool:
        made = Pipeline(TEXT, backend=Shipped()).run(logs_root=tmp_path / "run", executor=pool)
        made.result(60)
    assert functions_of(made.inspect("plan").traceback) == ["run", "look_up"]
    error = made.error()
    assert isinstance(error, StageError)
    assert "KeyError: 'missing'" in error.message
    assert "traceback.txt" in error.hint


def test_error_gives_the_exception_itself_and_of_a_loaded_run_where_its_text_is(tmp_path):
    run = run_of(tmp_path, backend=FunctionBackend(failing))
    error = run.error("plan")
    assert isinstance(error, KeyError)
    assert error.__traceback__.tb_frame.f_code is failing.__code__
    loaded = Run.load(tmp_path / "run").error()
    assert isinstance(loaded, StageError)
    assert 'run.inspect("plan").traceback' in loaded.hint
    with pytest.raises(OptionError, match="no node"):
        run.error("plann")


def test_a_stage_whose_files_cannot_be_read_still_says_that_it_failed(tmp_path, monkeypatch):
    run_of(tmp_path, backend=FunctionBackend(failing))

    def refuse(*_given, **_options):
        raise StorageError("cannot read the directory: Input/output error")

    monkeypatch.setattr(inspect_run, "read_stage", refuse)
    loaded = Run.load(tmp_path / "run")
    error = loaded.error()
    assert isinstance(error, StageError)
    assert "KeyError: 'missing'" in error.message
    assert error.hint == "cannot read the directory: Input/output error"
    assert loaded.error("start") is None


def test_the_error_of_a_child_run_is_found_also_in_a_branch(tmp_path):
    inner = TEXT.replace("digraph g", "digraph inner")
    outer = """digraph g { start [shape=Mdiamond] fan [shape=component] sub [type=pipeline, pipeline.name=inner] other
      join [shape=tripleoctagon] done [shape=Msquare]
      start -> fan; fan -> sub; fan -> other; sub -> join; other -> join; join -> done }"""

    def answer(node, prompt, context):
        return failing(node, prompt, context) if node.id == "plan" else "fine"

    made = Pipeline(outer, backend=FunctionBackend(answer), pipelines={"inner": inner}).run(logs_root=tmp_path / "run")
    made.result(60)
    assert made.inspect("sub>plan").reason == "KeyError: 'missing'"
    assert isinstance(made.error("sub>plan"), KeyError)
    loaded = Run.load(tmp_path / "run")
    assert "KeyError: 'missing'" in loaded.error("sub > plan").message
    for shown in (made, loaded):
        with pytest.raises(OptionError, match="other has no child run"):
            shown.error("other>plan")


@pytest.mark.campaign
def test_a_run_keeps_few_of_them(tmp_path):
    class Big:
        pass

    kept = []

    def hold(node, prompt, context):
        big = Big()
        kept.append(weakref.ref(big))
        raise ValueError(node.id)

    names = "abcdefgh"
    edges = " ".join(f'{one} -> {then} [condition="outcome=fail"]' for one, then in itertools.pairwise(names))
    text = f"digraph d {{ start [shape=Mdiamond] done [shape=Msquare] start -> a h -> done {edges} }}"
    run = run_of(tmp_path, text, backend=FunctionBackend(hold))
    assert len(kept) == len(names)
    gc.collect()
    assert run.error() is not None
    assert sum(one() is not None for one in kept) <= MAX_KEPT


def test_what_leaves_this_machine_names_files_without_their_folders(tmp_path):
    run = run_of(tmp_path, backend=FunctionBackend(failing))
    assert str(Path(__file__).parent) in run.inspect("plan").traceback
    shared = run.inspect("plan").to_plain(with_place=False)["traceback"]
    assert f'File "…/{Path(__file__).name}", line' in shared
    assert str(Path(__file__).parent) not in shared + run.export_html(tmp_path / "page.html").read_text()


def test_a_transform_that_raises_has_the_users_frames_behind_it():
    class Breaking:
        def apply(self, graph):
            return look_up({})

    with pytest.raises(OptionError) as caught:
        Pipeline(TEXT, transforms=[Breaking()])
    frames = []
    found = caught.value.__cause__.__traceback__
    while found is not None:
        frames.append(found.tb_frame.f_code.co_name)
        found = found.tb_next
    assert frames[-1] == "look_up"


def test_debug_in_a_shell_stands_in_the_frame_that_failed(tmp_path, monkeypatch):
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    try:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            shell.run_cell(
                "from attractor_nb import FunctionBackend, Pipeline\n"
                "def failing(node, prompt, context):\n"
                "    table = {'found': 41}\n"
                "    return table['missing']\n"
                f"run = Pipeline({TEXT!r}, backend=FunctionBackend(failing)).run(logs_root={str(tmp_path / 'run')!r})\n"
                "run.result(60)\n"
            )
            shell.run_cell("raise run.error()")
            answers = iter(["p table['found'] + 1", "q"])
            monkeypatch.setattr("builtins.input", lambda prompt="": next(answers))
            tracing = sys.gettrace()
            shell.run_line_magic("debug", "")
            sys.settrace(tracing)  # the debugger takes it away, and with it the measure of what is covered
    finally:
        InteractiveShell.clear_instance()
    assert "KeyError" in said.getvalue()
    assert "42" in said.getvalue()


def test_a_function_that_a_model_calls_leaves_one_though_its_stage_goes_on(tmp_path):
    pytest.importorskip("pydantic_ai")
    from attractor_nb.backends.llm.tools.catalog import function_tool
    from attractor_nb.backends.llm.tools.file_tools import ToolProblem

    def read_table(name: str) -> str:
        """Read it."""
        return look_up({})

    async def answer(node, prompt, context):
        with pytest.raises(ToolProblem):
            await function_tool("read_table", read_table).call({"name": "a"})
        return "without it"

    run = run_of(tmp_path, backend=FunctionBackend(answer))
    assert run.result().is_success
    assert functions_of(run.inspect("plan").traceback) == ["read_table", "look_up"]
    assert isinstance(run.error("plan"), KeyError)


def test_a_backend_that_says_what_is_wrong_itself_keeps_its_place(tmp_path):
    def refuse(node, prompt, context):
        raise TerminalError("no such account")

    run = run_of(tmp_path, backend=FunctionBackend(refuse))
    assert functions_of(run.inspect("plan").traceback) == ["refuse"]


def test_the_files_of_the_examples_are_where_they_were(tmp_path):
    run = run_of(tmp_path, backend=FunctionBackend(failing))
    names = [file.name for file in run.inspect("plan").files]
    assert names == ["failed_line.txt", "prompt.md", "status.json", "traceback.txt"]
    assert isinstance(run.inspect("plan").directory, Path)
