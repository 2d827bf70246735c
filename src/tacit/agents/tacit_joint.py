"""tacit-joint: the joint guarantee, spent well."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from tacit.agents.base import PrivateAgent, Ranges, TableAgent
from tacit.errors import InvalidInput
from tacit.grid import GRID
from tacit.learner import BoundAgent
from tacit.planners import Planner
from tacit.planners.first_returns import FirstReturnPlanner
from tacit.planners.first_visits import FirstVisitPlanner
from tacit.planners.tacit_joint import JointCountsPlanner, VFreePlanner
from tacit.privacy import accounting
from tacit.privacy.counters import strategy
from tacit.privacy.counters.fading import Fading
from tacit.privacy.joint.counted import CountedSums, counted_noise
from tacit.schedules import Geometric, PlansPerRelease
from tacit.statistics import Statistic
from tacit.statistics.base import Relation
from tacit.statistics.counts import JointCounts
from tacit.statistics.first_visits import FirstReturns, FirstVisits
from tacit.statistics.multi_target import MultiTargets
from tacit.statistics.norm_budget import NormBudget
from tacit.task.participation import Teaches
from tacit.task.task import Task

FIRST_RELEASE_USERS = 30.0
"""First release after this many users over mu: before that noise drowns everything.

Chosen on remap-walk with the prototype of docs/papers/mixture_jdp.md#b5; no script of it is kept.
"""

BATCH_GROWTH = {"mixture": 1.25, "table": 1.15, "vast": 1.3, "returns": 1.4, "stages": 1.1}
"""Growth of the number of users between releases.

"mixture" was chosen on remap-walk with the prototype (docs/papers/mixture_jdp.md#b5: 23 to 38
releases had least regret). Not measured: the others, each against its neighbours.
"""

PAIRS_PER_EPISODE, KNOWN_PAIRS_PER_EPISODE = 10, 5
"""Pairs that one user teaches, and how many of them may be known ones.

The first was chosen over 6, 20 and no cap on a chain and two lakes at epsilon 1
(docs/results/history.md, "What was tried": a prototype without a script). Not measured: the
second.
"""

PAIRS_PER_LIFETIME = 14
"""Pairs that one person teaches in all their participations, where these are bounded together.

Chosen over 10 and 20 on six lakes and four other tables (docs/results/returning.md); no script is
kept.
"""

UNIFORM_SHARE = 0.5
"""Share of the users who act uniformly before the first release of returns.

Tried beside .3 and .7 on a made-up clinic of 600 states at epsilon 1 and 4
(docs/results/history.md, "What was tried", row "returns"); no script is kept.
"""

USERS_PER_CELL, STEPS_PER_RETURN = 0.1, 8.0
"""Tables are learned by returns with fewer users per cell and standard deviation than the first, if
the declared range of returns is the horizon over the second, or smaller.

That returns beat next states there was measured on made-up clinics of 100 and 600 states
(docs/results/history.md, "What was tried"). Not measured: where exactly the line runs.
"""

PLANS_PER_RELEASE = 8
"""Publications between two releases of first visits. Not measured: other numbers."""

FIRST_VISITS_USERS, FIRST_VISITS_PAIRS = 4.0, 40.0
"""First release of first visits after this many users per standard deviation of its noise, or after
one per standard deviation and so many pairs. Not measured: other numbers."""

EXPLORABLE_USERS, OPTIMISTIC_USERS = 8.0, 2.5
"""Users per pair and standard deviation below which a table is too large to be explored in full;
and below which it is not explored by optimism at all.

What is done below them was chosen on a courier with 3528 pairs (docs/results/history.md, "vast
tables"). Not measured: the two numbers themselves.
"""


@dataclass(frozen=True)
class TacitJoint(TableAgent, PrivateAgent):
    """V-free sums through a continual counter, on a public geometric schedule.

    The sums are in docs/papers/mixture_jdp.md#b1, the schedule in docs/papers/mixture_jdp.md#b5.
    Linear mixtures are learned by regression on all next states at once, with structural clipping
    and widths that know the noise. Tables whose stages are declared alike are learned by first
    visits of pairs through a counter that fades, or, with more cells than users and a small range
    of ``returns`` declared, by returns (proofs/first_visits.md); other tables by counts and
    posterior sampling that knows the noise. Regret has no proof; privacy does not depend on it.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        counter: how running sums of mixtures and of tables per stage are released: tree, honaker,
            toeplitz, normalised or blt.
        bonus_scale: c, multiplies the widths of mixtures; 1 is the theorem.
        width: share of the released noise that is drawn again for tables per stage; 1 is the
            posterior.
        reward_share: share of the budget for the rewards of tables per stage.
        beta: failure probability of the widths.
        ridge: lambda.
        first: users before the first release; None for 30 / mu (times sqrt(H) with one table per
            stage; 4 standard deviations of the noise for first visits, or as many as there are
            pairs over 10), at most K / 10; half of all users for returns.
        growth: of the number of users from release to release; None for 1.25 (mixtures), 1.15
            (first visits; 1.3 if there are very many pairs), 1.4 (returns) or 1.1.
        least: users of a publication at least; noise is calibrated for the schedule it gives.
    """

    name: ClassVar[str] = "tacit-joint"
    families: ClassVar[tuple[str, ...]] = ("tabular", "mixture")
    ranges: ClassVar[Ranges] = {
        "width": {"low": 0.0, "high": 1e3},
        "reward_share": {"low": 0.001, "high": 0.999},
        "first": {"low": 1},
        "growth": {"low": 1.001, "high": 1e6},
        "least": {"low": 1},
    }
    batch_parameter: ClassVar[str | None] = "least"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    counter: Literal["tree", "honaker", "toeplitz", "normalised", "blt"] = "toeplitz"
    bonus_scale: float = 0.1
    width: float = 0.3
    reward_share: float = 0.2
    beta: float = 0.05
    ridge: float = 1.0
    first: int | None = None
    growth: float | None = None
    least: int = 1

    def teaches(self, task: Task) -> Teaches:
        """What is bounded over a life; counts per stage are not, so they are paid as a group."""
        return "lifetime" if task.homogeneous or "features" in task.known else "every"

    def schedule(self, task: Task) -> Geometric:
        """When to release: a function of K, epsilon and delta only."""
        first = self.first
        if first is None:
            mu = accounting.gaussian_mu(self.epsilon, self.delta)
            stages = 1.0 if task.homogeneous else math.sqrt(task.horizon)
            first = int(max(1.0, min(FIRST_RELEASE_USERS * stages / mu, task.users / 10)))
        growth = self.growth or BATCH_GROWTH["mixture" if "features" in task.known else "stages"]
        return Geometric(max(first, self.least), growth, self.least)

    def fitted(self, task: Task) -> BoundAgent:
        """Regression if the task reveals features, else first visits, or counts per stage."""
        if task.homogeneous and "features" not in task.known:
            return self._table(task)
        schedule = self.schedule(task)
        releases = max(1, len(schedule.times(task.users)))
        statistic: Statistic
        planner: Planner
        if "features" in task.known:
            statistic = sums = MultiTargets(task)
            if task.lifetime:
                statistic = NormBudget(sums, task)
            planner = VFreePlanner(
                geometry=sums.geometry,
                scales=sums.scales,
                columns=sums.columns,
                bonus_scale=self.bonus_scale,
                beta=self.beta,
                ridge=self.ridge,
                releases=releases,
            )
        else:
            statistic = counts = JointCounts(task, self.reward_share)
            planner = JointCountsPlanner(
                transition_scale=counts.scales["transitions"],
                reward_scale=counts.scales["reward"],
                width=self.width,
            )
        if statistic.layout.size == 0:
            raise InvalidInput("with horizon 1 and known rewards there is nothing to learn")
        counter, batch = strategy(self.counter, releases), schedule.largest_batch(task.users)
        privatizer = CountedSums(statistic, task, counter, batch=batch, requested=self.requested())
        return BoundAgent(task, statistic, privatizer, planner, schedule)

    def _table(self, task: Task) -> BoundAgent:
        """First visits, or returns, through a counter whose memory fades as the batches grow.

        Which of them, and how, follows from public sizes only.
        """
        mu = accounting.gaussian_mu(self.epsilon, self.delta) / task.participations
        X = len(task.pairs.action)
        cap = min(PAIRS_PER_LIFETIME if task.lifetime else PAIRS_PER_EPISODE, X)
        growth = self.growth or BATCH_GROWTH["table"]
        often = task.rule.often if task.rule is not None else 1
        visits = FirstVisits(task, cap, KNOWN_PAIRS_PER_EPISODE, often)
        users = task.users / (X * _noise(visits, growth, mu))
        small = task.returns[1] <= task.horizon / STEPS_PER_RETURN
        if often == 1 and small and users < USERS_PER_CELL * task.sizes["states"]:
            # a state counts once
            return self._returns(task)
        if users < EXPLORABLE_USERS:
            visits, growth = FirstVisits(task, X, X, often), self.growth or BATCH_GROWTH["vast"]
        std = _noise(visits, growth, mu)
        wait = max(1, int(max(FIRST_VISITS_USERS, X / FIRST_VISITS_PAIRS) * std))
        first = self.first or max(1, min(wait, task.users // 10))
        batch = max(self.least, int(FIRST_VISITS_USERS * std) // 4)
        between = Geometric(max(first, self.least), growth, batch)
        planner = FirstVisitPlanner(
            plans=PLANS_PER_RELEASE,
            refresh=KNOWN_PAIRS_PER_EPISODE,
            capped=visits.cap < (X if task.lifetime else min(X, task.horizon)),
            vast=users < EXPLORABLE_USERS,
            bold=users >= OPTIMISTIC_USERS,
        )
        return self._faded(task, visits, between, planner, PLANS_PER_RELEASE)

    def _returns(self, task: Task) -> BoundAgent:
        """Returns from first visits of states."""
        first = max(1, self.first or int(UNIFORM_SHARE * task.users))
        growth = self.growth or BATCH_GROWTH["returns"]
        between = Geometric(max(first, self.least), growth, self.least)
        statistic = FirstReturns(task, PAIRS_PER_EPISODE)
        return self._faded(task, statistic, between, FirstReturnPlanner(UNIFORM_SHARE), 1)

    def _faded(
        self,
        task: Task,
        statistic: FirstVisits | FirstReturns,
        between: Geometric,
        planner: Planner,
        plans: int,
    ) -> BoundAgent:
        """These parts around a counter; the last release is after the last user."""
        times = (0, *between.times(task.users), task.users)
        alpha, batch = 1.0 / between.growth, between.largest_batch(task.users)
        fading = Fading(len(times) - 1, alpha, 1.0, statistic.groups, statistic.totals)
        noise_std = counted_noise(statistic, task, fading, batch, self.epsilon, self.delta)
        counter = replace(fading, noise=noise_std / GRID)
        privatizer = CountedSums(
            statistic, task, counter, noise_std, batch=batch, requested=self.requested()
        )
        return BoundAgent(
            task, statistic, privatizer, planner, PlansPerRelease(times, plans, self.least)
        )


def _noise(statistic: FirstVisits, growth: float, mu: float) -> float:
    """Standard deviation of a cell after many releases, whose number is not known yet."""
    return statistic.sensitivity("l2", Relation.REPLACE_ONE) / math.sqrt(1.0 - growth**-2) / mu
