"""Users, completers and type checkers read of a call exactly what it takes: names, types, meanings."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import jedi
import pytest

import attractor_nb
from attractor_nb import Pipeline, Run, load_pipeline, run_pipeline, runs
from attractor_nb.cli.shared_options import option_parameters, run_settings
from attractor_nb.errors import OptionError
from attractor_nb.maps.map_launch import MapRun
from attractor_nb.model.vocabulary.option_meanings import OF_A_MAP, OF_A_PIPELINE, OF_A_RUN, OF_AN_EVALUATION
from attractor_nb.notebook.extension import AttractorMagics
from attractor_nb.pipeline.runs import RunRow, RunTable
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare import run_options
from attractor_nb.runtime.prepare.run_options import BOUNDS, EvaluationOptions, MapOptions, RunOptions
from attractor_nb.studio.debugger import Debugger

ROOT = Path(__file__).resolve().parents[2]
ENDS = "start [shape=Mdiamond] done [shape=Msquare]"
HELLO = f"digraph hello {{ {ENDS} plan [prompt=p] start -> plan -> done }}"
OF_A_ROW = OF_A_RUN.keys() - {"params", "logs_root", "breakpoints", "pins", "stop_after"}
MEANINGS = {RunOptions: OF_A_RUN, MapOptions: OF_A_MAP, EvaluationOptions: OF_AN_EVALUATION}
CALLS = {
    "Pipeline": (Definition.__init__, OF_A_PIPELINE.keys(), {}),
    "Pipeline.run": (Pipeline.run, OF_A_RUN.keys(), {}),
    "Pipeline.run_async": (Pipeline.run_async, OF_A_RUN.keys(), {"host": "kernel"}),
    "Pipeline.form": (Pipeline.form, OF_A_RUN.keys() - {"params"}, {}),
    "Pipeline.step": (Pipeline.step, OF_A_RUN.keys() - {"stop_after"}, dict.fromkeys(OF_A_RUN)),
    "Pipeline.check": (Pipeline.check, OF_A_RUN.keys() - {"cassette"}, {"durability": "none", "is_shown": False}),
    "Pipeline.resume": (Pipeline.resume, OF_A_RUN.keys() - {"params"}, {}),
    "Pipeline.map": (Pipeline.map, OF_A_MAP.keys() | OF_A_ROW, {}),
    "Pipeline.map_async": (Pipeline.map_async, OF_A_MAP.keys() | OF_A_ROW, {"host": "kernel"}),
    "Pipeline.resume_map": (Pipeline.resume_map, (OF_A_MAP.keys() | OF_A_ROW) - {"map_dir"}, {}),
    "Pipeline.evaluate": (Pipeline.evaluate, OF_AN_EVALUATION.keys() | OF_A_MAP.keys() | OF_A_ROW, {}),
    "Pipeline.compare": (Pipeline.compare, OF_AN_EVALUATION.keys() | OF_A_MAP.keys() | OF_A_ROW, {}),
    "Pipeline.compare_async": (
        Pipeline.compare_async,
        OF_AN_EVALUATION.keys() | OF_A_MAP.keys() | OF_A_ROW,
        {"host": "kernel"},
    ),
    "Pipeline.estimate": (Pipeline.estimate, set(BOUNDS), {}),
    "Run.resume": (Run.resume, OF_A_RUN.keys() - {"params"}, {}),
    "Run.rewind": (Run.rewind, OF_A_RUN.keys() - {"params"}, {}),
    "Run.fork": (Run.fork, OF_A_RUN.keys() - {"params"}, {}),
    "Debugger.rerun": (
        Debugger.rerun,
        OF_A_RUN.keys() - {"params", "stop_after", "breakpoints", "host"},
        {"is_shown": False},
    ),
    "RunRow.resume": (RunRow.resume, OF_A_RUN.keys() - {"params"}, {}),
    "run_pipeline": (run_pipeline, OF_A_RUN.keys(), {}),
    "load_pipeline": (load_pipeline, OF_A_PIPELINE.keys() - {"origin", "ancestry"}, {}),
}


def told(function):
    """The meaning of each parameter in the Args of a docstring."""
    _, found, rest = (inspect.getdoc(function) or "").partition("Args:\n")
    entries = re.split(r"^    (?=\S)", rest.split("\n\n")[0], flags=re.MULTILINE)[1:] if found else []
    parts = (" ".join(entry.split()).partition(": ") for entry in entries)
    return {name.lstrip("*"): meaning for name, _, meaning in parts}


def kinds_of(name):
    """The classes whose fields are options of a call."""
    if "evaluate" in name or "compare" in name:
        return RunOptions, MapOptions, EvaluationOptions
    return (RunOptions, MapOptions) if "map" in name else (RunOptions,)


def table_of(name):
    """Annotation and default of each option, as its dataclass has them."""
    if name in {"Pipeline", "load_pipeline"}:
        parameters = inspect.signature(Definition).parameters
        return {each: (parameters[each].annotation, parameters[each].default) for each in OF_A_PIPELINE}
    entries = [entry for kind in kinds_of(name) for entry in fields(kind)]
    return {entry.name: (entry.type, None if entry.default is MISSING else entry.default) for entry in entries}


def meanings_of(name):
    if name in {"Pipeline", "load_pipeline"}:
        return OF_A_PIPELINE
    return {option: meaning for kind in kinds_of(name) for option, meaning in MEANINGS[kind].items()}


def test_each_option_has_a_meaning_and_each_meaning_an_option():
    assert OF_A_RUN.keys() == {entry.name for entry in fields(RunOptions)}
    assert OF_A_MAP.keys() == {entry.name for entry in fields(MapOptions)}
    assert OF_AN_EVALUATION.keys() == {entry.name for entry in fields(EvaluationOptions)}
    assert OF_A_PIPELINE.keys() == inspect.signature(Definition).parameters.keys() - {"source", "unknown"}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_each_of_its_options_by_name_with_type_and_default(name):
    function, options, own_defaults = CALLS[name]
    parameters, table = inspect.signature(function).parameters, table_of(name)
    assert options <= parameters.keys()
    for option in options:
        annotation, default = table[option]
        default = own_defaults.get(option, default)
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[option].default == default, option
        assert parameters[option].annotation.removesuffix(" | None") == annotation.removesuffix(" | None")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_tells_the_meaning_of_each_of_its_options(name):
    function, options, _ = CALLS[name]
    entries, meanings = told(function), meanings_of(name)
    assert {option: entries.get(option) for option in options} == {option: meanings[option] for option in options}


def keywords_of(function):
    """The TypedDict that type checkers read for its ``**options``."""
    (annotation,) = (text for text in function.__annotations__.values() if "Unpack[" in str(text))
    return getattr(run_options, annotation.removesuffix("]").partition("Unpack[")[2])


WITH_KEYWORDS = [name for name in CALLS if name not in {"Pipeline", "load_pipeline"}]


@pytest.mark.parametrize("name", WITH_KEYWORDS)
def test_type_checkers_know_the_options_of_a_call_with_the_types_of_its_signature(name):
    function, options, _ = CALLS[name]
    known, parameters = keywords_of(function).__annotations__, inspect.signature(function).parameters
    assert known.keys() == options
    for option, annotation in known.items():
        told = parameters[option].annotation.removesuffix(" | None")
        assert annotation.__forward_arg__.removesuffix(" | None") == told, option


@pytest.mark.parametrize("name", WITH_KEYWORDS)
def test_a_call_is_the_method_itself_and_no_wrapper_of_it(name):
    function = CALLS[name][0]
    assert function.__code__.co_name == function.__name__
    assert not hasattr(function, "__wrapped__")


def of_a_class(kind):
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") and function.__module__.startswith("attractor_nb."):
            yield f"{kind.__name__}.{name}", function


PUBLIC = dict(
    [
        *(
            (name, getattr(attractor_nb, name))
            for name in attractor_nb.__all__
            if inspect.isfunction(getattr(attractor_nb, name)) and "_ipython_" not in name
        ),
        *(call for kind in (Pipeline, Run, MapRun, RunRow, RunTable, Debugger) for call in of_a_class(kind)),
    ]
)


@pytest.mark.parametrize("name", PUBLIC)
def test_each_parameter_that_a_caller_can_give_is_typed_and_told(name):
    function = PUBLIC[name]
    given = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    entries = told(function)
    assert [each.name for each in given if each.name not in entries] == []
    assert [each.name for each in given if each.annotation is each.empty] == []
    loose = [each for each in given if each.kind is each.VAR_KEYWORD]
    assert all(each.annotation == "Never" for each in loose)


@pytest.fixture
def run(tmp_path):
    run = Pipeline(HELLO, backend="simulated").run(logs_root=tmp_path / "runs" / "first", stop_after=1)
    run.result()
    return run


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda run: Pipeline(HELLO, bakend="simulated"), id="Pipeline"),
        pytest.param(lambda run: run.pipeline.run(bakend="simulated"), id="run"),
        pytest.param(lambda run: run.pipeline.run(wait=True, bakend="simulated"), id="run and wait"),
        pytest.param(lambda run: asyncio.run(run.pipeline.run_async(bakend="simulated")), id="run_async"),
        pytest.param(lambda run: run.pipeline.form(bakend="simulated"), id="form"),
        pytest.param(lambda run: run.pipeline.step(bakend="simulated"), id="step"),
        pytest.param(lambda run: run.pipeline.check("c.json", bakend="simulated"), id="check"),
        pytest.param(lambda run: run.pipeline.resume(run, bakend="simulated"), id="resume"),
        pytest.param(lambda run: run.pipeline.map([{}], bakend="simulated"), id="map"),
        pytest.param(lambda run: asyncio.run(run.pipeline.map_async([{}], bakend="x")), id="map_async"),
        pytest.param(lambda run: run.pipeline.resume_map("m", bakend="simulated"), id="resume_map"),
        pytest.param(lambda run: run.pipeline.evaluate([{}], len, bakend="simulated"), id="evaluate"),
        pytest.param(lambda run: run.pipeline.compare({}, [{}], len, bakend="simulated"), id="compare"),
        pytest.param(lambda run: run.resume(bakend="simulated"), id="Run.resume"),
        pytest.param(lambda run: run.rewind("plan", bakend="simulated"), id="Run.rewind"),
        pytest.param(lambda run: run.fork("start", bakend="simulated"), id="Run.fork"),
        pytest.param(lambda run: run.debugger.rerun("start", bakend="simulated"), id="rerun"),
        pytest.param(lambda run: runs(run.logs_root.parent)[0].resume(bakend="simulated"), id="a row"),
        pytest.param(lambda run: run_pipeline(HELLO, bakend="simulated"), id="run_pipeline"),
        pytest.param(lambda run: load_pipeline(run.logs_root, bakend="simulated"), id="load_pipeline"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_nearest(run, call):
    with pytest.raises(OptionError, match=r"bakend.*did you mean.*backend"):
        call(run)


def test_a_misspelt_option_of_an_evaluation_is_answered_with_the_nearest(run):
    with pytest.raises(OptionError, match=r"repeats.*did you mean.*repeat"):
        run.pipeline.evaluate([{}], len, repeats=5)
    with pytest.raises(OptionError, match="logs_root is an option of a single run"):
        run.pipeline.evaluate([{}], len, logs_root="out")


def test_a_misspelt_bound_and_a_misspelt_condition_are_answered_with_the_nearest(run):
    with pytest.raises(OptionError, match="max_steps"):
        run.pipeline.estimate(max_stepps=3)
    with pytest.raises(OptionError, match="status"):
        runs(run.logs_root.parent).where(statuss="paused")


@pytest.fixture(scope="session")
def own_jedi_cache(tmp_path_factory):
    """Jedi reads what another process has only half written into the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jedi.settings.cache_directory", str(tmp_path_factory.mktemp("jedi")))
        yield


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Pipeline(text).run(max_st", "max_steps="),
        ("Pipeline(text, allow_m", "allow_many_exits="),
        ("Pipeline(text).map([], max_par", "max_parallel="),
        ("Pipeline(text).map([], max_st", "max_steps="),
        ("Pipeline(text).resume_map('d', max_par", "max_parallel="),
        ("Pipeline(text).resume('d', rewi", "rewind_to="),
        ("Pipeline(text).check('c.json', max_st", "max_steps="),
        ("Pipeline(text).step(max_st", "max_steps="),
        ("Pipeline(text).run().fork('a', isol", "isolation="),
        ("Pipeline(text).run().resume(isol", "isolation="),
        ("Pipeline(text).run().debugger.rerun('a', isol", "isolation="),
        ("runs()[0].resume(isol", "isolation="),
        ("run_pipeline(text, dura", "durability="),
        ("runs().where(tag='x', sin", "since="),
    ],
)
@pytest.mark.campaign
def test_an_editor_that_only_reads_the_source_completes_options(call, expected, own_jedi_cache):
    text = f"from attractor_nb import Pipeline, run_pipeline, runs\ntext = ''\n{call}"
    names = [each.name for each in jedi.Script(text, path=ROOT / "example.py").complete()]
    assert expected in names


@pytest.mark.campaign
def test_a_type_checker_knows_results_and_refuses_misspelt_and_wrong_options(tmp_path):
    script = tmp_path / "example.py"
    script.write_text(
        "from attractor_nb import Pipeline\n"
        "pipeline = Pipeline('')\n"
        "reveal_type(pipeline.run())\n"
        "reveal_type(pipeline.run(wait=True, max_steps=3))\n"
        "reveal_type(pipeline.map([], wait=True, max_parallel=3))\n"
        "reveal_type(pipeline.resume_map('m', wait=True, max_parallel=3))\n"
        "pipeline.run(max_stepps=3)\n"
        "pipeline.resume('d', max_stepps=3)\n"
        "pipeline.run(max_steps='three')\n"
        "pipeline.step(stop_after=2)\n"
        "pipeline.map([], pins={})\n"
        "pipeline.resume_map('m', max_parallel='three')\n"
        "pipeline.estimate(max_budget_usd='three')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, str(script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert re.findall(r'example\.py:(\d+):\d+ - information: Type of .* is "(\w+)"', done.stdout) == [
        ("3", "Run"),
        ("4", "RunResult"),
        ("5", "MapResult"),
        ("6", "MapResult"),
    ]
    assert sorted(set(re.findall(r"example\.py:(\d+):\d+ - error", done.stdout))) == [
        "10",
        "11",
        "12",
        "13",
        "7",
        "8",
        "9",
    ]


def test_the_command_line_says_of_an_option_what_the_calls_say():
    parameters = option_parameters(run_settings)
    shared = {"workdir", "isolation", "workspace_from", "cassette", "cassette_mode", "durability", *BOUNDS}
    for name in shared:
        (option,) = parameters[name].annotation.__metadata__
        assert option.help == OF_A_RUN[name]
        flag = option.param_decls[0] if option.param_decls else option.default
        assert flag == "--" + name.replace("_", "-")


def test_the_options_of_the_command_line_are_options_of_a_run():
    own = {"is_simulated", "is_trusted", "trust_hash", "is_auto_approved", "gates", "is_cached", "cache_dir"}
    own |= {"is_quiet", "is_verbose", "is_json", "model"}
    parameters = option_parameters(run_settings)
    assert parameters.keys() - own <= OF_A_RUN.keys()
    for name in parameters.keys() - own:
        default = RunOptions.__dataclass_fields__[name].default
        assert parameters[name].default in {default, None}


def test_the_magics_say_of_an_option_what_the_calls_say():
    for magic in (AttractorMagics.attractor, AttractorMagics.attractor_run, AttractorMagics.attractor_load):
        actions = {action.dest: action for action in magic.parser._actions}
        assert actions["backend"].help == OF_A_RUN["backend"]
        assert actions["param"].help == OF_A_RUN["params"]
