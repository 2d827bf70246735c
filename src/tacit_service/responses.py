"""What callers of the collector give, get and catch: plain values, public all but messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy.typing as npt

from tacit.errors import InvalidInput, TacitError
from tacit.publication import Publication

OutcomeName = Literal["accepted", "duplicate", "stale", "invalid", "refused", "decoy"]
Reason = Literal["population_reached", "token_spent", "not_open", "closed", "batch_full"]
Role = Literal["device", "operator"]


class UnknownTask(InvalidInput):
    """A request names a task that is not served here."""


class UnknownVersion(InvalidInput):
    """A request names a policy version that was never published."""


class TaskClosed(InvalidInput):
    """The operator closed the task."""


class Paused(TacitError):
    """The operator paused the task: the same upload may be sent again when it goes on."""


class Unavailable(TacitError):
    """The database cannot be used now; nothing was lost, and the same request may be repeated.

    Attributes:
        reason: what is wrong in one word, for programs: "database", "disk" or "read_only".
    """

    def __init__(self, message: str, reason: str = "database") -> None:
        super().__init__(message)
        self.reason = reason


class ServiceRefused(TacitError):
    """The stored state must not be used as it is; the message says what to do.

    Attributes:
        reason: likewise: "state", or "damaged" for a database that cannot be read.
    """

    def __init__(self, message: str, reason: str = "state") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Trouble:
    """Why the service is not ready: a word for programs, a sentence for people."""

    reason: str
    sentence: str


@dataclass(slots=True)
class IncomingReport:
    """One report as it arrives. Its message is never printed.

    ``publication`` is the hash of the one it was made under, ``rules`` that of the rules it was
    made by; reports of devices older than these hashes have none. Without the first a report is
    judged by the number of the version alone; without the second it is taken by older tasks only. A
    report that has a ticket names neither version nor hashes: its ticket does.
    """

    id: str
    version: int | None = None
    message: str = field(repr=False, default="")
    publication: str | None = None
    rules: str | None = None


@dataclass(slots=True)
class Outcome:
    """What became of one report."""

    id: str
    outcome: OutcomeName
    reason: Reason | None
    detail: str | None


@dataclass(frozen=True)
class UploadAnswer:
    """Outcomes in the order sent; every "accepted" among them is on disk."""

    task_id: str
    version: int
    outcomes: list[Outcome]


@dataclass(frozen=True)
class TakingBody:
    """Whether a report under a version would be taken now; if not, why."""

    # devices ask before they randomize
    task_id: str
    version: int
    publication: str | None
    """Hash of the publication of that version; None if there is none."""
    taken: bool
    reason: str | None
    """A word for programs, beside the sentence for people."""
    message: str | None


@dataclass(frozen=True)
class Ticket:
    """A participation that was counted before its episode, or why it was not.

    Attributes:
        task_id: of the task that is served.
        id: of the report that it will lead to; used up from now on.
        number: of the participation, which decides its direction; None if there is no ticket.
        version: of the policy to act on.
        reason: if there is none, why: a word for programs.
        message: likewise, a sentence for people.
    """

    task_id: str
    id: str
    number: int | None
    version: int
    reason: Reason | None = None
    message: str | None = None


@dataclass(frozen=True)
class SentPolicy:
    """A publication as it is sent, byte for byte the same every time."""

    version: int
    etag: str
    body: bytes
    hash: str


@dataclass(frozen=True)
class Token:
    """Somebody who showed a token; the token itself is not kept."""

    id: int
    role: Role
    label: str
    issued_at: float
    revoked_at: float | None
    used: int
    seat: bytes | None = field(default=None, repr=False)
    """What the ids of its reports are made of; None where senders choose them."""
    digest: bytes | None = field(default=None, repr=False)
    """What is stored of it: who it is that comes back."""


@dataclass(frozen=True, eq=False)
class PublicRelease:
    """A release as it is stored: noisy sums in natural units and the variance of their noise."""

    users: int
    blocks: Mapping[str, npt.NDArray[Any]]
    variances: Mapping[str, npt.NDArray[Any]]
    source: str


@dataclass(frozen=True, eq=False)
class Published:
    """One entry of the billboard, with what it was learned from."""

    version: int
    users: int
    published_at: float
    release: PublicRelease
    publication: Publication


@dataclass(frozen=True)
class Status:
    """Public numbers about the service.

    Attributes:
        accepted: reports counted so far.
        population: how many there may be.
        version: newest policy.
        users: reports that the newest policy was learned from.
        next_batch: reports still missing before the next policy can be planned; 0 if none.
        planner_alive: whether some process holds the planner's lease.
        last_published: unix time of the newest policy.
        finished: the population is complete, or the task closed, and everything is absorbed.
        state: "open", "paused" or "closed", as its operator decided.
        budget: spent and remaining, from the ledger.
        trouble: why the service is not ready, None if it is.
    """

    accepted: int
    population: int
    version: int
    users: int
    next_batch: int
    planner_alive: bool
    last_published: float
    finished: bool
    state: Literal["open", "paused", "closed"]
    budget: Mapping[str, Any]
    trouble: Trouble | None
