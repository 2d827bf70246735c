"""One seeded run, advanced in chunks: user by user, in segments, or by a fused loop.

``StepwiseRun`` is ``learner.drive`` and defines every result. ``SegmentRun`` is the same loop on
``learner.Learner``, with all users between two publications simulated together. A ``FusedRun``
plans, serves and absorbs in compiled code, where that pays. ``simulation.dispatch`` chooses. After
the last user all of them plan once more, by ``Learner.conclude``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, Arrays, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.raw.rollout import uniforms_per_episode
from tacit.learner import BoundAgent, Learner
from tacit.privacy.noise import Noise, SimulatedNoise
from tacit.problems.base import Problem
from tacit.problems.tabular import TabularMDP
from tacit.publication import Publication
from tacit.simulation.attendance import AttendanceTrace
from tacit.simulation.score import new_score
from tacit.simulation.users import NUMBERS
from tacit.streams import planner_streams, stream


class Run(ABC):
    """A run in progress.

    Attributes:
        problem: where its users live.
        agent: who learns.
        score: regret so far; ``score.at[0]`` episodes are done.
        final: what was planned after the last user, and from how many users; None before that.
        learner: where learning stands, in runs that have one.
        people: who takes part when, where people come back.
        period: the number of the one that the open batch is in.
    """

    learner: Learner | None = None
    final: tuple[Publication, int] | None = None

    def __init__(
        self,
        problem: Problem,
        agent: BoundAgent,
        root: int,
        run: int,
        checkpoints: IntArray,
        people: AttendanceTrace | None = None,
    ) -> None:
        self.problem, self.agent, self.people = problem, agent, people
        self.period = np.zeros(1, dtype=np.int64)
        self.score = new_score(problem, checkpoints)
        self.streams = planner_streams(root, run)
        self._noise, self._users = stream(root, run, "noise"), stream(root, run, "users")
        self._prepare()

    def _prepare(self) -> None:  # noqa: B027, nothing is the default
        """What a run of this kind holds besides; the attributes above are there already."""

    def _new_learner(self, noise: Noise) -> Learner:
        """A learner before its first user, who remembers as many people as there are."""
        people = None if self.people is None else self.people.people
        return Learner(self.agent, noise, people=people)

    def publish(self) -> None:
        """The next entry of the billboard, in a new period if the clock says so."""
        learner = self.learner
        assert learner is not None
        last = learner.publication
        new = learner.publish(self.streams)
        self._renew_if_due(learner)
        self._score_policy(last, new)

    def _score_policy(self, last: Publication | None, new: Publication) -> None:
        """Exact regret of the newest policy, where it is not that of the publication before."""
        if last is None or new.policy is not last.policy:
            self.score.now[0] = self.score.optimum - self.problem.value(new.policy)

    @abstractmethod
    def advance(self, episodes: int) -> None:
        """Do that many more episodes."""

    def _stand(self) -> Learner:
        """Where learning stands, with everybody absorbed who can be."""
        assert self.learner is not None
        return self.learner

    def conclude(self) -> None:
        """Plan once more, when all users have been served."""
        learner = self._stand()
        self.final = learner.conclude(self.streams), learner.learned

    def kept(self) -> Arrays:
        """The arrays themselves that the run carries from episode to episode, by name.

        Besides its score, its streams and its learner: ``simulation.resume`` keeps these.
        """
        memory = None if self.learner is None else self.learner.memory
        if memory is None:
            return {}
        return {"taught": memory.taught, "spent": memory.spent, "period": self.period}

    def _renew_if_due(self, learner: Learner) -> None:
        """Begin a new period with the batch that begins now, if the clock says so."""
        trace = self.people
        if trace is None or learner.served == learner.agent.task.users:
            return
        period = trace.period_of(learner.served, learner.agent.task.users)
        if learner.served == 0:  # nobody has a budget to renew
            self.period[0] = period
        if learner.agent.plans_again(learner.served):
            return
        if period > self.period[0]:
            self.period[0] = period
            learner.renew()

    def recall(self, arrays: Arrays) -> None:
        """Fill them again in place: compiled loops hold views of them."""
        for name, array in self.kept().items():
            array[...] = arrays[name]

    @property
    def generators(self) -> dict[str, np.random.Generator]:
        """All that the run draws from."""
        ties, posterior = self.streams.ties, self.streams.posterior
        return {"users": self._users, "noise": self._noise, "ties": ties, "posterior": posterior}


def require_counts(agent: BoundAgent) -> None:
    """Refuse what closes batches by the number of users where nobody may know who stays away."""
    rule = agent.task.rule
    if rule is not None and rule.attendance == "private":
        raise InvalidInput(
            "here batches close when so many people have taken part, and that would show who stays "
            "away: only a compiled run of a simulation, closes them by the clock. Let "
            "attendance be public"
        )


class LoopStreams(NamedTuple):
    """What a fused loop draws from besides the users' uniforms."""

    ties: np.random.Generator
    posterior: np.random.Generator
    noise: np.random.Generator


class FusedRun(Run):
    """What fused loops share: the streams, and the users' uniforms, one row per episode."""

    problem: TabularMDP

    @property
    def _draws(self) -> LoopStreams:
        return LoopStreams(self.streams.ties, self.streams.posterior, self._noise)

    @cached_property
    def _uniforms(self) -> Array:
        """Room for those of one slice."""
        columns = uniforms_per_episode(self.problem.horizon)
        return np.empty((max(1, NUMBERS // columns), columns))

    @staticmethod
    def knows(agent: BoundAgent) -> bool:
        """Whether the loop knows the inside of parts whose types it serves."""
        return True

    def advance(self, episodes: int) -> None:
        """Do that many more episodes, in slices that bound memory."""
        while episodes > 0:
            uniforms = self._uniforms[:episodes]
            self._users.random(out=uniforms)
            self._episodes(uniforms)
            episodes -= len(uniforms)

    @abstractmethod
    def _episodes(self, uniforms: Array) -> None:
        """One episode per row of uniforms: the compiled loop of this run."""

    def _learner(self, sums: IntArray, users: int, publication: Publication) -> Learner:
        """The learner of a loop with these sums of that many users."""
        noise, secret = SimulatedNoise(self._noise), self.agent.privatizer.init()
        secret.sums[:], secret.users = sums, users
        secret.source = noise.source if self.agent.guarantee.model != "none" else "none"
        return Learner(self.agent, noise, secret=secret, publication=publication, served=users)
