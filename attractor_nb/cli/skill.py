"""``skill install``: the guide for assistants, SKILL.md, put where they look for skills."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.errors import OptionError
from attractor_nb.storage.files.user_files import write_file

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "attractor-nb"
FOLDERS: Final = (".claude/skills", ".agents/skills")
"""Of Claude Code; of Codex, Gemini CLI and others that follow the common form."""
BEGINNING: Final = f"---\nname: {NAME}\n"


def skill_text() -> str:
    """The guide."""
    return (files("attractor_nb.cli") / "SKILL.md").read_text(encoding="utf-8")


def install_skill(root: Path, *, is_json: bool = False) -> ExitCode:
    """Write the guide below a directory; an older one of this package is replaced, a foreign one is left alone."""
    places = [root / folder / NAME / "SKILL.md" for folder in FOLDERS]
    for place in places:
        if place.exists() and not place.read_text(encoding="utf-8", errors="replace").startswith(BEGINNING):
            raise OptionError(f"{place} is another skill; it was left alone", hint="move it, or give --directory")
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_file(place, skill_text())
    if is_json:
        print_json({"paths": [str(place) for place in places]})
    else:
        print(*places, sep="\n")
    return ExitCode.SUCCESS
