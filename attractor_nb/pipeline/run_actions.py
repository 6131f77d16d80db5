"""Requests of an inspector's buttons as plain messages: fork a run, rewind it, pin an answer, tell a stage, save a row.

Each is one call of ``Run`` or of its debugger, and the message shows that call: every click has a call in
Python. A known error is part of the answer, in words.
"""

from __future__ import annotations

import json
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.log_folds import overrides_of
from attractor_nb.errors import AttractorError, OptionError, SourceError
from attractor_nb.handlers.codergen import task_of
from attractor_nb.languages.dot import parse_dot
from attractor_nb.lazy_imports import later
from attractor_nb.model.branch import parts_of
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.model.vocabulary.variables import GOAL, settled
from attractor_nb.redaction import MARK, redacted
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.runtime.past import RecordedVisit, read_history
from attractor_nb.runtime.pins import MODEL_TYPE, check_can_stand_in
from attractor_nb.studio.history.waiting_gates import load_call
from attractor_nb.studio.inspect.failure import back_to
from attractor_nb.views.summary_line import failed_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.evaluation import rows_of_runs, saved_rows
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.pipeline.run import Run

    Begin = Callable[[str, Callable[[], Run]], Run]
else:
    rows_of_runs = later("attractor_nb.evaluation.rows_of_runs")
    saved_rows = later("attractor_nb.evaluation.saved_rows")

GOES_ON: Final = "The run is active: stop it, or wait until it has ended or waits at a gate."
_SET_ASIDE: Final = "A rewind set this visit aside."
_NOT_VISITED: Final = "The run has not reached this stage yet."
_ODD: Final = re.compile(r"[^\w.-]+")
"""Characters that no file's name has here."""
_MOST_KEPT: Final = 100
"""Requests whose answers are remembered, so that one that is sent twice is done once."""


def _as_written(node: Node, graph: Graph) -> str:
    """The prompt of a node with ``$goal`` as the source has it, where the goal is all that was put into it."""
    written = _written_prompts(graph.source.text).get(node.id, "") if graph.goal and graph.source else ""
    return written if settled(written, GOAL, graph.goal) == node.prompt else node.prompt


@lru_cache(maxsize=8)
def _written_prompts(text: str) -> Mapping[str, str]:
    """The prompts of a source, by node; empty where it is no DOT text."""
    try:
        return {node.id: node.prompt for node in parse_dot(text).nodes.values()}
    except SourceError:
        return {}


def start_hidden(_title: str, start: Callable[[], Run]) -> Run:
    """Begin a run without a view."""
    return start()


class InspectorActions:
    """Does what the inspector of one run asks for.

    Attributes:
        run: The run; after a rewind the handle that continues it.
    """

    def __init__(self, run: Run, begin: Begin = start_hidden) -> None:
        """Serve a run.

        Args:
            run: The run.
            begin: Begins another one, of which it is told a title and how; it can give it a view.
        """
        self.run = run
        self._begin = begin
        self._answered: dict[str, dict[str, Any]] = {}
        self._pinning: dict[str, str] = {}
        self._one_at_a_time = threading.RLock()

    def with_actions(self, reply: dict[str, Any]) -> dict[str, Any]:
        """An answer of ``answer_inspection``; that of a stage with what can be done with the stage."""
        if reply.get("kind") != "stage" or "status" not in reply:
            return reply
        place = str(reply["node"]), reply.get("visit") or None, str(reply.get("branch", ""))
        return {**reply, "actions": self.actions(*place)}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a view asks for, and return the new state.

        Args:
            request: ``call`` is ``look``, ``fork``, ``rewind``, ``pin``, ``unpin``, ``tell`` or ``save``; ``node``,
                ``visit`` and ``branch`` say of what; ``prompt`` is given with a fork whose prompt was edited, and
                ``text`` with ``tell``. A ``key`` is the request's own: what is sent again under it is done once.

        Returns:
            A message of kind ``acted``: the ``call``, the place, ``actions``, and ``reply`` or ``problem``.
        """
        key = str(request.get("key") or "")
        with self._one_at_a_time:
            if key in self._answered:
                return self._answered[key]
            message = self._answer(request)
            if key and "problem" not in message:
                self._answered[key] = message
                while len(self._answered) > _MOST_KEPT:
                    del self._answered[next(iter(self._answered))]
            return message

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        node, branch = str(request.get("node", "")), str(request.get("branch") or "")
        visit = request.get("visit") if type(request.get("visit")) is int else None
        asked = str(request.get("call", ""))
        message: dict[str, Any] = {"kind": "acted", "call": asked, "node": node, "visit": visit, "branch": branch}
        doing: Mapping[str, Callable[[], dict[str, str] | None]] = {
            "look": lambda: None,
            "fork": lambda: self._fork(*self._target(node, visit, branch), request.get("prompt")),
            "rewind": lambda: self._rewind(*self._target(node, visit, branch)),
            "pin": lambda: self._pin(node, visit),
            "unpin": lambda: self._unpin(node),
            "tell": lambda: self._tell(node, request.get("text")),
            "save": lambda: self._save(node, visit, branch),
        }
        try:
            if asked not in doing:
                raise OptionError(f"unknown inspector action {asked!r:.80}")
            if reply := doing[asked]():
                message["said"] = reply
        except AttractorError as error:
            message["problem"] = redacted(str(error))
        message["actions"] = self.actions(node, visit, branch)
        return message

    def _target(self, node: str, visit: int | None, branch: str) -> tuple[str, int | None]:
        """The place to go back to for a stage: of the failed stage of a branch or a child run, what has that."""
        if self.run.is_done and node == failed_stage(self.run.view, self.run.graph):
            at = back_to(node, branch)
            return (node, visit) if at == node else (at, None)
        return node, visit

    # -- doing ---------------------------------------------------------------------------------------

    def _fork(self, node: str, visit: int | None, prompt: object) -> dict[str, str]:
        if prompt is not None and not isinstance(prompt, str):
            raise OptionError(f"a prompt must be text, not {type(prompt).__name__}")
        if prompt is not None:
            self._check_is_whole(node, visit, prompt)
        title = f"Fork before {node}" + (f", visit {visit}" if visit else "")
        fork = self._begin(title, lambda: self.run.fork(node, visit, prompt=prompt))
        return {"words": f"{title}: run {fork.id} has begun.", "call": f"fork = {load_call(fork.logs_root)}"}

    def _check_is_whole(self, node: str, visit: int | None, prompt: str) -> None:
        """Refuse a prompt that has the mark where a secret was taken out before it was shown."""
        known, _, why = self._known(node, visit, "")
        planned = None if why else self._prompt(node, known)
        if MARK not in prompt or planned is None or redacted(planned) == planned:
            return
        name = name_of(self.run) or "run"
        raise OptionError(
            f"this prompt of {node} has {MARK} in place of its secret, and would be sent so",
            hint=f"a secret is never shown; give the whole prompt in Python, "
            f'{name}.fork("{node}", prompt=…), or write a value in place of {MARK}',
        )

    def _rewind(self, node: str, visit: int | None) -> dict[str, str]:
        title = f"Rewound to before {node}" + (f", visit {visit}" if visit else "")
        self.run = self._begin(title, lambda: self.run.rewind(node, visit))
        return {"words": f"{title}: the run is resumed.", "call": f"run = {load_call(self.run.logs_root)}"}

    def _pin(self, node: str, visit: int | None) -> dict[str, str]:
        known, latest, _ = self._known(node, visit, "")
        self.run.debugger.pin(node, visit=visit)
        self._pinning[node] = f"debugger.pin({_arguments(node, None if known is latest else visit)})"
        name = name_of(self.run) or "run"
        words = f"{node} is pinned: forks, rewinds and resumes of this run take this answer."
        words += f' A new run does with pins={{"{node}": {name}}}.'
        return {"words": words, "call": self._line(self._pinning[node])}

    def _unpin(self, node: str) -> dict[str, str]:
        self.run.debugger.unpin(node)
        self._pinning.pop(node, None)
        return {"words": f"{node} is executed again.", "call": self._line(f'debugger.unpin("{node}")')}

    def _tell(self, node: str, text: Any) -> dict[str, str]:
        receipt = self.run.tell(node, text, given_by="inspector")
        said = json.dumps(receipt.text, ensure_ascii=False)
        return {"words": receipt.words, "call": self._line(f"tell({_arguments(node, None)}, {said})")}

    def _save(self, node: str, visit: int | None, branch: str) -> dict[str, str]:
        at, at_visit = self._target(node, visit, branch)
        branch = branch if at == node else ""
        row = self._row_of(at, at_visit, branch)
        if row is None:
            why = self._known(at, at_visit, branch)[2]
            raise OptionError(why or f"{at} has no answer to be saved", hint="save a stage of a run that has ended")
        file, answer = row
        return {"words": str(saved_rows.save_rows(self.run, file, **answer)), "call": self._save_line(file, answer)}

    # -- what can be done ----------------------------------------------------------------------------

    def actions(self, node: str, visit: int | None, branch: str = "") -> dict[str, Any]:
        """The possible actions on a stage.

        Args:
            node: The node; ``node>inner`` is a stage of the node's child run.
            visit: The visit; the latest by default.
            branch: Path of the branch that it is in.

        Returns:
            ``prompt``, as the calls take it, or None where there is none to be edited; and for ``fork``,
            ``rewind`` and ``pin``: ``call``, and ``why`` it cannot be done, or empty. ``is_pinned`` says
            which of both the last one is. ``save`` is there when the run has ended: its ``call`` and ``file``.
            ``at`` is there for the failed stage of a branch or a child run: the node where ``fork`` and
            ``rewind`` go back.
        """
        at, at_visit = self._target(node, visit, branch)
        if at != node:
            return {**self.actions(at, at_visit), "prompt": None, "at": at}
        known, latest, why = self._known(node, visit, branch)
        at = _arguments(node, None if known is latest or known is None else known.record.number)
        name = name_of(self.run) or "run"
        is_pinned = node in self.run.debugger.pins
        pinning = f'debugger.unpin("{node}")' if is_pinned else f"debugger.pin({at})"
        prompt = None if why else self._prompt(node, known)
        row = self._row_of(node, visit, branch)
        return {
            "prompt": None if prompt is None else redacted(prompt),
            "is_pinned": is_pinned,
            "fork": {"call": self._line(f"fork({at})", "fork"), "why": why or self._why_not_here(known)},
            "rewind": {
                "call": self._line(f"rewind({at})", name),
                "why": why or self._why_not_here(known) or self._why_no_rewind(),
            },
            "pin": {"call": self._line(pinning), "why": why or self._why_no_pin(node, known)},
            **({"save": {"call": self._save_line(*row), "file": row[0]}} if row else {}),
        }

    def _row_of(self, node: str, visit: int | None, branch: str) -> tuple[str, dict[str, Any]] | None:
        """The file that a stage is saved to, and the arguments that name its answer; none for that of the whole run.

        A file has answers of one kind: those of the run, or those of one stage. None for a stage without an answer
        and, as its visits cannot be told apart by number, for one in a branch.
        """
        known, latest, why = self._known(node, visit, branch)
        if why or known is None or known.is_set_aside or branch or not self.run.is_done:
            return None
        has_failed = known.record.commit is not None and known.record.commit.outcome.status.is_failure
        is_output = known is latest and self.run.result(0.0).context.get("last_stage") == node
        if has_failed or (is_output and rows_of_runs.answers_at(known)):
            return saved_rows.ROWS_FILE, {}
        at = {"stage": node} if known is latest else {"stage": node, "visit": known.record.number}
        return (f"rows-{_ODD.sub('_', node)}.jsonl", at) if rows_of_runs.answers_at(known) else None

    def _save_line(self, file: str, at: Mapping[str, Any]) -> str:
        more = "".join(f", {name}={json.dumps(value, ensure_ascii=False)}" for name, value in at.items())
        name = name_of(self.run)
        lines = ["from attractor_nb.evaluation.saved_rows import save_rows"]
        lines += [] if name else [f"run = {load_call(self.run.logs_root)}"]
        return redacted("\n".join([*lines, f'save_rows({name or "run"}, "{file}"{more})']))

    def _known(
        self, node: str, visit: int | None, branch: str
    ) -> tuple[RecordedVisit | None, RecordedVisit | None, str]:
        """The visit, the latest one that counts, and why nothing can be done at all."""
        if CHILD_SEPARATOR in node:
            above = node.partition(CHILD_SEPARATOR)[0]
            return None, None, f"It is a stage of the child run of {above}: go back at {above}."
        try:
            visits = read_history(self.run).visits_of(node)
        except AttractorError as error:
            return None, None, redacted(error.message)
        counted = [one for one in visits if not one.is_set_aside and one.record.branch == branch]
        latest = counted[-1] if counted else None
        fitting = [one for one in visits if one.record.branch == branch and one.record.number == visit]
        counting = [one for one in fitting if not one.is_set_aside] or fitting
        known = latest if visit is None else (counting[-1] if counting else None)
        if known is None:
            return None, latest, _NOT_VISITED
        is_going = not (self.run.is_done or self.run.gates or self.run.stops)
        return known, latest, GOES_ON if is_going else ""

    @staticmethod
    def _why_not_here(known: RecordedVisit | None) -> str:
        if known is None:
            return _NOT_VISITED
        if known.is_set_aside:
            return _SET_ASIDE
        if not known.record.branch:
            return ""
        fan_out = parts_of(known.record.branch)[0]
        return f"It was visited in a branch: go back at {fan_out}, where its branches begin."

    def _why_no_rewind(self) -> str:
        if self.run.is_done:
            return ""
        if self.run.gates:
            return f"The run waits at {self.run.gates[0].stage}: answer, or stop it, then it can be rewound."
        return "The run is stopped at a breakpoint: end it, then it can be rewound."

    def _why_no_pin(self, node: str, known: RecordedVisit | None) -> str:
        try:
            check_can_stand_in(node, self.run.graph.handler_types[node])
        except OptionError as error:
            return redacted(f"It cannot be pinned: {error.hint}.")
        if known is None or known.record.commit is None:
            return "This visit has no outcome."
        return ""

    def _prompt(self, node: str, known: RecordedVisit | None) -> str | None:
        """The prompt that a fork would have, as the graph or a change says it, variables and all."""
        planned = self.run.graph.nodes[node]
        if known is not None:
            before = (event for event in known.journal.counted if event.sequence < known.record.sequence)
            if (changed := overrides_of(before).prompts.get(node)) is not None:
                return changed
        is_model = self.run.graph.handler_types[node] == MODEL_TYPE
        return _as_written(planned, self.run.graph) or (task_of(planned) if is_model else None)

    def _line(self, call: str, into: str = "") -> str:
        """A call of the run by the name that the user has for it; one that has none is loaded first."""
        line = f"{name_of(self.run) or 'run'}.{call}"
        lines = [f"{into} = {line}" if into else line]
        if not name_of(self.run):
            pins = [f"run.{kept}" for kept in self._pinning.values() if kept != call]
            lines = [f"run = {load_call(self.run.logs_root)}", *pins, *lines]
        return redacted("\n".join(lines))


def _arguments(node: str, visit: int | None) -> str:
    name = json.dumps(node, ensure_ascii=False)
    return name if visit is None else f"{name}, visit={visit}"
