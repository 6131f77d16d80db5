"""``python -m attractor_nb``: the command for the interpreter at hand, whatever is on the PATH."""

from __future__ import annotations

import sys

from attractor_nb.cli import main

sys.exit(main())
