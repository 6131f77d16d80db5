"""Rules about stages that are run once for each item of a list (`for_each`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.lint.rules.variable_rules import VariableNames, complaint, texts_with_variables, written_text
from attractor_nb.lint.survey import Finding, Survey, name_span, replacing_value, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.vocabulary.shapes import MANAGER_TYPE
from attractor_nb.model.vocabulary.value_forms import (
    CONTEXT_PREFIX,
    FOR_EACH,
    ITEM,
    ITEM_KEYS,
    MAX_ITEMS,
    UNREPEATABLE,
    list_key,
    meant_form,
)
from attractor_nb.model.vocabulary.variables import NAMING_ATTRIBUTES, Variable, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Node


@rule(Severity.ERROR)
def for_each(survey: Survey) -> Iterator[Finding]:
    """`for_each` names a list, on a stage that can be run once for each item of it.

    It is written `item in KEY`; the key is one of the context and may continue into a structured value. Starts,
    exits, human gates, diamonds, fan-outs and fan-ins cannot be repeated: put them into a pipeline of their own,
    and repeat the node that runs it. A WARNING: a key that nothing sets, as far as that is known, a manager,
    whose child has no inputs and so no item, unless it names `${item}` in its instructions, and `max_items` without
    `for_each`.

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="files"]
            start -> review -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="item in files"]
            start -> review -> exit }
    """
    names: VariableNames | None = None
    for node in survey.having(FOR_EACH):
        kind, written = survey.types[node.id], node.get(FOR_EACH, str, "")
        if kind in UNREPEATABLE:
            message = f'"{node.id}" is a {kind} node, which cannot be run for each item of a list'
            fix = Fix("remove for_each, or repeat a pipeline that has the node (type=pipeline)")
            yield Finding(message, name_span(node, FOR_EACH), node.id, fix=fix)
        elif key := list_key(written):
            names = names or VariableNames(survey)
            yield from _unknown_list(survey, node, key, names)
            if kind == MANAGER_TYPE and not _names_item(node):
                message = f'"{node.id}" is a manager, whose child has no item: the child runs of all items do the same'
                fix = Fix("repeat a sub-pipeline (type=pipeline, pipeline.inputs), or name ${item} in its instructions")
                yield Finding(message, name_span(node, FOR_EACH), node.id, fix=fix, severity=Severity.WARNING)
        else:
            near = meant_form(written)
            fix = replacing_value(node, FOR_EACH, near, f'write "{near}"') if near else None
            message = f'for_each of "{node.id}" is "{written}", not of the form "{ITEM} in KEY"'
            yield Finding(message, value_span(node, FOR_EACH), node.id, fix=fix or Fix(f'write "{ITEM} in KEY"'))
    for node in survey.having(MAX_ITEMS):
        if FOR_EACH not in node.attrs:
            message = f'max_items of "{node.id}" changes nothing: it is not run for each item of a list'
            fix = Fix('add for_each="item in KEY", or remove max_items')
            yield Finding(message, name_span(node, MAX_ITEMS), node.id, fix=fix, severity=Severity.WARNING)


def _names_item(node: Node) -> bool:
    texts = (node.get(name, str, "") for name in NAMING_ATTRIBUTES)
    return any(_root(variable) in ITEM_KEYS for text in texts for variable in variables(text))


def _root(variable: Variable) -> str:
    return variable.name.removeprefix(CONTEXT_PREFIX).partition(".")[0]


def _unknown_list(survey: Survey, node: Node, key: str, names: VariableNames) -> Iterator[Finding]:
    message = complaint(survey, node, key, names, f'for_each: "{key}"')
    if not message:
        return
    near = names.meant(key) or names.likely.nearest(key)
    fix = replacing_value(node, FOR_EACH, f"{ITEM} in {near}", f'write "{ITEM} in {near}"') if near else None
    fix = fix or Fix("declare it: inputs=… on the graph; or name what a stage before it leaves")
    yield Finding(message, value_span(node, FOR_EACH), node.id, fix=fix, severity=Severity.WARNING)


@rule(Severity.WARNING)
def item_variable(survey: Survey) -> Iterator[Finding]:
    """`${item}` and `${item_index}` stand in texts of the node that is run for each item.

    Another node has no item. After the stage `${node.outputs}` is the list of what the items came to, and
    `${node.results}` how they ended. Nothing is said of a graph without `for_each`, or with an input of that name.

    Bad:

        digraph { inputs="files" start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="item in files"]
            sum_up [prompt="Sum up the review of ${item}"]
            start -> review -> sum_up -> exit }

    Good:

        digraph { inputs="files" start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="item in files"]
            sum_up [prompt="Sum up: ${review.outputs}"]
            start -> review -> sum_up -> exit }
    """
    if not (repeated := survey.having(FOR_EACH)):
        return
    inputs = VariableNames(survey).inputs
    near = f"{repeated[0].id}.outputs"
    for node, name in texts_with_variables(survey):
        for variable in variables(node.get(name, str, "")):
            root = _root(variable)
            if root not in ITEM_KEYS or root in inputs or FOR_EACH in node.attrs:
                continue
            text = written_text(survey, node, name)
            span = text.span(variable.start, variable.end) if text.host else value_span(node, name)
            message = f'${{{variable.name}}} names nothing: "{node.id}" is not run for each item of a list'
            yield Finding(message, span, node.id, fix=Fix(f"add for_each to it, or write ${{{near}}}"))


RULES: Final = (for_each, item_variable)
