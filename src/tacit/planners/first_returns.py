"""Planning on jointly private returns: which action of a state earned most, and how sure that is.

For tables with more cells than can be learned: no model, but one step of policy improvement on
every release. All of it is post-processing. Constants were chosen on made-up clinics (rows
"returns" of docs/results/history.md, "What was tried"); no script of it is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.planners.base import Context, ReleasePlanner, Streams
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, uniform_policy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.pairs import Flags
from tacit.task.task import Task, table_sizes

KNOWN_DEVIATIONS = 1.5
"""Standard deviations of its number of visits above which a pair is known.

Tried beside 3 on the clinic of 600 states (row "returns").
"""

TRIAL_SHARE = 0.3
"""Share of steps that try an action at random after the first release. Not measured: others."""

NO_TRIALS_FROM = 0.9
"""Share of the users after which nothing is tried any more. Not measured: others."""

LEAST_SPREAD = 1e-4
"""Least variance between the actions of a state that is believed."""


@dataclass(frozen=True)
class FirstReturnPlanner(ReleasePlanner):
    """In every state the action whose users earned most, drawn towards the state's mean.

    Attributes:
        explore: share of the users who act uniformly, before the first release.
    """

    explore: float

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """Greedy but for a falling share of steps; uniform where nothing is known."""
        (H, S, A), pairs = table_sizes(task), task.pairs
        policy = uniform_policy(H, S, A, pairs)
        if release.law.scale("returns") > 0.0:
            over = (release.users / task.users - self.explore) / (NO_TRIALS_FROM - self.explore)
            soft = TRIAL_SHARE * max(0.0, 1.0 - over) if streams.draws == 1 else 0.0
            best = best_pairs(task, release, streams)
            chances = policy.probabilities[0] * np.where(best >= 0, soft, 1.0)[:, np.newaxis]
            chosen = best[best >= 0]
            chances[pairs.state[chosen], pairs.action[chosen]] += 1.0 - soft
            policy = StochasticPolicy(np.broadcast_to(chances, (H, S, A)))
        return policy, {}


def best_pairs(task: Task, release: Release, streams: Streams) -> IntArray:
    """The pair of every state [S] that is known to earn most; -1 where none is known."""
    std = release.law.scale("returns")
    visits = 2.0 * release.blocks["totals"]
    known = visits > KNOWN_DEVIATIONS * 2.0 * std
    n = np.maximum(visits, std)
    centred = release.blocks["returns"] / n
    share = np.clip(0.5 + centred, 0.0, 1.0)
    variance = (std / n) ** 2 * (1.0 + (2.0 * centred) ** 2)
    variance += np.maximum(share * (1.0 - share), 0.01) / n
    q = _shrunk(task.pairs.state, centred, variance, known)
    best = np.full(len(task.pairs.number), -1)
    order = np.lexsort((streams.ties.random(len(q)), q))
    order = order[known[order]]
    best[task.pairs.state[order]] = order  # the last of a state stays: its largest
    return best


def _shrunk(state: IntArray, q: Array, variance: Array, known: Flags) -> Array:
    """Pairs drawn to the mean of their state, by how far apart actions of a state really are."""
    weight = np.where(known, 1.0 / variance, 0.0)
    total = np.maximum(np.bincount(state, weight), 1e-300)
    mean = (np.bincount(state, weight * q) / total)[state]
    apart = weight @ ((q - mean) ** 2 - 0.7 * variance) / max(weight.sum(), 1e-300)
    spread = max(LEAST_SPREAD, float(apart))
    return np.asarray(mean + (q - mean) * spread / (spread + variance))
