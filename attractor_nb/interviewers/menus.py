"""Menus at a terminal, drawn by questionary. Imported only when a person is asked."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any, TextIO

import questionary
from prompt_toolkit.input import create_input
from prompt_toolkit.output import create_output

from attractor_nb.account import signed_here
from attractor_nb.interviewers.terminal_input import AskField, field_prompt
from attractor_nb.model.question import Answer, AnswerValue, FieldKind, FormField, Option, Question, QuestionType
from attractor_nb.model.texts import shown
from attractor_nb.model.vocabulary.value_forms import label_text

_NAME = "console"
_STYLE = questionary.Style([("qmark", "bold"), ("question", "bold"), ("pointer", "bold"), ("answer", "")])


async def ask_by_menu(question: Question, stdin: TextIO, stderr: TextIO) -> Answer:
    """The answer a person picks or types; not yet checked. Can be cancelled: the terminal is restored."""
    terminal: dict[str, Any] = {
        "input": create_input(stdin),
        "output": create_output(stderr),
        "style": _STYLE,
        "qmark": "?",
    }
    try:
        return await _answered(question, shown(question.text), terminal)
    except EOFError:  # Ctrl-D
        return Answer(AnswerValue.SKIPPED, answered_by=signed_here(_NAME))


async def _answered(question: Question, text: str, terminal: dict[str, Any]) -> Answer:
    match question.type:
        case QuestionType.MULTIPLE_CHOICE:
            key = await _picked(_select(question, text, terminal))
            return Answer(key, answered_by=signed_here(_NAME))
        case QuestionType.MULTI_SELECT:
            entries = [questionary.Choice(_title(option), value=option.key) for option in question.options]
            keys: list[str] = await _picked(questionary.checkbox(text, choices=entries, **terminal))
            return Answer(",".join(keys), answered_by=signed_here(_NAME))
        case QuestionType.YES_NO | QuestionType.CONFIRMATION:
            is_yes: bool = await _picked(questionary.confirm(text, default=False, auto_enter=False, **terminal))
            return Answer(AnswerValue.YES if is_yes else AnswerValue.NO, answered_by=signed_here(_NAME))
        case QuestionType.FREEFORM:
            written: str = await _picked(questionary.text(text, **terminal))
            return Answer(written, text=written, answered_by=signed_here(_NAME))


def field_menu(stdin: TextIO, stderr: TextIO) -> AskField:
    """A function that asks for a field of a form; each answer is the text that one would type over a pipe."""

    async def ask(entry: FormField) -> str | None:
        terminal: dict[str, Any] = {
            "input": create_input(stdin),
            "output": create_output(stderr),
            "style": _STYLE,
            "qmark": "-",
        }
        words = shown(field_prompt(entry))
        try:
            if entry.kind is FieldKind.CHOICE and entry.is_required:
                choices = [questionary.Choice(shown(str(choice)), value=str(choice)) for choice in entry.choices]
                return await _picked(questionary.select(words, choices=choices, **terminal))
            return await _picked(questionary.text(f"{words}:", **terminal))
        except EOFError:  # Ctrl-D
            return None

    return ask


def _select(question: Question, text: str, terminal: dict[str, Any]) -> questionary.Question:
    keys = [option.key.lower() for option in question.options]
    has_shortcuts = all(len(key) == 1 and key.isascii() and key.isalnum() for key in keys)
    entries = [
        questionary.Choice(_title(option), value=option.key, shortcut_key=key if has_shortcuts else None)
        for option, key in zip(question.options, keys, strict=True)
    ]
    return questionary.select(
        text,
        choices=entries,
        use_shortcuts=has_shortcuts,
        use_jk_keys=False,
        instruction="(key or arrows, then Enter)",
        **terminal,
    )


def _title(option: Option) -> str:
    """The label without its accelerator, which the menu shows itself."""
    return shown(label_text(option.label))


async def _picked(prompt: questionary.Question) -> Any:
    try:
        return await prompt.unsafe_ask_async()
    except KeyboardInterrupt:
        # The menu reads keys raw, so Ctrl-C came as a key. Make it the signal that it would have
        # been, for the host of the run, and wait for that to end the question.
        os.kill(os.getpid(), signal.SIGINT)
        return await asyncio.get_running_loop().create_future()
