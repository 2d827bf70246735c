"""Posterior sampling on jointly private counts."""

from __future__ import annotations

import math

import numpy as np

from tacit.features import pairs
from tacit.kernels.joint_counts import mark_tried, sample_joint_model
from tacit.kernels.planning import backward_induction, greedy
from tacit.planners.base import Ask, Streams, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task


class JointCountsPlanner:
    """Draws a model that the released counts and their noise allow, plays its best policy.

    The publication remembers which actions were ever prescribed: others have no data, whatever the
    noise says.

    Args:
        transition_scale: what counts were multiplied by before noise was added.
        reward_scale: the same for reward sums.
        width: how much of the released noise is drawn again; 1 is the posterior under a flat prior.
    """

    def __init__(self, *, transition_scale: float, reward_scale: float, width: float) -> None:
        self.transition_scale = transition_scale
        self.reward_scale = reward_scale
        self.width = width

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Sample, then plan exactly in the sample."""
        H, S, A = pairs(task)
        counts = release.blocks["transitions"] / self.transition_scale
        G = len(counts)
        tried = np.zeros((G, S, A), dtype=np.int64)
        if previous is not None:
            assert isinstance(previous.policy, TabularPolicy)
            tried = previous.context["tried"].copy()
            mark_tried(previous.policy.actions, task.homogeneous, tried)
        known, paid, paid_std = np.zeros((0, S, A)), np.zeros((G, S, A)), 0.0
        if "reward" in release.blocks:
            paid = release.blocks["reward"] / self.reward_scale
            paid_std = _std(release, "reward") / self.reward_scale
        else:
            known = np.ascontiguousarray(np.broadcast_to(task.known["reward"], (G, S, A)))
        P, R = np.empty((G, S, A, S)), np.empty((G, S, A))
        sample_joint_model(
            counts,
            paid,
            known,
            tried,
            _std(release, "transitions") / self.transition_scale,
            paid_std,
            self.width,
            streams.posterior,
            np.empty(S),
            P,
            R,
        )
        Q = np.full((H, S, A), np.inf)
        backward_induction(P, R, Q, np.empty((H + 1, S)))
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions), {"tried": tried})


def _std(release: Release, block: str) -> float:
    return math.sqrt(float(release.law.variance(block).max()))
