"""What the paper on DP-LSVI-UCB++ does: fresh noise on every running sum, or one draw for all.

Kept so that what is printed there can be run, with the guarantee that it truly has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID, TAIL
from tacit.privacy.base import Query
from tacit.privacy.counters.base import ExactRows
from tacit.privacy.counters.state import Buffers
from tacit.privacy.curator.curator import Curator, CuratorSecret
from tacit.privacy.events import Disclosure
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.batched import GaussianLaw
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
    """A noise source that makes the draws of line 1: one matrix, and one vector by target."""

    def __init__(self, noise: Noise, stages: int) -> None:
        self._noise, self._stages = noise, stages
        self._kept: dict[str, IntArray] = {}
        self.source = noise.source
        self.times = 0

    def drawn(self, name: str, scales: Array) -> IntArray:
        """The first draw of that name, again and again."""
        if name not in self._kept:
            self._kept[name] = np.empty(len(scales), dtype=np.int64)
            self._noise.fill(GridLaw("gaussian", scales), self._kept[name])
        return self._kept[name]

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """Noise of the next Gram matrices: K_1 at all stages, once more than in the last ones."""
        self.times += 1
        matrix = self.drawn("K_1", law.scales[: len(out) // self._stages])
        out.reshape(self._stages, -1)[:] = self.times * matrix


class ReusedNoise(Curator):
    """The mechanism as printed: one draw for all releases, so no finite epsilon.

    Line 1 of Algorithm 1 draws one matrix for all stages and one vector for every target, by its
    own law; line 26 adds the matrix again after every user. It is docs/papers/linear_jdp.md#e1 and
    #e2: two releases whose targets agree differ by exact user data. Kept so that what is printed
    can be run; it says what it is.
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

    def _require_room(self, task: Task) -> None:
        """The same, for a matrix that is added after every user."""
        super()._require_room(task)
        if task.users * TAIL["gaussian"] * self.gram_std / GRID >= 2.0**63:
            raise InvalidInput(
                f"a matrix of noise that is added {task.users:,} times could leave the 64-bit "
                "integers; plan for fewer users, or for less noise"
            )

    def release(self, secret: CuratorSecret, query: Query | ValueQuery, noise: Noise) -> Release:
        """As the curator, from the draws of line 1."""
        if secret.once is None:
            secret.once = _Once(noise, self.layout.blocks[0].shape[0])
        release = super().release(secret, query, secret.once)
        if isinstance(query, ValueQuery):
            return release
        return replace(release, law=GaussianLaw(secret.once.times * self.gram_std))

    def state(self, secret: CuratorSecret) -> dict[str, npt.NDArray[Any]]:
        """Refused: whoever goes on would have to repeat draws that are kept nowhere else."""
        raise InvalidInput(f"{self.guarantee.mechanism}: this state cannot be stored")

    def _draw_round(self, noise: Noise) -> dict[tuple[str, int], IntArray]:
        """One draw for all questions about a target, of all stages and rounds."""
        assert isinstance(noise, _Once)
        d, drawn = self.statistic.phi.shape[2], {}
        for name, law in self._laws.items():
            drawn[name] = noise.drawn(name[0], np.full(d, law.std / GRID))
        return drawn
