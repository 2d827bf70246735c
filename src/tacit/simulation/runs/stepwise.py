"""The run that defines every result: one user after the other, by the driver."""

from __future__ import annotations

import threading

from tacit.arrays import IntArray
from tacit.learner import BoundAgent, Learner
from tacit.privacy.noise import Noise, SimulatedNoise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.simulation.attendance import AttendanceTrace
from tacit.simulation.runs.base import Run, require_counts
from tacit.simulation.score import record
from tacit.trajectory import Trajectory


class StepwiseRun(Run):
    """The driver itself, user by user: runs any agent, and defines what the others must equal."""

    learner: Learner

    def __init__(
        self,
        problem: Problem,
        agent: BoundAgent,
        root: int,
        run: int,
        checkpoints: IntArray,
        stop: threading.Event,
        noise: Noise | None = None,
        people: AttendanceTrace | None = None,
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints, people)
        require_counts(agent)
        self.learner = self._new_learner(noise or SimulatedNoise(self._noise))
        self._stop = stop

    def _live(self, publication: Publication) -> Trajectory:
        """One simulated user: live through an episode, and be scored."""
        trajectory = self.problem.rollout(publication.policy, self._users)
        reward = 0.0
        for r in trajectory.rewards:  # in the order of the compiled loops, to the last bit
            reward += r
        record(reward, self.score)
        return trajectory

    def advance(self, episodes: int) -> None:
        """As ``learner.drive``, until that many more episodes are done, or it is to stop."""
        learner, trace = self.learner, self.people
        for _ in range(episodes):
            if self._stop.is_set():
                return
            if learner.left == 0:
                self.publish()
            learner.serve(self._live, None if trace is None else int(trace.who[learner.served]))
