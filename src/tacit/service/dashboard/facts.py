"""What the dashboard may know: public numbers of the collector, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.publication import Publication
from tacit.service.dashboard.estimate import Estimate

if TYPE_CHECKING:
    from tacit.service.deployment import Deployment


@dataclass(frozen=True)
class Version:
    """When a policy was published, and how many users are in the release behind it."""

    version: int
    users: int
    published_at: float


@dataclass(frozen=True)
class Facts:
    """One look at a deployment.

    Attributes:
        deployment: what the operator declared.
        now: unix time of the look.
        accepted: reports counted so far.
        next_batch: further reports until the next policy can be planned; None after the last.
        planner_alive: whether somebody plans.
        versions: every publication, oldest first.
        shown: the publication whose action map is shown.
        before: the one before it, None for the first.
        estimates: by version, as far as they were worked out.
        ledger: its public summary.
        schema: version of the database's schema.
    """

    deployment: Deployment
    now: float
    accepted: int
    next_batch: int | None
    planner_alive: bool
    versions: Sequence[Version]
    shown: Publication | None
    before: Publication | None
    estimates: Mapping[int, Estimate]
    ledger: Mapping[str, Any]
    schema: str
