"""A curator for linear MDPs: Gram matrices through a counter, regression sums as answered queries.

Release n is the running sum of weighted Gram matrices. A planner may then ask for value-regression
sums (:class:`~tacit.release.ValueQuery`). Everything is declared before the first user: how often
each question may be asked, the range its target is clipped to, the noise of its answer. Answers are
paid for a round at a time: the first question of a round charges the filter for every declared
question once, before the noise of the round is drawn, and a question that comes back opens the next
round. So a planner that asks too often is refused whatever it does
(docs/papers/linear_jdp.md#tight; proofs/linear.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID, require_coarse
from tacit.kernels.raw.linear_sums import noisy_answer
from tacit.privacy import accounting, base
from tacit.privacy.charges import GaussianCharge
from tacit.privacy.counters.base import Strategy
from tacit.privacy.curator.declared_answers import Answers, Price, grid_rounding
from tacit.privacy.events import GaussianEvent
from tacit.privacy.filter import Budget, Cost, PrivacyFilter
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.batched import GaussianLaw
from tacit.privacy.joint.counted import CountedSecret, CountedSums
from tacit.privacy.noise import GridLaw, Noise, weakest
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release, ValueQuery
from tacit.statistics.base import Layout, Norm, Relation
from tacit.statistics.linear import CuratedTransitions
from tacit.task.task import Task

WORST_STATES = 6
"""Next states at one stage whose values are tried at both ends; two lives have two of them."""

LEAST_EPSILON = 1e-9
"""Of a budget: a filter takes none of 0."""


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


class CuratorSecret(base.Secret):
    """Exact tables, the counter's state, the filter, and the answers since the last release."""

    __slots__ = ("stream", "filter", "answered", "rounds", "drawn", "once", "views", "cost")
    stored = base.Secret.stored

    def __init__(self, layout: Layout, stream: CountedSecret, budget: Budget) -> None:
        super().__init__(np.zeros(layout.size, dtype=np.int64))
        self.views = layout.views(self.sums)
        self.stream = stream
        self.filter = PrivacyFilter(budget)
        self.answered: dict[Any, Release] = {}
        self.rounds = 0
        self.drawn: dict[tuple[str, int], IntArray] = {}
        """Noise of the round that was paid for last, by question; taken out when it is used."""
        self.once: Any = None
        self.cost = 0.0


class Curator(base.Privatizer[CuratorSecret]):
    """Releases noisy Gram matrices and answers declared regression queries.

    Args:
        statistic: what each user contributes.
        task: the public task.
        strategy: the counter for the Gram matrices; its length is the number of their releases.
        gram_std: noise of one node, per packed entry (off-diagonal entries of the matrix have
            gram_std / sqrt 2).
        answers: what may be asked, and its noise.
        price: how Gram matrices and answers add up; what rounding costs is put on it here.
        batch: largest number of users between two releases.
        requested: epsilon and delta that were asked for, the delta being that at which epsilon is
            stated; the guarantee is computed from the noise.
    """

    absorbs_sums = True
    has_likelihood = True

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
        requested: tuple[float, float],
    ) -> None:
        self.statistic = statistic
        self.answers = answers
        self.gram_std = gram_std
        require_coarse("Gram noise", gram_std)
        self.stream = CountedSums(
            GramPart(statistic),  # type: ignore[arg-type]
            task,
            strategy,
            gram_std,
            batch=batch,
            requested=requested,
        )
        self.layout = self.stream.layout
        d: int = statistic.phi.shape[2]
        self._questions = {name: answers.bounds(*name) for name in answers.questions}
        stds = np.array([answers.stds[target][h] for target, h in self._questions])
        self._laws = dict(zip(self._questions, map(GaussianLaw, stds.tolist()), strict=True))
        self._law = GridLaw("gaussian", np.repeat(stds / GRID, d))
        self.answer_size = answers.rounds * len(self._law.scales)
        self._price = price.rounded(grid_rounding(statistic, task, answers.least_range))
        self._gram_load = (strategy.column_norm() / gram_std) ** 2
        self._times = task.participations * (1 + accounting.DISCRETE)
        self._round_load = answers.load()
        self._rounding_cost = 0.0
        exact = math.sqrt(self._cost(answers.rounds))
        self.mu = exact + self._times * self.stream.rounding / gram_std
        self._rounding_cost = self.mu**2 - exact**2
        self._require_room(task)
        self.event = GaussianEvent(self.mu)
        needed = self.event.epsilon(requested[1])
        # So much noise that epsilon is 0 at this delta still has to be paid for.
        self._budget = Budget(max(needed, LEAST_EPSILON) * (1 + 1e-6), float(requested[1]))
        self.guarantee = self._account(task, requested)

    def _cost(self, rounds: int) -> float:
        """mu^2 of all Gram matrices and of that many rounds of answers."""
        joint = self._price.total(self._gram_load, rounds * self._round_load)
        return self._times**2 * joint + self._rounding_cost

    def _require_room(self, task: Task) -> None:
        """Refuse a task whose answers could leave the 64-bit integers."""
        ranges, stds = (
            [a.max() for a in by.values()] for by in (self.answers.ranges, self.answers.stds)
        )
        most = 1.5 * task.users * self.statistic.largest_weight * max(ranges) + 50 * max(stds)
        if most / GRID >= 2.0**63:
            raise InvalidInput(
                f"the answers about {task.users:,} users could leave the 64-bit integers; plan for "
                "fewer users, or for less noise"
            )

    def _account(self, task: Task, requested: tuple[float, float]) -> Guarantee:
        return self.event.guarantee(
            task,
            model="joint",
            mechanism=f"gaussian noise on Gram matrices through a {self.stream.strategy.name} "
            "counter and on answered regression queries, fresh for every release",
            accountant="all declared answers",
            requested=requested,
            noise=self._noise_scales(),
            assumptions=base.TRUSTED,
        )

    def _noise_scales(self) -> dict[str, Any]:
        largest = {f"{t} answer std": float(s.max()) for t, s in self.answers.stds.items()}
        return {
            "gram node std": float(self.gram_std),
            "column norm": self.stream.strategy.column_norm(),
            **largest,
            "answers per question": self.answers.rounds,
        }

    def law(self, users: int) -> NoiseLaw:
        """The law of the noisiest Gram release."""
        return self.stream.law(users)

    def init(self) -> CuratorSecret:
        """Empty tables, fresh counter, full budget."""
        return CuratorSecret(self.statistic.layout, self.stream.init(), self._budget)

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> base.Report:
        """To the curator, over its own channel: the contribution itself."""
        return base.Report(contribution.copy())

    def absorb(self, secret: CuratorSecret, report: base.Report, version: int) -> CuratorSecret:
        """Into the tables, and into the open batch of the Gram stream."""
        values = report.take()
        self.stream.absorb(secret.stream, base.Report(values[: self.layout.size]), version)
        secret.sums += values
        secret.users += 1
        return secret

    def absorb_sums(
        self,
        secret: CuratorSecret,
        total: IntArray,
        users: int,
        publication: Publication,
        noise: Noise,
    ) -> CuratorSecret:
        """The same for what several users contributed, added up before."""
        gram = total[: self.layout.size]
        self.stream.absorb_sums(secret.stream, gram, users, publication, noise)
        secret.sums += total
        secret.users += users
        return secret

    def release(
        self, secret: CuratorSecret, query: base.Query | ValueQuery, noise: Noise
    ) -> Release:
        """The next Gram matrices, or the answer to a question."""
        if isinstance(query, ValueQuery):
            return self._answer(secret, query, noise)
        if query.id == secret.stream.counter.steps + 1:
            if secret.cost == 0.0:  # the first payment is for the whole stream
                self._pay(secret, secret.rounds)
            secret.answered.clear()
        return self.stream.release(secret.stream, query, noise)

    def _pay(self, secret: CuratorSecret, rounds: int) -> None:
        """Charge what the Gram stream and that many rounds cost, less what was charged before.

        Rounds are counted as well: the budget has room for rounding, and a round among very many
        can be smaller than that.
        """
        due, spent = self._cost(rounds), secret.filter
        if rounds > self.answers.rounds:
            asked = Cost(Fraction(max(due - secret.cost, 0.0)))
            reason = f"all {self.answers.rounds:,} declared rounds of answers were given"
            raise spent.refusal(asked, reason)
        if due > secret.cost:
            spent.commit(spent.reserve(GaussianCharge(due - secret.cost)))
            secret.cost = due

    def _answer(self, secret: CuratorSecret, query: ValueQuery, noise: Noise) -> Release:
        if query.id in secret.answered:
            return secret.answered[query.id]
        name = query.target, query.stage
        bounds = self._questions.get(name)
        if bounds is None:
            raise InvalidInput(f"{name[0]!r} at stage {name[1]} was not declared, so not answered")
        phi, values = self.statistic.phi, np.asarray(query.values, dtype=np.float64)
        if values.shape != phi.shape[:1]:
            raise InvalidInput(
                f"values has shape {list(values.shape)}, but one number per state is needed: "
                f"[{phi.shape[0]}]"
            )
        if name not in secret.drawn:
            self._pay(secret, secret.rounds + 1)
            secret.rounds += 1
            secret.drawn = self._draw_round(noise)
            secret.source = weakest(secret.source, noise.source)
        answer, views = np.empty(phi.shape[2]), secret.views
        drawn = secret.drawn.pop(name)
        noisy_answer(views["table"], views["reward"], phi, values, *bounds, drawn, answer)
        release = Release(secret.users, {"answer": answer}, self._laws[name], secret.source)
        secret.answered[query.id] = release
        return release

    def state(self, secret: CuratorSecret) -> dict[str, npt.NDArray[Any]]:
        """Tables, counter, what was charged, and the noise that was paid for and not used.

        Not the answers given since the last release: whoever goes on has them, they are public.
        """
        unused = [secret.drawn.get(name) for name in self._questions]
        blank = np.zeros(self.statistic.phi.shape[2], dtype=np.int64)
        return {
            **super().state(secret),
            **{f"stream.{name}": a for name, a in self.stream.state(secret.stream).items()},
            "rounds": np.array(secret.rounds),
            "cost": np.array(secret.cost),
            "spent": np.array(str(secret.filter.spent.mu_squared)),
            "closed": np.array(secret.filter.closed),
            "unused": np.array([noise is not None for noise in unused], dtype=bool),
            "drawn": np.array([blank if noise is None else noise for noise in unused]),
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> CuratorSecret:
        """The filter is charged again what it was charged."""
        secret, prefix = super().restore(arrays), "stream."
        saved = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        secret.stream = self.stream.restore(saved)
        secret.rounds, secret.cost = int(arrays["rounds"]), float(arrays["cost"])
        spent = Fraction(str(arrays["spent"]))
        if spent:
            reservation = secret.filter.restore(GaussianCharge(float(spent)), Cost(spent))
            secret.filter.commit(reservation)
        if arrays["closed"]:
            secret.filter.close()
        questions = zip(self._questions, arrays["unused"], arrays["drawn"], strict=True)
        secret.drawn = {name: noise for name, unused, noise in questions if unused}
        return secret

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """Distance of Gram matrices and of answers to the worst questions, over what is paid."""
        cells = self.layout.size
        gram = np.linalg.norm((second - first)[:cells] * self.layout.units)
        total = self._gram_load * float(gram) ** 2
        for target, stage in self._questions:
            query = ValueQuery(
                (0, target, stage), target, stage, self.worst_query(first, second, stage)
            )
            answers = self.mean(second, query) - self.mean(first, query)
            std = self._laws[target, stage].std
            total += self.answers.rounds * float(answers @ answers) / std**2
        return math.sqrt(total) * self._times / self.mu

    def worst_query(self, first: IntArray, second: IntArray, stage: int) -> Array:
        """The V [S] that tells two contributions apart best at a stage: large, or 0, everywhere.

        An answer's squared distance is convex in V, so an end of its range is worst in every state.
        """
        largest = max(float(ranges.max()) for ranges in self.answers.ranges.values())
        layout, phi = self.statistic.layout, self.statistic.phi
        table, reward = (layout.views(second - first)[name][stage] for name in ("table", "reward"))
        reached = np.flatnonzero(np.any(table, axis=(0, 1)))[:WORST_STATES]
        best, values = -1.0, np.zeros(phi.shape[0])
        for ends in itertools.product((0.0, largest), repeat=len(reached)):
            tried = np.zeros(phi.shape[0])
            tried[reached] = ends
            apart = np.einsum("sa,sad->d", reward + table @ (tried - largest / 2), phi)
            if apart @ apart > best:
                best, values = float(apart @ apart), tried
        return values

    def open_queries(self, secret: CuratorSecret) -> list[tuple[str, int]]:
        """Questions that would still be answered, one round of them."""
        if secret.drawn:
            return list(secret.drawn)
        return list(self._questions) if secret.rounds < self.answers.rounds else []

    def mean(self, sums: IntArray, query: ValueQuery) -> Array:
        """The answer that these sums have, without noise."""
        views, phi = self.statistic.layout.views(sums), self.statistic.phi
        bounds, answer = self._questions[query.target, query.stage], np.empty(phi.shape[2])
        silent = np.zeros(phi.shape[2], dtype=np.int64)
        values = np.asarray(query.values, dtype=np.float64)
        noisy_answer(views["table"], views["reward"], phi, values, *bounds, silent, answer)
        return answer

    def log_likelihood_ratio(self, record: base.AuditRecord) -> base.LogLikelihoodRatio:
        """Of Gram matrices and answers: all their noise is independent."""
        cells = self.layout.size
        grams = base.AuditRecord(
            [sums[:cells] for sums in record.first],
            [sums[:cells] for sums in record.second],
            record.released,
        )
        log_ratio, mu_squared = self.stream.log_likelihood_ratio(grams)
        for query, count, answer in record.answers:
            first, second = (
                self.mean(np.sum(batches[:count], axis=0), query)
                for batches in (record.first, record.second)
            )
            shift = (second - first) / self._laws[query.target, query.stage].std ** 2
            log_ratio += float(shift @ (answer - (first + second) / 2))
            mu_squared += float(shift @ (second - first))
        return base.LogLikelihoodRatio(log_ratio, mu_squared)

    def _draw_round(self, noise: Noise) -> dict[tuple[str, int], IntArray]:
        """Fresh noise for every question, in the order in which planners ask."""
        drawn = np.empty(len(self._law.scales), dtype=np.int64)
        noise.fill(self._law, drawn)
        return dict(zip(self._questions, drawn.reshape(len(self._questions), -1), strict=True))
