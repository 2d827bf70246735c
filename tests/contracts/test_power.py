"""The contracts must be able to fail: each cheat here is caught by the check meant for it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from contracts.planner import PlannerContract
from contracts.privatizer import TASK, PrivatizerContract
from tacit.agents import Agent
from tacit.learner import BoundAgent
from tacit.planners.base import Ask, Streams, next_version
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import Exact, Query, Report, Secret
from tacit.problems import make_problem
from tacit.publication import Publication
from tacit.release import NoNoise, Release
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


class Peeking:
    """Plans with something it was handed behind the wall's back."""

    def __init__(self, peek: Any) -> None:
        self.peek = peek

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        choice = int(self.peek()) % task.sizes["actions"]
        table = np.full((task.horizon, task.sizes["states"]), choice)
        return Publication(next_version(previous), TabularPolicy(table))


class Spy(Exact):
    """A privatizer that lets its secret state be looked at."""

    def init(self) -> Secret:
        self.last = super().init()
        return self.last


@dataclass
class PeekAtSums(Agent):
    name: ClassVar[str] = "peek-at-sums"

    def bind(self, task: Task) -> BoundAgent:
        statistic = VisitCounts(task)
        spy = Spy(statistic, task)
        odd = np.arange(statistic.layout.size) % 2

        def transitions_at_odd_cells() -> int:
            return spy.last.sums[12:] @ odd[12:]

        return BoundAgent(task, statistic, spy, Peeking(transitions_at_odd_cells))


@dataclass
class PeekAtTruth(Agent):
    """Knows which of the two problems it runs on, as if it had opened the problem file."""

    name: ClassVar[str] = "peek-at-truth"
    binds: ClassVar[list[int]] = []

    def bind(self, task: Task) -> BoundAgent:
        self.binds.append(0)
        truth = len(self.binds)
        statistic = VisitCounts(task)
        return BoundAgent(task, statistic, Exact(statistic, task), Peeking(lambda: truth))


@dataclass
class KeepsTheProblem(Agent):
    name: ClassVar[str] = "keeps-the-problem"

    def bind(self, task: Task) -> BoundAgent:
        statistic = VisitCounts(task)
        kept = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)
        planner = Peeking(lambda: 0)
        planner.kept = kept
        return BoundAgent(task, statistic, Exact(statistic, task), planner)


def contract(agent: Agent) -> PlannerContract:
    class Case(PlannerContract):
        subject: ClassVar[type] = Peeking

        def agent(self) -> Agent:
            return agent

        def problem(self):
            return make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)

        def other_problem(self):
            return make_problem("random-mdp", states=3, actions=2, horizon=3, seed=5)

    return Case()


def test_reading_exact_sums_is_caught_by_poison_and_by_replay() -> None:
    with pytest.raises(AssertionError):
        contract(PeekAtSums()).test_destroying_the_raw_sums_before_planning_changes_nothing()
    with pytest.raises(AssertionError):
        case = contract(PeekAtSums())
        case.test_other_data_or_another_truth_behind_the_same_releases_changes_nothing()


def test_reading_the_truth_is_caught_by_replay() -> None:
    with pytest.raises(AssertionError):
        case = contract(PeekAtTruth())
        case.test_other_data_or_another_truth_behind_the_same_releases_changes_nothing()


def test_holding_a_problem_is_caught() -> None:
    with pytest.raises(AssertionError):
        contract(KeepsTheProblem()).test_it_holds_on_to_nothing_raw()


class Redraws(Exact):
    """Fresh noise for the same question: averages out."""

    rng = np.random.default_rng(0)

    def release(self, secret: Secret, query: Query, noise: object) -> Release:
        exact = super().release(secret, query, noise)
        noisy = {name: b + self.rng.normal(size=b.shape) for name, b in exact.blocks.items()}
        return Release(exact.users, noisy, NoNoise(), "simulated")


class Aliases(Exact):
    """Sends a view of the contribution instead of a message of its own."""

    def encode(self, contribution, publication, noise) -> Report:
        return Report(contribution)


class OrderMatters(Exact):
    """Sums in floating point, so that arrival order shows in the last bits."""

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        secret.sums = 1.1 * (secret.sums + 0.1 * report.take())
        secret.users += 1
        return secret

    def release(self, secret: Secret, query: Query, noise: object) -> Release:
        blocks = self.layout.views(np.asarray(secret.sums, dtype=np.float64))
        return Release(secret.users, blocks, NoNoise(), "none")


@pytest.mark.parametrize(
    ("cheat", "check"),
    [
        (Redraws, "test_asking_again_gives_the_same_value"),
        (Aliases, "test_encode_leaves_the_contribution_alone_and_keeps_no_view_of_it"),
        (OrderMatters, "test_the_order_of_arrival_does_not_matter_to_the_last_bit"),
    ],
)
def test_cheating_privatizers_are_caught(cheat: type[Exact], check: str) -> None:
    class Case(PrivatizerContract):
        subject: ClassVar[type] = cheat

        def make(self, statistic):
            return cheat(statistic, TASK)

    with pytest.raises(AssertionError):
        getattr(Case(), check)()
