"""Texts for users go through JupyterLab's translator: no sentence of the front-end stands beside ``__`` and ``_n``."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from attractor_nb.views.frontend import FOLDER
from hatch_build import MADE

EXTENSION = files("attractor_nb.labextension") / "static"
SERVER = files("attractor_nb.server.web")
PIECES = re.compile(
    r"""//[^\n]*|/\*[^]*?\*/"""
    r"""|(?<=[(=,:;!&|?{}\n])\s*/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`""".replace("[^]", r"[\s\S]")
)
GIVEN = re.compile(r"""(?<!\w)(__|_n)\(\s*$|(?<!\w)_n\(\s*"(?:[^"\\\n]|\\.)*",\s*$""")
NOT_SHOWN = re.compile(
    r"""(console\.\w+|new\ Error|querySelector\w*|closest|matches|create\w*|make(Button)?|classList\.\w+)\(\s*$
      | (description:|className\ =|headers\[?|[=!]==|[=!]==\ |FACTORY\ =|case)\s*$
      | make(Button)?\("\w*",\s*$
      | (===\ |get|mark|offer|choose|includes|startsWith|toLocaleString|textOf)\(\s*$|actions:\ \[[^]]*$
      | \b(role|type|id|scope|inputMode:[^,]*|href|target|rel|autocomplete):?\ $ | "(data-[\w-]+|aria-(?!label|valuetext)[\w-]+)":\ $""",
    re.VERBOSE,
)
SHOWN = re.compile(
    r"""(\.(textContent|title|placeholder|alt)\s*=(?!=)[^;]*
      | setAttribute\(\s*"(aria-label|aria-valuetext|title)",[^;]*
      | (\b(label|title|words|nothing|still|placeholder|alt)|"aria-(label|valuetext)"):\s*[^,;]*
      | make\(\s*"\w+",\s*"[^"]*",[^;()]*
      | makeButton\(\s*"[^"]*",[^;=()]*
      | \b(say|sayTrouble|onSaid|refuse|makeWords|makeEmpty)\([^;()]*)$""",
    re.VERBOSE,
)
"""The code before a literal that is shown, however short it is."""
CODE = re.compile(
    r"""[a-z]+(-[a-z]+)+(\ [a-z-]+)*        # classes
      | attractor-nb.* | (digraph|%%attractor)[^]* | in\ globals\(\) | (Mod|Shift|Ctrl|Alt)-\S+ | color-mix\(.*
      | (width|padding):.* | underline\ .* | \d.*\ solid\ .* | \..*
      | (p\ h3|details|noopener)\ [a-z0-9\ ]*             # elements and links of prose
      | Bearer | X-XSRFToken | Content-Type | Idempotency-Key | Content
      | Enter | Escape
      | (.*·\ )?attractor_nb | ATTRACTOR_TRUST=.* | <svg\ .* | node\ ad-group\ .* | diff\(A,\ B\):.*
      | (show|choose)                                     # names of places, with what stands there
      """.replace("[^]", r"[\s\S]"),
    re.VERBOSE,
)


def modules():
    for folder in (EXTENSION, SERVER, FOLDER):
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".js") and file.name not in MADE:
                yield file.name, file.read_text(encoding="utf-8")


def sentences(text):
    """The texts that users could read, each with True if it goes through the translator."""
    for found in PIECES.finditer(text):
        piece = found.group().strip()
        if piece[0] not in "\"'`":
            continue
        filled = re.sub(r"\$\{[^}]*\}", "…", piece[1:-1])
        said = filled.replace("…", "").strip()
        before = text[max(0, found.start() - 300) : found.start()]
        is_sentence = (
            re.match(r"[A-Z][a-z]+\b(?!\.)", said)
            or re.search(r"[a-z]{2,} [a-z]{2,}|… [a-z]{2,}\b|(^|[ (])[a-z]{2,} …", filled)
            or (
                re.search(r"[a-z]{2}", said)
                and SHOWN.search(re.split(r"[;{}]\s*\n", re.sub(r"//[^\n]*", "", before))[-1])
            )
        )
        if is_sentence and not CODE.fullmatch(said) and not NOT_SHOWN.search(before):
            yield piece, bool(GIVEN.search(before))


@pytest.mark.parametrize(("name", "text"), list(modules()), ids=[name for name, _ in modules()])
def test_every_sentence_goes_through_the_translator(name, text):
    beside = [piece for piece, is_given in sentences(text) if not is_given]
    assert not beside, f"{name}: put them through __ or _n (views/web/wording.js): {beside}"


def test_many_sentences_are_found():
    found = [piece for _, text in modules() for piece, _ in sentences(text)]
    assert len(found) > 100
    for known in ('"Filter runs"', '"New pipeline in a cell"', '"%1 more questions wait"', '"Resume"'):
        assert known in found


@pytest.mark.parametrize(
    "code",
    [
        'make("p", "", "No runs yet.");',
        "said.textContent = `${count} runs wait`;",
        'const GONE = "The server does not answer.";',
        'words = count ? __("Some") : "None of them";',
        'makeButton("al-button", "Send", "", act);',
        'makeButton("al-button", icon, "save", act);',
        'field.placeholder = "name";',
        "facts.push(`${attempts} attempts`);",
        "facts.push(`visit ${number}`);",
        'const COLUMNS = [{ name: "took", title: "took" }];',
        'box.setAttribute("aria-label", isNew ? "new" : __("known"));',
    ],
)
def test_a_sentence_beside_the_translator_is_found(code):
    assert [piece for piece, is_given in sentences(code) if not is_given]
