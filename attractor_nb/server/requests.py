"""The models of request bodies and queries; each refuses unknown content."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from attractor_nb.model.instruction import MAX_INSTRUCTION
from attractor_nb.model.question import BY_API

BackendName = Literal["simulated", "local", "llm", "claude", "codex", "gemini"]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12,64}$")]
Text = Annotated[str, StringConstraints(max_length=1_000_000)]
Name = Annotated[str, StringConstraints(max_length=500)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}(~row-[0-9]{1,9})?$"
"""The name of a run's directory; of a row of a map the names of both directories, joined by a tilde."""
EVENT_ID = r"^([0-9]{1,9}\.)?[0-9]{1,15}$"


class Body(BaseModel):
    """A request's body: JSON as it is, nothing guessed, nothing passed over."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Query(BaseModel):
    """A request's query: texts that are read as what they shall be."""

    model_config = ConfigDict(extra="forbid")


class NoQuery(Query):
    """No query at all."""


class NoBody(Body):
    """Nothing, or an empty object."""


class Bounds(Body):
    """Bounds in place of the graph's own."""

    max_steps: Count | None = None
    max_node_visits: Count | None = None
    max_restarts: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    max_goal_gate_redirects: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    max_budget_usd: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    max_tokens_total: Count | None = None
    max_duration: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h|d)?$")] | None = None

    def given(self, *names: str) -> dict[str, Any]:
        """The values that the request gives for these options and for the bounds."""
        bounds = [name for name in type(self).model_fields if name.startswith("max_")]
        return {name: value for name in (*names, *bounds) if (value := getattr(self, name)) is not None}


class Submission(Bounds):
    """A DOT source to run."""

    source: Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)]
    name: Name = ""
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    backend: BackendName | None = None
    durability: Literal["full", "fast"] = "full"
    trust: Hash | None = Field(default=None, description="Hash of the commands that the caller trusts.")
    session: bool = Field(default=False, description="Store a status-schema session of its branches.")


class Renaming(Body):
    """Another id for a node, wherever the text names it."""

    node: Name
    to: Name


class Source(Body):
    """A DOT source to look at; nothing of it is run."""

    source: Text
    strict: bool = False
    with_drawing: bool = Field(default=False, description="Also draw it.")
    fix: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None, description="Number of the finding whose fix is applied first."
    )
    rename: Renaming | None = Field(default=None, description="A node to rename first.")
    with_outline: bool = Field(default=False, description="List its nodes with their places.")


class Edit(Body):
    """A DOT source, and what an editor's page asks about it; without a message all that it shows."""

    source: Text
    message: dict[str, Any] | None = None


class PictureRequest(Body):
    """A DOT source to draw, and how."""

    source: Text
    format: Literal["svg", "png", "mermaid"] = "svg"
    theme: Literal["light", "dark"] = "light"


class Saving(Body):
    """The text of a file, and the digest of what was read of it; empty for a file that is not there yet."""

    text: Annotated[str, StringConstraints(max_length=500_000)]
    digest: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]


class Resumption(Bounds):
    """A request to resume a run."""

    on_graph_change: Literal["error", "warn", "accept"] = "error"
    on_interrupted: Literal["rerun", "ask", "fail"] | None = None
    rewind_to: Name | None = Field(default=None, description="Go back to just before a visit of this node.")
    visit: Count | None = None
    context: dict[str, Any] | None = None
    prompt: Text | None = None
    backend: BackendName | None = None
    trust: Hash | None = None


class Fork(Bounds):
    """A request to fork a run: the start of the fork, and its changes."""

    node: Name
    visit: Count | None = None
    context: dict[str, Any] | None = None
    prompt: Text | None = None
    backend: BackendName | None = None
    trust: Hash | None = None


class Answer(Body):
    """An answer to a question."""

    choice: Text = Field(default="", description="Key, label or target of a choice; several with commas.")
    text: Text = Field(default="", description="Free text.")
    form: dict[str, Any] | None = Field(default=None, description="Values by field, if there is a form.")
    answered_by: Annotated[str, StringConstraints(max_length=200)] = Field(
        default=BY_API, description="How it is answered, such as `page`. The name of the person is that of the token."
    )


class Telling(Body):
    """A message for the model of a running stage."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_INSTRUCTION)]
    node: Name | None = Field(
        default=None, description="The model stage that receives it; by default the running one, or the next."
    )
    given_by: Annotated[str, StringConstraints(max_length=200)] = "api"


class ShortAnswer(Answer):
    """An answer that says itself what it answers; what is left out is meant if only one waits."""

    pipeline: Name = ""
    question: Name = ""


class StatusQuery(Query):
    """A query for a pipeline; the newest by default."""

    id: Annotated[str, StringConstraints(pattern=RUN_ID)] | None = None


class ListQuery(Query):
    """A query for a part of the list."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 100
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class RowsQuery(ListQuery):
    """A query for rows, their runs and their order."""

    limit: Annotated[int, Field(ge=1, le=10_000)] = 100
    sort: Literal[
        "index", "status", "pipeline", "inputs", "note", "started", "took", "stages", "tokens", "cost", "tags", "key"
    ] = Field(default="index", description="The column that they are sorted by; the newest first by default.")
    descending: bool = False
    words: Annotated[str, Field(max_length=500)] = Field(
        default="", description="Only runs whose row has each of these words, in capitals or not."
    )
    with_questions: bool = Field(default=False, description="List the questions of all runs that wait.")


class MapQuery(ListQuery):
    """A query for rows of a map or an evaluation; those that failed come first."""

    words: Annotated[str, Field(max_length=500)] = Field(
        default="", description="Only rows that have each of these words, in capitals or not."
    )
    status: Literal[
        "",
        "completed",
        "success",
        "failed",
        "fail",
        "stopped",
        "interrupted",
        "paused",
        "not_started",
        "not started",
        "running",
        "waiting",
        "passed",
        "scored",
        "unmeasured",
    ] = Field(default="", description="Only rows of this status; of an evaluation passed, failed, unmeasured, scored.")
    way: Annotated[str, Field(max_length=500)] = Field(
        default="", description="Only rows behind a part of the drawing: one of the page's ways."
    )
    sort: Annotated[int, Field(ge=-1, le=10_000)] = Field(
        default=-1, description="The column of the table that they are sorted by; -1 for failures first."
    )
    descending: bool = False
    with_page: bool = Field(default=False, description="Add the parts of the page: summary, drawing, notes.")
    with_table: bool = Field(default=False, description="Add the rows as values of the page's table.")


class MapComparisonQuery(ListQuery):
    """A query for the rows in which a map differs from another one."""

    other: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    with_page: bool = Field(default=False, description="Add the content of the page.")


class GraphQuery(Query):
    """In which form."""

    format: Literal["svg", "dot", "json", "mermaid"] = "svg"


class StageQuery(Query):
    """A query for a visit and an attempt; the latest by default."""

    visit: Count | None = None
    attempt: Count | None = None
    branch: Name = ""


class InspectionQuery(StageQuery):
    """A query of the inspector: a node, or an edge by its position."""

    node: Name = ""
    edge: Name | None = None
    file: Name | None = None
    item: Annotated[int, Field(ge=0)] | None = None


class ComparisonQuery(Query):
    """With which run."""

    other: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class EventsQuery(Query):
    """A query for the events after one; from the beginning by default."""

    last_event_id: Annotated[str, StringConstraints(pattern=EVENT_ID)] | None = None
    ticket: Name = Field(default="", description="Used instead of the token by EventSource.")
