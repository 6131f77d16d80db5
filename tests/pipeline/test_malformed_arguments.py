"""Public calls refuse malformed arguments with errors of the package."""

import asyncio
from pathlib import Path

import pytest

from attractor_nb.errors import GraphChanged, OptionError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.pipeline.load_pipeline import load_pipeline
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.pipeline.run import Run
from attractor_nb.pipeline.runs import runs
from attractor_nb.pipeline.spec_names import load_checkpoint

SOURCE = "digraph g { start [shape=Mdiamond] work done [shape=Msquare] start -> work -> done }"
NUL = "a\0b"


class Raising:
    """A transform that raises."""

    def apply(self, graph):
        raise ZeroDivisionError("by nothing")


PIPELINE = {
    "source-nul": lambda: Pipeline("a\0b.dot"),
    "params": lambda: Pipeline(SOURCE, params=5),
    "handlers": lambda: Pipeline(SOURCE, handlers=5),
    "handler": lambda: Pipeline(SOURCE, handlers={"custom": 5}),
    "handler-type": lambda: Pipeline(SOURCE, handlers={None: print}),
    "severity": lambda: Pipeline(SOURCE, severity=5),
    "severity-word": lambda: Pipeline(SOURCE, severity={"reachability": "nope"}),
    "rules": lambda: Pipeline(SOURCE, rules=5),
    "transforms": lambda: Pipeline(SOURCE, transforms=5),
    "transform": lambda: Pipeline(SOURCE, transforms=[5]),
    "transform-raises": lambda: Pipeline(SOURCE, transforms=[Raising()]),
    "register-none": lambda: Pipeline(SOURCE).register(None, print),
    "register-list": lambda: Pipeline(SOURCE).register([], print),
    "register-empty": lambda: Pipeline(SOURCE).register("", print),
    "register-number": lambda: Pipeline(SOURCE).register("custom", 5),
    "register-transform": lambda: Pipeline(SOURCE).register_transform(5),
    "observer": lambda: Pipeline(SOURCE).on_event(5),
    "resume": lambda: Pipeline(SOURCE).resume(5),
    "resume-nul": lambda: Pipeline(SOURCE).resume(NUL),
    "load": lambda: Run.load(None),
    "load-pipeline": lambda: load_pipeline([]),
    "load-checkpoint": lambda: load_checkpoint(5),
    "runs": lambda: runs(5),
    "parse-dot": lambda: parse_dot(None),
    "result-number": lambda: Pipeline(SOURCE).run(wait=True, durability="none")[5],
    "result-list": lambda: Pipeline(SOURCE).run(wait=True, durability="none")[[]],
    "step-without-directory": lambda: Pipeline(SOURCE).step(durability="none"),
}


@pytest.mark.parametrize("call", PIPELINE.values(), ids=PIPELINE.keys())
def test_a_malformed_argument_is_an_option_error_in_words(call):
    with pytest.raises(OptionError) as caught:
        call()
    assert caught.value.message


OPTIONS = {
    "durability": [],
    "on_interrupted": [],
    "stop_after": "3",
    "observers": [5],
    "host": "elsewhere",
    "logs_root": 5,
    "runs_dir": NUL,
    "interviewer": 5,
    "backend": 5,
    "params": 5,
    "max_steps": "many",
}


@pytest.mark.parametrize(("name", "value"), OPTIONS.items(), ids=OPTIONS.keys())
def test_a_malformed_option_is_refused_before_anything_is_made(name, value):
    with pytest.raises(OptionError):
        Pipeline(SOURCE).run(wait=True, **{name: value})
    assert not Path(".attractor").exists()


@pytest.mark.parametrize("call", ["run", "step"])
def test_a_blocking_call_refuses_the_host_that_it_would_stop(call):
    async def use():
        pipeline = Pipeline(SOURCE)
        pipeline.step(host="kernel") if call == "step" else pipeline.run(wait=True, host="kernel")

    with pytest.raises(OptionError, match="a blocking call would stop it"):
        asyncio.run(use())
    assert not Path(".attractor").exists()


def test_a_transform_that_was_refused_is_forgotten():
    pipeline = Pipeline(SOURCE)
    with pytest.raises(OptionError, match="Raising raised ZeroDivisionError"):
        pipeline.register_transform(Raising())
    pipeline.register("custom", lambda *_: None)
    assert pipeline.run(wait=True, durability="none").status == "success"


def test_the_options_of_the_first_step_hold_for_the_steps_after():
    pipeline = Pipeline(SOURCE)
    asked = []

    def backend(prompt):
        asked.append(prompt)
        return "text"

    assert pipeline.step(backend=backend).completed_nodes == ("start",)
    assert pipeline.step().completed_nodes == ("start", "work")
    assert pipeline.step().status == "success"
    assert asked == ["work"]


def test_a_gate_reached_by_a_step_is_not_left_waiting_for_nobody():
    gate = """digraph g {
        start [shape=Mdiamond] gate [shape=hexagon] done [shape=Msquare]
        start -> gate
        gate -> done [label="Yes"]
    }"""
    pipeline = Pipeline(gate)
    pipeline.step()
    result = pipeline.step()
    assert "needs an answer, and no interviewer can give one" in str(result["gate"].outcome.failure_reason)


def test_a_transform_that_refuses_in_an_error_of_ours_is_quoted_and_not_wrapped():
    class Refusing:
        def apply(self, graph):
            raise GraphChanged("not this graph", hint="another")

    with pytest.raises(GraphChanged, match=r"^not this graph") as told:
        Pipeline(SOURCE, transforms=[Refusing()])
    assert told.value.hint == "another"


def test_a_source_file_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("attractor_nb.runtime.prepare.sources.MAX_SOURCE_BYTES", len(SOURCE))
    file = tmp_path / "a.dot"
    file.write_text(SOURCE)
    assert Pipeline(file).graph.nodes
    file.write_text(SOURCE + " ")
    with pytest.raises(OptionError, match=f"a.dot has more than {len(SOURCE)} bytes"):
        Pipeline(file)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("inputs", 'did you mean "params"? params: the inputs of the run, by name'),
        ("timeout", 'did you mean "max_duration"? max_duration: stop after this running time'),
        ("recursion_limit", 'did you mean "max_steps"? max_steps: stop after this many stages'),
        ("interviewr", 'did you mean "interviewer"? interviewer: the interviewer at gates'),
        ("model", "llm_model"),
        ("api_key", "set the environment variable of the provider, such as ANTHROPIC_API_KEY"),
        ("simulate", 'backend="simulated"'),
        ("approve", 'interviewer="auto"'),
        ("zzz", "often used: params, backend, interviewer"),
    ],
)
def test_an_option_under_the_name_that_it_has_elsewhere_names_ours(given, meant):
    with pytest.raises(OptionError) as caught:
        Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }").run(**{given: 1})
    assert meant in f"{caught.value.message} {caught.value.hint}"
    assert "worker_wait" not in caught.value.hint, "the hint is no list of all options"
