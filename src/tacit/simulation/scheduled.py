"""Runs of linear agents: plans by the pipeline's own parts, users in between in compiled calls.

They follow ``driver.drive`` and equal it bit by bit: publications are made by the privatizer and
the planner themselves, and what is compiled adds up integers and draws from the same streams.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from inspect import isfunction
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent
from tacit.kernels.rollout import uniforms_per_episode
from tacit.planners.lsvi import LsviPlanner, LsviPlusPlanner
from tacit.policy import TabularPolicy
from tacit.privacy import Exact, Noise, Query, ReplayNoise, SimulatedNoise
from tacit.privacy.counters import Tree
from tacit.privacy.curator.curator import Curator, CuratorSecret
from tacit.privacy.joint.counted import CountedSecret, CountedSums
from tacit.privacy.local.additive import GRID
from tacit.problems.tabular import TabularMDP
from tacit.publication import Publication
from tacit.release import Release
from tacit.simulation import linear_loops as loops
from tacit.simulation.runs import new_score
from tacit.simulation.streams import planner_streams, stream
from tacit.statistics.linear import CuratedTransitions, LinearSums

_UNIFORMS = 1 << 14
"""Number of uniforms drawn at once."""


class SegmentRun(ABC):
    """What these runs share: publishing, and the stream of users."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        self.problem = problem
        self.agent = agent
        self.score = new_score(problem, checkpoints)
        self.streams = planner_streams(root, run)
        self.rng = stream(root, run, "noise")
        self._users = stream(root, run, "users")
        H = problem.horizon
        columns = uniforms_per_episode(H)
        self._uniforms = np.empty((max(1, _UNIFORMS // columns), columns))
        self.secret = agent.privatizer.init()
        self.publication: Publication | None = None
        self.life = loops.Life(
            np.zeros(H + 1, dtype=np.int64), np.zeros(H, dtype=np.int64), np.zeros(H)
        )
        self._left = 0

    def advance(self, episodes: int) -> None:
        """Do that many more episodes."""
        while episodes > 0:
            uniforms = self._uniforms[:episodes]
            self._users.random(out=uniforms)
            episodes -= len(uniforms)
            while len(uniforms):
                if self._left == 0:
                    self.publish(SimulatedNoise(self.rng))
                    self._left = self.agent.schedule(self.served)
                done = self.serve(uniforms[: self._left])
                self._left -= done
                uniforms = uniforms[done:]

    @property
    def served(self) -> int:
        """How many users were served."""
        return int(self.score.at[0])

    def publish(self, noise: Noise) -> None:
        """The next release and the plan made of it; ``noise`` is for the release itself."""
        agent, fresh = self.agent, SimulatedNoise(self.rng)

        def ask(query: Any) -> Release:
            return agent.privatizer.release(self.secret, query, fresh)

        version = 0 if self.publication is None else self.publication.version + 1
        release = agent.privatizer.release(self.secret, Query(version), noise)
        new = agent.planner.plan(agent.task, release, ask, self.publication, self.streams)
        if self.publication is None or new.policy is not self.publication.policy:
            self.score.now[0] = self.score.optimum - self.problem.value(new.policy)
        self.publication = new

    @property
    def policy(self) -> IntArray:
        """The table users act on."""
        assert self.publication is not None
        policy = self.publication.policy
        assert isinstance(policy, TabularPolicy)
        return policy.actions

    @abstractmethod
    def serve(self, uniforms: Array) -> int:
        """Serve users under the current publication; how many were served."""


class AdditiveRun(SegmentRun):
    """tacit-linear with additive sums."""

    def serve(self, uniforms: Array) -> int:
        """All of them, into the open batch."""
        statistic, secret = self.agent.statistic, self.secret
        assert isinstance(statistic, LinearSums) and isinstance(secret, CountedSecret)
        views = statistic.layout.views(secret.sums)
        loops.additive_segment(
            self.problem.truth,
            uniforms,
            self.policy,
            statistic.phi,
            statistic.pooled,
            statistic.weights,
            views["gram"],
            views["next"],
            views["reward"],
            self.life,
            self.score,
        )
        secret.users += len(uniforms)
        secret.open += len(uniforms)
        return len(uniforms)


class CuratedRun(SegmentRun):
    """A curator that is asked at scheduled times."""

    def serve(self, uniforms: Array) -> int:
        """All of them, into the tables and the open batch of Gram matrices."""
        statistic, secret = self.agent.statistic, self.secret
        assert isinstance(statistic, CuratedTransitions) and isinstance(secret, CuratorSecret)
        assert self.publication is not None
        loops.curated_segment(
            self.problem.truth,
            uniforms,
            self.policy,
            statistic.phi,
            statistic.weights(self.publication),
            statistic.largest_weight,
            self.tables(),
            self.life,
            self.score,
        )
        self.count(len(uniforms), open_users=secret.stream.open + len(uniforms))
        return len(uniforms)

    def tables(self) -> loops.Tables:
        """Views of the exact sums; Gram matrices are those of the open batch."""
        statistic, secret = self.agent.statistic, self.secret
        assert isinstance(secret, CuratorSecret)
        views = statistic.layout.views(secret.sums)
        gram = secret.stream.sums.reshape(views["gram"].shape)
        return loops.Tables(gram, views["table"], views["reward"])

    def count(self, users: int, open_users: int) -> None:
        """Note how many users are in the sums, and how many of them in the open batch."""
        secret = self.secret
        assert isinstance(secret, CuratorSecret)
        secret.users += users
        secret.stream.users += users
        secret.stream.open = open_users


class _SwitchingRun(CuratedRun):
    """Everybody gets a publication, but most say the same: a plan is made when a switch is due."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        planner, statistic = agent.planner, agent.statistic
        assert isinstance(planner, LsviPlanner | LsviPlusPlanner) and planner.switching is not None
        assert isinstance(statistic, CuratedTransitions)
        H, _, _, d = agent.task.horizon, *statistic.phi.shape
        self.statistic = statistic
        self._most = planner.switching.most
        self._rule = loops.Rule(
            ridge=float(planner.ridge),
            least=float(planner.least),
            log_rate=math.log(planner.switching.rate),
            base=np.zeros(H),
            work=np.empty((d, d)),
            logdet=np.empty(H),
            due=np.ones(1, dtype=np.int64),
        )

    def advance(self, episodes: int) -> None:
        """Do that many more episodes."""
        while episodes > 0:
            uniforms = self._uniforms[:episodes]
            self._users.random(out=uniforms)
            episodes -= len(uniforms)
            while len(uniforms):
                if self._rule.due[0]:
                    self.switch()
                uniforms = uniforms[self.serve(uniforms) :]

    def switch(self) -> None:
        """Publish anew for the next user."""
        if self.publication is not None:
            last = self.publication
            self.publication = Publication(self.served - 1, last.policy, last.context)
        self.publish(self.release_noise())
        assert self.publication is not None
        self._rule.base[:] = self.publication.context["logdet"]
        self._rule.due[0] = 0

    def release_noise(self) -> Noise:
        """What the next release is made with."""
        return SimulatedNoise(self.rng)

    @property
    def may_switch(self) -> bool:
        """Whether the cap leaves another switch."""
        assert self.publication is not None
        return int(self.publication.context["switches"]) < self._most


class AdaptiveRun(_SwitchingRun):
    """A curator whose Gram matrices are released after every user, and asked at switches only."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        privatizer = agent.privatizer
        assert isinstance(privatizer, Curator) and isinstance(self.secret, CuratorSecret)
        counter, size = self.secret.stream.counter, privatizer.layout.size
        self._stream = loops.TreeStream(
            blocks=counter.secret["blocks"],
            public=counter.public["blocks"],
            scales=np.full(size, privatizer.gram_std / GRID),
            noise=np.zeros(size, dtype=np.int64),
            item=np.zeros(size, dtype=np.int64),
            prefix=np.zeros(size),
            unit=GRID,
            clock=np.zeros(1, dtype=np.int64),
        )

    def release_noise(self) -> Noise:
        """The draw that made the switch due; the first release draws for itself, and is charged."""
        if self.served < 2:
            return super().release_noise()
        return ReplayNoise([self._stream.noise.copy()])

    def serve(self, uniforms: Array) -> int:
        """Users until a switch is due."""
        assert isinstance(self.secret, CuratorSecret) and self.publication is not None
        if self.served == 0:
            self._rule.due[0] = 1
            return super().serve(uniforms[:1])
        state = self.secret.stream.counter
        self._stream.clock[0] = state.steps
        done = loops.adaptive_segment(
            self.problem.truth,
            uniforms,
            self.agent.task.users,
            self.policy,
            self.statistic.phi,
            self.statistic.weights(self.publication),
            self.statistic.largest_weight,
            self.tables(),
            self._stream,
            self._rule,
            self.may_switch,
            self.rng,
            self.life,
            self.score,
        )
        state.steps = state.drawn = int(self._stream.clock[0])
        self.count(done, open_users=self.served - state.steps)
        return done


class ExactAdaptiveRun(_SwitchingRun):
    """lsvi-ucb++: exact sums."""

    def serve(self, uniforms: Array) -> int:
        """Users until a switch is due."""
        assert self.publication is not None
        views = self.statistic.layout.views(self.secret.sums)
        done = loops.exact_segment(
            self.problem.truth,
            uniforms,
            self.agent.task.users,
            self.policy,
            self.statistic.phi,
            self.statistic.weights(self.publication),
            self.statistic.largest_weight,
            loops.Tables(views["gram"], views["table"], views["reward"]),
            np.empty(views["gram"].shape),
            float(self.statistic.layout.blocks[0].unit),
            self._rule,
            self.may_switch,
            self.life,
            self.score,
        )
        self.secret.users += done
        return done


def linear_run(
    problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
) -> SegmentRun | None:
    """The segment run of an agent for linear MDPs, or None where it must go step by step."""
    planner, privatizer = agent.planner, agent.privatizer
    kind: type[SegmentRun] | None = None
    if type(agent.statistic) is LinearSums and type(privatizer) is CountedSums:
        kind = AdditiveRun
    elif type(agent.statistic) is CuratedTransitions:
        scheduled = not isfunction(agent.schedule)
        theory = isinstance(planner, LsviPlusPlanner) and planner.bonus.theory
        switching = getattr(planner, "switching", None) is not None and not theory
        if type(privatizer) is Curator and scheduled:
            kind = CuratedRun
        elif type(privatizer) is Curator and switching:
            kind = AdaptiveRun if type(privatizer.stream.strategy) is Tree else None
        elif type(privatizer) is Exact and switching:
            kind = ExactAdaptiveRun
    return kind(problem, agent, root, run, checkpoints) if kind else None
