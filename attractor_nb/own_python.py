"""Python processes of our own: none of them imports a file that lies in the working directory (ruling 43).

``python -m`` puts the working directory first in the list of places that modules are imported from. In a folder that
somebody cloned, a file ``json.py`` would so become a part of our process. ``-P`` leaves the directory out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

NEUTRAL_DIRECTORY: Final = Path(Path(sys.executable).anchor)
"""Working directory of our processes that have no business in the folder where they start: programs read settings
and load libraries from their working directory, too (``uv.toml``)."""


def own_python(*arguments: str) -> list[str]:
    """The command line that starts this Python without the working directory among its places of modules.

    >>> own_python("-m", "pip")[1:]
    ['-P', '-m', 'pip']
    """
    return [sys.executable, "-P", *arguments]
