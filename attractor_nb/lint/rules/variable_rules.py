"""Rules about what a pipeline is given and what its texts name (ruling 34)."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import InputsSyntaxError, MappingSyntaxError
from attractor_nb.languages.condition import Clause, Condition, Operator, evaluate_condition, value_text
from attractor_nb.languages.dot.writer import embed_value
from attractor_nb.lint.rules.language_rules import condition_finding
from attractor_nb.lint.structured_keys import FORM, StructuredKeys
from attractor_nb.lint.survey import (
    Finding,
    KnownNames,
    Survey,
    embedded_text,
    outward,
    replacing,
    replacing_value,
    rule,
    unregistered,
    value_span,
)
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.inputs import ENGINE_KEYS, INPUTS, INPUTS_SCHEMA, STAGE_KEYS, Input, inputs_of, parse_inputs
from attractor_nb.model.texts import nearest, slipped, suggestion
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, CHILD_TYPES, DEFAULT_TYPE, HUMAN_TYPE
from attractor_nb.model.vocabulary.value_forms import CONTEXT_PREFIX, FOR_EACH, ITEM_KEYS, LIST_KEYS, is_repeated
from attractor_nb.model.vocabulary.variables import (
    GOAL,
    NAMING_ATTRIBUTES,
    Variable,
    parse_mapping,
    settled,
    variables,
    whole_variable,
)
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attractor_nb.model.graph import Edge, Node


OPEN_PREFIXES: Final = ("graph.", "human.gate.", "internal.", "parallel.", "stack.")
"""Beginnings of keys of which the engine sets more than can be listed."""
_CLOSED_PREFIXES: Final = ("tool.", "human.gate.")
"""Beginnings of keys that other tools have under other names (``_ELSEWHERE``)."""
_FORM: Final = "human.gate.form."
_ELSEWHERE: Final = {
    **dict.fromkeys(("tool.stdout", "tool.result", "tool.response", "tool.text"), "tool.output"),
    **dict.fromkeys(("tool.status", "tool.code", "tool.returncode", "tool.return_code"), "tool.exit_code"),
    **dict.fromkeys(("tool.error", "tool.errors"), "tool.stderr"),
    **dict.fromkeys(("human.gate.answer", "human.gate.choice", "human.gate.outcome"), "human.gate.label"),
    **dict.fromkeys(("human.gate.response", "human.gate.comment", "human.gate.feedback"), "human.gate.text"),
}
"""The engine's keys by the names that other tools have for them."""
RESPONSE: Final = ".response"
_MOST_FIELDS: Final = 500
_MOST_LISTED: Final = 10
_BARE_LITERAL: Final = re.compile(r"[\w.:/-]+")
_TO_ESCAPE: Final = re.compile(r"[\"\\]")


@rule(Severity.ERROR, is_local=True)
def inputs_valid(survey: Survey) -> Iterator[Finding]:
    """`inputs` is not a list of names, or `inputs_schema` names no registered model.

    A run asks for its inputs and is refused without them. A name occurs once, is not a key that the engine sets, and is
    not `goal` in a graph with a goal, because `$goal` has that meaning then.

    Bad:

        digraph { inputs="ticket tone=plain" start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }

    Good:

        digraph { inputs="ticket, tone=plain" start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }
    """
    graph = survey.graph
    text = graph.get(INPUTS, str, "")
    try:
        declared = parse_inputs(embedded_text(graph, INPUTS, text))
    except InputsSyntaxError as error:
        yield Finding(f"inputs: {error.message}", error.span, fix=Fix(error.hint))
        return
    if graph.goal and any(each.name == GOAL for each in declared):
        message = "the input goal has no effect: $goal is the goal of the graph"
        yield Finding(message, value_span(graph, INPUTS), fix=Fix("remove one of them, or rename the input"))
    name, known = graph.get(INPUTS_SCHEMA, str, "").strip(), survey.options.schemas
    if name and known is not None and name not in known:
        yield unregistered(graph, INPUTS_SCHEMA, "inputs_schema names the schema", name, "schemas", known)


@rule(Severity.WARNING)
def variable_unknown(survey: Survey) -> Iterator[Finding]:
    """A variable in a prompt is neither an input, nor the goal, nor a value that a stage sets.

    An unknown `$name` or `${name}` stays in the prompt as it is written. If the graph declares its inputs, the rule
    reports names within two slips of a known one, and any other name that neither an input nor an earlier stage can
    set. A model stage, a tool or a handler of your own may set any key, so after one of these a name that resembles no
    other is not reported. A graph without declared inputs takes any values: the rule then reports only a known name
    with two letters swapped, one left out or one doubled (`$gaol`), names with dots within two slips of a known one,
    and the response of a stage that does not exist. Of the unknown names of a graph the first 50 are compared with the
    known ones. `$$` stands for a dollar sign.

    Bad:

        digraph { inputs="ticket" start [shape=Mdiamond] sort [prompt="Which team is $tikcet for?"]
            exit [shape=Msquare]  start -> sort -> exit }

    Good:

        digraph { inputs="ticket" start [shape=Mdiamond] sort [prompt="Which team is $ticket for?"]
            exit [shape=Msquare]  start -> sort -> exit }
    """
    names: VariableNames | None = None
    for node, name in texts_with_variables(survey):
        names = names or VariableNames(survey)
        if not any(complaint(survey, node, each.name, names) for each in variables(node.get(name, str, ""))):
            continue
        text = written_text(survey, node, name)
        for variable in variables(text.text):
            if message := complaint(survey, node, variable.name, names):
                near = names.suggested(variable.name, node)
                if variable.default is not None and not near:
                    continue
                span = text.span(variable.start, variable.end)
                yield Finding(
                    message,
                    span if text.host else value_span(node, name),
                    node.id,
                    fix=_respelled(text, variable, near) if near else names.remedy(variable.name, node),
                )
    for node in survey.having(FORM):
        if survey.types[node.id] == HUMAN_TYPE and HUMAN_TYPE not in survey.options.taken_over:
            names = names or VariableNames(survey)
            yield from _form_defaults(survey, node, names)


def _form_defaults(survey: Survey, node: Node, names: VariableNames) -> Iterator[Finding]:
    """The finding about the defaults of a gate's form that name nothing; they stand in its model."""
    form = node.get(FORM, str, "").strip()
    problems, fix = list[str](), Fix("")
    for field in survey.options.schema_inputs(form) or ():
        name = whole_variable(field.default) if isinstance(field.default, str) else ""
        if name and (message := complaint(survey, node, name, names, field.default)):
            near = names.suggested(name, node)
            fix = fix if problems else Fix(f"write ${{{near}}} in the model") if near else names.remedy(name, node)
            problems.append(f"the default of {form}.{field.name}: {message}")
    if problems:
        yield Finding("; ".join(problems), value_span(node, FORM), node.id, fix=fix)


@rule(Severity.WARNING)
def condition_key(survey: Survey) -> Iterator[Finding]:
    """A condition reads a key that nothing sets.

    A missing key is the empty text, so the edge is either never taken or always. The rule reports keys within two slips
    of a known one (`outcome`, `preferred_label`, an input, a value that a stage sets), and the names of the engine's
    keys in other tools: `tool.stdout`, `tool_exit_code`, `human.gate.answer`. Of a structured value it reports a field
    that its schema does not have. A stage may set any other key.

    The rule also checks the conditions of managers (`manager.guard`, `manager.stop_condition`, `manager.escalate`).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcom=success"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    names: VariableNames | None = None
    for thing, name, text in survey.condition_texts:
        condition = survey.conditions[text]
        for clause in condition.clauses if condition is not None else ():
            names, key = names or VariableNames(survey), clause.key.removeprefix(CONTEXT_PREFIX)
            if key in names.likely or clause.span is None:
                continue
            slip, meant = names.structured.slip(key), meant_key(key)
            is_open = key.startswith(OPEN_PREFIXES) or names.likely.has_beginning_of(key)
            if not slip and not meant and is_open:
                continue
            if slip or meant or names.likely.nearest(key):
                yield _unknown_key(thing, name, text, text.index(key, clause.span.start), key, names)


def meant_key(key: str) -> str:
    """The key that the engine sets for one that looks like its own and that nothing sets; empty for any other.

    >>> meant_key("tool_stdout"), meant_key("human.gate.answer"), meant_key("human.gate.form.city")
    ('tool.output', 'human.gate.label', '')
    """
    dotted = key.replace("tool_", "tool.", 1) if key.startswith("tool_") else key
    if dotted != key and dotted in STAGE_KEYS:
        return dotted
    if dotted in STAGE_KEYS or not dotted.startswith(_CLOSED_PREFIXES) or dotted.startswith(_FORM):
        return ""
    below = [known for known in STAGE_KEYS if known.startswith(dotted[: dotted.rindex(".") + 1])]
    return _ELSEWHERE.get(dotted) or (nearest(dotted, below) if dotted == key else "")


def _unknown_key(thing: Edge | Node, name: str, text: str, place: int, key: str, names: VariableNames) -> Finding:
    end = place + len(key)
    span = embedded_text(thing, name, text).span(place, end)
    near, slip = names.suggested(key), names.structured.slip(key)
    message = f'the condition uses "{key}", which nothing sets{slip.words if slip else suggestion(near)}'
    fix = replacing(span, near, f'write "{near}"') if near else names.remedy(key)
    return condition_finding(thing, name, message, span, fix, meant=f"{text[:place]}{near}{text[end:]}" if near else "")


@rule(Severity.WARNING)
def condition_literal(survey: Survey) -> Iterator[Finding]:
    r"""A condition compares a field of a structured value with a value that its schema excludes.

    The comparison gives the same answer in every run, so the edge is either never taken or always. The rule knows the
    values of fields with `enum` or `const`, and of truth values, in answers with a `response_schema`, forms and typed
    inputs (ruling 50). It also checks the conditions of managers.

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            rate [prompt="Rate it", response_schema="{\"properties\": {\"level\": {\"enum\": [\"low\", \"high\"]}}}"]
            start -> rate  rate -> exit [condition="context.rate.verdict.level=hgh"]  rate -> exit [default=true] }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            rate [prompt="Rate it", response_schema="{\"properties\": {\"level\": {\"enum\": [\"low\", \"high\"]}}}"]
            start -> rate  rate -> exit [condition="context.rate.verdict.level=high"]  rate -> exit [default=true] }
    """
    structured: StructuredKeys | None = None
    for thing, name, text in survey.condition_texts:
        condition = survey.conditions[text]
        if condition is None:
            continue
        notices = [each.span for each in condition.notices if each.span]
        for clause in condition.clauses:
            if "." not in clause.key or not clause.literal or clause.span is None:
                continue
            if any(clause.span.start <= each.start < clause.span.end for each in notices):
                continue  # its spelling is a finding already
            structured = structured or StructuredKeys(survey)
            key = clause.key.removeprefix(CONTEXT_PREFIX)
            values = structured.values(key)
            if values and not any(_is_equal(each, clause.literal) for each in values):
                place = clause.span.start + clause.span.text.index("=") + 1
                yield _excluded_literal(thing, name, text, slice(place, clause.span.end), key, clause.literal, values)


def _is_equal(value: object, literal: str) -> bool:
    compared = Condition((Clause("x", Operator.EQUALS, literal),))
    return evaluate_condition(compared, "", "", {"x": value}.get)


def _excluded_literal(
    thing: Edge | Node, name: str, text: str, place: slice, key: str, literal: str, values: Sequence[object]
) -> Finding:
    written, end = text[place].lstrip(), place.stop
    start = end - len(written)
    texts = [value_text(each) for each in values]
    near = nearest(literal, texts)
    message = f'"{key}" is never "{literal}"{suggestion(near)}'
    span = embedded_text(thing, name, text).span(start, end)
    if not near:
        shown = [each or "null" for each in texts[:_MOST_LISTED]] + ["…"] * (len(texts) > _MOST_LISTED)
        return condition_finding(thing, name, message, span, Fix(f"its values: {', '.join(shown)}"))
    spelled = near if _BARE_LITERAL.fullmatch(near) else '"' + _TO_ESCAPE.sub(r"\\\g<0>", near) + '"'
    fix = replacing(span, spelled, f'write "{near}"')
    return condition_finding(thing, name, message, span, fix, meant=f"{text[:start]}{spelled}{text[end:]}")


@rule(Severity.ERROR, is_local=True)
def text_file(survey: Survey) -> Iterator[Finding]:
    """A text that begins with `@` names no readable file below the folder of the pipeline's file.

    `prompt`, `llm.system_prompt`, `human.prompt`, `manager.instructions`, and `model_stylesheet` of the graph can be in
    files. A file is UTF-8 text of at most 1 MiB; `..`, absolute paths and links out of the folder are refused. A
    pipeline that came over the network or from stdin has no files. `@@` begins a text that itself begins with `@`.

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="@prompts/no_such_file.md"] exit [shape=Msquare]
            start -> plan -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="@@ada asks for a plan."] exit [shape=Msquare]
            start -> plan -> exit }
    """
    for problem in survey.options.text_problems:
        thing = survey.graph.nodes.get(problem.node_id) if problem.node_id else survey.graph
        if thing is None:  # a transform has taken it out
            continue
        fix = Fix(problem.remedy)
        if problem.near:
            fix = replacing_value(thing, problem.attribute, problem.near, f'write "{problem.near}"')
        message = f"{problem.place}: {problem.message}"
        yield Finding(message, value_span(thing, problem.attribute), problem.node_id, fix=fix)


class VariableNames:
    """The names that variables may have.

    Attributes:
        inputs: Those of the declared inputs; empty where the graph takes any values.
        certain: Finds the known name that a variable certainly means; a graph without inputs takes values of
            any name.
        likely: Every name that is known, inputs included; finds the one that a variable may mean.
        structured: The values of which the fields are known.
    """

    def __init__(self, survey: Survey) -> None:
        declared = [each.name for each in _declared(survey)]
        self.inputs = frozenset(declared)
        self.structured = StructuredKeys(survey)
        known = known_names(survey, declared, self.structured)
        self.likely = KnownNames(known)
        self.certain = self.likely if self.inputs else KnownNames(known, dotted_or_slipped)

    def meant(self, name: str) -> str:
        """The known name that a variable certainly means, or empty."""
        return meant_key(name.removeprefix(CONTEXT_PREFIX)) or self.certain.nearest(name)

    def suggested(self, name: str, node: Node | None = None) -> str:
        """The name to write in place of one that names nothing, or empty."""
        if slip := self.structured.slip(name.removeprefix(CONTEXT_PREFIX), node):
            return slip.near
        return self.meant(name) or self.likely.nearest(name)

    def remedy(self, name: str, node: Node | None = None) -> Fix:
        """What to do about a name that is near to none."""
        slip = self.structured.slip(name.removeprefix(CONTEXT_PREFIX), node)
        return Fix(slip.remedy if slip else "declare it: inputs=… on the graph; or write $$ for a dollar sign")


def dotted_or_slipped(name: str, known: Iterable[str]) -> str:
    """The name with a dot that is near to one, or the one that a slip of the fingers made into it."""
    return nearest(name, [each for each in known if "." in each]) or slipped(name, known)


def known_names(survey: Survey, inputs: Iterable[str], structured: StructuredKeys | None = None) -> list[str]:
    """The names of inputs, and those that the engine and the stages of a graph give values to."""
    graph = survey.graph
    known = [*inputs, GOAL, *sorted(ENGINE_KEYS), *STAGE_KEYS, *(f"graph.{name}" for name in graph.attrs)]
    for node_id, kind in survey.types.items():
        attrs = graph.nodes[node_id].attrs
        if FOR_EACH in attrs and is_repeated(attrs, kind):
            known.extend(f"{node_id}.{name}" for name in LIST_KEYS)
            continue
        if kind == DEFAULT_TYPE or kind not in BUILT_IN_TYPES:
            known.append(f"{node_id}{RESPONSE}")
        if kind in CHILD_TYPES:
            known.append(f"{node_id}.run_id")
            known.extend(_outputs(graph.nodes[node_id]))
    known.extend(f"{node.id}.verdict" for node in survey.having("response_schema") if FOR_EACH not in node.attrs)
    known.extend(islice((structured or StructuredKeys(survey)).fields(), _MOST_FIELDS))
    return known


def _declared(survey: Survey) -> Iterable[Input]:
    try:
        return inputs_of(survey.graph, survey.options.schema_inputs)
    except InputsSyntaxError:  # inputs_valid tells it
        return ()


def _outputs(node: Node) -> list[str]:
    try:
        return [each.name for each in parse_mapping(node.get("pipeline.outputs", str, ""))]
    except MappingSyntaxError:  # pipeline_mappings tells it
        return []


def texts_with_variables(survey: Survey) -> Iterator[tuple[Node, str]]:
    """The nodes and their attributes that may have variables and are read."""
    for name in NAMING_ATTRIBUTES:
        for node in survey.having(name):
            text = node.attrs[name]
            if isinstance(text, str) and "$" in text and (name != "label" or _is_label_asked(survey, node)):
                yield node, name


def _is_label_asked(survey: Survey, node: Node) -> bool:
    kind = survey.types[node.id]
    return kind == HUMAN_TYPE or (kind == DEFAULT_TYPE and not node.prompt)


def written_text(survey: Survey, node: Node, name: str) -> SourceText:
    """A text as it is in the source; the text alone where a transform has changed it."""
    text, found = node.get(name, str, ""), node.attr_spans.get(name)
    if found is not None:
        source = embed_value(found.value)
        if text in (source.text, settled(source.text, GOAL, survey.graph.goal)):
            return source
    return SourceText(text, f"<{name}>")


def complaint(survey: Survey, node: Node, name: str, names: VariableNames, shown: str = "") -> str:
    """Problem of the name of a value; empty for none, or if it is uncertain.

    Args:
        survey: The graph.
        node: Whose text has it.
        name: The name.
        names: Those that are known.
        shown: How the text has it; as a variable, by default.
    """
    shown = shown or f"${{{name}}}"
    plain = name.removeprefix(CONTEXT_PREFIX)
    if name in names.likely or plain in names.likely:
        return ""
    if slip := names.structured.slip(plain, node):
        return f"{shown} names nothing{slip.words}"
    if names.likely.has_beginning_of(plain):
        return ""
    if plain.partition(".")[0] in ITEM_KEYS and survey.having(FOR_EACH):  # item_variable tells it
        return ""
    if plain.startswith(OPEN_PREFIXES) and not meant_key(plain):
        return ""
    stage, is_response = plain.removesuffix(RESPONSE), plain.endswith(RESPONSE)
    if near := names.meant(name):
        return f'{shown} names nothing; did you mean "{near}"?'
    if is_response and "." not in stage and stage not in survey.graph.nodes:
        return f'{shown} names nothing: there is no stage "{stage}"'
    if is_response and survey.types.get(stage, "") == "tool":
        return f'{shown} names nothing: "{stage}" is a tool stage, and sets ${{tool.output}}'
    if names.inputs and node.id not in survey.behind_free_stages:
        return f'{shown} names nothing: it is not an input, and no stage before "{node.id}" can set it'
    return ""


def _respelled(text: SourceText, variable: Variable, near: str) -> Fix:
    """The fix that writes the name that was meant in place of the variable."""
    written = text.text[variable.start : variable.end]
    braces = "${%s}" if "." in near else "$%s"
    meant = written.replace(variable.name, near, 1) if variable.is_braced else braces % near
    fix = replacing(text.span(variable.start, variable.end), meant, f"write {meant}")
    return (outward(fix) if text.host else Fix(fix.title)) or Fix(fix.title)


RULES: Final = (inputs_valid, variable_unknown, condition_key, condition_literal, text_file)
