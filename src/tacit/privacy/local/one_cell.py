"""One cell per user through a frequency oracle, at full epsilon.

See docs/papers/tabular_ldp.md#b1, and B2 and B4 there. The whole budget goes into one report about
one step. What is sent is the oracle's report and nothing else; what it is added to, and with which
weight, follows from the step and the publication, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import sums
from tacit.kernels.cells import (
    CellSums,
    Chances,
    add_hits,
    cell_index,
    estimate_cells,
)
from tacit.kernels.counts import REWARD_STEPS
from tacit.kernels.posterior import NoisyCounts
from tacit.kernels.questions import (
    JOINT,
    KINDS,
    MOVE,
    REWARD,
    SPREAD,
    WEIGHT_STEPS,
    Weighing,
)
from tacit.policy import TabularPolicy
from tacit.privacy.base import Query, Report, Secret, TwoHalves
from tacit.privacy.finite import Oracle, Pair, best_oracle, packing
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise, Source, weakest
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics import Block, EachStep, Layout, OneStep
from tacit.task import Task
from tacit.validate import number


@dataclass(frozen=True)
class CellLaw:
    """Variance of the estimates for users outside a cell: v times the sum of squared weights.

    A user inside a cell adds p (1-p) / (p-q)^2 instead of v; which users are inside is not public,
    so this is the law but for that correction (docs/papers/tabular_ldp.md#b3). Cells of one (s, a)
    share one variance: the arrays have the shape of the block without its cells. Of the ``*_unit``,
    which are ratios, no law is stated.
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


Oracles = tuple[Oracle, Oracle, Oracle]
"""One for each kind of question: joint cells, moves, rewards."""

_NAMES = ("step", "move", "reward")


class OneCell(TwoHalves):
    """Randomizes the cell that was asked for; releases unbiased weighted counts.

    Released are ``moves`` [G, S, A, S] (weighted counts of (s, a, s'), steps before the last; G is
    1 where stages are pooled), ``rewards`` [G', S, A, 2] (of (s, a, rho), all steps), the weight of
    the average visit behind them (``moves_unit``, ``rewards_unit``), and from step 1 ``first`` [S]
    (unweighted start states of ``first_users``).

    Args:
        statistic: whose cell is randomized.
        task: the public task.
        requested_epsilon: of everything one person sends.
        oracles: by kind of question; by default the best ones at the requested epsilon.
        kinds: of questions that are ever asked; the last step is asked for its reward only.
    """

    def __init__(
        self,
        statistic: OneStep | EachStep,
        task: Task,
        *,
        requested_epsilon: float,
        oracles: Oracles | None = None,
        kinds: tuple[int, ...] = (JOINT, MOVE, REWARD),
    ) -> None:
        epsilon = number(requested_epsilon, "requested_epsilon", low=0.0, low_open=True)
        self.statistic = statistic
        self.kinds = (REWARD,) if statistic.horizon == 1 else kinds
        self.oracles: Oracles = oracles or best_oracles(
            _share(epsilon, task.participations), statistic.states
        )
        self.weighing = weighing(self.oracles, statistic.states)
        self.layout, self.sums = _layouts(statistic, task)
        self.largest = 2 * statistic.states * WEIGHT_STEPS**2  # all ones about one state
        if task.users * self.largest >= 2**63:
            raise InvalidInput(
                f"the weighted sums of {task.users:,} users could leave the 64-bit integers; plan "
                "for fewer users"
            )
        self.guarantee = self._account(task, epsilon)

    def _account(self, task: Task, requested: float) -> Guarantee:
        oracles = self._used()
        times = task.participations
        epsilon = times * max(oracle.epsilon for oracle in oracles.values())
        beyond = 0.0
        if epsilon > requested:
            beyond = max(pair.composed_delta(times, requested) for pair in self.channels())
        return Guarantee(
            model="local",
            epsilon=epsilon,
            delta=0.0,
            mechanism="one question about one step of the trajectory, answered by "
            + ", ".join(f"{_words(oracle)} ({name})" for name, oracle in oracles.items()),
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
                "the question, the policy and the weights do not depend on the user's data",
            ),
            revealed=task.revealed,
        )

    def channels(self) -> tuple[Pair, ...]:
        """The output laws of a worst pair of cells, for each kind of report."""
        return tuple(oracle.channel() for oracle in self._used().values())

    def _used(self) -> dict[str, Oracle]:
        return {_NAMES[kind]: self.oracles[kind] for kind in self.kinds}

    def law(self, users: int) -> CellLaw:
        """As if all users had been asked about the one cell, alone and with weight 1."""
        v, w = self._per_report()
        return self._law(np.asarray(users * v), np.asarray(users * w), np.array([0, 0, users]))

    def _per_report(self) -> tuple[float, float]:
        """Noise variance of one report's count of moves and of rewards, asked for alone if ever."""
        joint_only = JOINT in self.kinds and MOVE not in self.kinds
        return self.weighing.moves[0 if joint_only else 1], self.weighing.rewards[1]

    def _law(self, moves: Array, rewards: Array, first_users: IntArray) -> CellLaw:
        S = self.statistic.states
        cells = (2 * S, S, 2)  # of one state, by kind of question
        starts = [_sum_variance(*pair) for pair in zip(self.oracles, cells, strict=True)]
        exact = np.zeros(())
        v, w = self._per_report()
        return CellLaw(
            "one-cell",
            {"moves": v, "rewards": w, "first": starts[REWARD]},
            {
                "moves": moves,
                "rewards": rewards,
                "moves_unit": exact,
                "rewards_unit": exact,
                "first": np.asarray(first_users @ np.array(starts)),
                "first_users": exact,
            },
        )

    def init(self) -> Secret:
        """Zero sums."""
        return Secret(np.zeros(self.sums.size, dtype=np.int64))

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """The device's half and the collector's: randomize the cell, then address the report."""
        h, kind, mass = self._asked(contribution, noise)
        report = self._answer(mass, kind, noise)
        return Report(self.address(report, h, kind, publication), noise.source)

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: the oracle's report alone, 64 cells to the integer."""
        _, kind, mass = self._asked(contribution, noise)
        return packing.pack(self._answer(mass, kind, noise))

    def _asked(self, contribution: IntArray, noise: Noise) -> tuple[int, int, IntArray]:
        """Step and kind of the question, and the mass [S, 2, S] of its cell."""
        return self._marked(contribution)

    def _marked(self, contribution: IntArray) -> tuple[int, int, IntArray]:
        views = self.statistic.layout.views(contribution)
        h, kind = divmod(int(np.argmax(views["question"])), KINDS)
        return h, kind, views["cell"]

    def _answer(self, mass: IntArray, kind: int, noise: Noise) -> IntArray:
        """Round the reward, randomize the cell: the oracle's row of zeros and ones."""
        self._covered(kind)
        S = self.statistic.states
        s, following = np.unravel_index(np.argmax(mass.sum(axis=1)), (S, S))
        rho = int(noise.happens(int(mass[s, 1, following]), REWARD_STEPS))
        cell = cell_index(kind, int(s), rho, int(following), S)
        return noise.randomize(self.oracles[kind], cell)

    def moved(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """Share of the answer's chances that moves to other cells."""
        _, kind, _ = self._marked(first)
        self._covered(kind)
        one, two = (self._chances(*self._marked(life)[1:]) for life in (first, second))
        return float(np.abs(two - one).sum()) / 2

    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """That of the oracle for the question that was asked."""
        _, kind, one = self._marked(first)
        return self._ratio(messages, kind, one, self._marked(second)[2])

    def _ratio(self, packed: IntArray, kind: int, first: IntArray, second: IntArray) -> Array:
        oracle = self.oracles[kind]
        rows = packing.unpack(packed, oracle.domain)
        return oracle.log_ratio(rows, *(self._chances(kind, mass) for mass in (first, second)))

    def _chances(self, kind: int, mass: IntArray) -> Array:
        """Chance of every cell of the oracle to be the one that is randomized."""
        S, chances = self.statistic.states, np.zeros(self.oracles[kind].domain)
        for s, rho, following in np.argwhere(mass):
            cell = cell_index(kind, int(s), int(rho), int(following), S)
            chances[cell] += mass[s, rho, following] / REWARD_STEPS
        return chances

    def _covered(self, kind: int) -> None:
        if kind not in self.kinds:
            raise InvalidInput(
                f"a question about {_NAMES[kind]}s was asked, but the guarantee covers only "
                f"{', '.join(_NAMES[k] for k in self.kinds)}; publish other questions"
            )

    def _question(
        self, message: IntArray, publication: Publication, coin: int
    ) -> tuple[int, int, IntArray]:
        """Step and kind a message is about, and the oracle's packed report in it."""
        h, kind = self.statistic.question(publication, coin)  # type: ignore[union-attr]
        return h, kind, message

    def _inspected(
        self, message: IntArray, publication: Publication, coin: int
    ) -> tuple[int, int, IntArray]:
        h, kind, packed = self._question(message, publication, coin)
        self._covered(kind)
        packing.inspect(packed, self.oracles[kind].domain, self.oracles[kind].ones)
        return h, kind, packed

    def inspect(self, message: IntArray, publication: Publication, coin: int) -> None:
        """Refuse what the oracle of this report's question cannot have said."""
        self._inspected(message, publication, coin)

    def inspect_all(
        self, messages: Sequence[IntArray], publication: Publication, coins: Sequence[int]
    ) -> None:
        """The same of many messages, in a few steps for all of them."""
        self._sorted(messages, publication, coins)

    def _sorted(
        self, messages: Sequence[IntArray], publication: Publication, coins: Sequence[int]
    ) -> list[tuple[int, IntArray, IntArray]]:
        """Kind of question, steps [n] and packed reports [n, words], inspected."""
        steps, kinds, packed = self._questions(messages, publication, coins)
        found = []
        for kind in np.unique(kinds).tolist():
            self._covered(kind)
            chosen = np.flatnonzero(kinds == kind)
            oracle = self.oracles[kind]
            rows = packing.inspect_all(
                [packed[i] for i in chosen.tolist()], oracle.domain, oracle.ones
            )
            found.append((kind, steps[chosen], rows))
        return found

    def _questions(
        self, messages: Sequence[IntArray], publication: Publication, coins: Sequence[int]
    ) -> tuple[IntArray, IntArray, Sequence[IntArray]]:
        """Steps and kinds many messages are about, and the oracles' packed reports in them."""
        steps, kinds = self.statistic.questions(publication, coins)  # type: ignore[union-attr]
        return steps, kinds, messages

    def collect(
        self, message: IntArray, publication: Publication, coin: int, source: Source = "secure"
    ) -> Report:
        """At the collector: the report, addressed by the question that its coin asked."""
        h, kind, packed = self._inspected(message, publication, coin)
        row = packing.unpack(packed[None], self.oracles[kind].domain)[0]
        return Report(self.address(row, h, kind, publication), source)

    def fold(
        self,
        secret: Secret,
        messages: Sequence[IntArray],
        publication: Publication,
        coins: Sequence[int],
        source: Source = "secure",
    ) -> Secret:
        """Many reports at once: those about one question are added up before they are addressed."""
        if len(messages) != len(coins):
            raise InvalidInput(f"{len(messages)} messages came with {len(coins)} coins")
        for kind, steps, rows in self._sorted(messages, publication, coins):
            for h in np.unique(steps).tolist():
                group = rows[steps == h]
                hits = packing.unpack(group, self.oracles[kind].domain).sum(axis=0)
                self._add(hits, len(group), h, kind, publication, secret.sums)
        secret.users += len(messages)
        secret.source = weakest(secret.source, source)
        return secret

    def address(self, report: IntArray, step: int, kind: int, publication: Publication) -> IntArray:
        """The message in the collector's terms: which sums it is added to, and how often."""
        message = np.zeros(self.sums.size, dtype=np.int64)
        self._add(report, 1, step, kind, publication, message)
        return message

    def _add(
        self,
        hits: IntArray,
        reports: int,
        step: int,
        kind: int,
        publication: Publication,
        into: IntArray,
    ) -> None:
        """Add the summed reports on one question to a flat vector of sums."""
        policy, occupancy = publication.policy, publication.context.get("occupancy")
        shape = (self.statistic.horizon, self.statistic.states)
        if (
            not isinstance(policy, TabularPolicy)
            or occupancy is None
            or not policy.actions.shape == occupancy.shape == shape
        ):
            raise InvalidInput(
                "a one-cell report needs a deterministic table and the occupancy its publication "
                f"predicts, both {shape}; draw a stochastic policy into a table before publishing "
                "it"
            )
        add_hits(
            hits,
            reports,
            kind,
            step,
            policy.actions,
            occupancy,
            self.weighing,
            self.cell_sums(into),
        )

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
        blocks["first_users"][:] = exact.first_users.sum()
        counts = NoisyCounts(
            blocks["moves"],
            blocks["rewards"],
            np.empty(blocks["moves_unit"].shape),
            np.empty(blocks["rewards_unit"].shape),
            blocks["moves_unit"],
            blocks["rewards_unit"],
        )
        joint, move, reward = (chances(oracle) for oracle in self.oracles)
        estimate_cells(exact, joint, move, reward, counts, blocks["first"])
        law = self._law(counts.moves_variance, counts.rewards_variance, exact.first_users)
        return Release(secret.users, blocks, law, secret.source)


def best_oracles(epsilon: float, states: int) -> Oracles:
    """The oracle of least variance at epsilon for each kind of question."""
    S = states
    return (
        best_oracle(epsilon, 2 * S * S),
        best_oracle(epsilon, max(S * S, 2)),
        best_oracle(epsilon, 2 * S),
    )


def weighing(oracles: Oracles, states: int) -> Weighing:
    """The noise in one count by kind of question, and the scale of weights that follows.

    A count of moves adds up two joint cells, a count of rewards as many as there are states.
    """
    joint, move, reward = (oracle.variance_outside for oracle in oracles)
    moves, rewards = (2 * joint, move), (states * joint, reward)
    return Weighing(moves, rewards, SPREAD + min(*moves, *rewards))


def chances(oracle: Oracle) -> Chances:
    """An oracle as kernels undo it."""
    return Chances(oracle.p, oracle.q, oracle.variance_outside)


def _layouts(statistic: OneStep | EachStep, task: Task) -> tuple[Layout, Layout]:
    """Of releases, and of the sums behind them."""
    S, A, H = statistic.states, task.sizes["actions"], statistic.horizon
    G, every = (1, 1) if task.homogeneous else (max(H - 1, 1), H)
    moves, rewards = (G, S, A), (every, S, A)
    w, w2 = 1.0 / WEIGHT_STEPS, 1.0 / WEIGHT_STEPS**2
    released = Layout(
        [
            Block("moves", (*moves, S)),
            Block("rewards", (*rewards, 2)),
            Block("moves_unit", moves),
            Block("rewards_unit", rewards),
            Block("first", (S,)),
            Block("first_users", (1,)),
        ]
    )
    summed = Layout(
        [
            Block("moves", (2, *moves, S), w),
            Block("rewards", (2, *rewards, 2), w),
            Block("moves_weight", (2, *moves), w),
            Block("rewards_weight", (2, *rewards), w),
            Block("moves_square", (2, *moves), w2),
            Block("rewards_square", (2, *rewards), w2),
            Block("moves_seen", (2, *moves), w2),
            Block("rewards_seen", (2, *rewards), w2),
            Block("first", (KINDS, S)),
            Block("first_users", (KINDS,)),
        ]
    )
    return released, summed


def _sum_variance(oracle: Oracle, cells: int) -> float:
    """Variance of the summed estimates of that many cells, for a user in none of them."""
    return cells * (oracle.variance_outside + (cells - 1) * oracle.covariance_outside)


def _words(oracle: Oracle) -> str:
    return f"{oracle.title} over {oracle.domain} cells"


def _share(epsilon: float, times: int) -> float:
    """What one of that many reports may cost, rounded so that the sum is not above epsilon."""
    share = epsilon / times
    while share * times > epsilon:
        share = math.nextafter(share, 0.0)
    return share
