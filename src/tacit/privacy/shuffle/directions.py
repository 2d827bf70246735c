"""Returns behind a shuffler: (version, direction, one of three words), hidden among people alike.

Directions are few and shared: a direction of one's own would name its person. A batch has 2 d of
them, and people who played the same one under the same publication hide each other; nobody else is
counted on (proofs/search.md). A report says "low", "middle" or "high" about a return seen through
the published window, rounded by a private coin, by k-ary randomized response.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.policies.parametric import ParametricPolicy
from tacit.privacy.base import Report
from tacit.privacy.finite import chances as odds
from tacit.privacy.finite.sliding import UNLIKELY, Sliding
from tacit.privacy.finite.subset import KaryResponse
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.local.one_number import OneNumber
from tacit.privacy.noise import Noise
from tacit.privacy.shuffle.blanket import FINENESS, Blanket, Crowd, largest_reports
from tacit.privacy.shuffle.shuffled import OPENED, CrowdEvent, Shuffler, grouped, unasked
from tacit.publication import Publication
from tacit.statistics.search import RoundedReturn, SharedReturn
from tacit.task.task import Task
from tacit.validate import integer

WORDS = 3
"""What a report can say: fewer would tell nothing of how far returns spread."""

MOST = 8.0
"""Local epsilon that one report never exceeds."""


def words_for(crowd: int, task: Task, epsilon: float, delta: float) -> Sliding:
    """The least noisy randomizer whose crowd keeps the asked central guarantee."""
    times = task.participations
    share = delta / grouped(times, epsilon / times)
    each = Crowd(crowd, epsilon / times, share)
    (report,) = largest_reports(each, (WORDS,), MOST, KaryResponse, FINENESS, epsilon / times)
    growth = Fraction(report.own * (WORDS - 1), odds.ONE - report.own)
    return Sliding(WORDS, 1, math.floor(growth * UNLIKELY))


class ShuffledReturns(Shuffler):
    """A shuffler of returns: people who played the same direction are a crowd.

    Args:
        statistic: return and shared direction.
        task: the public task.
        crowd: people of a batch with the same direction.
        requested: central epsilon and delta of everything one person sends, the delta being that at
            which the central guarantee is stated.
        randomizer: of a report; by default the least noisy one for what is requested.
    """

    _crowd_is = "direction", "of direction", "people must take the directions in turn"

    def __init__(
        self,
        statistic: SharedReturn,
        task: Task,
        *,
        crowd: int,
        requested: tuple[float, float],
        randomizer: Sliding | None = None,
    ) -> None:
        self.crowd, self.crowds = integer(crowd, "crowd", low=1), statistic.directions
        self.batch = self.crowd * self.crowds
        self.randomizer = randomizer or words_for(self.crowd, task, *requested)
        spent = task.participations * self.randomizer.epsilon
        self.local: OneNumber = OneNumber(
            RoundedReturn(task, self.randomizer.largest),
            task,
            self.randomizer,
            requested_epsilon=math.nextafter(spent, math.inf),
        )
        self.layout = self.local.layout
        self.guarantee = self._account(task, requested)

    def _account(self, task: Task, requested: tuple[float, float]) -> Guarantee:
        """As if chances were those of a k-ary response, the likely one rounded up."""
        own = math.ceil(Fraction(self.randomizer.likely * odds.ONE, self.randomizer.total))
        blanket = Blanket((KaryResponse(WORDS, 1, own),))
        self.event = CrowdEvent((blanket,), self.crowd, task.participations, requested[0])
        view = self.local.guarantee
        stated = self.event.guarantee(
            task,
            model="shuffle",
            mechanism=f"one of {WORDS} words about one return, by k-ary randomized response; "
            f"opened in batches of {self.batch:,} people, {self.crowd:,} with each direction",
            accountant=f"privacy blanket of {self.crowd:,} people with the same policy and "
            "direction, by tilted convolution, rounded up",
            requested=requested,
            noise=dict(view.noise),
            assumptions=(
                *view.assumptions[:1],
                "directions are taken in turn, and the coin that rounds a return stays private",
                *OPENED,
                "nobody else of a crowd works together with whoever looks at it",
            ),
        )
        return dataclasses.replace(stated, also=(unasked(view),))

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """On the device: round by a private coin, randomize, and put the direction on."""
        policy = publication.policy
        if not isinstance(policy, ParametricPolicy) or policy.shared != self.crowds:
            raise InvalidInput(f"these reports need a policy with {self.crowds} shared directions")
        direction, x = int(contribution[0]), int(contribution[1])
        place, rest = divmod((min(max(x, -STEPS), STEPS) + STEPS) * (WORDS - 1), 2 * STEPS)
        if noise.happens(rest, 2 * STEPS):
            place += 1
        output = noise.randomize(self.randomizer, place)
        people = np.array([direction], dtype=np.int64)
        values = self.local.weighed(output, publication, people)
        return Report(values, noise.source, direction)

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """How far x moves, over the most that it can."""
        return abs(int(second[1]) - int(first[1])) / (2.0 * STEPS)
