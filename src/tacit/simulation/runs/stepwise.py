"""The run that defines every result: one user after the other, by the driver."""

from __future__ import annotations

import threading

from tacit.arrays import IntArray
from tacit.learner import BoundAgent, Learner
from tacit.privacy.noise import Noise, SimulatedNoise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.simulation.attendance import AttendanceTrace
from tacit.simulation.runs.base import Interrupted, Run, require_counts
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
        self.problem = problem
        self.learner = self._begin(noise or SimulatedNoise(self._noise))
        self._stop = stop

    def _live(self, publication: Publication) -> Trajectory:
        """One simulated user: live through an episode, and be scored."""
        if self._stop.is_set():
            raise Interrupted
        trajectory = self.problem.rollout(publication.policy, self._users)
        reward = 0.0
        for r in trajectory.rewards:  # in the order of the compiled loops, to the last bit
            reward += r
        record(reward, *self.score[1:])
        return trajectory

    def advance(self, episodes: int) -> None:
        """As ``learner.drive``, until that many more episodes are done."""
        try:
            for _ in range(episodes):
                if self.learner.left == 0:
                    publication = self.learner.publish(self.streams)
                    self._renew_if_due()
                    value = self.problem.value(publication.policy)
                    self.score.now[0] = self.score.optimum - value
                self.learner.serve(self._live, self._person())
        except Interrupted:
            return

    def _person(self) -> int | None:
        """Who takes part next."""
        return None if self.people is None else int(self.people.who[self.learner.served])
