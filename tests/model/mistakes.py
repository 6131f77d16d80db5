"""A program that makes mistakes of many kinds and prints what it is told."""

from pydantic import create_model

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import AttractorError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.lint.survey import LintOptions, Survey
from attractor_nb.lint.unfilled_variables import key_that_nothing_sets

NEAR = [f"alpha{letter}" for letter in "qwertzuiop"]


def work(node, context, graph, logs_root):
    return Outcome.success()


def source(graph="", node="", edges=""):
    return (
        f'digraph {{ graph [goal="x", {graph}] start [shape=Mdiamond] done [shape=Msquare] a [label=a, {node}]'
        f" start -> a -> done {edges} }}"
    )


def tell(text, **options):
    pipeline = Pipeline(text, **options)
    print([found.message for found in pipeline.lint()])
    return pipeline


INPUTS = 'inputs="{}"'.format(", ".join(f"{name}=1" for name in NEAR))
tell(source(INPUTS, 'prompt="Use $alphax and ${alphay} and ${context.alphac}"'))
tell(source(INPUTS, 'prompt=p, carry="alphax"'))
tell(source(INPUTS, "prompt=p", 'a -> done [condition="context.alphax=1"]'))
tell(source("", 'type="alphax"'), handlers=dict.fromkeys(NEAR, work))
tell(source("", 'prompt=p, response_schema="alphax"'), schemas={name: create_model(name) for name in NEAR})
tell(source("", 'prompt=p, allowed_tools="alphax"'), tools=[])
tell(source('model_stylesheet=".alphax { fidelity: full }"', 'prompt=p, class="{}"'.format(",".join(NEAR))))
tell(source("", 'prompt=p, fidelity="fulx", promt=x, tool_comand=x, human.timeou=1'))
tell(source("", "prompt=p", " ".join(f"{name} -> done a -> {name}" for name in NEAR) + " a -> alphax"))
print(key_that_nothing_sets(Survey(parse_dot(source()), LintOptions()), ["alphax"], frozenset(NEAR)))
for given in ({"alphax": 1}, {"alphac": 1}):
    try:
        Pipeline(source(INPUTS, "prompt=p")).run(params=given, wait=True, durability="none")
    except AttractorError as error:
        print(error)
for option in ("max_stepz", "outputz", "ship_", "bakend", "max_restart"):
    try:
        Pipeline(source()).map([{}], **{option: 1})
    except AttractorError as error:
        print(error)
