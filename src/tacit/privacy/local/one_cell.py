"""One cell per user through a frequency oracle, at full epsilon (spec tabular_ldp B1, B2, B4).

The whole budget goes into one report about one step. What is sent is the oracle's report and
nothing else; what it is added to, and with which weight, follows from the step and the publication,
which are public.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import sums
from tacit.kernels.cells import (
    CellEstimates,
    CellSums,
    Chances,
    add_hits,
    cell_index,
    estimate_cells,
)
from tacit.kernels.counts import REWARD_STEPS
from tacit.kernels.noisy_posterior import WEIGHT_STEPS
from tacit.policy import TabularPolicy
from tacit.privacy.base import Query, Report, Secret
from tacit.privacy.finite import Oracle, Pair, best_oracle
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise, weakest
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics import Block, EachStep, Layout, OneStep
from tacit.task import Task
from tacit.validate import number


@dataclass(frozen=True)
class CellLaw:
    """Variance of the estimates for users outside a cell: v times the sum of squared weights.

    A user inside a cell adds p (1-p) / (p-q)^2 instead of v; which users are inside is not public,
    so this is the law but for that correction (spec tabular_ldp B3). Cells of one (s, a) share one
    variance: the arrays have the shape of the block without its cells.
    """

    name: str
    per_report: Mapping[str, float]
    variances: Mapping[str, Array]

    def scale(self, block: str) -> float:
        """Standard deviation of one report of weight 1."""
        return math.sqrt(self.per_report[block])

    def variance(self, block: str) -> Array:
        """Of every cell, by (s, a)."""
        return self.variances[block]


class OneCell:
    """Randomizes the cell of the assigned step; releases unbiased weighted counts.

    Released are ``transitions`` [G, S, A, 2, S] (weighted counts of (s, a, rho, s') at steps before
    the last; G is 1 where stages are pooled), ``last`` [S, A, 2] (the same at the last step, with
    no next state), and from step 1 ``first`` [S] (unweighted start states of ``first_users``).

    Args:
        statistic: whose cell is randomized.
        task: the public task.
        requested_epsilon: of everything one person sends.
        oracles: for the steps before the last and for the last one; by default the best ones at
            the requested epsilon.
    """

    def __init__(
        self,
        statistic: OneStep | EachStep,
        task: Task,
        *,
        requested_epsilon: float,
        oracles: tuple[Oracle, Oracle] | None = None,
    ) -> None:
        epsilon = number(requested_epsilon, "requested_epsilon", low=0.0, low_open=True)
        S, A, H = statistic.states, task.sizes["actions"], statistic.horizon
        G = 1 if task.homogeneous else max(H - 1, 1)
        self.statistic = statistic
        share = _share(epsilon, task.participations)
        self.oracle, self.last_oracle = oracles or (
            best_oracle(share, 2 * S * S),
            best_oracle(share, 2 * S),
        )
        self.layout = Layout(
            [
                Block("transitions", (G, S, A, 2, S)),
                Block("last", (S, A, 2)),
                Block("first", (S,)),
                Block("first_users", (1,)),
            ]
        )
        self.sums = Layout(
            [
                Block("transitions", (G, S, A, 2, S), 1.0 / WEIGHT_STEPS),
                Block("last", (S, A, 2), 1.0 / WEIGHT_STEPS),
                Block("weight", (G, S, A), 1.0 / WEIGHT_STEPS),
                Block("last_weight", (S, A), 1.0 / WEIGHT_STEPS),
                Block("square", (G, S, A), 1.0 / WEIGHT_STEPS**2),
                Block("last_square", (S, A), 1.0 / WEIGHT_STEPS**2),
                Block("first", (S,)),
                Block("first_users", (1,)),
            ]
        )
        if task.users * WEIGHT_STEPS**2 >= 2**62:
            raise InvalidInput(
                f"the weighted sums of {task.users:,} users could leave the 64-bit integers; plan "
                "for fewer users"
            )
        self.guarantee = self._account(task, epsilon)

    def _account(self, task: Task, requested: float) -> Guarantee:
        oracles = self._oracles()
        times = task.participations
        epsilon = times * max(oracle.epsilon for oracle in oracles.values())
        beyond = 0.0
        if epsilon > requested:
            beyond = max(pair.composed_delta(times, requested) for pair in self.channels())
        return Guarantee(
            model="local",
            epsilon=epsilon,
            delta=0.0,
            mechanism="one step of the trajectory, reported by "
            + " and ".join(f"{_words(oracle)} ({name})" for name, oracle in oracles.items()),
            accountant="exact: largest log ratio over all outputs of each randomizer, enumerated "
            "by classes of equal probability",
            requested_epsilon=requested,
            requested_delta=0.0,
            delta_at_requested_epsilon=beyond,
            participations=times,
            noise={
                f"{name} {what}": value
                for name, oracle in oracles.items()
                for what, value in (("domain", oracle.domain), ("p", oracle.p), ("q", oracle.q))
            },
            assumptions=(
                "every participation sends exactly one report, and a retry resends the same bytes",
                "the assigned step, the policy and the weights do not depend on the user's data",
            ),
            revealed=task.revealed,
        )

    def channels(self) -> tuple[Pair, ...]:
        """The output laws of a worst pair of cells, for each kind of report."""
        return tuple(oracle.channel() for oracle in self._oracles().values())

    def _oracles(self) -> dict[str, Oracle]:
        last = {"last step": self.last_oracle}
        return last if self.statistic.horizon == 1 else {"step": self.oracle, **last}

    def law(self, users: int) -> CellLaw:
        """As if every user who may report about a cell did, with weight 1."""
        H, (v, end_v, _) = self.statistic.horizon, self._per_report()
        return self._law(
            np.asarray(users * (H - 1) / H * v), np.asarray(users / H * end_v), users / H
        )

    def _per_report(self) -> tuple[float, float, float]:
        """Variance of one report: of a cell, of a cell of the last step, of a start state."""
        first = self.last_oracle if self.statistic.horizon == 1 else self.oracle
        cells = first.domain // self.statistic.states
        return (
            self.oracle.variance_outside,
            self.last_oracle.variance_outside,
            cells * (first.variance_outside + (cells - 1) * first.covariance_outside),
        )

    def _law(self, variance: Array, last_variance: Array, first_users: float) -> CellLaw:
        v, end_v, start_v = self._per_report()
        return CellLaw(
            "one-cell",
            {"transitions": v, "last": end_v, "first": start_v, "first_users": 0.0},
            {
                "transitions": variance,
                "last": last_variance,
                "first": np.asarray(first_users * start_v),
                "first_users": np.zeros(()),
            },
        )

    def init(self) -> Secret:
        """Zero sums."""
        return Secret(np.zeros(self.sums.size, dtype=np.int64))

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """On the device: round the reward, randomize the cell, and address the report."""
        views = self.statistic.layout.views(contribution)
        return self._report(views["cell"], int(np.argmax(views["step"])), publication, noise)

    def _report(self, mass: IntArray, h: int, publication: Publication, noise: Noise) -> Report:
        """The randomized report about step h, from the mass [S, 2, S] of its cell."""
        S = self.statistic.states
        last = h == self.statistic.horizon - 1
        s, following = np.unravel_index(np.argmax(mass.sum(axis=1)), (S, S))
        rho = int(noise.happens(int(mass[s, 1, following]), REWARD_STEPS))
        cell = cell_index(int(s), rho, int(following), S, last)
        report = noise.randomize(self.last_oracle if last else self.oracle, cell)
        return Report(self.address(report, h, publication), noise.source)

    def address(self, report: IntArray, step: int, publication: Publication) -> IntArray:
        """The message in the collector's terms: which sums it is added to, and how often."""
        policy, weights = publication.policy, publication.context.get("weights")
        if not isinstance(policy, TabularPolicy) or weights is None:
            raise InvalidInput(
                "a one-cell report needs a deterministic table and the weights of its publication; "
                "draw a stochastic policy into a table before publishing it"
            )
        message = np.zeros(self.sums.size, dtype=np.int64)
        add_hits(report, 1, step, policy.actions, weights, self.cell_sums(message))
        return message

    def cell_sums(self, flat: IntArray) -> CellSums:
        """Views of a flat vector of sums, as kernels take them."""
        return CellSums(**self.sums.views(flat))

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """Add up what is already randomized."""
        sums.absorb(secret.sums, report.take())
        secret.users += 1
        secret.source = weakest(secret.source, report.source)
        return secret

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """Unbiased weighted counts (hits - q sum w n) / (p - q), and the law of their noise."""
        values = np.zeros(self.layout.size)
        blocks = self.layout.views(values)
        exact = self.cell_sums(secret.sums)
        blocks["first_users"][:] = exact.first_users
        estimates = CellEstimates(
            blocks["transitions"],
            blocks["last"],
            np.empty(exact.weight.shape),
            np.empty(exact.last_weight.shape),
            blocks["first"],
        )
        one_step = self.statistic.horizon == 1
        estimate_cells(exact, chances(self.oracle), chances(self.last_oracle), one_step, estimates)
        law = self._law(estimates.variance, estimates.last_variance, int(exact.first_users[0]))
        return Release(secret.users, blocks, law, secret.source)


class DrawnCell(OneCell):
    """The same for a step that the user draws with a fair coin of its own, and sends along.

    The step says nothing about the user; that nobody else knows it beforehand is what lets users of
    all steps hide each other behind a shuffler (spec tabular_ldp B8 iii).
    """

    def _account(self, task: Task, requested: float) -> Guarantee:
        return dataclasses.replace(
            super()._account(task, requested),
            assumptions=(
                "every participation sends exactly one report, and a retry resends the same bytes",
                "the user's own coin decides the step; policy and weights do not depend on the "
                "user's data",
            ),
        )

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """On the device: draw the step, then report its cell."""
        H = self.statistic.horizon
        h = 0
        while h < H - 1 and not noise.happens(1, H - h):
            h += 1
        mass = self.statistic.layout.views(contribution)["cell"][h]
        return self._report(mass, h, publication, noise)


def chances(oracle: Oracle) -> Chances:
    """An oracle as kernels undo it."""
    return Chances(oracle.p, oracle.q, oracle.variance_outside)


def _words(oracle: Oracle) -> str:
    return f"{oracle.title} over {oracle.domain} cells"


def _share(epsilon: float, times: int) -> float:
    """What one of that many reports may cost, rounded so that the sum is not above epsilon."""
    share = epsilon / times
    while share * times > epsilon:
        share = math.nextafter(share, 0.0)
    return share
