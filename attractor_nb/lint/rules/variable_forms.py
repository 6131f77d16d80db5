"""Rules about variables that are written in a form that nothing replaces (rulings 25, 34)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.lint.rules.variable_rules import RESPONSE, VariableNames, texts_with_variables, written_text
from attractor_nb.lint.survey import Finding, Survey, outward, replacing, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.vocabulary.value_forms import CONTEXT_PREFIX, FOR_EACH, ITEM_KEYS
from attractor_nb.model.vocabulary.variables import GOAL, NAMING_ATTRIBUTES, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Node
    from attractor_nb.source import SourceText

_NAME: Final = r"[A-Za-z_]\w*"
_OTHER_FORMS: Final = re.compile(
    rf"(?<!\$)\$(?P<dotted>{_NAME}(?:\.{_NAME})+)|\{{\{{ ?(?P<braces>{_NAME}(?:\.{_NAME})*) ?\}}\}}"
)
"""`$plan.response`, which ends at the dot, and `{{ goal }}`."""
_SHELL: Final = "read it from the JSON on stdin, or from the file $ATTRACTOR_CONTEXT_FILE"


@rule(Severity.WARNING)
def variable_form(survey: Survey) -> Iterator[Finding]:
    """A variable with a dot in its name has no braces, or a variable has two pairs of them.

    `$plan.response` is the variable `$plan` and the text ".response", and `{{goal}}` is plain text. The rule reports
    names that are known: keys of the context, inputs, the goal, and responses of stages.

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="Plan it"] work [prompt="Do $plan.response"]
            exit [shape=Msquare]  start -> plan -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="Plan it"] work [prompt="Do ${plan.response}"]
            exit [shape=Msquare]  start -> plan -> work -> exit }
    """
    names: VariableNames | None = None
    for node, attribute in _texts(survey):
        for found in _OTHER_FORMS.finditer(node.get(attribute, str, "")):
            names = names or VariableNames(survey)
            if not _is_meant(found, names) and not _is_item(found, node):
                continue
            name = found["dotted"] or found["braces"]
            meant = f"${{{name}}}"
            message = f'"{found[0]}" in the {attribute} of "{node.id}" is not replaced; write {meant}'
            text = written_text(survey, node, attribute)
            yield Finding(message, value_span(node, attribute), node.id, fix=_rewritten(text, found[0], meant))
            break


def _texts(survey: Survey) -> Iterator[tuple[Node, str]]:
    yield from texts_with_variables(survey)
    for name in NAMING_ATTRIBUTES:
        for node in survey.having(name):
            text = node.attrs[name]
            if isinstance(text, str) and "{{" in text and "$" not in text:
                yield node, name


def _is_meant(found: re.Match[str], names: VariableNames) -> bool:
    name = found["dotted"] or found["braces"]
    is_of_context = name.startswith(CONTEXT_PREFIX)
    return (
        is_of_context or name.removeprefix(CONTEXT_PREFIX) in names.likely or (name == GOAL and bool(found["braces"]))
    )


def _rewritten(text: SourceText, written: str, meant: str) -> Fix:
    """The fix that writes the form that is replaced, where the text is in the source."""
    title, place = f"write {meant}", text.text.find(written)
    if place < 0 or not text.host:
        return Fix(title)
    return outward(replacing(text.span(place, place + len(written)), meant, title)) or Fix(title)


def _is_item(found: re.Match[str], node: Node) -> bool:
    """True if it names the item of a node that is run for each of a list, or a field of it."""
    root = (found["dotted"] or found["braces"]).removeprefix(CONTEXT_PREFIX).partition(".")[0]
    return FOR_EACH in node.attrs and root in ITEM_KEYS


@rule(Severity.WARNING)
def command_variable(survey: Survey) -> Iterator[Finding]:
    """A command contains a variable, and variables are never replaced in commands (ruling 25).

    `${ticket}` in a command is a variable of the shell. The values of the context reach a command as JSON: on stdin,
    and in the file that `ATTRACTOR_CONTEXT_FILE` names. Reported for a declared input, the goal, a value of the context
    or the response of a stage, unless the command sets a variable of that name.

    Bad:

        digraph { inputs="ticket" start [shape=Mdiamond] exit [shape=Msquare]
            close [shape=parallelogram, tool_command="close ${ticket}"]
            start -> close -> exit }

    Good:

        digraph { inputs="ticket" start [shape=Mdiamond] exit [shape=Msquare]
            close [shape=parallelogram, tool_command="jq -r .ticket | xargs close"]
            start -> close -> exit }
    """
    names: VariableNames | None = None
    for node in survey.having("tool_command"):
        command = node.tool_command
        if "$" not in command and "{{" not in command:
            continue
        names = names or VariableNames(survey)
        if written := _variable_of_a_pipeline(command, names, has_goal=bool(survey.graph.goal)):
            message = f'the command of "{node.id}" has {written}, but variables are not replaced in commands'
            yield Finding(message, value_span(node, "tool_command"), node.id, fix=Fix(_SHELL))


def _variable_of_a_pipeline(command: str, names: VariableNames, *, has_goal: bool) -> str:
    """The first variable of a command that means a value of the run, as it is written; empty for none."""
    for found in _OTHER_FORMS.finditer(command):
        if _is_meant(found, names) or (found["dotted"] or "").endswith(RESPONSE):
            return found[0]
    for variable in variables(command):
        name = variable.name
        is_ours = name in names.inputs or (has_goal and name == GOAL) or name.startswith(CONTEXT_PREFIX)
        if (is_ours or (name in names.likely and name.endswith(RESPONSE))) and not _is_set(command, name):
            return command[variable.start : variable.end]
    return ""


def _is_set(command: str, name: str) -> bool:
    """True if a command sets a variable of the shell: `name=`, `for name in`, `read name`."""
    return (
        re.search(rf"(?<![\w.]){re.escape(name)}=|\b(?:for|read)\s+(?:-\w+\s+)*{re.escape(name)}\b", command)
        is not None
    )


RULES: Final = (variable_form, command_variable)
