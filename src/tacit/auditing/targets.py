"""What is audited: what a device sends, what a shuffler opens, what a whole learner publishes."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.auditing.neighbours import NeighbourPair, contribution
from tacit.auditing.recorder import RecordedLearner
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent, Learner
from tacit.planners.base import Streams
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.privacy import Noise, SecureNoise, SimulatedNoise
from tacit.privacy.noise import FiniteRandomizer, GridLaw
from tacit.problems.base import Problem
from tacit.trajectory import Trajectory
from tacit.wire import messages

AuditedSource = Literal["simulated", "secure"]
Outputs = npt.NDArray[Any]

COINS = 256
"""Report ids that are tried: which question is asked follows from them."""

DRAWN_AT_ONCE = 1 << 14
"""Noisy numbers drawn in one call of the secure sampler, which costs much to begin."""


class PredrawnNoise(SecureNoise):
    """Secure noise drawn for many uses in one call of the sampler; each draw is handed out once."""

    def __init__(self) -> None:
        self._ready: dict[bytes, list[IntArray]] = {}

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """The next of the draws of this law."""
        ready = self._ready.setdefault(law.kind.encode() + law.scales.tobytes(), [])
        if not ready:
            times = max(1, DRAWN_AT_ONCE // len(law.scales))
            draws = np.empty(times * len(law.scales), dtype=np.int64)
            super().fill(GridLaw(law.kind, np.tile(law.scales, times)), draws)
            ready.extend(draws.reshape(times, -1))
        out[:] = ready.pop()


class CommonNoise:
    """Noise whose draws a second run meets again: the same trial in the other world.

    By law, in their order: what a second run draws beyond the first one is fresh, so each of the
    two runs has noise of the right law.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise, self.source = noise, noise.source
        self._drawn: dict[bytes, list[IntArray]] = {}
        self._used: dict[bytes, int] = {}

    def repeat(self) -> None:
        """A second run of what was begun."""
        self._used.clear()

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """The next draw of this law."""
        key = law.kind.encode() + law.scales.tobytes()
        drawn, used = self._drawn.setdefault(key, []), self._used.get(key, 0)
        if used == len(drawn):
            self._noise.fill(law, out)
            drawn.append(out.copy())
        out[:] = drawn[used]
        self._used[key] = used + 1

    def randomize(self, randomizer: FiniteRandomizer, value: Any) -> IntArray:
        """Always fresh."""
        return self._noise.randomize(randomizer, value)

    def happens(self, chance: int, of: int) -> bool:
        """Always fresh."""
        return self._noise.happens(chance, of)


def noise_from(source: str, rng: np.random.Generator) -> Noise:
    """Noise of one of the two sources."""
    return SimulatedNoise(rng) if source == "simulated" else PredrawnNoise()


class DeviceTarget:
    """What one person's device sends, as bytes: everything in the local model that anybody sees.

    The way is the device's own: statistic, ``randomize``, inspection, packing. Reports have one of
    many coins, so that all questions of a kind are asked. A person who may take part several
    times does so, with the same life each time.

    Args:
        bound: the agent, fitted to a task; behind a shuffler, with the privatizer of the device.
        case: the pair of lives, and the publication they act on.
        source: "simulated" noise is drawn from the auditor's generator, "secure" noise from OS
            entropy through the same code that protects people.
    """

    def __init__(self, bound: BoundAgent, case: NeighbourPair, source: AuditedSource) -> None:
        device = bound.privatizer.device
        if device is None:
            raise InvalidInput(
                "only a local agent's devices randomize what they send; audit what is published"
            )
        about = f", asked about {case.name}" if len(case.name) else ""
        times, rule = bound.task.participations, bound.task.rule
        reports = "one report" if times == 1 else f"{times} reports of one person"
        if rule is not None and rule.teaches == "first":
            reports = "the one report of a person" + (" in a period" if rule.period else "")
        self.name = f"{reports} as sent by the device{about}"
        self.source: str = source
        self.family = "other" if bound.guarantee.mu is None else "gaussian"
        self.distance = case.distance
        self._bound, self._case = bound, case
        self._privatizer = device
        self._coins = np.random.default_rng(0).integers(2**63, size=COINS).tolist()
        self._lives = [
            [contribution(bound, life, case.publication, coin) for life in case.lives]
            for coin in self._coins
        ]

    def sample(self, worlds: IntArray, rng: np.random.Generator) -> Outputs:
        """Log-likelihood ratio of every trial's reports, then what is in the last of them."""
        return self._outputs(worlds, self._questions(worlds, rng), noise_from(self.source, rng))

    def sample_both(self, worlds: IntArray, rng: np.random.Generator) -> tuple[Outputs, Outputs]:
        """The same, and beside it the other life's reports on the same questions and draws."""
        which, noise = self._questions(worlds, rng), CommonNoise(noise_from(self.source, rng))
        outputs = self._outputs(worlds, which, noise)
        noise.repeat()
        return outputs, self._outputs(1 - worlds, which, noise)

    def _questions(self, worlds: IntArray, rng: np.random.Generator) -> IntArray:
        """Which coins the reports of every trial have."""
        return rng.integers(len(self._coins), size=(len(worlds), self._bound.task.participations))

    def _outputs(self, worlds: IntArray, which: IntArray, noise: Noise) -> Outputs:
        arrived = [
            [messages.unpack_message(self._send(int(world), coin, noise)) for coin in coins]
            for world, coins in zip(worlds, which.tolist(), strict=True)
        ]
        width = max(len(message) for reports in arrived for message in reports)
        table = np.zeros((*which.shape, width), dtype=np.int64)
        for i, reports in enumerate(arrived):
            for j, message in enumerate(reports):
                table[i, j, : len(message)] = message
        ratios = np.zeros(len(worlds))
        for coin in np.unique(which).tolist():
            rows, columns = np.nonzero(which == coin)
            asked = *self._lives[coin], self._case.publication
            np.add.at(ratios, rows, self._privatizer.log_ratio(table[rows, columns], *asked))
        return np.column_stack([ratios, table[:, -1]])

    def _send(self, world: int, coin: int, noise: Noise) -> str:
        """One report, from the person's life to the text that crosses the network."""
        own, publication = self._lives[coin][world], self._case.publication
        asked = publication, self._coins[coin]
        return messages.pack_message(messages.device_message(self._bound, own, *asked, noise))

    def score(self, outputs: Array) -> Array:
        """The log-likelihood ratio of the declared noise."""
        return outputs[:, 0]


class AuditedRuns(ABC):
    """Independent runs of something whole, with one person audited, or several in one run.

    Attributes:
        source: of the noise.
        people: their pairs of lives.
    """

    source: str
    people: Sequence[NeighbourPair]

    @property
    def separate(self) -> bool:
        """Whether trials are independent whatever the mechanism: one person per run."""
        return len(self.people) == 1

    def sample(self, worlds: IntArray, rng: np.random.Generator) -> Outputs:
        """Everything published by independent runs."""
        noise = noise_from(self.source, rng)
        return np.array([row for some in self._runs(worlds) for row in self._run(some, noise, rng)])

    def sample_both(self, worlds: IntArray, rng: np.random.Generator) -> tuple[Outputs, Outputs]:
        """The same, and beside it runs of the other lives on the same draws of noise."""
        noise = noise_from(self.source, rng)
        outputs: list[Array] = []
        others: list[Array] = []
        for some in self._runs(worlds):
            common = CommonNoise(noise)
            outputs += self._run(some, common, rng)
            common.repeat()
            others += self._run(1 - some, common, rng)
        return np.array(outputs), np.array(others)

    def _runs(self, worlds: IntArray) -> Iterator[IntArray]:
        """The worlds of the people of one run after the other."""
        for start in range(0, len(worlds), len(self.people)):
            yield worlds[start : start + len(self.people)]

    @abstractmethod
    def _run(self, worlds: IntArray, noise: Noise, rng: np.random.Generator) -> list[Array]:
        """What one run shows about so many of its people; a run always has all of them."""


class LearnerTarget(AuditedRuns):
    """A whole learner in which one person's lives are replaced: everything it publishes.

    The person takes part first, as often as the task allows. The others live in the problem and act
    on what was published, so their data react to it, as in service; whoever guesses knows them, as
    differential privacy assumes. A curator is asked the worst questions, as often as it answers.
    Outputs are the log-likelihood ratio of everything released under the noise that is claimed,
    then all releases, answers, and the last policy. Of a privatizer that does not say the ratio it
    is taken by the declared law of each release, and releases minus what the others did come too.
    The first publication, which no data can have moved, is the same in all trials.

    Where the first batch has room for more people whose pairs of lives move the sums in orthogonal
    directions, each of them is a trial of its own (with Gaussian noise these are independent), and
    the log-likelihood ratio is all that is kept.

    Args:
        problem: where the others live.
        bound: the agent, fitted to a task of few users.
        cases: pairs of lives, of one person each, and the first publication.
        source: of the noise.
    """

    def __init__(
        self,
        problem: Problem,
        bound: BoundAgent,
        cases: Sequence[NeighbourPair],
        source: AuditedSource,
    ) -> None:
        users, times = bound.task.users, bound.task.participations
        often = "" if times == 1 else f", one of whom takes part {times} times"
        which = "every release" if bound.counts_everybody else "all but the last release"
        self.name = f"{which} of a learner with {users} users{often}"
        self.source: str = source
        self.family = "other" if bound.guarantee.mu is None else "gaussian"
        self.distance = cases[0].distance
        self._problem, self._bound, self.people = problem, bound, cases
        self._users, self._to_the_end = users, bound.counts_everybody

    def _run(self, worlds: IntArray, noise: Noise, rng: np.random.Generator) -> list[Array]:
        bound, streams = self._bound, Streams(ties=rng, posterior=rng)
        run = self._watched(noise, np.resize(worlds, len(self.people)).tolist())
        while run.served < self._users:
            for _ in range(min(run.due(), self._users - run.served)):
                run.take_part(self._problem, rng)
            if run.served < self._users or self._to_the_end:
                run.publish(streams)
        run.ask_the_rest()
        ratios = run.log_ratios()
        if not self.separate:
            return [np.array([ratio]) for ratio in ratios[: len(worlds)]]
        assert run.publication is not None
        row = np.zeros(self._width)
        own = [] if bound.privatizer.has_likelihood else run.rests()
        shown = np.concatenate([ratios[:1], *own, *run.shown(), _numbers(run.publication.policy)])
        row[: len(shown)] = shown
        return [row]

    def _watched(self, noise: Noise, worlds: list[int]) -> RecordedLearner:
        """A learner before its first user."""
        return RecordedLearner(self._bound, noise, self.people, worlds)

    @cached_property
    def _width(self) -> int:
        """Numbers that one run can show at most; planners may choose how often to release."""
        bound, policy = self._bound, self.people[0].publication.policy
        releases = bound.task.users * sum(block.size for block in bound.privatizer.layout.blocks)
        releases *= 1 if bound.privatizer.has_likelihood else 2
        return 1 + releases + bound.privatizer.answer_size + len(_numbers(policy))

    def score(self, outputs: Array) -> Array | None:
        """The log-likelihood ratio, if the privatizer says it or its noise has a known density."""
        privatizer = self._bound.privatizer
        known = privatizer.has_likelihood or self.family == "gaussian"
        known = known or privatizer.law(1).name in ("gaussian", "laplace")
        return outputs[:, 0] if known else None


class PersonTarget(LearnerTarget):
    """What one person's reports alone lead to, where a mechanism has no device path to audit.

    In local privacy everything that leaves a person is protected, also if nobody else's noise is
    added to it: a collector may release after every one of them.

    Args:
        problem: not lived in by anybody.
        bound: the agent, fitted to a task.
        case: a pair of lives, and the first publication.
        source: of the noise.
    """

    def __init__(
        self, problem: Problem, bound: BoundAgent, case: NeighbourPair, source: AuditedSource
    ) -> None:
        super().__init__(problem, bound, [case], source)
        self._users, self._to_the_end = bound.task.participations, True
        reports = "one report" if self._users == 1 else f"{self._users} reports of one person"
        self.name = f"{reports} released alone"


class BatchTarget:
    """One batch behind the shuffler, one person's trajectory replaced; output is its sums.

    The others live through a third trajectory, so that only noise can hide the person.
    """

    source = "simulated"

    def __init__(self, bound: BoundAgent, case: NeighbourPair) -> None:
        if bound.guarantee.model != "shuffle" or bound.privatizer.batch is None:
            raise InvalidInput("only a shuffled agent has batches to audit")
        self._bound, self._users, self._lives = bound, bound.privatizer.batch, case.lives
        self.name = f"one opened batch of {self._users:,} users"
        self.distance = case.distance
        public = case.publication
        context = {name: x for name, x in public.context.items() if name not in case.context}
        self._publication = dataclasses.replace(public, context=context)  # nobody is aimed at
        H = bound.task.horizon
        idle = Trajectory(np.zeros(H + 1, dtype=np.int64), np.zeros(H, dtype=np.int64), np.zeros(H))
        self._others = [contribution(bound, idle, self._publication, step) for step in range(H)]

    def sample(self, worlds: IntArray, rng: np.random.Generator) -> Outputs:
        """The sums of independent batches."""
        noise = SimulatedNoise(rng)
        return np.array([self._batch(world, noise) for world in worlds.tolist()], dtype=np.float64)

    def _batch(self, world: int, noise: SimulatedNoise) -> IntArray:
        learner = Learner(self._bound, noise, publication=self._publication)
        for k in range(self._users):
            row = self._others[k % len(self._others)]
            if k < self._bound.task.participations:
                row = contribution(self._bound, self._lives[world], self._publication, k)
            report = self._bound.privatizer.encode(row, self._publication, noise)
            learner.absorb(report, 0)
        return learner.secret.sums

    def score(self, outputs: Array) -> Array | None:
        """Unknown: it is learned."""
        return None


def _numbers(policy: Policy) -> Array:
    """The table that a user acts on, flat."""
    table = policy.gains if isinstance(policy, LinearPolicy) else getattr(policy, "actions", [])
    return np.asarray(table, dtype=np.float64).ravel()
