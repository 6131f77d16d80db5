"""Builds the site into build/site: `make docs-site`. Warnings are errors.

Each build is a new one: Sphinx looks for the target of a link only when it writes the page that has the link.

    python tests/docs/site [DIRECTORY]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
sys.path.insert(0, str(REPOSITORY))

from sphinx.cmd.build import build_main  # noqa: E402 - beside the package

from tests.docs.site.sources import assemble  # noqa: E402 - beside the package


def build(target: Path) -> int:
    """Build the site in a directory; the exit code."""
    for name in ("sources", "extra", "doctrees", "html"):
        shutil.rmtree(target / name, ignore_errors=True)
    assemble(target / "sources", target / "extra")
    # Sphinx copies the picture of an <img>, and not those of a <source>, which are for dark pages.
    shutil.copytree(target / "sources" / "images", target / "extra" / "images", dirs_exist_ok=True)
    options = ["-E", "-a", "-W", "--keep-going", "-q", "-j", "2", "-c", str(HERE), "-d", str(target / "doctrees")]
    options += ["-D", f"html_extra_path={target / 'extra'}"]
    return build_main([*options, str(target / "sources"), str(target / "html")])


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else REPOSITORY / "build" / "site").resolve()
    if code := build(directory):
        sys.exit(code)
    print(directory / "html" / "index.html")
