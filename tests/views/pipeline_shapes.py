"""Shapes of real pipelines, generated: 410 graphs of fourteen kinds, the same on every machine.

Each has labels, models, commands and conditions as users write them. A shape is named by its kind and its number.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE_COUNT = 410
SAMPLE_STEP = 19
"""`make test` draws each of so many."""

_STAGES = (
    *(
        "Plan the change",
        "Write the code",
        "Review the change",
        "Summarise the findings",
        "Research",
        "Draft an outline",
    ),
    *("Translate the text", "Collect the sources", "Compare the offers", "Extract the fields", "Check the totals"),
    *("Classify the ticket", "Answer the customer", "Merge the reviews", "Write the release note", "Judge the plan"),
    *("Explain the failure to the team that owns the service", "Score", "Rank the candidates", "Design the experiment"),
)
_COMMANDS = (
    *("pytest -q", "make lint", "git diff --stat main", "npm run build", "cargo test --workspace", "terraform plan"),
    *("python3 - <<'END'\nimport json\nEND", "python -c 'import sys\nprint(sys.path)'", "docker build -t app ."),
)
_QUESTIONS = ("Release it?", "Is the plan good?", "Merge this change?", "Publish the article?", "Approve the refund?")
_CHECKS = ("Accepted?", "Tests pass?", "Long enough?", "Is there a source for every claim of the text?", "Urgent?")
_TEAMS = ("billing", "support", "sales", "legal", "refunds", "shipping", "returns", "security", "privacy", "press")
_MODELS = ("", "", "", "gpt-5.2", "claude-opus-4-6", "gemini-3-pro-preview")
_AGAIN = ("Again", "[R] Revise", "Not yet", "Changes needed", "Failed", "[B] Back to the plan")
_ON = ("Yes", "[A] Approve", "Passed", "Good", "")


class _Pipeline:
    """The text of a pipeline while it is written."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[str] = []
        self.count = 0
        self.add("start", 'shape=Mdiamond, label="Start"')

    def add(self, name: str, attributes: str) -> str:
        self.lines.append(f"  {name} [{attributes}]")
        return name

    def _name(self) -> str:
        self.count += 1
        return f"s{self.count}"

    def stage(self) -> str:
        """A model's stage, or now and then a command."""
        if self.chance.random() < 0.2:
            return self.command()
        model = self.chance.choice(_MODELS)
        more = f', llm_model="{model}"' if model else ""
        return self.add(self._name(), f'label="{self.chance.choice(_STAGES)}", prompt="Do it: $goal"{more}')

    def command(self) -> str:
        command = self.chance.choice(_COMMANDS)
        return self.add(self._name(), f'shape=parallelogram, label="Run a command", tool_command="{command}"')

    def gate(self) -> str:
        return self.add(self._name(), f'shape=hexagon, label="{self.chance.choice(_QUESTIONS)}"')

    def check(self) -> str:
        return self.add(self._name(), f'shape=diamond, label="{self.chance.choice(_CHECKS)}"')

    def edge(self, source: str, target: str, label: str = "", condition: str = "") -> None:
        attributes = [f'label="{label}"'] * bool(label) + [f'condition="{condition}"'] * bool(condition)
        self.lines.append(f"  {source} -> {target}" + f" [{', '.join(attributes)}]" * bool(attributes))

    def chain(self, first: str, length: int) -> list[str]:
        names = [first]
        for _ in range(length):
            names.append(self.stage())
            self.edge(names[-2], names[-1])
        return names

    def number(self, least: int, most: int) -> int:
        return self.chance.randint(least, most)

    def decide(self, at: str, on: str, back: str) -> None:
        """Two ways from a box, as a label, as a condition, or as both."""
        kind = self.chance.randrange(3)
        yes, no = self.chance.choice(_ON), self.chance.choice(_AGAIN)
        self.edge(at, on, yes if kind else "", "outcome=success" if kind != 1 else "")
        self.edge(at, back, no if kind else "", "outcome!=success" if kind != 1 else "")

    def text(self, last: str) -> str:
        self.add("done", 'shape=Msquare, label="Done"')
        self.edge(last, "done")
        directions = ("", "", "", "", "", "  rankdir=LR\n")
        return "digraph pipeline {\n" + self.chance.choice(directions) + "\n".join(self.lines) + "\n}\n"


def _linear(pipeline: _Pipeline) -> str:
    return pipeline.chain("start", pipeline.number(2, 20))[-1]


def _review_loop(pipeline: _Pipeline) -> str:
    write = pipeline.chain("start", pipeline.number(1, 3))[-1]
    review = pipeline.chain(write, pipeline.number(1, 2))[-1]
    judge = pipeline.check() if pipeline.number(0, 1) else pipeline.gate()
    pipeline.edge(review, judge)
    after = pipeline.stage()
    pipeline.decide(judge, after, write)
    return after


def _fix_loop(pipeline: _Pipeline) -> str:
    write = pipeline.chain("start", pipeline.number(1, 2))[-1]
    test, fix, on = pipeline.command(), pipeline.stage(), pipeline.stage()
    pipeline.edge(write, test)
    pipeline.decide(test, on, fix)
    pipeline.edge(fix, test, pipeline.chance.choice(("", "", "Fixed")))
    if pipeline.number(0, 1):
        gate = pipeline.gate()
        pipeline.edge(fix, gate, "Given up")
        pipeline.edge(gate, write, "[R] Retry")
    return on


def _router(pipeline: _Pipeline) -> str:
    sort = pipeline.chain("start", pipeline.number(1, 2))[-1]
    end = pipeline.stage()
    is_labelled = pipeline.number(0, 1)
    for team in pipeline.chance.sample(_TEAMS, pipeline.number(3, 10)):
        condition = f"context.{sort}.verdict.team={team}"
        first = pipeline.add(f"t_{team}", f'label="{team.capitalize()} answers", prompt="Answer: $goal"')
        pipeline.edge(sort, first, team * is_labelled, "" if is_labelled else condition)
        pipeline.edge(pipeline.chain(first, pipeline.number(0, 9) // 7)[-1], end)
    return end


def _branches(pipeline: _Pipeline, before: str, count: int, depth: int = 0) -> str:
    fan = pipeline.add(f"fan{pipeline.count}", 'shape=component, label="Side by side"')
    join = pipeline.add(f"join{pipeline.count}", 'shape=tripleoctagon, label="Merge"')
    pipeline.edge(before, fan)
    for number in range(count):
        first = pipeline.stage()
        pipeline.edge(fan, first)
        last = pipeline.chain(first, pipeline.number(0, 2))[-1]
        if depth and not number:
            last = _branches(pipeline, last, pipeline.number(2, 3), depth - 1)
        pipeline.edge(last, join)
    return join


def _fan_join(pipeline: _Pipeline) -> str:
    join = _branches(pipeline, pipeline.chain("start", pipeline.number(0, 2))[-1], pipeline.number(2, 9))
    return pipeline.chain(join, pipeline.number(0, 2))[-1]


def _nested_fans(pipeline: _Pipeline) -> str:
    return _branches(pipeline, pipeline.chain("start", 1)[-1], pipeline.number(2, 3), 1)


def _manager(pipeline: _Pipeline) -> str:
    plan = pipeline.chain("start", pipeline.number(1, 2))[-1]
    boss = pipeline.add("boss", 'shape=house, label="Editor in chief", stack.child_dotfile="article.dot"')
    pipeline.edge(plan, boss)
    after = pipeline.gate()
    pipeline.decide(boss, after, plan)
    return after


def _clusters(pipeline: _Pipeline) -> str:
    """Phases as subgraphs, with ways back from one to an earlier one."""
    last, firsts = "start", []
    for title in pipeline.chance.sample(("Research", "Build the change", "Verify", "Release", "Announce it"), 3):
        begin = len(pipeline.lines)
        names = pipeline.chain(last, pipeline.number(2, 4))[1:]
        nodes = [line for line in pipeline.lines[begin:] if " -> " not in line]
        edges = [line for line in pipeline.lines[begin:] if " -> " in line]
        pipeline.lines[begin:] = [f'  subgraph cluster_{names[0]} {{ label="{title}"', *nodes, "  }", *edges]
        firsts.append(names[0])
        last = names[-1]
    gate = pipeline.gate()
    pipeline.edge(last, gate)
    for first in pipeline.chance.sample(firsts, pipeline.number(1, 2)):
        pipeline.edge(gate, first, pipeline.chance.choice(_AGAIN))
    return gate


def _retries_to_start(pipeline: _Pipeline) -> str:
    """Checks that each lead back to the first stage, or on to one that looks into failures."""
    first = pipeline.chain("start", 1)[-1]
    post, here = "", first
    for _ in range(pipeline.number(2, 8)):
        check, after = pipeline.check(), pipeline.stage()
        pipeline.edge(here, check)
        pipeline.edge(check, after, condition="outcome=success")
        pipeline.edge(check, first, condition="outcome=fail && context.why=transient")
        if pipeline.number(0, 1):
            post = post or pipeline.add("post", 'label="Look into it", prompt="Why?"')
            pipeline.edge(check, post, condition="outcome=fail && context.why!=transient")
        here = after
    if post:
        pipeline.edge(post, first)
    return here


def _approvals(pipeline: _Pipeline) -> str:
    """Gates one after the other; each can send the work back."""
    work = pipeline.chain("start", pipeline.number(1, 3))
    here = work[-1]
    for _ in range(pipeline.number(2, 4)):
        gate, after = pipeline.gate(), pipeline.stage()
        pipeline.edge(here, gate)
        pipeline.decide(gate, after, pipeline.chance.choice(work[1:]))
        here = after
    return here


def _triage(pipeline: _Pipeline) -> str:
    """Decisions below decisions, whose ways meet again."""
    end, ahead = pipeline.stage(), [(pipeline.chain("start", 1)[-1], 0)]
    while ahead:
        here, depth = ahead.pop()
        if depth == 2 or (depth and pipeline.number(0, 2) == 0):
            pipeline.edge(here, end)
            continue
        for word in pipeline.chance.sample(("Crash", "Wrong result", "Not a bug", "Unclear"), pipeline.number(2, 3)):
            after = pipeline.stage()
            pipeline.edge(here, after, word)
            ahead.append((after, depth + 1))
    return end


def _escalation(pipeline: _Pipeline) -> str:
    """A chain in which every failure goes to one person, who sends it back or on."""
    names = pipeline.chain("start", pipeline.number(3, 7))
    gate = pipeline.gate()
    for name in names[1:]:
        if pipeline.number(0, 1):
            pipeline.edge(name, gate, condition="outcome=fail")
    pipeline.edge(names[-1], gate, "Failed")
    pipeline.edge(gate, names[1], "[R] From the top")
    return names[-1]


def _skips(pipeline: _Pipeline) -> str:
    names = pipeline.chain("start", pipeline.number(4, 12))
    for _ in range(pipeline.number(1, 3)):
        early = pipeline.number(0, len(names) - 3)
        pipeline.edge(names[early], names[pipeline.number(early + 2, len(names) - 1)], "skip")
    late = pipeline.number(2, len(names) - 1)
    pipeline.edge(names[late], names[1], "from the top")
    return names[-1]


def _whole(pipeline: _Pipeline) -> str:
    """Research side by side, a plan that is judged, a loop on the tests, a person at the end."""
    plan = pipeline.stage()
    pipeline.edge(_branches(pipeline, pipeline.chain("start", 1)[-1], pipeline.number(2, 4)), plan)
    judge, test, fix, gate = pipeline.check(), pipeline.command(), pipeline.stage(), pipeline.gate()
    pipeline.edge(plan, judge)
    pipeline.decide(judge, test, plan)
    pipeline.decide(test, gate, fix)
    pipeline.edge(fix, test)
    pipeline.edge(gate, plan, "[B] Back to the plan")
    return gate


_KINDS: tuple[Callable[[_Pipeline], str], ...] = (
    *(_linear, _review_loop, _fix_loop, _router, _fan_join, _nested_fans, _manager, _clusters, _retries_to_start),
    *(_approvals, _triage, _escalation, _skips, _whole),
)


def pipelines(step: int = 1) -> dict[str, str]:
    """The shapes, or one of each ``step``, by name."""
    shapes: dict[str, str] = {}
    for number in range(0, SHAPE_COUNT, step):
        kind = _KINDS[number % len(_KINDS)]
        name = f"{kind.__name__[1:]}-{number}"
        pipeline = _Pipeline(random.Random(name))
        shapes[name] = pipeline.text(kind(pipeline))
    return shapes
