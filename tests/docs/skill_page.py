"""The guide for assistants, attractor_nb/cli/SKILL.md: from the tables of attributes, shapes, rules and commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from attractor_nb.cli.skill import BEGINNING
from attractor_nb.lint import BUILT_IN_RULES
from attractor_nb.lint.rules import path_rules
from attractor_nb.model.vocabulary.attribute_table import TABLE
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE
from hatch_build import SCOPES, TYPES, default_of, meaning_of
from tests.docs.reference_pages import commands

EXAMPLE = """// note.dot
digraph Note {
    goal="A release note for version 2"
    max_node_visits=3

    start  [shape=Mdiamond]
    draft  [label="Draft", prompt="Write it: $goal", timeout="10m"]
    judge  [label="Judge", prompt="Is this note complete and plain?", verdict="json", max_retries=1]
    person [shape=hexagon, label="Publish it?"]
    done   [shape=Msquare]

    start -> draft -> judge
    judge -> person [condition="outcome=success"]
    judge -> draft  [condition="outcome!=success"]
    person -> done  [label="[A] Approve"]
    person -> draft [label="[R] Revise"]
}"""

TEXT = f"""description: Write, check, run and debug attractor_nb pipelines (AI pipelines as Graphviz DOT, in notebooks, Python and a terminal). \\
Use it when a task names attractor_nb, attractor-nb, a %%attractor cell or a .dot pipeline of prompts, tools and human gates.
---

# Pipelines with attractor_nb

A pipeline is one `digraph`. Nodes are stages; edges say what comes next. Start from this:

```dot
{EXAMPLE}
```

## Work in this order

1. Write the DOT text into a file.
2. `attractor-nb validate FILE --json` until there are no findings. Each finding has a place and a fix; `--fix --write` applies fixes.
3. `attractor-nb run FILE --simulate --auto-approve --json -q`: no model and no command is called. Read the path that it took.
4. `attractor-nb estimate FILE --json` before models are paid.
5. Run it only when the user asks: `attractor-nb run FILE --backend llm --max-budget-usd 1`.

In Python, every block with its imports:

```python
from pathlib import Path

from attractor_nb import Pipeline

pipeline = Pipeline(Path("note.dot"))
assert not pipeline.lint().errors
result = pipeline.run(wait=True, interviewer="auto", backend=lambda prompt: 'Done. {{"outcome": "success"}}')
assert result.status == "success", result.reason
assert result["draft"].response.startswith("Done.")
```

In a notebook: `%load_ext attractor_nb`, then a cell that begins with `%%attractor name`, then `run = name.run()` and `await run`.

## Rules of thumb

- One start (`shape=Mdiamond`) and one exit (`shape=Msquare`). Every node lies on a path from start to exit.
- Ids are letters, digits and `_`. Separate attributes with commas, and quote texts. Text for readers is the `label`.
- A condition compares with `=` or `!=`, joined by `&&`: `outcome=success`, `preferred_label=ship`, `context.sort.verdict.team=billing`.
- Give each node with conditions one edge that is taken when no condition holds.
- Bound every loop: `max_node_visits` of the graph, `max_retries` of a node.
- A prompt names values as `$goal`, `$input`, `${{plan.response}}`, `${{context.key}}`. Declare inputs: `inputs="ticket, tone=plain"`.
- For a value to route on, use `response_schema` or `verdict="json"`; do not parse prose.
- The choices of a gate are its outgoing edges: `label="[A] Approve"`.
- Never write a key of a provider into a pipeline or a cell. Keys come from the environment.
- Commands (`tool_command`) run with the user's rights: show them (`attractor-nb commands FILE`) before you run them.
"""


def skill_page() -> str:
    """The guide."""
    return BEGINNING + "\n".join([TEXT.replace("\\\n", ""), *_tables()]).rstrip() + "\n"


def _tables() -> Iterator[str]:
    yield "## Shapes\n"
    yield "\n".join(f"- `{shape}`: `{kind}`, {TYPES[kind]}" for shape, kind in SHAPE_TO_TYPE.items()) + "\n"
    for scope, words in SCOPES.items():
        yield f"## Attributes of {words}\n"
        for spec in TABLE:
            if spec.scope is scope:
                value = " | ".join(spec.choices) or spec.type.value
                default = f", default {default_of(spec)}" if default_of(spec) else ""
                yield f"- `{spec.name}` ({value}{default}): {meaning_of(spec)}"
        yield ""
    yield "## Lint rules\n"
    for rule in (*BUILT_IN_RULES, *path_rules.RULES):
        yield f"- `{rule.name}` ({rule.severity.value}): {rule.page.partition(chr(10))[0]}"
    yield "\n## Commands\n"
    for name, command in commands():
        yield f"- `attractor-nb {name}`: {inspect.cleandoc(command.help or '').partition(chr(10))[0]}"
