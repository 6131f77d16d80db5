"""The models of answers; the OpenAPI document is made from the same models."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from attractor_nb.model.instruction import Reach

Plain = dict[str, Any]
HttpStatus = Annotated[int, Field(ge=400, le=599)]


class Sent(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid")


class ProblemDocument(BaseModel):
    """The reason of a refused request (RFC 9457)."""

    type: str
    title: str
    status: HttpStatus
    detail: str
    hint: str = ""


class Accepted(Sent):
    """A run that begins or continues."""

    id: str
    status: str
    links: dict[str, str]


class PipelineLine(Sent):
    """A run as a line of the list."""

    id: str
    run_id: str
    name: str
    kind: str
    status: str
    start_time: str
    end_time: str | None
    duration: float | None
    stages: int | None
    usage: Plain | None
    tags: list[str]
    inputs: str = Field(description="The inputs of a run, in a line.")
    mark: str
    answers: str
    is_simulated: bool
    backends: list[str]
    stand_ins: dict[str, str]
    lineage: str
    note: str
    is_here: bool
    is_live: bool
    is_resumable: bool


class PipelineList(Sent):
    """Runs, newest first."""

    pipelines: list[PipelineLine]
    total: int
    offset: int


class Progress(Sent):
    """The progress of a run."""

    stages: int
    nodes: int
    visited: int


class PipelineStatus(PipelineLine):
    """The status of a run."""

    outcome: str | None
    reason: str
    next_node: str
    active_nodes: list[str]
    progress: Progress
    states: Plain
    line: Plain
    questions: int
    links: dict[str, str]
    map_id: str = Field(description="The map whose row it is; else empty.")


class Drawing(Sent):
    """The drawing of a run's graph without states, and what a front-end needs beside it."""

    id: str
    caption: str
    svg: str
    marks: dict[str, str]
    has_output: bool
    has_gates: bool


class FinalResponse(Sent):
    """The response of the stage that spoke last."""

    id: str
    node: str = Field(description="The node; empty if no stage has spoken.")
    text: str = Field(description="The text without secrets: 4,000 characters, then which request returns the whole.")
    shown: list[Any] | None = Field(description="The text as prose for the page; null if it is shown as it is.")


class PastAnswers(Sent):
    """Past questions with their answers, oldest first."""

    id: str
    answers: list[Plain]


class TimelineState(Sent):
    """The timeline: the picture, the words of its bars, states, and tints by measure."""

    id: str
    svg: str
    timeline: Plain
    states: Plain
    heats: Plain


class ReplayState(Sent):
    """All that happened in a run, moment by moment, and the drawing that it is shown on."""

    id: str
    svg: str
    marks: dict[str, str]
    caption: str
    replay: Plain


class ComparisonState(Sent):
    """Two runs on one drawing, and both sides of each of their stages."""

    id: str
    other: str
    svg: str
    marks: dict[str, str]
    states: Plain
    comparison: Plain
    legend: list[dict[str, str]]


class MapFacts(Sent):
    """A map, without its rows."""

    map_id: str
    pipeline: str
    status: str
    reason: str
    is_simulated: bool
    mark: str
    counts: dict[str, int]
    duration_seconds: float
    usage: Plain


class MapParts(Sent):
    """The parts of the page of a map, an evaluation or a comparison; HTML and SVG in them have no script."""

    title: str
    line: str
    summary: str
    drawing: str
    words: list[str] = Field(description="Lines below the drawing.")
    notes: list[str] = Field(description="Lines below the table.")
    ways: list[str] = Field(description="The parts of the drawing that choose rows.")


class MapTable(Sent):
    """A part of the rows as values of the page's table."""

    columns: list[list[Any]] = Field(description="Heading, class, and the characters that it asks for.")
    looks: list[list[str]] = Field(description="Class and status of rows.")
    choices: dict[str, int] = Field(description="The number of rows by status.")
    rows: list[list[Any]] = Field(description="Place, look, run and address of a row, then its cells.")
    found: int
    total: int
    offset: int


class MapState(MapFacts):
    """A map or an evaluation, and a part of its rows; ``found`` is the number of rows that fit the query."""

    id: str
    kind: str = Field(description="``map`` or ``evaluation``.")
    headline: str = Field(description="The verdict of an evaluation; else empty.")
    is_live: bool
    total: int
    found: int
    offset: int
    rows: list[Plain]
    page: MapParts | None = None
    table: MapTable | None = None


class MapComparisonState(Sent):
    """Two maps: all that differs, and a part of the rows that do."""

    id: str
    other: str
    is_same: bool
    a: MapFacts
    b: MapFacts
    changes: list[str]
    transitions: list[Plain]
    same_rows: int
    found: int
    offset: int
    rows: list[Plain]
    headlines: list[str]
    page: MapParts | None = None
    table: MapTable | None = None


class Choice(Sent):
    """A choice of a question."""

    key: str
    label: str


class WaitingQuestion(Sent):
    """A question that waits for a person."""

    id: str
    pipeline: str
    name: str = Field(description="The run's name.")
    stage: str
    text: str
    type: str
    options: list[Choice]
    detail: str
    form: Plain
    materials: list[Plain]
    branch: str
    since: float
    deadline: float | None
    is_answerable: bool
    how: str


class Rows(Sent):
    """Runs as rows of a front-end's list."""

    rows: list[Plain]
    total: int = Field(description="All runs of the root.")
    found: int = Field(description="Those that were asked for; the rows are a part of them.")
    under_way: int = Field(description="Those of them that a process works at.")
    offset: int
    questions: list[WaitingQuestion]
    more_questions: int = Field(default=0, description="Those that wait and are not in the answer.")


class QuestionList(Sent):
    """The questions that wait, oldest first; at most 500."""

    questions: list[WaitingQuestion]
    more_questions: int = Field(default=0, description="Those that wait and are not in the answer.")


class AnswerTaken(Sent):
    """An answer that is in the log."""

    pipeline: str
    question: str
    stage: str
    status: str


class MessageTaken(Sent):
    """A message that is in the log, and how it reaches a model."""

    pipeline: str
    node: str | None
    stage: str | None
    reach: Reach
    words: str


class Cancelling(Sent):
    """A run that was told to stop."""

    id: str
    status: str


class CheckpointState(Sent):
    """The newest checkpoint, with the keys of spec 5.3."""

    id: str
    checkpoint: Plain


class ContextState(Sent):
    """The context as the last record of the log leaves it; large values are references."""

    id: str
    sequence: int
    context: Plain


class ArtifactLine(Sent):
    """A value that is too large for the context."""

    id: str
    bytes: int
    stored_at: float


class ArtifactList(Sent):
    """The artifacts of a run."""

    id: str
    artifacts: list[ArtifactLine]


class StageFileText(Sent):
    """The beginning of a file of a stage."""

    name: str
    text: str
    bytes: int
    is_cut: bool


class Validation(Sent):
    """Lint findings, declared inputs (``inputs``) and commands of a source.

    ``diagnostics`` has at most 500 findings, of more the gravest, and ``more_diagnostics`` the number of the others.
    ``source`` is the text that a fix or a renaming made, else empty; ``outline`` has the nodes, if asked for.
    """

    is_valid: bool
    name: str
    goal: str
    nodes: int
    diagnostics: list[Plain]
    more_diagnostics: int = 0
    executes: Plain
    inputs: list[Plain] = []
    svg: str = ""
    source: str = ""
    outline: list[Plain] = []


class Edited(Sent):
    """The state of an editor's page.

    ``state`` is all that it shows, if that is another one than before; ``source`` the changed text, else
    empty; ``places`` has the place of each node and edge. A text that cannot be read has ``diagnostics``
    and no state.
    """

    replies: list[Plain]
    state: Plain | None = None
    source: str = ""
    places: list[Plain] = []
    diagnostics: list[Plain] = []
    more_diagnostics: int = 0


class Picture(Sent):
    """A picture; ``content`` is text, or bytes in base64."""

    name: str
    media_type: str
    encoding: str
    content: str


class DocumentItem(Sent):
    """A DOT file of the list; ``modified`` is in seconds since 1970."""

    path: str
    bytes: int
    modified: float


class DocumentList(Sent):
    """The DOT files by their paths; ``is_cut`` says that there are more."""

    documents: list[DocumentItem]
    is_served: bool
    is_editable: bool
    is_cut: bool


class DocumentText(Sent):
    """A DOT file; ``digest`` is of its bytes, and is sent back when it is saved."""

    path: str
    text: str
    digest: str
    modified: float
    is_editable: bool


class Ticket(Sent):
    """A ticket that opens one stream once; append it to ``url``, after its own query if it has one."""

    ticket: str
    url: str
    expires_in: float
