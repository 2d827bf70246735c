"""What a planner of logs owes: that of any planner, once everybody in a log has been added up."""

from typing import ClassVar

import numpy as np

import tacit
from contracts.planner import PlannerContract, Poisoner, noise, streams, with_privatizer
from logs.worlds import garnet, mapping, uniform
from tacit.agents.offline import LogAgent
from tacit.learner import BoundAgent, Learner
from tacit.logs.simulated import simulate_log
from tacit.privacy.base import Query
from tacit.problems import Problem
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task


class LogPlannerContract(PlannerContract):
    """Set ``subject``, and name an agent that plans with it."""

    agent_name: ClassVar[str]

    def agent(self) -> LogAgent:
        return tacit.agent(self.agent_name, epsilon=1.0)

    def problem(self) -> Problem:
        return garnet(seed=0)

    def other_problem(self) -> Problem:
        return garnet(seed=1)

    def task(self, problem: Problem) -> Task:
        return mapping(problem, 400).task

    def fitted(self, problem: Problem) -> BoundAgent:
        return self.agent().bind_log(self.task(problem), float(problem.horizon))

    def learner(self, bound: BoundAgent, problem: Problem, seed: int = 0) -> Learner:
        log = simulate_log(problem, uniform(problem), 400, np.random.default_rng(seed))
        total = np.zeros(bound.statistic.layout.size, dtype=np.int64)
        bound.statistic.add(log, total)
        secret, nobody = bound.privatizer.init(), Publication(0, uniform(problem), {})
        absorb = getattr(bound.privatizer, "inner", bound.privatizer).absorb_sums
        secret = absorb(secret, total, 400, nobody, noise())
        return Learner(bound, noise(), secret=secret, served=400)

    def publications(
        self, bound: BoundAgent, problem: Problem, users_seed: int = 0
    ) -> list[Publication]:
        return [self.learner(bound, problem, users_seed).publish(streams(7))]

    def poisoned(self, bound: BoundAgent, problem: Problem) -> list[Publication]:
        learner = self.learner(with_privatizer(bound, Poisoner), problem)
        found = [learner.publish(streams(7))]
        assert (learner.secret.sums == np.iinfo(np.int64).min).all()
        return found

    def release(self, bound: BoundAgent) -> Release:
        learner = self.learner(bound, self.problem())
        return bound.privatizer.release(learner.secret, Query(0), noise())
