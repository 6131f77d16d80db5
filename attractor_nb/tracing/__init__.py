"""A run as a trace of OpenTelemetry (extra ``tracing``): run, stage, attempt, model call, tool call.

Reads events and nothing else of a run. Nothing of OpenTelemetry is imported before it is requested for a trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.tracing.names import SCOPE

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

TRACERS = "True for the global provider, a TracerProvider, a Tracer, or a Tracing of one of them"


@dataclass(frozen=True, slots=True)
class Tracing:
    """The tracing options of a run: ``pipeline.run(tracer=Tracing(provider, content=True))``.

    Attributes:
        tracer: A Tracer, a TracerProvider, or True for the global provider.
        content: Spans hold prompts, responses, and what tools were told and said, without secrets.
    """

    tracer: Any = True
    content: bool = False


def read_tracing(value: object) -> Tracing | None:
    """The option ``tracer=`` as a ``Tracing`` of a Tracer; None for no trace.

    Raises:
        OptionError: It is none, or OpenTelemetry is not installed.
    """
    if value is None or value is False:
        return None
    given = value if isinstance(value, Tracing) else Tracing(value)
    return Tracing(_tracer_of(given.tracer), content=given.content)


def _tracer_of(given: Any) -> Tracer:
    from attractor_nb.extras import install_command, missing_packages  # noqa: PLC0415 - few runs are traced

    if missing_packages("tracing"):
        raise OptionError("tracer= needs OpenTelemetry, which is not installed", hint=install_command("tracing"))
    from opentelemetry.trace import get_tracer  # noqa: PLC0415 - the extra "tracing"

    if given is True:
        return get_tracer(SCOPE)
    if hasattr(given, "get_tracer"):
        return given.get_tracer(SCOPE)
    if hasattr(given, "start_span"):
        return given
    raise OptionError(f"tracer= cannot be {type(given).__name__}", hint=f"give {TRACERS}")
