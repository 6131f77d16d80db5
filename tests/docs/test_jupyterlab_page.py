"""The claims of docs/jupyterlab.md are true: each command with its key, each key of the editor, each setting."""

import json
import re
from importlib.resources import files
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "jupyterlab.md").read_text("utf-8")
EXTENSION = files("attractor_nb.labextension")
SCHEMAS = [
    json.loads(file.read_text("utf-8")) for file in sorted((EXTENSION / "schemas" / "attractor-nb").iterdir(), key=str)
]
LABEL = re.compile(r'\{ id: "([\w-]+)", label: words\.__\("([^"]+)"\)')


def rows(heading):
    """The cells of the first table below a heading."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_each_command_is_listed_with_its_key():
    labels = dict(LABEL.findall((EXTENSION / "static" / "extension.js").read_text("utf-8")))
    keys = {
        shortcut["command"].partition(":")[2]: shortcut["keys"][0].replace("Accel", "Ctrl").replace(" ", "-")
        for schema in SCHEMAS
        for shortcut in schema.get("jupyter.lab.shortcuts", [])
    }
    listed = {row[0]: row[1] for row in rows("Commands")}
    assert listed == {label: keys.get(command, "") for command, label in labels.items()}


def test_each_key_of_the_editor_is_listed():
    bound = {
        key.replace("Mod", "Ctrl")
        for file in (EXTENSION / "static").iterdir()
        if file.name.endswith(".js")
        for key in re.findall(r'\{ key: "([^"]+)", run', file.read_text("utf-8"))
    }
    assert bound == {"F2", "F8", "F12", "Shift-F1", "Ctrl-."}
    assert bound <= {key for row in rows("While you type") for key in row[0].split(", ")}


def test_each_part_has_a_setting_that_the_page_names():
    words = {
        "colours": "colours",
        "findings": "findings",
        "delay": "their delay",
        "hover": "meanings and places",
        "outline": "outline",
        "commands": "commands",
        "panel": "the panel",
        "notifications": "notifications",
        "browser": "those of the browser",
        "graph": "graph documents",
        "default": "whether they are the default",
    }
    assert {name for schema in SCHEMAS for name in schema["properties"]} == {*words}
    said = PAGE.partition("\n## Settings\n")[2]
    assert [name for name, told in words.items() if told not in said] == []
