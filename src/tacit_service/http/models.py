"""Shapes of requests and answers, for the OpenAPI document and for the check of uploads.

Answers are written by the collector as plain JSON; these models describe them and the fuzzer holds
the one against the other. An upload is checked by :data:`UPLOAD` in one call per request.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, WithJsonSchema
from typing_extensions import TypedDict

from tacit_service.http.errors import CODES

Code = Annotated[str, WithJsonSchema({"type": "string", "enum": list(CODES)})]
Hex32 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
Hex64 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
LARGEST_VERSION = 2**31 - 1
Whole = Annotated[
    float,  # 2.0 is an integer in JSON, true and "2" are not; fractions are refused after parsing
    Field(ge=0, le=LARGEST_VERSION),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": LARGEST_VERSION}),
]


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: Code
    message: str
    hint: str | None


class ErrorBody(BaseModel):
    """Every answer of 400 and above."""

    error: ErrorDetail


class ArrayBody(BaseModel):
    """An array: little-endian bytes in base64."""

    dtype: str
    shape: list[int]
    data: str


class TaskFacts(BaseModel):
    """What is public before the first user."""

    family: str
    horizon: int
    sizes: dict[str, int]
    homogeneous: bool
    users: int
    participations: int
    known: dict[str, ArrayBody]
    duration: float = 0.0
    rule: dict[str, Any] | None = None


class AgentFacts(BaseModel):
    """The learner and its parameters."""

    name: str
    parameters: dict[str, Any]


class Labels(BaseModel):
    """Names for people; null where the deployment gives none."""

    states: list[str] | None
    actions: list[str] | None


class TaskBody(BaseModel):
    """Everything a device needs before it takes part."""

    tacit: str
    wire: Literal[3]
    task_id: str
    name: str
    model: Literal["local", "joint"]
    task: TaskFacts
    agent: AgentFacts
    labels: Labels
    reward_range: tuple[float, float]
    absorbing_state: int
    unit: Literal["user", "participation"]
    opens: str | None
    closes: str | None
    accepted_versions: int | None
    delay: float
    grace: float
    keep_reports: bool
    ids: Literal["token", "chosen"]
    rules: dict[str, Any]
    restoring: str
    state: Literal["open", "paused", "closed"]
    guarantee: dict[str, Any]


class PolicyBody(BaseModel):
    """One publication: the policy and the public numbers that go with it."""

    task_id: str
    previous: str | None = None
    version: int
    policy: dict[str, Any]
    context: dict[str, ArrayBody]


class GuaranteeBody(BaseModel):
    """The guarantee for programs and for people."""

    guarantee: dict[str, Any]
    statement: str


class LedgerBody(BaseModel):
    """The chained lines of the privacy ledger; header, entries and amounts if they are sound."""

    verified: bool
    problem: str
    lines: int


class Health(BaseModel):
    """Whether the database answers, and whether some process plans (without one: degraded)."""

    status: Literal["ok", "degraded", "unavailable"]
    tacit: str
    database: bool
    planner: bool


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"]
    tacit: str


class Ready(BaseModel):
    """Whether the service does all of its work; if not, why: in a word and in a sentence.

    ``tasks`` names those in trouble.
    """

    ready: bool
    reason: str | None
    message: str | None
    tasks: list[str]
    tacit: str


class ReportUpload(TypedDict):
    """One report. The message is opaque here: the collector reads it."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    id: Hex32
    version: NotRequired[Whole]
    message: str
    publication: NotRequired[Hex64]
    rules: NotRequired[Hex64]


class TicketRequest(TypedDict):
    """Before an episode of a task with tickets: which report it will lead to."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    task_id: str
    id: Hex32
    rules: Hex64 | None


class Upload(TypedDict):
    """Reports of one task."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    task_id: NotRequired[str]
    reports: Annotated[list[ReportUpload], Field(min_length=1)]


TICKET = TypeAdapter(TicketRequest)
UPLOAD = TypeAdapter(Upload)
"""Parses and checks a body in about a microsecond per report."""


def upload_schema(task_id: str, max_batch: int, *, ticketed: bool) -> dict[str, Any]:
    """JSON schema of an upload to one deployment, without references."""
    schema = UPLOAD.json_schema()
    report = schema.pop("$defs")["ReportUpload"]
    if not ticketed:  # elsewhere the ids say enough
        schema["required"] = ["task_id", "reports"]
        report["required"] = ["id", "version", "message"]
    schema["properties"]["task_id"]["const"] = task_id
    schema["properties"]["reports"] |= {"items": report, "maxItems": max_batch}
    return schema
