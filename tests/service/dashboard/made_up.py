"""Releases of simulated runs, as the collector stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.agents.base import Agent
from tacit.learner import BoundAgent
from tacit.policies.tabular import TabularPolicy
from tacit.privacy.base import Query
from tacit.privacy.noise import SimulatedNoise
from tacit.problems.tabular import TabularMDP
from tacit.publication import Publication
from tacit.release import Release
from tacit.simulation.loops.one_cell import OneCellRun
from tacit.simulation.score import new_score
from tacit.simulation.users import simulated_users
from tacit.streams import planner_streams, stream


@dataclass(frozen=True, eq=False)
class Stored:
    users: int
    blocks: Mapping[str, npt.NDArray[Any]]
    variances: Mapping[str, npt.NDArray[Any]]

    def with_noise(self, factor: float) -> Stored:
        """The same numbers with another claim about how noisy they are."""
        return Stored(
            self.users, self.blocks, {k: factor**2 * v for k, v in self.variances.items()}
        )


def stored(release: Release) -> Stored:
    variances = {name: release.law.variance(name) for name in release.blocks}
    return Stored(release.users, release.blocks, variances)


def local_run(
    problem: TabularMDP, agent: Agent, users: int, seed: int
) -> tuple[BoundAgent, Stored, Publication]:
    """tacit-local after so many users: the newest release and the policy planned on it."""
    bound = agent.bind(problem.task(users=users))
    run = OneCellRun(problem, bound, 0, seed, np.array([users]))
    run.advance(users)
    secret = bound.privatizer.init()
    for name, block in bound.privatizer.sums.views(secret.sums).items():
        block[...] = getattr(run._sums, name).reshape(block.shape)
    secret.users = users
    release = bound.privatizer.release(secret, Query(1), SimulatedNoise(stream(0, seed, "unused")))
    return bound, stored(release), Publication(1, TabularPolicy(run._batch.policy.copy()))


def joint_run(
    problem: TabularMDP, agent: Agent, users: int, seed: int
) -> tuple[BoundAgent, Stored, Publication]:
    """tacit-joint likewise, batch by batch: contributions of a batch are added up at once."""
    bound = agent.bind(problem.task(users=users))
    privatizer, streams = bound.privatizer, planner_streams(0, seed)
    noise, people = SimulatedNoise(stream(0, seed, "noise")), stream(0, seed, "users")
    secret, publication, served = privatizer.init(), None, 0
    lived, score = simulated_users(problem, people), new_score(problem, np.array([users]))
    while True:
        version = 0 if publication is None else publication.version + 1
        query = Query(bound.release_number(version, served))
        release = privatizer.release(secret, query, noise)
        publication = bound.planner.plan(bound.task, release, None, publication, streams)
        batch = bound.schedule(served)
        if served + batch >= users:
            return bound, stored(release), publication
        total = np.zeros(bound.statistic.layout.size, dtype=np.int64)
        for first in range(served, served + batch, lived.rows):
            count = min(lived.rows, served + batch - first)
            lives = lived.live(publication.policy, first, count, score)
            coins = np.arange(first, first + count)
            bound.statistic.add_many(lives, publication, coins, total)
        privatizer.absorb_sums(secret, total, batch, publication, noise)
        served += batch
