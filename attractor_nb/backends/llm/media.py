"""Which models are shown images and documents, as far as anybody says (pure)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.calls.attachment import PDF
from attractor_nb.model.calls.providers import read_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.backends.llm.model_requests import Target

_TEXT_ALONE: Final = re.compile(
    r"(gpt-3\.5|gpt-4(-0314|-0613|-32k.*)?\Z|o1-mini|o1-preview|o3-mini|text-|davinci|claude-(1|2|instant)|deepseek)"
)
"""Beginnings of models that take text alone."""


def takes_text_alone(target: Target) -> bool:
    """Whether a model is known to take no images and no documents."""
    return _TEXT_ALONE.match(target.model.rpartition("/")[2]) is not None


def is_unknown(target: Target) -> bool:
    """Whether nobody can tell what a model takes: it is somewhere else, and its name says nothing."""
    is_elsewhere = bool(target.base_url) or target.endpoint is not None
    return is_elsewhere and not read_model(target.model).provider


def refused_kind(profile: Mapping[str, Any], media_types: Iterable[str]) -> str:
    """What of these a model's profile says it does not take; empty for nothing.

    >>> refused_kind({"supports_image_input": False}, ["image/png"]), refused_kind({}, ["image/png"])
    ('images', '')
    """
    for media_type in media_types:
        if media_type != PDF and not profile.get("supports_image_input", True):
            return "images"
        documents = profile.get("supported_document_media_types")
        is_taken = profile.get("supports_document_input", True)
        is_sent = profile.get("openai_chat_supports_document_input", True)
        is_listed = documents is None or PDF in documents
        if media_type == PDF and not (is_taken and is_sent and is_listed):
            return "PDFs"
    return ""
