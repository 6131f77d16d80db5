"""P1 to P4: steps, with and without a disk under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from environments import python_of
from goals import Goal, Row, Scale, compared
from measuring import Figures, MissingPeer, in_turns, system_calls_of_a_step, worker

REPEATS = 3
"""Runs in one process; the best of them is the figure of the round."""
FLOOR = "the floor of a step (`workers/step_floor.py`)"
Contender = Callable[[int], dict[str, float]]


def ours(contender: str, steps: int, repeats: int = REPEATS) -> Contender:
    return lambda _: worker("chain", contender, steps, repeats)


def peer(environment: str, contender: str, steps: int) -> Contender:
    repeats = 1 if ":" in contender else REPEATS  # those with a store take seconds
    return lambda _: worker("peer_chain", contender, steps, repeats, python=python_of(environment))


def chains(contenders: Mapping[str, Contender], rounds: int, measure: str) -> dict[str, Figures]:
    return in_turns(
        {name: lambda number, run=run: run(number)[measure] for name, run in contenders.items()}, rounds, warm_ups=0
    )


def against_peers(
    scale: Scale, ours_name: str, ours_run: Contender, rows: list[tuple[str, float, str, str]], steps: int, measure: str
) -> list[Row]:
    """Rows for peers, each beside a turn of ours; a peer that is missing says so."""
    found: list[Row] = []
    for subject, limit, environment, contender in rows:
        if not scale.with_peers:
            continue
        try:
            figures = chains(
                {ours_name: ours_run, contender: peer(environment, contender, steps)}, scale.slow_rounds, measure
            )
        except MissingPeer as missing:
            found.append(Row(subject, limit, missing=str(missing)))
            continue
        found.append(compared(subject, limit, figures[ours_name], figures[contender], per=steps))
    return found


def steps_in_memory(scale: Scale) -> list[Row]:
    steps = scale.steps
    rows: list[Row] = []
    for contender, words in (("ours", "a step"), ("floor", FLOOR)):
        rows += against_peers(
            scale,
            contender,
            ours(f"{contender}:none", steps),
            [
                (f"{words} against LangGraph without checkpointer, CPU", 0.07, "langgraph", "langgraph"),
                (f"{words} against Burr, CPU", 0.6, "burr", "burr"),
            ],
            steps,
            "cpu",
        )
    long = in_turns(
        {
            "long": lambda _: worker("chain", "ours:none", 10 * steps, REPEATS)["cpu"] / 10,
            "short": lambda _: worker("chain", "ours:none", steps, REPEATS)["cpu"],
        },
        scale.slow_rounds,
        warm_ups=0,
    )
    rows.append(
        compared(f"a step of {10 * steps} against one of {steps}, CPU", 1.3, long["long"], long["short"], per=steps)
    )
    grown = worker("chain", "memory:none", 10 * steps, 1)["grown"] / (10 * steps)
    rows.append(Row(f"memory kept for a step of {10 * steps}", 2048, grown, unit="B"))
    return rows


def steps_on_disk(scale: Scale) -> list[Row]:
    steps = scale.steps
    run = ours("ours:fast", steps)
    contenders = {"ours": run, "bare": ours("files", steps), "floor": ours("floor:fast", steps)}
    figures = chains(contenders, scale.rounds, "cpu")
    subject = "against bare mkdir and write, CPU"
    rows = [
        compared(subject, 2.5, figures["ours"], figures["bare"], per=steps),
        compared(f"{FLOOR} {subject}", 2.5, figures["floor"], figures["bare"], per=steps),
    ]
    rows += against_peers(
        scale,
        "ours",
        run,
        [
            ("against LangGraph with SqliteSaver, wall", 0.1, "langgraph", "langgraph:async"),
            ("against Burr with SQLite, wall", 0.2, "burr", "burr:sqlite"),
        ],
        steps,
        "wall",
    )
    figures = in_turns(
        {
            "long": lambda _: worker("chain", "ours:fast", 10 * steps, 1)["cpu"] / 10,
            "short": lambda _: worker("chain", "ours:fast", steps, REPEATS)["cpu"],
        },
        scale.slow_rounds,
        warm_ups=0,
    )
    subject = f"a step of {10 * steps} against one of {steps}, CPU"
    rows.append(compared(subject, 1.3, figures["long"], figures["short"], per=steps))
    return rows


def resumes(scale: Scale) -> list[Row]:
    """From the call to the first new stage, of a stopped run in a process of its own."""
    steps = 10 * scale.steps
    rows: list[Row] = []
    for stored, words, limit in (
        ("log", "steps from the log alone", 0.2),
        ("checkpoint", "steps with its checkpoint", 0.2),
        ("floor", "steps: the floor, its hot path alone with the same records", 0.2),
    ):
        figures = [worker("resume", stored, steps) for _ in range(scale.slow_rounds)]
        wall = Figures(tuple(figure["wall"] for figure in figures))
        cpu = Figures(tuple(figure["cpu"] for figure in figures))
        detail = f"best {wall.minimum:.3g} s, CPU {cpu.median:.3g} s"
        rows.append(Row(f"{steps} {words}, wall", limit, wall.median, unit="s", detail=detail))
    return rows


def flushed_steps(scale: Scale) -> list[Row]:
    steps = scale.durable_steps
    run = ours("ours:full", steps, 1)
    contenders = {"ours": run, "bare": ours("sequence", steps, 1), "floor": ours("floor:full", steps, 1)}
    figures = chains(contenders, scale.rounds, "wall")
    subject = "against the bare sequence of the same operations, wall"
    rows = [
        compared(subject, 1.3, figures["ours"], figures["bare"], per=steps),
        compared(f"{FLOOR} {subject}", 1.3, figures["floor"], figures["bare"], per=steps),
    ]
    rows += against_peers(
        scale,
        "ours",
        run,
        [("against LangGraph with SqliteSaver, sync, wall", 0.4, "langgraph", "langgraph:sync")],
        steps,
        "wall",
    )
    return rows


def written_bytes(scale: Scale) -> list[Row]:
    short, long = (worker("chain", "ours:fast", steps, 1)["written"] for steps in (scale.steps, 10 * scale.steps))
    if not short:
        return [Row("bytes written", 12, missing="this system does not count them")]
    detail = f"{long / 1e6:.2f} MB / {short / 1e6:.2f} MB"
    return [Row(f"bytes for {10 * scale.steps} steps against {scale.steps}", 12, long / short, detail=detail)]


STEPS_TRACED = (
    ("a step that does nothing, fast", "ours:fast", 12),
    ("a step that does nothing, full", "ours:full", 13),
    ("a stage of a model, fast", "model:fast", 28),
)
"""The traced runs, and the most calls that a step of each may make."""


def system_calls(scale: Scale) -> list[Row]:
    """The calls of the system that a step makes, by name; no busy machine changes them."""
    rows: list[Row] = []
    for subject, contender, limit in STEPS_TRACED:
        try:
            calls = system_calls_of_a_step(contender)
        except MissingPeer as missing:
            rows.append(Row(subject, limit, missing=str(missing)))
            continue
        often = sorted(calls.items(), key=lambda entry: (-entry[1], entry[0]))
        detail = ", ".join(f"{name} {count}" for name, count in often)
        rows.append(Row(subject, limit, sum(calls.values()), unit="calls", detail=detail))
    return rows


GOALS = [
    Goal(
        "P1",
        "a step with its events, nothing stored",
        steps_in_memory,
        "A step makes an intent, an outcome and a commit record, folds them into the state of the run, keeps its"
        " status file and checks bounds and context, in 96 calls of Python"
        " (`tests/engine/test_calls_of_a_step.py`). A picture of the run is folded only when somebody looks. The floor"
        " is a prototype: the same records around the same handler, made, looked through for secrets, kept and folded,"
        " without a graph, routing, retries, bounds, a debugger, a preamble, a scope or a context of the attempt. What"
        " such a step leaves below the goal is all the time that those would have.",
    ),
    Goal(
        "P2",
        'a durable step, durability="fast"',
        steps_on_disk,
        "Beside the folder and the file of the bare contender a step appends an intent and a commit to the"
        " log, opens its folder so that nothing planted in its place is followed, looks whether the run is still"
        " its own (S1 has all calls of the system), looks through each line for secrets, and keeps the totals that"
        " the bounds are checked by. The floor is that of P1 in the same store.",
    ),
    Goal(
        "P3",
        'a flushed step, durability="full"',
        flushed_steps,
        "The bare sequence: folder, line, file by rename, line, fdatasync. How much slower ours is depends"
        " on how fast the disk flushes: what we add is CPU. Files of stages are not flushed: they are"
        " evidence, and the log is the truth. The floor is that of P1 in the same store.",
    ),
    Goal("P4", "bytes written as a run grows", written_bytes),
    Goal(
        "S1",
        "calls of the system in a step",
        system_calls,
        "Counted with strace as the difference between chains of 140 and of 40 steps. A no-op step writes its"
        " intent, its status file and its commit, and asks before each whether the log is still its own (fstat).",
    ),
    Goal(
        "R1",
        "a resume, from the call to its first new stage",
        resumes,
        "In a fresh process, with the text of the graph already read; compiling it is counted. The largest part"
        " is the log, each record of which is checked and read: what is shown of the run, and which files are"
        " whose, is made of all of them, so a checkpoint saves little. A busy machine slows this figure, which"
        " is no ratio. The floor is a prototype: importing what decodes and folds, reading the log, checksums, typed"
        " decoding and the fold, without an owner, a context, a graph, files of stages or an engine.",
    ),
]
