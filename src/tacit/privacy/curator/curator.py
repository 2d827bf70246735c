"""A curator for linear MDPs: Gram matrices through a counter, regression sums as answered queries.

Release n is the running sum of weighted Gram matrices. A planner may then ask for value-regression
sums (:class:`~tacit.release.ValueQuery`). Everything is declared before the first user: how often
each question may be asked, the range its target is clipped to, the noise of its answer. Every
charge is committed in a privacy filter before its noise is drawn, so a planner that asks too often
is refused whatever it does (spec linear_jdp 3.4; proofs/linear.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.privacy import accounting
from tacit.privacy.base import Query, Report, Secret
from tacit.privacy.charges import GaussianCharge
from tacit.privacy.counters import Strategy
from tacit.privacy.curator.answers import Answers
from tacit.privacy.curator.price import Price
from tacit.privacy.filter import Budget, PrivacyFilter
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.counted import CountedSecret, CountedSums, CounterLaw
from tacit.privacy.local.additive import GRID
from tacit.privacy.noise import GridLaw, Noise, weakest
from tacit.publication import Publication
from tacit.release import Release, ValueQuery
from tacit.statistics.base import Layout, Norm, Relation
from tacit.statistics.curated import CuratedTransitions
from tacit.task import Task


class GramPart:
    """The Gram matrices of a curated statistic, as a statistic of their own."""

    def __init__(self, whole: CuratedTransitions) -> None:
        self._whole = whole
        self.layout = Layout(whole.layout.blocks[:1])

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """That of the whole with everything else left out."""
        others = {"table": 0.0, "reward": 0.0}
        return self._whole.sensitivity(norm, relation, {**others, **(scale or {})})

    def largest_cell(self) -> float:
        """That of the whole."""
        return self._whole.largest_cell()


class CuratorSecret(Secret):
    """Exact tables, the counter's state, the filter, and the answers of the last round."""

    __slots__ = ("stream", "filter", "answered", "load", "once", "views", "paid")

    def __init__(self, layout: Layout, stream: CountedSecret, budget: Budget, stages: int) -> None:
        super().__init__(np.zeros(layout.size, dtype=np.int64))
        self.views = layout.views(self.sums)
        self.stream = stream
        self.filter = PrivacyFilter(budget)
        self.answered: dict[Any, Release] = {}
        self.load = np.zeros(stages)
        self.once: Any = None
        self.paid = False


class Curator:
    """Releases noisy Gram matrices and answers declared regression queries.

    Args:
        statistic: what each user contributes.
        task: the public task.
        strategy: the counter for the Gram matrices; its length is the number of their releases.
        gram_std: noise of one node, per packed entry (off-diagonal entries of the matrix have
            gram_std / sqrt 2).
        answers: what may be asked, and its noise.
        price: how Gram matrices and answers add up.
        batch: largest number of users between two releases.
        requested_epsilon: what was asked for; the guarantee is computed from the noise.
        requested_delta: likewise, and the delta at which epsilon is stated.
    """

    def __init__(
        self,
        statistic: CuratedTransitions,
        task: Task,
        strategy: Strategy,
        gram_std: float,
        answers: Answers,
        price: Price,
        *,
        batch: int = 1,
        requested_epsilon: float,
        requested_delta: float,
    ) -> None:
        self.statistic = statistic
        self.answers = answers
        self.gram_std = gram_std
        self.stream = CountedSums(
            GramPart(statistic),  # type: ignore[arg-type]
            task,
            strategy,
            gram_std,
            batch=batch,
            requested_epsilon=requested_epsilon,
            requested_delta=requested_delta,
        )
        self.layout = self.stream.layout
        d: int = statistic.phi.shape[2]
        self._laws = {
            target: [
                GridLaw("gaussian", np.full(d, std / GRID)) if std > 0 else None for std in stds
            ]
            for target, stds in answers.stds.items()
        }
        self._price = price
        self._gram_load = (strategy.column_norm() / gram_std) ** 2
        self._times = task.participations * (1 + accounting.DISCRETE)
        total = answers.rounds * answers.load()
        exact = math.sqrt(sum(self._stage_cost(float(load)) for load in total))
        self.mu = exact + self._times * self.stream.rounding / gram_std
        self._rounding_cost = self.mu**2 - exact**2
        self.guarantee = self._account(task, float(requested_epsilon), float(requested_delta))
        needed = accounting.gaussian_epsilon(self.mu, float(requested_delta))
        self._budget = Budget(needed * (1 + 1e-6), float(requested_delta))

    def _stage_cost(self, load: float) -> float:
        """mu^2 of one stage: its Gram matrices, and answers of that load."""
        return self._times**2 * self._price.stage(self._gram_load, load)

    def _account(self, task: Task, epsilon: float, delta: float) -> Guarantee:
        return Guarantee(
            model="joint",
            epsilon=accounting.gaussian_epsilon(self.mu, delta),
            delta=delta,
            mechanism=f"gaussian noise on Gram matrices through a {self.stream.strategy.name} "
            "counter and on answered regression queries, fresh for every release",
            accountant=f"exact Gaussian trade-off at mu = {self.mu:.6g}, all declared answers",
            requested_epsilon=epsilon,
            requested_delta=delta,
            delta_at_requested_epsilon=accounting.gaussian_delta(self.mu, epsilon),
            participations=task.participations,
            noise=self._noise_scales(),
            assumptions=(
                "the curator is trusted with trajectories and keeps its secret state secret",
                "each participation falls into one batch",
            ),
            revealed=task.revealed,
        )

    def _noise_scales(self) -> dict[str, Any]:
        largest = {f"{t} answer std": float(s.max()) for t, s in self.answers.stds.items()}
        return {
            "gram node std": float(self.gram_std),
            "column norm": self.stream.strategy.column_norm(),
            **largest,
            "answers per question": self.answers.rounds,
        }

    def law(self, users: int) -> CounterLaw:
        """The law of the noisiest Gram release."""
        return self.stream.law(users)

    def answer_cells(self, users: int) -> int:
        """How many numbers all answers to that many users' plans can have at most."""
        questions = sum(int((ranges > 0).sum()) for ranges in self.answers.ranges.values())
        d: int = self.statistic.phi.shape[2]
        return min(self.answers.rounds, users - 1) * questions * d

    def init(self) -> CuratorSecret:
        """Empty tables, fresh counter, full budget."""
        layout, stages = self.statistic.layout, self.statistic.horizon
        return CuratorSecret(layout, self.stream.init(), self._budget, stages)

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """To the curator, over its own channel: the contribution itself."""
        return Report(contribution.copy())

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """Into the tables, and into the open batch of the Gram stream."""
        assert isinstance(secret, CuratorSecret)
        values = report.take()
        self.stream.absorb(secret.stream, Report(values[: self.layout.size]), version)
        secret.sums += values
        secret.users += 1
        return secret

    def release(self, secret: Secret, query: Query | ValueQuery, noise: Noise) -> Release:
        """The next Gram matrices, or the answer to a question."""
        assert isinstance(secret, CuratorSecret)
        if isinstance(query, ValueQuery):
            return self._answer(secret, query, noise)
        if query.id == secret.stream.counter.steps + 1:
            self._pay_stream(secret)
            secret.answered.clear()
        return self.stream.release(secret.stream, query, noise)

    def _pay_stream(self, secret: CuratorSecret) -> None:
        """The Gram matrices of all releases, charged before the first noise is drawn."""
        if not secret.paid:
            self._spend(secret, len(secret.load) * self._stage_cost(0.0) + self._rounding_cost)
            secret.paid = True

    def _answer(self, secret: CuratorSecret, query: ValueQuery, noise: Noise) -> Release:
        if query.id in secret.answered:
            return secret.answered[query.id]
        target, h = query.target, self._stage(query)
        self._pay_stream(secret)
        before = float(secret.load[h])
        after = before + float(self.answers.ranges[target][h] / self.answers.stds[target][h]) ** 2
        self._spend(secret, max(self._stage_cost(after) - self._stage_cost(before), 0.0))
        secret.load[h] = after
        exact = self._regression(secret, query)
        std = float(self.answers.stds[target][h])
        drawn = np.empty(len(exact), dtype=np.int64)
        law = self._laws[target][h]
        assert law is not None  # a stage that may be asked has noise
        noise.fill(law, drawn)
        secret.source = weakest(secret.source, noise.source)
        blocks = {"answer": (np.rint(exact / GRID) + drawn) * GRID}
        release = Release(secret.users, blocks, CounterLaw(std), secret.source)
        secret.answered[query.id] = release
        return release

    def _stage(self, query: ValueQuery) -> int:
        """The stage of a question that was declared and may still be asked."""
        ranges = self.answers.ranges.get(query.target)
        if ranges is None or not 0 <= query.stage < len(ranges) or ranges[query.stage] == 0.0:
            raise InvalidInput(
                f"{query.target!r} at stage {query.stage} was not declared, so it is not answered"
            )
        return query.stage

    def _spend(self, secret: CuratorSecret, mu_squared: float) -> None:
        charge = GaussianCharge(mu_squared)
        secret.filter.commit(secret.filter.reserve(charge))

    def _regression(self, secret: CuratorSecret, query: ValueQuery) -> Array:
        """Sum w phi (r + V(s') - R/2), from the tables."""
        views, h, target = secret.views, query.stage, query.target
        values = self.answers.clip(target, h, np.asarray(query.values, dtype=np.float64))
        per_pair = views["table"][h] @ (values - self.answers.centre(target, h))
        if self.answers.rewards[target]:
            per_pair = per_pair + views["reward"][h]
        phi = self.statistic.phi
        answer: Array = per_pair.ravel() @ phi.reshape(-1, phi.shape[2]) * GRID
        return answer


class _Once:
    """A noise source that draws once for each number of cells, and repeats itself."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._kept: dict[int, IntArray] = {}
        self.source = noise.source

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """The first draw of this size, again and again, in units of the scale."""
        if len(out) not in self._kept:
            self._noise.fill(law, out)
            self._kept[len(out)] = out.copy()
        out[:] = self._kept[len(out)]


class ReusedNoise(Curator):
    """The mechanism as printed: one draw for all releases, so no finite epsilon (erratum E1).

    Two releases whose targets agree differ by exact user data. Kept so that what is printed can be
    run; it says what it is.
    """

    def _account(self, task: Task, epsilon: float, delta: float) -> Guarantee:
        return Guarantee(
            model="none",
            epsilon=math.inf,
            delta=delta,
            delta_at_requested_epsilon=1.0,
            mechanism="gaussian noise drawn once and added to every release",
            accountant="none, as the difference of two releases is exact user data",
            requested_epsilon=epsilon,
            requested_delta=delta,
            participations=task.participations,
            noise=self._noise_scales(),
            assumptions=("nobody sees more than one release",),
            revealed=task.revealed,
        )

    def release(self, secret: Secret, query: Query | ValueQuery, noise: Noise) -> Release:
        """As the curator, with the first draws repeated."""
        assert isinstance(secret, CuratorSecret)
        if secret.once is None:
            secret.once = _Once(noise)
        return super().release(secret, query, secret.once)
