"""The joint model as it is served: trajectories are uploaded, and what is published is looked at.

Every trial runs a real curator on a real database: uploads, encrypted sums, charges, noise that is
stored before it is used, publication. Nothing is taken from inside it but the rows that its counter
has published, of which the releases that everybody can read are made; and the draws of its sampler
are kept, so that the same service in the other world meets them again.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.agents.base import Agent
from tacit.arrays import Array, IntArray
from tacit.auditing.neighbours import NeighbourPair, contribution
from tacit.auditing.targets import AuditedRuns
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.privacy.base import AuditRecord
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.task.task import Task
from tacit.trajectory import Trajectory
from tacit.wire import messages
from tacit.wire.report_rules import rules_hash
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.responses import IncomingReport

BATCHES = 20
"""Users over those audited: with so many the counter of tacit-joint makes five steps at epsilon 1,
and the last one, which is not looked at, holds a twentieth of what it shows about the first."""


class ServiceTarget(AuditedRuns):
    """What a running curator publishes when people with one of two lives have taken part.

    Args:
        problem: where the other users live.
        agent: what is served.
        people: the audited people, who all take part in the first batch.
        task: whose sizes are served; the number of users is the audit's own.
    """

    source = "secure"
    PEOPLE = 8
    """Audited people in the first batch, where so many do not disturb each other."""

    @staticmethod
    def require_servable(
        agent: Agent, bound: BoundAgent, case: NeighbourPair, first: Publication
    ) -> None:
        """Refuse what the service does not run, or what it runs and nobody outside can aim."""
        asked = first.context
        if agent.batch_parameter is None or bound.guarantee.model != "joint":
            reason = "no curator of the service runs it"
        elif bound.task.known:
            reason = f"it was told {', '.join(bound.task.revealed)}, which needs files of its own"
        elif any(not np.array_equal(asked.get(name, ()), x) for name, x in case.context.items()):
            reason = "what it collects depends on numbers that the service itself publishes"
        elif bound.task.participations > 1 or bound.task.rule is not None:
            reason = "its people take part once"
        else:
            return
        raise InvalidInput(
            f"the service path of {agent.name} cannot be audited: {reason}; "
            "tacit-joint on tables can"
        )

    def __init__(
        self, problem: Problem, agent: Agent, people: Sequence[NeighbourPair], task: Task
    ) -> None:
        self._problem, self.people = problem, people
        folder = Path(tempfile.mkdtemp(prefix="tacit-audit-", dir=_in_memory()))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._new, self._place = (folder / name for name in ("new", "running"))
        self._place.mkdir()
        file = self._place / "audit.toml"
        self._deployment = Deployment.parse(_description(agent, task, len(people)), file)
        Collector.open(self._deployment).close()
        shutil.copytree(self._place, self._new)
        self.distance = people[0].distance
        self.family = "other" if self.guarantee.mu is None else "gaussian"
        self._users = self._deployment.task.users
        self.name = f"all but the last release of a running service with {self._users} users"

    @property
    def guarantee(self) -> Guarantee:
        """What the service claims."""
        return self._deployment.guarantee

    def score(self, outputs: Array) -> Array:
        """The log-likelihood ratio."""
        return outputs[:, 0]

    def _run(self, some: IntArray, noise: Noise, rng: np.random.Generator) -> list[Array]:
        worlds = np.resize(some, len(self.people)).tolist()
        shutil.rmtree(self._place)
        shutil.copytree(self._new, self._place)
        collector = Collector.open(self._deployment)
        collector.planning.noise = lambda: noise
        try:
            lived = [np.zeros(self._deployment.bound.statistic.layout.size, dtype=np.int64)]
            released: list[Array] = []
            served, boundaries = 0, collector.planning.boundaries
            while (end := boundaries[(version := collector.policy().version) + 1]) < self._users:
                public = collector.publications.published(version).publication
                audited = () if served else zip(self.people, worlds, strict=True)
                batch = [case.lives[world] for case, world in audited]
                while len(batch) < end - served:
                    batch.append(self._problem.rollout(public.policy, rng))
                self._upload(collector, batch)
                lived[-1] += np.sum([self._own(life, public) for life in batch], axis=0)
                while collector.planning.step():
                    pass
                served = end
                if not self._deployment.bound.plans_again(served):
                    released.append(self._shown(collector, version + 1))
                    lived.append(np.zeros_like(lived[0]))
        finally:
            collector.close()
        return [
            np.array([self._log_ratio(i, worlds[i], lived, released)]) for i in range(len(some))
        ]

    def _shown(self, collector: Collector, version: int) -> Array:
        """What the counter has published with a release."""
        planning = collector.planning
        with planning.store.read() as connection:
            secret = planning.mode.load(connection)
        release: Any = collector.publications.published(version).release
        assert secret is not None
        return self._deployment.bound.privatizer.audit_view(secret, release)

    def _upload(self, collector: Collector, lives: Sequence[Trajectory]) -> None:
        task = self._deployment.task
        version, made_by = collector.policy().version, rules_hash(collector.rules)
        sent = [messages.pack_trajectory(life, task.horizon) for life in lives]
        reports = [IncomingReport(secrets.token_hex(16), version, m, rules=made_by) for m in sent]
        answer = collector.upload(self._deployment.task_id, reports, None)
        refused = [o for o in answer.outcomes if o.outcome != "accepted"]
        if refused:
            raise InvalidInput(f"the service under audit did not take a report: {refused[0]}")

    def _own(self, life: Trajectory, publication: Publication) -> IntArray:
        return contribution(self._deployment.bound, life, publication, 0)

    def _log_ratio(
        self, person: int, world: int, lived: list[IntArray], released: list[Array]
    ) -> float:
        """How much the releases speak for the second life of one person."""
        case, privatizer = self.people[person], self._deployment.bound.privatizer
        both = [self._own(life, case.publication) for life in case.lives]
        first, second = ([lived[0] + life - both[world], *lived[1:]] for life in both)
        return privatizer.log_likelihood_ratio(AuditRecord(first, second, released)).log_ratio


def _in_memory() -> str | None:
    """A folder whose files never reach a disk, where there is one: nothing here must last."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None


def _description(agent: Agent, task: Task, batch: int) -> dict[str, Any]:
    """What a deployment file for the agent would hold, with batches of that many users."""
    assert agent.batch_parameter is not None  # else it is refused
    own = {**agent.parameters(), agent.batch_parameter: batch}
    sizes = {name: task.sizes[name] for name in ("states", "actions")}
    facts = {"horizon": task.horizon, "homogeneous": task.homogeneous}
    return {
        "task": {"name": "audit", **sizes, **facts},
        "agent": {"name": agent.name, **{name: x for name, x in own.items() if x is not None}},
        "population": {"users": BATCHES * batch, "tokens": "shared"},
        "updates": {"minimum_batch": batch},
        "storage": {"witness_on_same_disk": True},
    }
