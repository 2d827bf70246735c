"""A learner under audit: what it releases is recorded, beside the data of both worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.auditing.neighbours import NeighbourPair, aimed_at, contribution
from tacit.learner import BoundAgent, Learner
from tacit.privacy import Noise
from tacit.privacy.base import AuditRecord, flat
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.release import Release, ValueQuery
from tacit.trajectory import Trajectory


class RecordedLearner(Learner):
    """Runs like any learner; audited people come first, and questions are the worst ones.

    Args:
        agent: the parts of the pipeline.
        noise: what the privatizer draws from.
        cases: the audited people and their two lives; the first one's publication is the first.
        worlds: which of their lives they live.
    """

    def __init__(
        self, agent: BoundAgent, noise: Noise, cases: Sequence[NeighbourPair], worlds: Sequence[int]
    ) -> None:
        super().__init__(agent, noise, publication=cases[0].publication)
        self._cases, self._worlds = cases, worlds
        device = agent.privatizer.device
        self._device = device if device is agent.privatizer else None  # a shuffler has its own way
        self._lived: list[IntArray] = []
        """What every batch contributed; the last one may be open."""
        self._instead: list[list[tuple[IntArray, IntArray]]] = [[] for _ in cases]
        """By person and batch: what is to be added for the first life, and for the second."""
        self._released: list[Array] = []
        self._made: list[tuple[Release, int, int]] = []
        """By release: itself, its first batch, and the one after its last."""
        self._begun: list[int] = []
        """Users before each batch."""
        self._answers: list[tuple[ValueQuery, int, Array]] = []
        self._sent: list[list[tuple[IntArray, IntArray, IntArray, Publication]]]
        self._sent = [[] for _ in cases]
        """By person: local messages, what they may have been about, and the publication."""
        self.open_batch()

    def open_batch(self) -> None:
        """Begin to add up the contributions of the next batch."""
        size = self.agent.statistic.layout.size
        self._begun.append(self.served)
        self._lived.append(np.zeros(size, dtype=np.int64))
        for batches in self._instead:
            batches.append((np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)))

    def take_part(self, problem: Problem, rng: np.random.Generator) -> None:
        """The next person: an audited one, or somebody who lives in the problem."""
        person = self.served // self.agent.task.participations
        if person < len(self._cases):
            self._audited(person)
        else:
            self._other(problem, rng)

    def _other(self, problem: Problem, rng: np.random.Generator) -> None:
        assert self.publication is not None
        publication, coin = self.publication, self.served
        life = problem.rollout(publication.for_user(coin).policy, rng)
        self._send(self._contributed(life, publication, coin), publication, coin)

    def _contributed(self, life: Trajectory, publication: Publication, person: int) -> IntArray:
        return contribution(self.agent, life, publication, person)

    def _audited(self, person: int) -> None:
        case, world, coin = self._cases[person], self._worlds[person], self.served
        assert self.publication is not None
        publication = aimed_at(self.publication, case.context)
        both = [contribution(self.agent, life, publication, coin) for life in case.lives]
        for instead, life in zip(self._instead[person][-1], both, strict=True):
            instead += life - both[world]
        message = self._send(both[world], publication, coin)
        if message is not None:
            self._sent[person].append((message, both[0], both[1], publication))

    def _send(self, own: IntArray, publication: Publication, coin: int) -> IntArray | None:
        """Absorb a report; in the local model, the message that crosses the network."""
        message = None
        if self._device is None:
            report = self.agent.privatizer.encode(own, publication, self.noise)
        else:
            message = self._device.randomize(own, publication, self.noise)
            report = self._device.collect(message, publication, coin, self.noise.source)
        self._lived[-1] += own
        self.absorb(report, publication.version)
        return message

    def _ask(self, query: Any) -> Release:
        if isinstance(query, ValueQuery):
            return self._answer(query.id, query.target, query.stage)
        release = super()._ask(query)
        if self.agent.plans_again(self.served):
            return release
        self._released.append(self.agent.privatizer.audit_view(self.secret, release))
        since = self.served - release.users
        first = self._begun.index(since) if since in self._begun else 0
        self._made.append((release, first, len(self._lived)))
        self.open_batch()
        return release

    def _answer(self, name: Any, target: str, stage: int) -> Release:
        """The answer to a question, with the values that tell the worlds apart best."""
        first, second = (np.sum(lived, axis=0) for lived in self._worlds_of(0))
        values = self.agent.privatizer.worst_query(first, second, stage)
        query = ValueQuery(name, target, stage, values)
        release = super()._ask(query)
        self._answers.append((query, len(self._lived), flat(release)))
        return release

    def ask_the_rest(self) -> None:
        """Ask a curator whatever it would still answer: the guarantee covers it."""
        while rest := self.agent.privatizer.open_queries(self.secret):
            for target, stage in rest:
                self._answer(("rest", len(self._answers)), target, stage)

    def log_ratios(self) -> list[float]:
        """How much everything released speaks for every person's second life.

        Where the privatizer does not say it, by the law that its releases declare.
        """
        privatizer, people = self.agent.privatizer, range(len(self._cases))
        if privatizer.has_likelihood:
            return [privatizer.log_likelihood_ratio(x).log_ratio for x in map(self._record, people)]
        return [sum(log_ratio(*row) for row in self._sums(person)) for person in people]

    def rests(self) -> list[Array]:
        """Releases minus the sums of what people did, with the first life of the first person."""
        return [rest for _, _, rest in self._sums(0)]

    def _sums(self, person: int) -> list[tuple[Release, Array, Array]]:
        """By release: itself, how far its sums move, and what it is beyond those of the first."""
        units, rows = self.agent.statistic.layout.units, []
        for shown, (release, first, end) in zip(self._released, self._made, strict=True):
            if len(shown) == len(units):
                one, two = (sum(lived[first:end]) * units for lived in self._worlds_of(person))
                rows.append((release, two - one, shown - one))
        return rows

    def _record(self, person: int) -> AuditRecord:
        first, second = self._worlds_of(person)
        return AuditRecord(first, second, self._released, self._answers, self._sent[person])

    def _worlds_of(self, person: int) -> tuple[list[IntArray], list[IntArray]]:
        """What every batch contributed with either life of one person, all others as they were."""
        batches = list(zip(self._lived, self._instead[person], strict=True))
        first, second = ([lived + own[world] for lived, own in batches] for world in (0, 1))
        return first, second

    def shown(self) -> list[Array]:
        """All releases and answers, flat."""
        return [*self._released, *(answer for _, _, answer in self._answers)]


def log_ratio(release: Release, apart: Array, rest: Array) -> float:
    """How much a release speaks for sums that lie ``apart`` from others, which leave a ``rest``.

    By the law of its noise as it is declared: Laplace, or else Gaussian of the declared variance.
    """
    law, start, total = release.law, 0, 0.0
    for name, block in release.blocks.items():
        stop = start + block.size
        moved, left = apart[start:stop].reshape(block.shape), rest[start:stop].reshape(block.shape)
        variance, scale, start = law.variance(name), law.scale(name), stop
        if law.name == "laplace" and np.allclose(variance, 2 * scale**2) and scale > 0.0:
            total += float((np.abs(left) - np.abs(left - moved)).sum()) / scale
        elif np.all(variance > 0.0):
            total += float((moved * (left - moved / 2) / variance).sum())
    return total
