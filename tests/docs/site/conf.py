"""The settings of the site for Sphinx; `make docs-site` builds it. Nothing comes from another host."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from IPython.lib.lexers import IPython3Lexer
from pygments.lexers.graphviz import GraphvizLexer
from pygments.token import Keyword

HERE = Path(__file__).parent
release = tomllib.loads((HERE.parents[2] / "pyproject.toml").read_text("utf-8"))["project"]["version"]
project = "attractor_nb"
language = "en"

extensions = ["myst_nb"]
exclude_patterns = ["files"]
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_error_lexer = "none"  # an error shows no traceback
suppress_warnings = ["misc.highlighting_failure"]  # Pygments' DOT has no quoted name of an attribute
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 5
nitpicky = True

html_theme = "furo"
html_title = "attractor_nb"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_show_search_summary = False  # its texts are fetched, which a page opened from a file cannot
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}


class CellLexer(IPython3Lexer):
    """Colours of a cell: IPython's, and those of DOT in a cell that begins with %%attractor."""

    def get_tokens_unprocessed(self, text: str, *rest: Any) -> Any:
        """The tokens of a cell and their places."""
        if not text.startswith("%%attractor"):
            yield from super().get_tokens_unprocessed(text, *rest)
            return
        magic, newline, pipeline = text.partition("\n")
        yield 0, Keyword, magic + newline
        begin = len(magic + newline)
        for place, kind, value in GraphvizLexer().get_tokens_unprocessed(pipeline):
            yield begin + place, kind, value


def setup(app: Any) -> None:
    """The lexer of cells in place of IPython's."""
    for name in ("ipython", "ipython3"):
        app.add_lexer(name, CellLexer)
