"""The V-free statistic of linear mixtures: every step teaches every direction.

See docs/papers/mixture_jdp.md#b1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels.raw.targets import StepTables, TargetSums, add_multi_targets
from tacit.publication import Publication
from tacit.statistics.base import BatchStatistic, BoundedSum, Layout, Norm, counted
from tacit.statistics.distances import ISOMETRIC, squared_diameter
from tacit.task.features import geometry
from tacit.task.task import Task, table_sizes
from tacit.trajectory import Lives, Trajectory

Shares = Mapping[str, float]
SHARES = {"gram": 0.35, "target": 0.25, "reward_gram": 0.2, "reward_target": 0.2}
"""Shares of mu^2 by family (docs/papers/mixture_jdp.md#b1). Not measured: others."""


class MultiTargets(BoundedSum, BatchStatistic):
    """Sums of M(s,a), p_{s'}, varphi varphi^T and varphi (r - offset), free of any V.

    Contributions are scaled so that noise of one size in all cells spends the given shares. Cells
    of the matrices that no (s, a) can touch are not sent. One table serves all stages when the task
    is declared homogeneous.

    Args:
        task: a task that reveals features.
        shares: of mu^2, by family.
    """

    def __init__(self, task: Task, shares: Shares = SHARES) -> None:
        H, _, _ = table_sizes(task)
        self.task = task
        self.pooled = task.homogeneous
        self.geometry = g = geometry(task)
        self.scales: dict[str, float] = {}
        self.columns: dict[str, IntArray] = {}
        rows = {
            "gram": _pack(g.moments),
            "target": g.shifts,
            "reward_gram": _pack(np.einsum("ki,kj->kij", g.varphi, g.varphi)),
            "reward_target": g.varphi,
        }
        # transitions matter if there is a second step, rewards if they are not known
        families = [name for name in SHARES if (g.rewards if "reward" in name else H > 1)]
        whole = sum(shares[name] for name in families)
        self._rows: dict[str, Array] = {}
        for name in families:
            flat = rows[name].reshape(-1, rows[name].shape[-1])
            self.columns[name] = np.flatnonzero(np.abs(flat).max(axis=0) > 1e-12)
            kept = rows[name][..., self.columns[name]]
            widest = math.sqrt(squared_diameter(self._alone(name, kept)))
            self.scales[name] = math.sqrt(shares[name] / whole) / widest
            self._rows[name] = self.scales[name] * kept
        stages = {"gram": H - 1, "target": H - 1, "reward_gram": H, "reward_target": H}
        self.layout = Layout(
            [
                counted(name, 1 if self.pooled else stages[name], len(columns))
                for name, columns in self.columns.items()
            ]
        )
        self.tables = self._tables()
        self._none = np.zeros((0, 1), dtype=np.int64)

    def _alone(self, name: str, rows: Array) -> Array:
        """All contributions of one family by one step, or by none."""
        if name == "reward_target":
            offset = self.geometry.offset
            rows = np.vstack([-offset * rows, (1 - offset) * rows])
        return np.vstack([rows.reshape(-1, rows.shape[-1]), np.zeros((1, rows.shape[-1]))])

    def _tables(self) -> StepTables:
        def grid(rows: Array) -> IntArray:
            return np.rint(rows * STEPS).astype(np.int64)

        rows, offset = self._rows, self.geometry.offset
        SA, S, _ = self.geometry.full.shape
        none = np.zeros((SA, 1))
        target = rows.get("reward_target", none)
        return StepTables(
            gram=grid(rows.get("gram", none)),
            target=grid(rows.get("target", np.zeros((SA, S, 1)))),
            reward_gram=grid(rows.get("reward_gram", none)),
            reward_low=-offset * target * STEPS,
            reward_high=(1.0 - offset) * target * STEPS,
        )

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the contributions of many users, one trajectory per row."""
        views = self.layout.views(out)
        sums = TargetSums(*(views.get(name, self._none) for name in TargetSums._fields))
        add_multi_targets(lives, self.task.horizon, self.pooled, self.tables, sums)

    @cached_property
    def _steps(self) -> dict[str, Array]:
        """What one step can contribute, family by family; rows of the four belong together.

        Every (s, a, s') with reward 0 and 1 (the distance is convex in the reward), and nothing
        at all.
        """
        _, S, A = table_sizes(self.task)
        rows, offset = self._rows, self.geometry.offset
        moved = np.repeat(np.arange(S * A), S if "gram" in rows else 1)
        steps = {}
        if "gram" in rows:
            steps["gram"] = rows["gram"][moved]
            steps["target"] = rows["target"].reshape(S * A * S, -1)
        if "reward_gram" in rows:
            steps["reward_gram"] = rows["reward_gram"][moved]
            paid = rows["reward_target"][moved]
            both = {name: np.vstack([table, table]) for name, table in steps.items()}
            both["reward_target"] = np.vstack([-offset * paid, (1.0 - offset) * paid])
            steps = both
        return {name: np.vstack([table, 0 * table[:1]]) for name, table in steps.items()}

    def _step(self, w: Mapping[str, float], families: Iterable[str], replaced: bool) -> float:
        """How far one step moves these families, replaced by another one or removed."""
        rows = np.hstack([w[name] * self._steps[name] for name in families])
        rounding = (1 + replaced) * max(w.values()) * math.sqrt(rows.shape[1]) / STEPS
        squared = squared_diameter(rows) if replaced else float((rows**2).sum(axis=1).max())
        return math.sqrt(squared) + rounding

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """A public maximum over all pairs of steps, found by enumeration.

        See docs/papers/mixture_jdp.md#b1. Pooled stages add up by the triangle inequality, separate
        ones by squares; the last of the separate stages sends rewards only. L1 is bounded by
        sqrt(cells) L2.
        """
        H, every = self.task.horizon, self._step(w, w, replaced)
        if self.pooled:
            l2 = H * every
        else:
            last = [name for name in w if name.startswith("reward")]
            squares = (H - 1) * every**2
            l2 = math.sqrt(squares + (self._step(w, last, replaced) ** 2 if last else 0.0))
        return l2 if norm == "l2" else math.sqrt(self.layout.size) * l2

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Two users who repeat the two steps that are furthest apart."""
        _, S, A = table_sizes(self.task)
        H = self.task.horizon
        rows = np.hstack(list(self._steps.values()))
        unique, first = np.unique(rows[:-1], axis=0, return_index=True)
        best = (0.0, 0, 0)
        for i, row in enumerate(unique):
            far = ((unique - row) ** 2).sum(axis=1)
            j = int(far.argmax())
            best = max(best, (float(far[j]), int(first[i]), int(first[j])))

        def repeat(index: int) -> Trajectory:
            targets = S if "gram" in self._rows else 1
            reward, step = divmod(index, S * A * targets)
            pair, after = divmod(step, targets)
            s, a = divmod(pair, A)
            states = np.full(H + 1, s)
            states[1::2] = after
            return Trajectory(states, np.full(H, a), np.full(H, float(reward)))

        return repeat(best[1]), repeat(best[2])


def _pack(matrices: Array) -> Array:
    """Lower triangles row by row, off-diagonal entries times sqrt 2."""
    rows, columns = np.tril_indices(matrices.shape[-1])
    packed: Array = matrices[:, rows, columns] * np.where(rows == columns, 1.0, ISOMETRIC)
    return packed
