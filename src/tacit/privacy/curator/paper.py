"""What the paper on DP-LSVI-UCB++ does: fresh noise on every running sum, or one draw for all.

Kept so that what is printed there can be run, with the guarantee that it truly has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.privacy.base import Query
from tacit.privacy.counters.base import ExactRows
from tacit.privacy.counters.state import Buffers
from tacit.privacy.curator.curator import Curator, CuratorSecret
from tacit.privacy.events import Disclosure
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import GridLaw, Noise
from tacit.release import Release, ValueQuery
from tacit.task.task import Task


@dataclass(frozen=True)
class Independent(ExactRows):
    """Prefix t plus noise of its own: C is the matrix of prefix sums, B the identity.

    The first item is in all n published rows, so mu grows with sqrt n. Here to price the published
    DP-LSVI-UCB++ (docs/papers/linear_jdp.md#published-constants), which composes K releases of each
    Gram matrix.
    """

    name: ClassVar[str] = "independent"

    def column_norm(self) -> float:
        """Sqrt n: the first item is in every row."""
        return math.sqrt(self.length)

    def error_std(self, t: int) -> float:
        """One unit of noise, always."""
        self._position(t)
        return 1.0

    def buffers(self, size: int) -> tuple[Buffers, Buffers]:
        """The running sum; nothing public has to be kept."""
        return {"sum": np.zeros(size, dtype=np.int64)}, {}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """The prefix itself."""
        secret["sum"] += item
        return secret["sum"][None].copy()

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """What was published."""
        prefix: Array = published[0].astype(np.float64)
        return prefix

    def _factors(self) -> tuple[Array, Array]:
        ones = np.tril(np.ones((self.length, self.length)))
        return np.eye(self.length), ones


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
    """The mechanism as printed: one draw for all releases, so no finite epsilon.

    It is docs/papers/linear_jdp.md#e1. Two releases whose targets agree differ by exact user data.
    Kept so that what is printed can be run; it says what it is.
    """

    def _account(self, task: Task, requested: tuple[float, float]) -> Guarantee:
        self.event = Disclosure()
        return self.event.guarantee(
            task,
            model="none",
            mechanism="gaussian noise drawn once and added to every release",
            accountant="none, as the difference of two releases is exact user data",
            requested=requested,
            noise=self._noise_scales(),
            assumptions=("nobody sees more than one release",),
        )

    def release(self, secret: CuratorSecret, query: Query | ValueQuery, noise: Noise) -> Release:
        """As the curator, with the first draws repeated."""
        if secret.once is None:
            secret.once = _Once(noise)
        return super().release(secret, query, secret.once)

    def state(self, secret: CuratorSecret) -> dict[str, npt.NDArray[Any]]:
        """Refused: whoever goes on would have to repeat draws that are kept nowhere else."""
        raise InvalidInput(f"{self.guarantee.mechanism}: this state cannot be stored")

    def _draw_round(self, noise: Noise) -> dict[tuple[str, int], IntArray]:
        """One draw for all questions of all rounds."""
        drawn = np.empty(self.statistic.phi.shape[2], dtype=np.int64)
        noise.fill(GridLaw("gaussian", self._law.scales[: len(drawn)]), drawn)
        return dict.fromkeys(self._questions, drawn)
