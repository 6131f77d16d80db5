"""One page that stands alone: a view of the front-end with its values, and the same without script.

Such a page reaches no network and runs nothing but its own script: its policy says so to the browser
(``default-src 'none'``, the script by its hash), whatever texts it holds. Values are data in it, never code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.views.frontend import script, styles
from attractor_nb.views.markup import element

if TYPE_CHECKING:
    from collections.abc import Mapping

_POLICY: Final = (
    "default-src 'none'; script-src '{hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
_PAGE_CSS: Final = """
:root{color-scheme:light dark}
body{margin:0;background:#fff;color:#1f2328;font:13px/1.45 system-ui,sans-serif}
@media (prefers-color-scheme:dark){body{background:#111417;color:#e8edf2}}
main{max-width:1400px;margin:0 auto;padding:16px 20px 40px}
h1{font-size:18px;font-weight:600;margin:0 0 2px}
.page-line{margin:0 0 12px;opacity:.75;white-space:pre-wrap;overflow-wrap:anywhere}
.page-static>summary{cursor:pointer;font-weight:600;margin:14px 0 6px}
"""
_BOOT: Final = """
const pageValues = JSON.parse(document.getElementById("values").textContent);
CALL(staticHost(pageValues), document.getElementById("view"));
document.getElementById("static").open = false;
"""
_UNSAFE_JSON: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&"})


def page(title: str, line: str, entry: str, call: str, values: Mapping[str, Any], static: Markup) -> str:
    """A page of its own.

    Args:
        title: Its title.
        line: A line below.
        entry: The module of the front-end that shows the values.
        call: Its function.
        values: JSON values for it.
        static: What is there without script; with it, it is folded.
    """
    code = _code(entry, call)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")
    policy = _POLICY.format(hash=f"sha256-{digest}")
    # A script of data is no script: only the module is, and its text is our own.
    data = Markup('<script type="application/json" id="values">') + Markup(json_text(values))  # noqa: S704 - no < in it
    module = Markup('<script type="module">') + Markup(code)  # noqa: S704 - our own module
    parts = (
        Markup("<!doctype html>"),
        Markup('<html lang="en"><head><meta charset="utf-8">'),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", None, title),
        _styled(styles(entry) + _PAGE_CSS),
        Markup("</head><body><main>"),
        element("h1", None, title),
        element("p", {"class": "page-line"}, line),
        Markup('<div id="view"></div>'),
        Markup('<details id="static" class="page-static" open><summary>As picture and table</summary>'),
        static,
        Markup("</details></main>"),
        data + Markup("</script>"),
        module + Markup("</script></body></html>"),
    )
    return "\n".join(map(str, parts)) + "\n"


def json_text(values: Any) -> str:
    """JSON that can stand in a page: in plain ASCII, without a character that could end its element."""
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"), allow_nan=False).translate(
        _UNSAFE_JSON
    )


@cache
def _code(entry: str, call: str) -> str:
    code = "\n" + script(entry, is_widget=False) + _BOOT.replace("CALL", call)
    assert "</script" not in code.lower(), "the module would end its own element"
    return code


def _styled(css: str) -> Markup:
    """A style element of the front-end's own sheets, whose selectors may hold ``>``."""
    assert "</" not in css, "the sheet would end its own element"
    return Markup("<style>") + Markup(css) + Markup("</style>")  # noqa: S704 - our own sheets
