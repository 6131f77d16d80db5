"""Edge labels as routing keys: accelerator prefixes and normalisation (spec 3.3, 4.6).

Edge selection, conditions and human gates must agree on what a label means, so it is said once.
"""

from __future__ import annotations

import re

_ACCELERATOR = re.compile(r"\s*(?:\[\s*(?P<bracketed>\w+)\s*\]|(?P<closed>\w)\)|(?P<dashed>\w)\s+-(?=\s))\s*(?=\S)")


def normalize_label(label: str) -> str:
    """The form in which labels are compared: no accelerator prefix, trimmed, lower case (spec 3.3).

    A label that is nothing but an accelerator keeps it, so that it never equals an empty label.

    >>> normalize_label("[Y] Yes, deploy"), normalize_label("y) yes, deploy "), normalize_label("[Y]")
    ('yes, deploy', 'yes, deploy', '[y]')
    """
    return label_text(label).lower()


def accelerator_key(label: str) -> str:
    """The shortcut key that a label offers, in upper case; empty for an empty label (spec 4.6).

    >>> [accelerator_key(label) for label in ("[Y] Yes", "n) No", "R - Retry", "skip it", "")]
    ['Y', 'N', 'R', 'S', '']
    """
    if found := _ACCELERATOR.match(label):
        return (found["bracketed"] or found["closed"] or found["dashed"]).upper()
    return next((char.upper() for char in label if char.isalnum()), label.strip()[:1])


def label_text(label: str) -> str:
    """A label without its accelerator prefix, otherwise as written.

    >>> label_text("[Y] Yes, deploy"), label_text("Yes")
    ('Yes, deploy', 'Yes')
    """
    found = _ACCELERATOR.match(label)
    return (label[found.end() :] if found else label).strip()
