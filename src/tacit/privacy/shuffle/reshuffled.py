"""The shuffle protocol M_sh of the paper, with the guarantee it truly has.

See docs/papers/tabular_ldp.md#shuffling.

Every step's bits pass randomized response one by one, and before every episode a shuffler sends all
past reports in a new order. Between two episodes the multiset it sends grows by exactly one report:
the newest user's, in clear view. So its output hides nobody, and each user is left with the local
guarantee of the whole row of bits (docs/papers/tabular_ldp.md#e12, docs/papers/tabular_ldp.md#e13).
Sums do not depend on the order, so none is drawn here.
"""

from __future__ import annotations

import dataclasses

from tacit.privacy.finite.bits import BinaryResponse
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.local.response import (
    LocalResponse,
    differing_bits,
    response_bits,
    row_length,
)
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task
from tacit.validate import number


class ReshuffledBits(LocalResponse):
    """Visit, transition and m reward bits of every step, each reported with chance e / (e + 1).

    The paper's sum of transition bits (111) runs over H steps, one of which has no such bit; it is
    taken over the H - 1 that exist. The m bits of a cell hold the rounded sum of its rewards.

    Args:
        statistic: visit counts, pooled over stages.
        task: the public task.
        requested: as in the paper, epsilon of a single bit and delta of the claimed amplification.
        reward_bits: m, as for randomized response.
        divided: whether that epsilon is the whole report's instead, and is shared by all bits in
            which two people can differ, and by all participations of a person.
    """

    served = None

    def __init__(
        self,
        statistic: VisitCounts,
        task: Task,
        *,
        requested: tuple[float, float],
        reward_bits: int = 1,
        divided: bool = False,
    ) -> None:
        epsilon = number(requested[0], "requested_epsilon", low=0.0, low_open=True)
        self._delta_asked = number(requested[1], "requested_delta", low=0.0, high=1.0)
        row = row_length(statistic, reward_bits)
        differing = differing_bits(statistic, reward_bits)
        if divided:
            bits = response_bits(statistic, epsilon, task.participations, reward_bits)
        else:
            bits = BinaryResponse.calibrate(differing * epsilon, row, differing)
        super().__init__(statistic, task, bits, requested_epsilon=epsilon, reward_bits=reward_bits)

    def _account(self, task: Task, epsilon: float) -> Guarantee:
        local = super()._account(task, epsilon)
        return dataclasses.replace(
            local,
            mechanism="randomized response on every bit of every step; a shuffler sends all "
            "reports so far, in a new order, before every episode",
            requested_delta=self._delta_asked,
            assumptions=(
                *local.assumptions,
                "nothing of the shuffler: what it sends grows by one report per episode, so each "
                "report can be seen by difference, and there is no amplification to claim",
            ),
        )
