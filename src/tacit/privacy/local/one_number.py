"""Every person sends one randomized number in [-1, 1]; it is weighed by public directions.

What a device sends is one output of a sliding randomizer. Direction and coin follow from the
published key and the report's public id, so the collector puts them on without asking, and all that
is said about a person is that output: pure epsilon, exactly (proofs/search.md).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID, STEPS
from tacit.kernels.public.scores import search_coins
from tacit.policies.parametric import ParametricPolicy
from tacit.privacy.base import BlockLaw, LocalPrivatizer, Query, Report, Secret, Sent
from tacit.privacy.events import FiniteEvent
from tacit.privacy.finite.channel import Pair
from tacit.privacy.finite.sliding import Sliding, best_sliding
from tacit.privacy.noise import Noise, Source, weakest
from tacit.privacy.sentences import ONE_REPORT
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Block, Layout
from tacit.statistics.search import RoundedReturn
from tacit.task.task import Task
from tacit.validate import number


class OneNumber(LocalPrivatizer[Secret]):
    """Sums of v z, v and b (y - 1/2) over all reports so far; v has mean x, y has mean x^2.

    Args:
        statistic: the rounded return.
        task: the public task.
        randomizer: the randomizer; by default the one of least variance for what is requested. The
            guarantee is computed from its whole weights.
        requested_epsilon: what was asked for, over all participations.
    """

    def __init__(
        self,
        statistic: RoundedReturn,
        task: Task,
        randomizer: Sliding | None = None,
        *,
        requested_epsilon: float,
    ) -> None:
        self.randomizer = randomizer or sliding_for(requested_epsilon, task.participations)
        if statistic.largest != self.randomizer.largest:
            raise InvalidInput(
                f"the statistic rounds to {statistic.largest + 1} places, but the randomizer has "
                f"{self.randomizer.largest + 1}"
            )
        d = self.dimension = statistic.dimension
        self.weight = statistic.weight
        blocks = [Block("gradient", (d,)), Block("mean", ()), Block("square", ())]
        self.layout = Layout([Block(b.name, b.shape, GRID) for b in blocks])
        squares = self._squares(np.arange(self.randomizer.outputs), np.ones(1))
        most = self.randomizer.outputs * math.sqrt(d) * STEPS
        self.max_increment = math.ceil(max(most, 2.0 * float(np.abs(squares).max())))
        if task.users * self.max_increment >= 2**63:
            raise InvalidInput(
                f"the sums of {task.users:,} users could leave the 64-bit integers; plan for fewer"
            )
        worst, times = self.randomizer.epsilon, task.participations
        total = worst if times == 1 else math.nextafter(times * worst, math.inf)
        self.event = FiniteEvent(total, self.channels(), times)
        self.guarantee = self.event.guarantee(
            task,
            model="local",
            mechanism=f"one output of a randomizer with {self.randomizer.outputs} outputs, "
            f"{self.randomizer.run} of them likely, about one return",
            accountant="exact: largest log ratio over all outputs, from whole weights",
            requested=(requested_epsilon, 0.0),
            noise={
                "outputs": self.randomizer.outputs,
                "likely outputs": self.randomizer.run,
                "chance of a likely output": self.randomizer.p,
                "largest value of a report": float(self.randomizer.values[-1]),
            },
            assumptions=(
                ONE_REPORT,
                "direction and coin follow from the report's public id, not from the user's data",
            ),
        )

    def channels(self) -> tuple[Pair, ...]:
        """The output laws of the first place and of the last."""
        return (self.randomizer.channel(),)

    @cached_property
    def _variances(self) -> dict[str, float]:
        """What variance one report has at most; it depends a little on what was randomized.

        Over rounding and chance, this is that of the people of whom it is largest. Of the square it
        is the largest of x = 0, 1/2 and 1: no bound, other x may have more. Of an entry of the
        gradient it is as if directions had entries of size 1, which they have on average.
        """
        moments = [self.randomizer.moments(x) for x in (0.0, 0.5, 1.0)]
        value, square = (max(column) for column in zip(*moments, strict=True))
        return {"gradient": value, "mean": value, "square": self.weight**2 * square}

    def law(self, users: int) -> BlockLaw:
        """The reports of that many users, summed; the scale is the largest value of a report."""
        variances = {name: np.asarray(users * own) for name, own in self._variances.items()}
        scales = dict.fromkeys(variances, float(self.randomizer.values[-1]))
        return BlockLaw("sliding", scales, variances)

    @property
    def max_influence(self) -> float:
        """The outermost output, in place of a number in [-1, 1]."""
        return float(self.randomizer.values[-1])

    # On the device.

    def rules(self) -> dict[str, Any]:
        """The randomizer's exact weights."""
        return self.randomizer.rules()

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """One output; nothing else leaves."""
        return noise.randomize(self.randomizer, self._place(contribution))

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """The device's half and the collector's, who knows the person's public id."""
        message = self.randomize(contribution, publication, noise)
        return self.collect(message, publication, int(contribution[0]), noise.source)

    def _place(self, contribution: IntArray) -> int:
        return min(max(int(contribution[1]), 0), self.randomizer.largest)

    # Audits.

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """Outputs that only one of the two makes likely, over the most that can be."""
        apart = abs(self._place(second) - self._place(first))
        return min(apart, self.randomizer.run) / min(self.randomizer.largest, self.randomizer.run)

    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """From the table of chances."""
        logs = np.log(self.randomizer.chances)
        ratio: Array = (logs[self._place(second)] - logs[self._place(first)])[messages[:, 0]]
        return ratio

    # At the collector.

    def inspect(self, message: IntArray, publication: Publication, coin: int) -> None:
        """Refuse what is not an output."""
        if message.shape != (1,) or not 0 <= message[0] < self.randomizer.outputs:
            raise InvalidInput(
                f"a report is one whole number from 0 to {self.randomizer.outputs - 1}"
            )

    def collect(
        self, message: IntArray, publication: Publication, coin: int, source: Source = "secure"
    ) -> Report:
        """The report, weighed by the direction of its id; inspected first."""
        self.inspect(message, publication, coin)
        people = np.array([coin], dtype=np.int64)
        return Report(self.weighed(message, publication, people), source)

    def fold(self, secret: Secret, sent: Sent) -> Secret:
        """Many reports at once."""
        self.inspect_all(sent)
        outputs = np.array([message[0] for message in sent.messages], dtype=np.int64)
        people = np.array(sent.coins, dtype=np.int64)
        return self.absorb_outputs(secret, outputs, sent.publication, people, sent.source)

    def absorb_outputs(
        self,
        secret: Secret,
        outputs: IntArray,
        publication: Publication,
        people: IntArray,
        source: Source,
    ) -> Secret:
        """The outputs of people with these public ids, added up."""
        secret.sums += self.weighed(outputs, publication, people)
        secret.users += len(outputs)
        secret.source = weakest(secret.source, source)
        return secret

    def weighed(self, outputs: IntArray, publication: Publication, people: IntArray) -> IntArray:
        """Sums of (2 j - M + 1) z and of squares, in steps of the grid, and of 2 j - M + 1."""
        policy = publication.policy
        if not isinstance(policy, ParametricPolicy) or len(policy.theta) != self.dimension:
            raise InvalidInput(
                f"these reports need the parametric policy of {self.dimension} parameters that "
                "they were made under"
            )
        z, coins = policy.directions(people), np.empty(len(people))
        search_coins(policy.key, people, coins)
        odd = 2 * outputs - (self.randomizer.outputs - 1)
        squares = self._squares(outputs, coins)
        return np.concatenate([odd @ z, [odd.sum(), squares.sum()]]).astype(np.int64)

    def _squares(self, outputs: IntArray, coins: Array) -> IntArray:
        squares = self.randomizer.square_of(outputs, coins)
        weighted = np.rint(self.weight * (squares - 0.5) * STEPS)
        return np.asarray(weighted, dtype=np.int64)

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """Unbiased sums of everybody so far."""
        values, d, half = secret.sums.astype(np.float64), self.dimension, 2 * self.randomizer.slope
        values[:d] *= GRID / half
        values[d] /= half
        values[d + 1] *= GRID
        law = self.law(secret.users)
        return Release(secret.users, self.layout.views(values), law, secret.source)


def sliding_for(epsilon: float, participations: int) -> Sliding:
    """The randomizer of one of that many reports, all of which together may cost epsilon."""
    epsilon = number(epsilon, "requested_epsilon", low=0.0, low_open=True)
    share = epsilon / participations
    while participations > 1 and math.nextafter(share * participations, math.inf) > epsilon:
        share = math.nextafter(share, 0.0)
    return best_sliding(share)
