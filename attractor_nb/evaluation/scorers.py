"""Scorers: functions that judge the output of a row, and the ready ones.

A scorer takes by name any of ``output``, ``expected``, ``row``, ``result`` and ``run``, and returns True or False, a
number, a text (a class), or a dict of them. Evaluators of pydantic-evals and scorers of autoevals work as they are.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import structs

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.evaluation.other_libraries import evaluator_context
from attractor_nb.evaluation.versions import version_of
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.maybe_async import call
from attractor_nb.model.record import Record
from attractor_nb.model.texts import did_you_mean, no_such_key
from attractor_nb.redaction import redacted, redacted_value

if TYPE_CHECKING:
    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.model.row_result import RowResult
    from attractor_nb.runtime.execution import Execution

ARGUMENTS: Final = ("output", "expected", "row", "result", "run")
SCORED, FAILED, UNMEASURED = "scored", "failed", "unmeasured"
REASON_CHARS: Final = 2_000
TEXT_CHARS: Final = 200
"""A class is a short text."""
MAX_NUMBER: Final = 1e100
"""The largest number that a mean and a variance are made of."""
MAX_VALUES: Final = 50
"""Most values of one dict."""
_EXAMPLE: Final = "def correct(output, expected): return output == expected"
_RETURNS: Final = "return True or False, a number, a short text, or a dict of these"
_SHOWN: Final = 80
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

Value = bool | int | float | str


class Score(Record, frozen=True):
    """One value that a scorer gave an output, or the reason that there is none."""

    name: str  #: Its column: the scorer, or ``scorer.key`` where that returned a dict.
    value: Value | None = None  #: Its value; None unless ``scored``.
    #: ``scored``; ``failed``: the pipeline failed the row, which counts as 0; ``unmeasured``: it counts in no mean.
    state: str = SCORED
    reason: str = ""  #: Reason of a state that is not ``scored``; else the scorer's explanation, or empty.
    cost_usd: float = 0.0  #: Cost of the scorer's own calls, in USD.
    tokens: int = 0  #: Tokens of the scorer's own calls.


@dataclass(frozen=True, slots=True)
class Judged:
    """Everything a scorer may take."""

    row: EvaluationRow
    result: RowResult  #: Result of the row's run.
    output: Any  #: The output that is judged.
    read_run: Callable[[], Execution]  #: Reads the row's run.
    open_backend: Callable[[object], Awaitable[None]]  #: Opens a backend for all rows of the evaluation.

    def argument(self, name: str) -> Any:
        """The value of one of ``ARGUMENTS``, as a copy: a scorer that changes it changes it for itself."""
        match name:
            case "output":
                return deepcopy(self.output)
            case "expected":
                return deepcopy(self.row.expected)
            case "row":
                return deepcopy(dict(self.row.columns))
            case "result":
                return self.result
            case _:
                return self.read_run()


@dataclass(frozen=True, slots=True)
class Scorer:
    """A scorer with what is known of it; ``read_scorer`` makes one of a function."""

    name: str  #: Its column.
    function: Callable[..., Any]  #: Called with ``Judged``.
    takes: frozenset[str]  #: The names in ``ARGUMENTS`` that it takes.
    version: str = ""  #: Changes when the function changes: scores of another version are not reused.
    is_lower_better: bool = False  #: A smaller number is better, as of a cost.
    is_of_failures: bool = False  #: It measures failed rows too, as a cost does.

    async def scores(self, judged: Judged) -> list[Score]:
        """Scores of one row; an error of the scorer makes them unmeasured."""
        if judged.result.status == "fail" and not self.is_of_failures:
            return [Score(self.name, state=FAILED, reason=judged.result.reason)]
        try:
            returned = await call(self.function, judged)
            return self._read(returned)
        except BaseException as error:  # a scorer's fault is its own, as of sys.exit(): no paid row is lost by it
            if is_interrupt(error):
                raise
            return [self._unmeasured(error_words(error))]

    def _unmeasured(self, reason: str, name: str = "") -> Score:
        return Score(name or self.name, state=UNMEASURED, reason=redacted(reason)[:REASON_CHARS])

    def _read(self, returned: object) -> list[Score]:
        """Scores from what the scorer returned."""
        if not isinstance(returned, Mapping):
            return [self._one(self.name, returned)]
        values = cast("Mapping[object, object]", returned)
        if not values or len(values) > MAX_VALUES:
            most = f", and {MAX_VALUES} are the most" if values else f"; {_RETURNS}"
            return [self._unmeasured(f"it returned a dict of {len(values)} values{most}")]
        names = [str(key).strip() for key in values]
        if not all(names) or len(set(names)) < len(names):
            return [self._unmeasured(f"it returned a dict with the keys {list(values)!r}: each names a column")]
        return [self._one(f"{self.name}.{key}", value) for key, value in values.items()]

    def _one(self, name: str, returned: object) -> Score:
        if isinstance(returned, Score):
            return replace_name(returned, name)
        value, reason = _with_reason(returned)
        problem = value_problem(value)
        if isinstance(value, Scorer):
            return self._unmeasured(f"it made a scorer: call it, and give what it returns: {self.name}()", name)
        if problem:
            return self._unmeasured(f"it returned {problem}; {_RETURNS}", name)
        return Score(name, redacted_value(_plain(value)), reason=redacted(reason)[:REASON_CHARS])


def is_interrupt(error: BaseException) -> bool:
    """True if a person or the engine ends what runs; a ``CancelledError`` of a scorer's own is an error like others."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt)


def error_words(error: BaseException) -> str:
    """The message of an error of the caller's code; its class if it cannot be shown."""
    if isinstance(error, AttractorError):
        return error.message
    name = type(error).__name__
    try:
        return f"{name}: {error}".removesuffix(": ")
    except Exception:  # noqa: BLE001 - of the error's own __str__
        return name


def replace_name(score: Score, name: str) -> Score:
    """The same score in another column."""
    return structs.replace(score, name=name, reason=redacted(score.reason)[:REASON_CHARS])


def _plain(value: object) -> Value:
    """A number of numpy as one of Python."""
    if isinstance(value, bool | int | float | str):
        return value
    return cast("Any", value).item()


def value_problem(value: object) -> str:
    """The reason that a value is no score, in words; empty for a score."""
    if isinstance(value, str):
        return f"a text of {len(value):,} characters" if len(value) > TEXT_CHARS else ""
    if _is_of_numpy(value):
        value = cast("Any", value).item()
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        if abs(value) <= MAX_NUMBER:
            return ""
        return f"a number above {MAX_NUMBER:.0e}" if abs(value) < math.inf else str(value)
    return "None" if value is None else type(value).__name__


def _is_of_numpy(value: object) -> bool:
    """True for one value of numpy, which an array of several is not."""
    return type(value).__module__ == "numpy" and getattr(value, "size", 0) == 1


def _with_reason(returned: Any) -> tuple[object, str]:
    """The value and explanation of a result: of our own scorers a tuple, of autoevals and pydantic-evals an object."""
    match returned:
        case (value, str(reason)):
            return value, reason
        case _ if hasattr(returned, "value") and hasattr(returned, "reason"):
            return returned.value, str(returned.reason or "")
        case _ if hasattr(returned, "score") and hasattr(returned, "metadata"):
            return returned.score, str(cast("Mapping[str, Any]", returned.metadata or {}).get("rationale", ""))
        case _:
            return returned, ""


# Scorers from what the caller gives: functions, evaluators of pydantic-evals, scorers of autoevals.


def read_scorers(given: object) -> tuple[Scorer, ...]:
    """Scorers from a function, a list of them, or a dict of them by name.

    Raises:
        OptionError: One cannot be called with what a row has, or two have one name.
    """
    if given is None:
        raise OptionError("an evaluation needs scorers", hint=_EXAMPLE)
    if isinstance(given, Mapping):
        found = [read_scorer(each, str(name)) for name, each in cast("Mapping[object, object]", given).items()]
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        found = [read_scorer(each) for each in cast("Sequence[object]", given)]
    else:
        found = [read_scorer(given)]
    if not found:
        raise OptionError("an evaluation needs scorers, and the list is empty", hint=_EXAMPLE)
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError(f'two scorers have the name "{twice}"', hint='name them: scorers={"first": …, "second": …}')
    for name in names:
        if inside := next((each for each in names if each.startswith(f"{name}.")), None):
            raise OptionError(
                f'the scorer "{inside}" has the name of a column of the scorer "{name}"',
                hint=f"{name} may return a dict, whose columns are {name}.KEY: rename one of the two",
            )
    return tuple(found)


def read_scorer(given: object, name: str = "") -> Scorer:
    """A scorer from a function or an object of another library.

    Args:
        given: A function, a scorer, or an object of another library.
        name: Its name; that of the function by default.
    """
    if isinstance(given, Scorer):
        return replace(given, name=name) if name else given
    if makes_scorer(given):
        raise OptionError(f"{_name_of(given)} makes a scorer and is none itself", hint=f"call it: {_name_of(given)}(…)")
    if isinstance(given, type):
        raise OptionError(
            f"the scorer {given.__name__} is a class, not a function", hint=f"make one: {given.__name__}()"
        )
    if callable(getattr(given, "evaluate", None)) and hasattr(given, "get_default_evaluation_name"):
        return _of_pydantic_evals(cast("Any", given), name)
    if callable(getattr(given, "eval_async", None)):
        return _of_autoevals(cast("Any", given), name)
    if not callable(given):
        raise OptionError(f"a scorer must be a function, not {type(given).__name__}", hint=_EXAMPLE)
    return _of_function(given, name)


def makes_scorer(given: object) -> bool:
    """True for a function that returns a scorer, as its annotation says, such as ``equals``."""
    return getattr(given, "__annotations__", {}).get("return") in (Scorer, Scorer.__name__)


def _of_function(function: Callable[..., Any], name: str) -> Scorer:
    name = name or _name_of(function)
    if name == "<lambda>":
        raise OptionError(
            "a lambda has no name to head its column", hint='name it: scorers={"short": lambda output: …}'
        )
    takes = _taken(function, name)

    def score(judged: Judged) -> Any:
        return function(**{each: judged.argument(each) for each in takes})

    return Scorer(name, score, frozenset(takes), version_of(function))


def _taken(function: Callable[..., Any], name: str) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"the parameters of the scorer {name} cannot be read: {error}", hint="wrap it in a function of your own"
        ) from None
    takes: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            takes += [each for each in ARGUMENTS if each != "run" and each not in takes]
        elif parameter.kind in _NAMED and parameter.name in ARGUMENTS:
            takes.append(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            near = did_you_mean(parameter.name, ARGUMENTS)
            raise OptionError(
                f"the scorer {name} takes {str(parameter)!r}, which a row does not have{near}",
                hint=f"take any of {', '.join(ARGUMENTS)}, by name: {_EXAMPLE}",
            )
    return takes


def _name_of(thing: object) -> str:
    return str(getattr(thing, "__name__", "") or type(thing).__name__)


def _of_pydantic_evals(evaluator: Any, name: str) -> Scorer:
    def score(judged: Judged) -> Any:
        result, row = judged.result, judged.row
        metrics = {"tokens": result.usage.total_tokens, "cost_usd": result.usage.cost_usd or 0.0}
        return evaluator.evaluate(evaluator_context(row, judged.output, result.duration, metrics))

    own = evaluator.get_default_evaluation_name()
    return Scorer(name or str(own), score, frozenset({"output", "expected", "row"}), version_of(evaluator))


def _of_autoevals(scorer: Any, name: str) -> Scorer:
    def score(judged: Judged) -> Any:
        return scorer(output=judged.output, expected=judged.row.expected, input=dict(judged.row.inputs))

    return Scorer(name or _name_of(scorer), score, frozenset({"output", "expected", "row"}), version_of(scorer))


# Ready scorers.


def equals(field: str = "") -> Scorer:
    """Scorer ``equals``: the output is the expected answer, whatever the space around it.

    A text and another value are compared as texts, so that ``"3"`` of a CSV file equals ``3``.

    Args:
        field: The column with the expected answer; ``expected`` by default.
    """

    def score(judged: Judged) -> tuple[bool, str]:
        right = _right(judged, field)
        return _is_equal(judged.output, right), f"expected {_short(right)}"

    return Scorer("equals", score, frozenset({"output", "expected"}), f"1 {field}")


def contains(text: str = "", *, ignore_case: bool = False) -> Scorer:
    """Scorer ``contains``: the output contains a text.

    Args:
        text: The text; that of the column ``expected`` by default.
        ignore_case: Upper and lower case are the same.
    """

    def score(judged: Judged) -> tuple[bool, str]:
        wanted = text or value_text(_right(judged, ""))
        if not wanted:  # an empty cell of a CSV file: every output contains it
            raise OptionError('the row\'s "expected" is empty')
        whole = value_text(judged.output)
        is_there = wanted.casefold() in whole.casefold() if ignore_case else wanted in whole
        return is_there, f"{'contains' if is_there else 'lacks'} {_short(wanted)}"

    return Scorer("contains", score, frozenset({"output", "expected"}), f"1 {text} {ignore_case}")


def matches(pattern: str) -> Scorer:
    """Scorer ``matches``: a regular expression is found in the output.

    Args:
        pattern: The expression, in Python's syntax.

    Raises:
        OptionError: It is no regular expression.
    """
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise OptionError(
            f"matches({pattern!r}) is no regular expression: {error}", hint=r'matches(r"\d{4}-\d\d")'
        ) from None

    def score(judged: Judged) -> bool:
        return compiled.search(value_text(judged.output)) is not None

    return Scorer("matches", score, frozenset({"output"}), f"1 {pattern}")


def json_schema(schema: Mapping[str, Any]) -> Scorer:
    """Scorer ``json_schema``: the output is JSON that fits a schema; a text is parsed first.

    Args:
        schema: The JSON Schema.
    """
    from attractor_nb.decisions.response_schemas import ResponseSchema, schema_problem  # noqa: PLC0415 - for few

    try:
        text = json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise OptionError(f"json_schema: the schema is not JSON: {error}", hint="a dict of JSON values") from None
    if problem := schema_problem(text):
        raise OptionError(f"json_schema: {problem}", hint='json_schema({"type": "object", "required": ["team"]})')
    check = ResponseSchema(text)

    def score(judged: Judged) -> tuple[bool, str]:
        value = judged.output
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError as error:
                return False, f"is not JSON: {error}"
        problem = check.complaint_about(value)
        return not problem, problem

    return Scorer("json_schema", score, frozenset({"output"}), f"1 {text}")


def route(at: str, field: str = "expected") -> Scorer:
    """Scorer ``route``: after a node the run took the way that the row expects.

    Args:
        at: The node at which the ways part.
        field: The column that names the node that should follow.
    """

    def score(judged: Judged) -> tuple[bool, str]:
        taken = next_after(_run_with(judged, at), at)
        right = value_text(_right(judged, field))
        return taken == right, f"took {taken or 'no way: the run did not pass ' + at}, expected {right}"

    return Scorer("route", score, frozenset({"run", "row"}), f"1 {at} {field}")


def cost() -> Scorer:
    """Scorer ``cost``: USD of the run, stages from the cache at full cost; of failed rows too. Smaller is better."""

    def score(judged: Judged) -> float:
        usage = judged.result.usage + judged.result.saved
        if usage.unpriced_calls:
            raise OptionError(f"{usage.unpriced_calls} calls have no price")
        return usage.cost_usd or 0.0

    return Scorer("cost", score, frozenset({"result"}), "1", is_lower_better=True, is_of_failures=True)


def latency() -> Scorer:
    """Scorer ``latency``: seconds of the run, of failed rows too; a smaller one is better."""

    def score(judged: Judged) -> float:
        return judged.result.duration

    return Scorer("latency", score, frozenset({"result"}), "1", is_lower_better=True, is_of_failures=True)


def visits(node: str) -> Scorer:
    """Scorer ``visits``: number of visits of a node, such as the rounds of a loop; a smaller one is better.

    Args:
        node: The node.
    """

    def score(judged: Judged) -> int:
        return _run_with(judged, node).visits.get(node, 0)

    return Scorer("visits", score, frozenset({"run"}), f"1 {node}", is_lower_better=True, is_of_failures=True)


def _run_with(judged: Judged, node: str) -> Execution:
    """The row's run, of a pipeline that has the node: of another one no visit says anything."""
    run = judged.read_run()
    if node not in run.pipeline.graph.nodes:
        raise no_such_key("the pipeline", "node", node, run.pipeline.graph.nodes)
    return run


def next_after(run: Execution, at: str) -> str:
    """The node that followed the last visit of another one, in branches, too; empty when none did."""
    commits = [visit.commit for visit in run.journal().visits_of(at) if visit.commit is not None]
    return max(commits, key=lambda commit: commit.sequence).next_node if commits else ""


def _right(judged: Judged, field: str) -> Any:
    name = field or "expected"
    if judged.row.columns.get(name) is None:
        raise OptionError(f'the row has no "{name}"')
    return judged.row.columns[name]


def _is_equal(output: object, right: object) -> bool:
    if isinstance(output, str) or isinstance(right, str):
        return value_text(output).strip() == value_text(right).strip()
    return output == right and isinstance(output, bool) == isinstance(right, bool)


def _short(value: object) -> str:
    text = value_text(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
