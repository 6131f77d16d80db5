"""llms.txt and llms-full.txt: the site for language models, as Markdown, from the front page and the pages it links to."""

from __future__ import annotations

import re

from attractor_nb.cli.skill import BEGINNING, skill_text

LEFT_OUT = {
    "contributing.md",
    "conformance.md",
    "benchmarks.md",
    "campaigns.md",
    "libraries.md",
    "architecture.md",
    "development.md",
    "changelog.md",
}
"""Pages about the project, not about its use."""
LINE = re.compile(r"^ *- \[([^\]]+)\]\((?!path:)([^)#\s]+)\)(.*)$", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def plain(page: str) -> str:
    """A page without its comments."""
    return COMMENT.sub("", page).strip() + "\n"


def llms_pages(pages: dict[str, str]) -> dict[str, str]:
    """Both files, SKILL.md, and each page as Markdown beside its HTML."""
    index = pages["index.md"]
    head, *parts = re.split(r"^## ", plain(index), flags=re.MULTILINE)
    short = [f"# attractor_nb\n\n> {' '.join(head.partition(chr(10))[2].split())}\n"]
    short.append("- [Write pipelines](SKILL.md): the guide for assistants, with all attributes, rules and commands\n")
    full = [f"# attractor_nb\n\n{skill_text().removeprefix(BEGINNING).partition('---')[2].strip()}\n"]
    for part in parts:
        title, _, body = part.partition("\n")
        links = [(words, target, more) for words, target, more in LINE.findall(body) if target not in LEFT_OUT]
        if not links:
            continue
        lines = (f"- [{words}]({target.replace('.ipynb', '.html')}){more}" for words, target, more in links)
        short.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
        full += [plain(pages[target]) for _, target, _ in links if target in pages]
    made = {name: plain(page) for name, page in pages.items()}
    return made | {"llms.txt": "\n".join(short), "llms-full.txt": "\n".join(full), "SKILL.md": skill_text()}
