"""Planners of logs: blind like all others, on what one release about a whole log says."""

from typing import ClassVar

import numpy as np
import pytest

import tacit
from contracts.planner import PlannerContract, Poisoner, noise, streams, with_privatizer
from logs.worlds import chain, garnet, mapping, uniform
from tacit.agents import Agent
from tacit.agents.offline import LogAgent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent, Learner
from tacit.logs.simulated import simulate_log
from tacit.planners.offline import OfflinePlanner
from tacit.privacy.base import Query
from tacit.problems import Problem
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task


class LogPlannerContract(PlannerContract):
    """Of planners that plan once, when everybody in a log has been added up."""

    subject: ClassVar[type] = OfflinePlanner
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


class TestTacitOffline(LogPlannerContract):
    agent_name = "tacit-offline"


class TestOutcomes(LogPlannerContract):
    agent_name = "tacit-offline"

    def agent(self) -> Agent:
        return tacit.agent("tacit-offline", epsilon=1.0, counts="outcomes")


class TestDpApvi(LogPlannerContract):
    agent_name = "dp-apvi"


class TestDpVapvi(LogPlannerContract):
    agent_name = "dp-vapvi"


def test_who_learns_from_a_log_does_not_learn_from_people() -> None:
    with pytest.raises(InvalidInput, match="tacit offline LOG --agent dp-apvi"):
        tacit.simulate(chain(), tacit.agent("dp-apvi", epsilon=1.0), 10)


def test_who_learns_from_people_does_not_learn_from_a_log(tmp_path) -> None:
    psrl = tacit.agent("psrl")
    with pytest.raises(InvalidInput, match="psrl learns from people.*tacit-offline, dp-apvi"):
        tacit.offline(tmp_path, mapping(chain()), psrl, noise="simulated")
    with pytest.raises(InvalidInput, match="needs an epsilon"):
        tacit.offline(tmp_path, mapping(chain()), "dp-apvi", noise="simulated")
