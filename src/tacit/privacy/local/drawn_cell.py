"""One cell of a step that the user draws in secret: behind a shuffler all steps hide each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.questions import JOINT, REWARD
from tacit.privacy.finite import packing
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.task import Task


class DrawnCell(OneCell):
    """The same for a step that the user draws with a fair coin of its own, and sends along.

    The step says nothing about the user; that nobody else knows it beforehand is what lets users of
    all steps hide each other behind a shuffler (docs/papers/tabular_ldp.md#b8-crowd).
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

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: the step, then the oracle's report on its cell."""
        h, kind, mass = self._asked(contribution, noise)
        return np.append(np.int64(h), packing.pack(self._answer(mass, kind, noise)))

    def moved(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """The worst of all steps, any of which may be drawn."""
        cells = [self.statistic.layout.views(life)["cell"] for life in (first, second)]
        apart = [
            np.abs(self._chances(self._kind(h), two) - self._chances(self._kind(h), one)).sum()
            for h, (one, two) in enumerate(zip(*cells, strict=True))
        ]
        return float(max(apart)) / 2

    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """That of the oracle for the step that was drawn; the step itself says nothing."""
        one, two = (self.statistic.layout.views(life)["cell"] for life in (first, second))
        ratio = np.zeros(len(messages))
        for h in np.unique(messages[:, 0]):
            rows, kind = messages[:, 0] == h, self._kind(int(h))
            words = packing.words(self.oracles[kind].domain)
            ratio[rows] = self._ratio(messages[rows, 1 : 1 + words], kind, one[h], two[h])
        return ratio

    def _kind(self, h: int) -> int:
        return REWARD if h == self.statistic.horizon - 1 else JOINT

    def _question(
        self, message: IntArray, publication: Publication, coin: int
    ) -> tuple[int, int, IntArray]:
        H = self.statistic.horizon
        if message.ndim != 1 or not message.size or not 0 <= message[0] < H:
            raise InvalidInput(f"the report must begin with the number of its step, below {H}")
        h = int(message[0])
        return h, self._kind(h), message[1:]

    def _questions(
        self, messages: Sequence[IntArray], publication: Publication, coins: Sequence[int]
    ) -> tuple[IntArray, IntArray, Sequence[IntArray]]:
        each = [self._question(message, publication, 0) for message in messages]
        steps, kinds = np.array([found[:2] for found in each], dtype=np.int64).reshape(-1, 2).T
        return steps, kinds, [packed for _, _, packed in each]

    def _asked(self, contribution: IntArray, noise: Noise) -> tuple[int, int, IntArray]:
        """A step drawn with a fair coin."""
        H, h = self.statistic.horizon, 0
        while h < H - 1 and not noise.happens(1, H - h):
            h += 1
        mass = self.statistic.layout.views(contribution)["cell"][h]
        return h, self._kind(h), mass
