"""Randomized response on every step of a trajectory (Algorithm 5 of the paper).

See docs/papers/tabular_ldp.md#randomizers.

Each cell of a table stands for one bit per step. The collector only ever adds up the bits of a
cell, so the device sends their sum: a function of the randomized bits, hence as private as they
are. One joint charge covers all bits of a report.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.raw.randomizers import debias, respond, round_sums
from tacit.privacy.base import BlockLaw, LocalPrivatizer, Query, Secret
from tacit.privacy.events import FiniteEvent
from tacit.privacy.finite.bits import BinaryResponse
from tacit.privacy.finite.channel import Pair
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise
from tacit.privacy.sentences import ONE_REPORT
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Relation
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task
from tacit.validate import integer, number

MOST_REWARD_BITS = 2**10


@dataclass(frozen=True, eq=False)
class PooledResponse:
    """Flips the bits behind pooled counts and adds them up again, cell by cell.

    Attributes:
        bits: the randomizer of the row of all bits.
        trials: bits of each cell.
        steps: grid steps of one whole count, for each cell.
    """

    bits: BinaryResponse
    trials: IntArray
    steps: IntArray

    def encode(self, counts: IntArray, rng: np.random.Generator) -> IntArray:
        """Simulated: round real sums to whole numbers, then draw the sums of the flipped bits."""
        ones, hits = np.empty_like(counts), np.empty_like(counts)
        round_sums(counts, self.steps, rng, ones)
        respond(ones, self.trials, self.bits.p, self.bits.q, rng, hits)
        return hits

    def encode_secure(self, counts: IntArray) -> IntArray:
        """The same with exact coins on the operating system's entropy, bit by bit."""
        ones, rest = np.divmod(counts, self.steps)
        for cell in np.flatnonzero(rest):
            ones[cell] += secrets.randbelow(int(self.steps[cell])) < rest[cell]
        cell_of_bit = np.repeat(np.arange(len(counts)), self.trials)
        place = np.arange(len(cell_of_bit)) - (np.cumsum(self.trials) - self.trials)[cell_of_bit]
        reported = self.bits.encode_secure((place < ones[cell_of_bit]).astype(np.int64))
        return np.bincount(cell_of_bit[reported == 1], minlength=len(counts)).astype(np.int64)


def differing_bits(statistic: VisitCounts, reward_bits: int = 1) -> int:
    """The most bits in which two users can differ: 6H - 2, unless there are more or fewer bits.

    A trajectory sets at most as many bits of a block as its mass, rounded rewards included, so the
    L1 sensitivity of the counts bounds the number of bits.
    """
    most = statistic.sensitivity("l1", Relation.REPLACE_ONE, {"reward": reward_bits})
    return min(int(most), row_length(statistic, reward_bits))


def response_bits(
    statistic: VisitCounts, epsilon: float, participations: int = 1, reward_bits: int = 1
) -> BinaryResponse:
    """The least noise at pure epsilon over that many participations, equal in all bits."""
    epsilon = number(epsilon, "epsilon", low=0.0, low_open=True) / participations
    if participations > 1:
        epsilon = math.nextafter(epsilon, 0.0)
    row, differing = row_length(statistic, reward_bits), differing_bits(statistic, reward_bits)
    return BinaryResponse.calibrate(epsilon, row, differing)


def bit_masses(statistic: VisitCounts, reward_bits: int) -> dict[str, int]:
    """The most bits of each block that one trajectory sets."""
    m = integer(reward_bits, "reward_bits", low=1, high=MOST_REWARD_BITS)
    if m & (m - 1):
        raise InvalidInput(f"reward_bits = {m}, but it must be a power of two")
    return {**statistic.masses, "reward": m * statistic.masses["reward"]}


def row_length(statistic: VisitCounts, reward_bits: int = 1) -> int:
    """Number of all bits."""
    if statistic.stages > 1:
        raise InvalidInput("randomized response needs counts that are pooled over the stages")
    masses = bit_masses(statistic, reward_bits)
    return sum(masses[block.name] * block.size for block in statistic.layout.blocks)


class LocalResponse(LocalPrivatizer[Secret]):
    """Every user flips the bits of their steps and sends the sums; the collector adds up.

    Args:
        statistic: what is sent, pooled over stages.
        task: the public task.
        bits: the randomizer; by default the one of least noise for what is requested. The guarantee
            is computed from its exact probabilities, and from as many bits as it says can differ.
        requested_epsilon: what was asked for.
        reward_bits: for each unit of a reward, a power of two: rewards on their grid are then
            encoded without bias.
    """

    def __init__(
        self,
        statistic: VisitCounts,
        task: Task,
        bits: BinaryResponse | None = None,
        *,
        requested_epsilon: float,
        reward_bits: int = 1,
    ) -> None:
        self.layout, self.reward_bits = statistic.layout, reward_bits
        self.trials = bit_masses(statistic, reward_bits)
        cells = [np.full(b.size, self.trials[b.name]) for b in self.layout.blocks]
        steps = np.rint(1.0 / self.layout.units).astype(np.int64)
        self.layout.views(steps)["reward"] //= reward_bits
        times, differing = task.participations, differing_bits(statistic, reward_bits)
        bits = bits or response_bits(statistic, requested_epsilon, times, reward_bits)
        if bits.differing < differing:
            raise InvalidInput(
                f"this randomizer is for rows that differ in {bits.differing} bits at most, but "
                f"here {differing} can differ"
            )
        self.randomizer = PooledResponse(bits, np.concatenate(cells), steps)
        self.max_increment = max(self.trials.values())
        self.guarantee = self._account(task, requested_epsilon)

    def _account(self, task: Task, epsilon: float) -> Guarantee:
        bits, times = self.randomizer.bits, task.participations
        total = bits.epsilon if times == 1 else math.nextafter(times * bits.epsilon, math.inf)
        self.event = FiniteEvent(total, self.channels(), times)
        stds = {f"{n} std": math.sqrt(float(self.law(1).variance(n))) for n in self.trials}
        return self.event.guarantee(
            task,
            model="local",
            mechanism=f"randomized response on every step's cells, one report per {task.counted}",
            accountant=f"pure: {bits.differing} bits can differ, exact probabilities",
            requested=(epsilon, 0.0),
            noise={
                "chance of a true bit": bits.p,
                "epsilon per bit": bits.epsilon_per_bit,
                **stds,
            },
            assumptions=(ONE_REPORT,),
        )

    def channels(self) -> tuple[Pair, ...]:
        """The output laws of a worst pair of trajectories, bit by bit (before they are summed)."""
        return (self.randomizer.bits.channel(),)

    def law(self, users: int) -> BlockLaw:
        """The flips of that many users, summed over the bits of a cell, given which were flipped.

        The scale is the range 1 / (p - q) = (e + 1) / (e - 1) of one debiased bit. Rounding a
        reward to bits comes before; it adds at most 1/4 per user and cell.
        """
        bits, parts = self.randomizer.bits, {"reward": self.reward_bits}
        flips = {n: users * trials * bits.variance_outside for n, trials in self.trials.items()}
        variances = {n: np.asarray(all_of / parts.get(n, 1) ** 2) for n, all_of in flips.items()}
        scales = dict.fromkeys(variances, 1.0 / (bits.p - bits.q))
        return BlockLaw("randomized-response", scales, variances)

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: how many flipped bits of every cell are set."""
        return noise.randomize(self.randomizer, contribution)

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """Bits that differ, over the most that can."""
        apart = np.abs(second - first) / self.randomizer.steps
        return float(apart.sum()) / self.randomizer.bits.differing

    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """The law of a cell's sum of flipped bits, for every cell that differs."""
        ratio = np.zeros(len(messages))
        for cell in np.flatnonzero(first != second):
            laws = [self._sum_law(int(counts[cell]), int(cell)) for counts in (first, second)]
            hits = messages[:, cell]
            ratio += np.log(laws[1][hits]) - np.log(laws[0][hits])
        return ratio

    def _sum_law(self, count: int, cell: int) -> Array:
        """Probability of 0, ..., trials set bits; a fraction of a count is rounded at random."""
        bits, trials = self.randomizer.bits, int(self.randomizer.trials[cell])
        ones, rest = divmod(count, int(self.randomizer.steps[cell]))
        law = _flipped(ones, trials, bits.p, bits.q)
        if rest == 0:
            return law
        up = rest / int(self.randomizer.steps[cell])
        return (1.0 - up) * law + up * _flipped(ones + 1, trials, bits.p, bits.q)

    @property
    def max_influence(self) -> float:
        """All bits of a cell set, or none."""
        bits = self.randomizer.bits
        return max(1.0 - bits.q, bits.q) / (bits.p - bits.q)

    def message_bounds(self, publication: Publication) -> IntArray:
        """As many as a cell has bits."""
        return self.randomizer.trials

    def inspect(self, message: IntArray, publication: Publication, coin: int) -> None:
        """Refuse what is not a number of bits."""
        super().inspect(message, publication, coin)
        if (message < 0).any():
            where = int(np.argmax(message < 0))
            raise InvalidInput(f"entry {where} of the report is {message[where]}, but it counts")

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """The debiased sums so far, rewards in units of 1."""
        bits, values = self.randomizer.bits, np.empty(self.layout.size)
        debias(secret.sums, self.randomizer.trials, secret.users, bits.p, bits.q, values)
        blocks, law = self.layout.views(values), self.law(secret.users)
        blocks["reward"] /= self.reward_bits
        return Release(secret.users, blocks, law, secret.source)


def _flipped(ones: int, trials: int, p: float, q: float) -> Array:
    """The law of the sum of flipped bits when that many of them are ones."""
    law = np.ones(1)
    for bit in range(trials):
        chance = p if bit < ones else q
        law = np.convolve(law, [1.0 - chance, chance])
    return law
