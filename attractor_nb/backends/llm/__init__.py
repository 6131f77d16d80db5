"""Models of providers, over their own APIs (spec 1.4, 4.5; extra ``llm``).

What a node asks for is read here without any library; the modules that import one (``clients``,
``exchange``, ``failures``) are loaded when a run with this backend begins, and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.lazy_imports import deferred

if TYPE_CHECKING:
    from attractor_nb.backends.llm.provider_backend import ProviderBackend as ProviderBackend
else:
    __getattr__ = deferred(__name__, {"ProviderBackend": "backends.llm.provider_backend"})

__all__ = ["ProviderBackend"]
