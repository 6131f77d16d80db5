"""The pipelines of the load: several stages, a gate that waits, and what differs from run to run."""

from __future__ import annotations

from dataclasses import dataclass

_FRAME = """digraph load {{
    start [shape=Mdiamond]
    done [shape=Msquare]
    plan [prompt="Plan it"]
    write [prompt="Write it"]
    check [prompt="Check it"]
    ship [prompt="Ship it"]
    review [shape=hexagon, label="Ship it?"]
    {more}
    review -> ship [label="[A] Approve"]
    ship -> done
}}"""
_CHAIN = "start -> plan -> write -> check -> review"


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        name: What it is called.
        source: Its text.
        answers: What its gate is answered, each time that it asks.
    """

    name: str
    source: str
    answers: tuple[str, ...]


KINDS = (
    Kind("chain", _FRAME.format(more=_CHAIN), ("A",)),
    Kind(
        "branches",
        _FRAME.format(
            more="""spread [shape=component]
    join [shape=tripleoctagon]
    test [prompt="Test it"]
    start -> plan -> spread
    spread -> write -> join
    spread -> check -> join
    spread -> test -> join
    join -> review"""
        ),
        ("A",),
    ),
    Kind(
        "loop",
        _FRAME.format(
            more=f'{_CHAIN}\n    fix [prompt="Fix it"]\n    review -> fix [label="[R] Reject"]\n    fix -> check'
        ),
        ("R", "A"),
    ),
    Kind(
        "restart",
        _FRAME.format(more=f'{_CHAIN}\n    review -> plan [label="[R] Again", loop_restart=true]'),
        ("R", "A"),
    ),
)
