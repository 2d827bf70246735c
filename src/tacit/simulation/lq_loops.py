"""Compiled segments for linear systems: all users between two publications in one call.

Each follows ``driver.drive`` for users who act on one publication: draw the user's public
excitation, live through an episode, contribute, add up, be scored. Raw sums leave through the
privatizer only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.excitation import directions
from tacit.kernels.lq_moments import moments, responses
from tacit.kernels.lq_rollout import LinearTruth, lq_rollout
from tacit.kernels.sums import absorb
from tacit.simulation.loops import Score, record


class Acting(NamedTuple):
    """The policy of one publication."""

    gains: Array
    offsets: Array
    amplitude: float
    key: int


class Life(NamedTuple):
    """Buffers of one user's episode: raw."""

    v: Array
    q: Array
    states: Array
    inputs: Array
    rewards: Array
    contribution: IntArray


class Moments(NamedTuple):
    """What ``ControlMoments`` needs to know."""

    gain: float
    energy: float
    weight: float
    off_diagonal: float


@kernel
def _live(
    truth: LinearTruth, acting: Acting, user: int, g: Array, life: Life, score: Score
) -> None:
    """One user's episode, and its score."""
    H, d = life.v.shape
    life.v[:] = acting.offsets
    if acting.amplitude > 0.0:
        directions(acting.key, user, life.q)
        for h in range(H):
            for a in range(d):
                life.v[h, a] += acting.amplitude * life.q[h, a]
    reward = lq_rollout(truth, acting.gains, life.v, g, life.states, life.inputs, life.rewards)
    record(reward, score.now, score.at, score.checkpoints, score.regret, score.reward)


@kernel
def idle_segment(
    truth: LinearTruth, acting: Acting, first: int, normals: Array, life: Life, score: Score
) -> None:
    """Users who contribute nothing, one per row of ``normals``."""
    for row in range(normals.shape[0]):
        _live(truth, acting, first + row, normals[row], life, score)


@kernel
def moments_segment(
    truth: LinearTruth,
    acting: Acting,
    first: int,
    normals: Array,
    clip: Moments,
    life: Life,
    sums: IntArray,
    score: Score,
) -> None:
    """Users who contribute ``ControlMoments``."""
    for row in range(normals.shape[0]):
        _live(truth, acting, first + row, normals[row], life, score)
        moments(
            life.states,
            life.inputs,
            clip.gain,
            clip.energy,
            clip.weight,
            clip.off_diagonal,
            life.contribution,
        )
        absorb(sums, life.contribution)


@kernel
def responses_segment(
    truth: LinearTruth,
    acting: Acting,
    first: int,
    normals: Array,
    reference: Array,
    path: Array,
    whitener: Array,
    instruments: Array,
    usual: Array,
    weights: Array,
    life: Life,
    sums: IntArray,
    score: Score,
) -> None:
    """Users who contribute ``InstrumentedResponses``."""
    for row in range(normals.shape[0]):
        _live(truth, acting, first + row, normals[row], life, score)
        responses(
            life.states,
            life.inputs,
            reference,
            path,
            whitener,
            instruments,
            usual,
            weights,
            acting.key,
            first + row,
            life.contribution,
        )
        absorb(sums, life.contribution)


def new_life(horizon: int, states: int, inputs: int, cells: int) -> Life:
    """Blank buffers."""
    return Life(
        v=np.zeros((horizon, inputs)),
        q=np.zeros((horizon, inputs)),
        states=np.zeros((horizon + 1, states)),
        inputs=np.zeros((horizon, inputs)),
        rewards=np.zeros(horizon),
        contribution=np.zeros(cells, dtype=np.int64),
    )
