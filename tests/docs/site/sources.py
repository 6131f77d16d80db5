"""The sources of the site: pages of the repository at their places on the site, with their links rewritten.

The site has a simpler tree than the repository: pages of docs/ at the top, notebooks in tutorials/. `assemble` writes
each page to its place and changes its relative links to match. A linked file that is no page is copied, and the site offers
it as a download. A link to a file that does not exist is an error.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tests.docs.site import llms, runs

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = {
    "CONTRIBUTING.md": "development.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
}
"""Pages outside docs/ and notebooks/, and their places."""
INDEXES = {"README.md": "index.md", "notebooks": "index.md", "docs": "index.md"}
"""Link targets that the site has no page of, and the page in their place."""
LINK = re.compile(r"(?<=\]\()(?!\w+:|#|<)([^)\s#]+)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$|(`+)(?:(?!\3).|\n(?!\n))+?\3", re.DOTALL | re.MULTILINE)


class DeadLink(Exception):
    """A link to a file that does not exist."""


def place(path: str) -> str | None:
    """The place on the site of a file of the repository, or None for a file that is no page."""
    folder, name = posixpath.split(path)
    if path in PAGES or path in INDEXES:
        return PAGES.get(path) or INDEXES[path]
    if folder in {"docs", "docs/how-to"} and name.endswith(".md"):
        return path.removeprefix("docs/")
    if folder == "docs/images":
        return f"images/{name}"
    if folder == "notebooks" and name.endswith(".ipynb"):
        return f"tutorials/{name}"
    return None


def pages() -> Iterator[str]:
    """The pages of the repository that the site has, as paths from the repository's root."""
    yield from PAGES
    for pattern in ("docs/**/*.md", "notebooks/*.ipynb"):
        yield from (path.relative_to(REPOSITORY).as_posix() for path in sorted(REPOSITORY.glob(pattern)))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Markdown with all but its code changed."""
    parts: list[str] = []
    end = 0
    for found in CODE.finditer(text):
        parts += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(text[end:])])


def with_links(text: str, path: str, downloads: set[str]) -> str:
    """The Markdown of a page with the links of its place on the site; adds the files it links to."""
    here = place(path) or path

    def target(found: re.Match[str]) -> str:
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[1]))
        there = place(linked)
        if not (REPOSITORY / linked).exists():
            raise DeadLink(f"{path}: {found[0]} does not exist")
        if there is None:
            downloads.add(linked)
            return "path:" + posixpath.relpath(f"files/{linked}", posixpath.dirname(here) or ".")
        return posixpath.relpath(there, posixpath.dirname(here) or ".") + (found[2] or "")

    return outside_code(text, lambda part: LINK.sub(target, part))


def notebook_with_links(text: str, path: str, downloads: set[str]) -> str:
    """A notebook with the links of its place on the site, whose cells are coloured as IPython's."""
    notebook = json.loads(text)
    notebook["metadata"]["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = with_links(source, path, downloads)
        cell["metadata"].pop("id", None)
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def kinds(index: str) -> Iterator[tuple[str, str, list[str]]]:
    """Each section of the front page, which is a kind of page: its title, its text, and its pages.

    A page belongs to the section that links to it first. One to which the front page has no link is an orphan.
    """
    known: set[str] = set()
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        linked = [found[1] for found in LINK.finditer(body) if found[1].endswith((".md", ".ipynb"))]
        names = [name for name in dict.fromkeys(linked) if name not in known]
        known.update(names)
        yield title, body.strip(), names


def sections(index: str) -> dict[str, str]:
    """The front page with a hidden table of contents, and a page for each of its sections."""
    made = {f"{title.lower()}.md": f"# {title}\n\n{body}\n\n{_toctree(names)}" for title, body, names in kinds(index)}
    return {"index.md": f"{index.rstrip()}\n\n{_toctree(made)}", **made}


def _toctree(names: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *(posixpath.splitext(name)[0] for name in names), "```", ""])


def assemble(target: Path, extra: Path) -> None:
    """Write the sources of the site into one directory, and the pages that Sphinx copies as they are into another."""
    downloads = {f"examples/{name}.dot" for name in runs.gallery()}
    written: dict[str, str | bytes] = {}
    markdown: dict[str, str] = {}
    for path in pages():
        text = (REPOSITORY / path).read_text("utf-8")
        there = place(path) or path
        if path.endswith(".ipynb"):
            written[there] = notebook_with_links(text, path, downloads)
        else:
            markdown[there] = with_links(text, path, downloads)
            written[there] = runs.embedded(markdown[there], "../" * there.count("/"))
    written["examples.md"] = runs.with_cards(str(written["examples.md"]))
    written |= sections(str(written["index.md"]))
    for image in (REPOSITORY / "docs" / "images").iterdir():
        written[f"images/{image.name}"] = image.read_bytes()
    for path in sorted(downloads):
        written[f"files/{path}"] = (REPOSITORY / path).read_bytes()
    shown = runs.pages()
    _write(target, written | {name: text for name, text in shown.items() if name.endswith(".svg")})
    _write(extra, llms.llms_pages(markdown) | {name: text for name, text in shown.items() if name.endswith(".html")})


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
