"""What users of linear systems contribute, sensitivities (docs/papers/lq_jdp.md#sensitivities)."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.raw.lq_moments import moments, responses
from tacit.policies.linear import LinearPolicy
from tacit.publication import Publication
from tacit.statistics import base
from tacit.task.task import Task
from tacit.trajectory import Lives, VectorTrajectory
from tacit.validate import number

ROOT2 = math.sqrt(2.0)


def complete(lives: Lives, shape: tuple[int, int, int]) -> bool:
    """Whether these are whole trajectories of a system of shape (H, n, d), one user per row.

    Others contribute nothing.
    """
    (H, n, d), (states, inputs, _) = shape, lives
    vectors = states.dtype.kind == inputs.dtype.kind == "f"
    return vectors and states.shape[1:] == (H + 1, n) and inputs.shape[1:] == (H, d)


class ControlMoments(base.BoundedSum, base.BatchStatistic):
    """M = sum_h z z^T, packed, and weight * N, N = sum_h z x_{h+1}^T, of one user.

    Whatever a user sends, states count with norm at most 1 and inputs with norm at most the task's
    gain; incomplete or non-finite trajectories count as zeros.

    Args:
        task: a task of the family "lq".
        weight: b, the factor on N.
        isometric: pack M so that Euclidean distance is Frobenius distance (entries off the diagonal
            times sqrt 2). False keeps its upper triangle as it is, as in the paper.
        energy: bound on the total energy of the states (docs/papers/lq_jdp.md#b2); by default H,
            which per-step clipping gives anyway.
    """

    def __init__(
        self,
        task: Task,
        *,
        weight: float = 1.0,
        isometric: bool = True,
        energy: float | None = None,
    ) -> None:
        self.horizon = task.horizon
        self.states, self.inputs = task.sizes["states"], task.sizes["inputs"]
        self.gain = float(task.known["bounds"][3])
        self.weight = number(weight, "weight", low=0.0, low_open=True)
        self.energy = float(task.horizon if energy is None else min(energy, task.horizon))
        self.isometric = isometric
        n, D = self.states, self.states + self.inputs
        moment, target = base.counted("moment", D * (D + 1) // 2), base.counted("target", D, n)
        self.layout = base.Layout([moment, target])

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the clipped moments of many users, one trajectory per row."""
        if complete(lives, (self.horizon, self.states, self.inputs)):
            self._add(lives.states, lives.actions, out)

    def _add(self, states: Array, inputs: Array, out: IntArray) -> None:
        off = self.off_diagonal
        moments(states, inputs, self.gain, self.energy, self.weight, off, out)

    @property
    def off_diagonal(self) -> float:
        """Factor on entries of M off the diagonal."""
        return ROOT2 if self.isometric else 1.0

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """Jointly over both blocks, with Ez = (1 + gain^2) energy and Ey = energy.

        Replace-one, L2: sqrt2 (Ez + b^2 Ey / 2) for b^2 <= 2 Ez / Ey, else 2 b sqrt(Ez Ey): the
        Gram matrix of (z, b y / sqrt2) is positive semidefinite of bounded trace, and two such
        matrices have a nonnegative inner product. Without isometric packing this is an upper bound.
        L1 is bounded by the root of the number of cells times L2. Rounding to the grid adds at
        most one step per cell.
        """
        most, next_most = (1.0 + self.gain**2) * self.energy, self.energy
        moment, target = w["moment"], w["target"] * self.weight
        if not replaced:
            exact = math.sqrt((moment * most) ** 2 + target**2 * most * next_most)
        elif target**2 * next_most <= 2.0 * moment**2 * most:
            exact = (
                ROOT2 * (moment * most + target**2 * next_most / (2.0 * moment)) if moment else 0
            )
        else:
            exact = 2.0 * target * math.sqrt(most * next_most)
        cells = math.sqrt(self.layout.size)
        rounded = exact + cells * max(w.values()) / STEPS
        return rounded if norm == "l2" else cells * rounded

    def worst_pair(self) -> tuple[VectorTrajectory, VectorTrajectory]:
        """The pair furthest apart among constant and alternating trajectories.

        States of one trajectory overlap (x_{h+1} is a target and then a regressor), so that the
        bound, which treats them as free, is approached and not always attained.
        """
        return self._worst_pair

    @cached_property
    def _worst_pair(self) -> tuple[VectorTrajectory, VectorTrajectory]:
        candidates = [
            self._wave(axis, turn, push)
            for axis in {0, self.states - 1}
            for turn in (1.0, -1.0)
            for push in np.linspace(-self.gain, self.gain, 9)
        ]
        contributions = []
        for candidate in candidates:
            out = np.zeros(self.layout.size, dtype=np.int64)
            self._add(candidate.states[None], candidate.actions[None], out)
            contributions.append(out / STEPS)
        table = np.array(contributions)
        distances = ((table[:, np.newaxis] - table) ** 2).sum(axis=2)
        one, two = np.unravel_index(int(distances.argmax()), distances.shape)
        return candidates[int(one)], candidates[int(two)]

    def _wave(self, axis: int, turn: float, push: float) -> VectorTrajectory:
        """States of norm 1 on one axis, constant or alternating, inputs in step with them."""
        sign = turn ** np.arange(self.horizon + 1)
        states = np.zeros((self.horizon + 1, self.states))
        inputs = np.zeros((self.horizon, self.inputs))
        states[:, axis] = sign
        inputs[:, axis % self.inputs] = push * sign[:-1]
        return VectorTrajectory(states, inputs, np.zeros(self.horizon))


class InstrumentedResponses(base.BoundedSum, base.BatchStatistic):
    """A user's residuals against a public model, projected on public instruments.

    Where the noise law is not revealed, also the second moment of the residuals themselves. What to
    subtract and what to project on is in the publication's context ("reference", "path",
    "whitener", "instruments", "usual", "weights"), the excitation in its policy. Whatever they
    say, one contribution has Euclidean norm at most 1 (proofs/lq.md).
    """

    def __init__(self, task: Task) -> None:
        self.horizon = task.horizon
        self.states, self.inputs = task.sizes["states"], task.sizes["inputs"]
        n, d = self.states, self.inputs
        blocks = [base.counted(name, n, n) for name in ("response", "cross")]
        blocks.append(base.counted("excited", d, n))
        if "noise" not in task.known:
            blocks.append(base.counted("residual", n * (n + 1) // 2))
        self.layout = base.Layout(blocks)

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the clipped responses of many users, one trajectory per row."""
        policy = publication.policy
        if not isinstance(policy, LinearPolicy):
            raise InvalidInput(f"responses are to a LinearPolicy, got {type(policy)}")
        if complete(lives, (self.horizon, self.states, self.inputs)):
            recipe = self._recipe(publication)
            responses(lives.states, lives.actions, *recipe, policy.key, coins, out)

    def _recipe(self, publication: Publication) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Reference, path, whitener, instruments, usual residuals and weights to contribute by."""
        H, n, d = self.horizon, self.states, self.inputs
        return (
            base.context_array(publication, "reference", (n + d, n)),
            base.context_array(publication, "path", (H, n)),
            base.context_array(publication, "whitener", (n, n)),
            base.context_array(publication, "instruments", (H, n)),
            base.context_array(publication, "usual", (n, n)),
            base.context_array(publication, "weights", (4,)),
        )

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """L2: 2 for replace-one (two opposite unit vectors), 1 for add-remove-one.

        Weights are taken at their largest. Rounding is towards zero and lengthens nothing.
        """
        cells = math.sqrt(self.layout.size) if norm == "l1" else 1.0
        return (1.0 + replaced) * max(w.values()) * cells

    def worst_pair(self) -> tuple[VectorTrajectory, VectorTrajectory]:
        """One push of the second state, either way, from rest.

        All blocks but the residuals' second moment change sign with it. That one does not, so the
        push is large enough for clipping and not so large that squares prevail.
        """
        inputs, costs = np.zeros((self.horizon, self.inputs)), np.zeros(self.horizon)
        states = np.zeros((self.horizon + 1, self.states))
        states[1] = 1.5 / math.sqrt(self.states)
        return VectorTrajectory(states, inputs, costs), VectorTrajectory(-states, inputs, costs)
