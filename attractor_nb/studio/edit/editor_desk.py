"""What views ask of an ``Editor`` in messages: a widget's in a notebook, a page's of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.redaction import redacted
from attractor_nb.studio.edit.attribute_form import form_of
from attractor_nb.studio.edit.draft import find_place, value_problem
from attractor_nb.views.findings_table import can_fix, finding_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.studio.edit.editor import Editor

CELL: Final = "<cell>"
MOST_LEFT: Final = 3
"""How many findings are named that are left after all was mended that can be."""
_STALE: Final = "the text has changed since this table was shown"


class EditorDesk:
    """Does what a view asks of an editor, and says what it shows then. Knows no widget and no request."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self._version = 0

    def state(self) -> dict[str, Any]:
        """All that is shown, without secrets."""
        editor = self.editor
        pipeline = editor.pipeline()
        written = pipeline.source
        text = editor.source
        return {
            "svg": editor.to_svg(),
            "source": redacted(text),
            "first_line": written.first_line if written else 1,
            "changed": list(editor.changed_lines()),
            "diff": editor.diff(),
            "findings": [
                {**finding_plain(found), "number": number} for number, found in enumerate(editor.diagnostics)
            ],
            "can_undo": editor.can_undo,
            "can_redo": editor.can_redo,
            "nodes": [redacted(name) for name in pipeline.parsed.nodes],
            "file": editor.file.name if editor.file else "",
            "is_cell": bool(written and written.name == CELL),
            "can_offer": redacted(text) == text and redacted(editor.begun) == editor.begun,
            "before": redacted(editor.begun),
            "version": self._version,
        }

    def answer(self, message: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """Do what a message asks; the replies, and whether the state is another one now."""
        before, edges = self.editor.pipeline(), self.editor.pipeline().parsed.edges
        try:
            replies = self._do(message)
        except AttractorError as error:
            return [{"kind": "said", "words": str(error), "is_error": True}], False
        if self.editor.pipeline() is before:
            return replies, False
        self._version += 1
        if message.get("kind") in {"set", "rename"}:
            target: object = (
                message.get("id") if message["kind"] == "rename" else _target(message.get("target"))
            )
            is_there = not isinstance(target, int) or len(edges) == len(self.editor.pipeline().parsed.edges)
            replies += [self._form(target, is_new=False)] if is_there else [{"kind": "gone"}]
        elif message.get("kind") == "add_node":
            replies.append(self._form(message.get("id"), is_new=True))
        elif message.get("kind") != "fix":
            replies.append({"kind": "gone"})
        return replies, True

    def _do(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        match message.get("kind"):
            case "form":
                return [self._form(_target(message.get("target")), is_new=True)]
            case "check":
                place = find_place(self.editor.pipeline().parsed, _target(message.get("target")))
                name = _text(message, "name")
                words = value_problem(place.scope, name, _text(message, "text"))
                return [{"kind": "checked", "name": name, "words": redacted(words)}]
            case "save":
                return [{"kind": "said", "words": f"Saved to {redacted(str(self.editor.save()))}."}]
            case "fix_all":
                return [{"kind": "said", "words": self._fix_all()}]
            case _:
                self._change(message)
                return []

    def _change(self, message: Mapping[str, Any]) -> None:
        editor, kind, value = self.editor, _text(message, "kind"), message.get("value")
        attribute = {_text(message, "name"): None if value is None else str(value)}
        changes: dict[str, Callable[[], object]] = {
            "set": lambda: editor.set(_target(message.get("target")), attribute),
            "rename": lambda: editor.rename(_text(message, "node"), _text(message, "id")),
            "add_node": lambda: editor.add_node(
                _text(message, "id"), after=self._declared(_text(message, "after"))
            ),
            "add_edge": lambda: editor.add_edge(_text(message, "source"), _text(message, "target")),
            "remove": lambda: editor.remove(_target(message.get("target"))),
            "fix": lambda: self._fix(message),
            "undo": editor.undo,
            "redo": editor.redo,
        }
        if kind not in changes:
            raise OptionError(f"an editor knows no message {redacted(kind)!r}", hint="load the page again")
        changes[kind]()

    def _fix_all(self) -> str:
        """Mend what can be mended; in words what was done, and what is left."""
        before = self.editor.diagnostics
        after = self.editor.fix().diagnostics
        left = [found.message for found in after]
        still = {(found.rule, found.message) for found in after}
        fixed = [found for found in before if can_fix(found) and (found.rule, found.message) not in still]
        words = f"{len(fixed)} fixed, {len(left) or 'none'} left"
        named = "; ".join(left[:MOST_LEFT]) + ("; …" if len(left) > MOST_LEFT else "")
        return f"{words}: {named}" if left else f"{words}."

    def _fix(self, message: Mapping[str, Any]) -> None:
        number, found = message.get("number"), self.editor.diagnostics
        if (
            message.get("version") != self._version
            or not isinstance(number, int)
            or not 0 <= number < len(found)
        ):
            raise OptionError(_STALE, hint="click the fix again")
        self.editor.fix_one(found[number])

    def _form(self, target: object, *, is_new: bool) -> dict[str, Any]:
        form = form_of(self.editor.pipeline().parsed, target)
        return {"kind": "form", "form": form, "is_new": is_new}

    def _declared(self, node_id: str) -> str:
        node = self.editor.pipeline().parsed.nodes.get(node_id)
        return "" if node is None or node.is_implicit else node_id


def _target(given: object) -> Any:
    """What a message means, as ``Editor.set`` takes it."""
    if isinstance(given, dict):
        named: dict[str, object] = given  # pyright: ignore[reportUnknownVariableType] - of a message
        edge, node = named.get("edge"), named.get("node")
        if isinstance(edge, int):
            return edge
        return node if isinstance(node, str) else ""
    return ""


def _text(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else ""
