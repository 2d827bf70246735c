"""Users who act on one policy, served in one call: their regression sums are added up exactly."""

from __future__ import annotations

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.linear_sums import Weights, add_steps
from tacit.kernels.rollout import Truth, rollout
from tacit.simulation.loops import Score, record


@kernel
def linear_segment(
    truth: Truth,
    uniforms: Array,
    policy: IntArray,
    phi: Array,
    weights: Weights,
    gram: IntArray,
    following: IntArray,
    reward: IntArray,
    states: IntArray,
    actions: IntArray,
    rewards: Array,
    score: Score,
) -> None:
    """One episode per row of ``uniforms``, all under one policy."""
    _, now, at, checkpoints, regret_curve, reward_curve = score
    for row in range(uniforms.shape[0]):
        total = rollout(truth, policy, uniforms[row], states, actions, rewards)
        add_steps(states, actions, rewards, phi, weights, gram, following, reward)
        record(total, now, at, checkpoints, regret_curve, reward_curve)
