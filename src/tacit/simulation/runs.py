"""One seeded run, advanced in chunks: stepwise by the driver, or by a compiled loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from tacit.arrays import IntArray
from tacit.driver import BoundAgent, drive
from tacit.privacy.noise import SimulatedNoise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.simulation.loops import Score, record
from tacit.simulation.streams import planner_streams, stream
from tacit.trajectory import Trajectory


class Run(Protocol):
    """A run in progress."""

    @property
    def score(self) -> Score:
        """Regret so far; ``score.at[0]`` episodes are done."""

    def advance(self, episodes: int) -> None:
        """Do that many more episodes (a stepwise run may finish its current batch first)."""


def new_score(problem: Problem, checkpoints: IntArray) -> Score:
    """A score at zero episodes."""
    return Score(
        optimum=problem.optimal_value(),
        now=np.zeros(3),
        at=np.zeros(2, dtype=np.int64),
        checkpoints=checkpoints,
        regret=np.full(len(checkpoints), np.nan),
        reward=np.full(len(checkpoints), np.nan),
    )


class Interrupted(Exception):
    """Raised inside a stepwise run when it is asked to stop between two users."""


class StepwiseRun:
    """The driver itself, user by user: runs any agent, and defines what the loops must equal."""

    def __init__(
        self,
        problem: Problem,
        agent: BoundAgent,
        root: int,
        run: int,
        checkpoints: IntArray,
        stop: threading.Event,
    ) -> None:
        self.problem = problem
        self.score = new_score(problem, checkpoints)
        self._stop = stop
        self._users = stream(root, run, "users")
        self._publications: Iterator[Publication] = drive(
            agent,
            self._live,
            SimulatedNoise(stream(root, run, "noise")),
            planner_streams(root, run),
        )

    def _live(self, publication: Publication) -> Trajectory:
        """One simulated user: live through an episode, and be scored."""
        if self._stop.is_set():
            raise Interrupted
        trajectory = self.problem.rollout(publication.policy, self._users)
        reward = 0.0
        for r in trajectory.rewards:  # in the order of the compiled loops, to the last bit
            reward += r
        _, now, at, checkpoints, regret_curve, reward_curve = self.score
        record(reward, now, at, checkpoints, regret_curve, reward_curve)
        return trajectory

    def advance(self, episodes: int) -> None:
        """Serve users until that many more episodes are done."""
        target = self.score.at[0] + episodes
        try:
            while self.score.at[0] < target:
                publication = next(self._publications, None)
                if publication is None:
                    return
                value = self.problem.value(publication.policy)
                self.score.now[0] = self.score.optimum - value
        except Interrupted:
            return
