"""What every planner owes: the five blindness checks, and plain good behaviour.

The checks are those of docs/architecture.md#consequence-1.

Subclass as ``TestX(PlannerContract)``, set ``subject``, and say which agent uses the planner on
which problem, and on which other problem with the same public task.
"""

import gc
import inspect
import typing
from typing import ClassVar

import numpy as np
import pytest

from contracts.privatizer import no_questions, streams
from tacit.agents import Agent
from tacit.learner import BoundAgent, drive
from tacit.planners.base import Ask, Planner, Streams
from tacit.privacy import Privatizer, Query, Secret, SimulatedNoise
from tacit.privacy.guarantee import Guarantee
from tacit.problems import LQSystem, Problem, TabularMDP
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task
from tacit.trajectory import Trajectory

USERS = 30


class Recorder:
    """A privatizer that remembers every release of the real one."""

    def __init__(self, inner: Privatizer) -> None:
        self.inner, self.releases = inner, {}
        self.guarantee: Guarantee = inner.guarantee
        self.init, self.encode, self.absorb = inner.init, inner.encode, inner.absorb
        self.law = inner.law

    def release(self, secret: Secret, query: Query, noise: object) -> Release:
        release = self.inner.release(secret, query, noise)
        self.releases[query.id] = release
        return release


class Poisoner(Recorder):
    """The real privatizer, but the exact sums are destroyed between release and planning."""

    def release(self, secret: Secret, query: Query, noise: object) -> Release:
        release = super().release(secret, query, noise)
        self.hidden = secret.sums.copy()
        secret.sums[:] = np.iinfo(np.int64).min
        return release

    def restore(self, secret: Secret) -> None:
        secret.sums[:] = self.hidden


class Replay(Recorder):
    """A privatizer that answers with recorded releases, whatever was absorbed."""

    def __init__(self, inner: Privatizer, releases: dict[int, Release]) -> None:
        super().__init__(inner)
        self.releases = releases
        self.absorb = lambda secret, report, version: secret

    def release(self, secret: Secret, query: Query, noise: object) -> Release:
        self.inner.release(secret, query, noise)  # so that it goes on, but nobody looks at it
        return self.releases[query.id]


class PlannerContract:
    """Override the three hooks."""

    subject: ClassVar[type]

    def agent(self) -> Agent:
        raise AssertionError("the subclass names an agent that plans with the subject")

    def problem(self) -> Problem:
        raise AssertionError("the subclass names a problem")

    def other_problem(self) -> Problem:
        raise AssertionError("the subclass names a problem with the same task and another truth")

    def task(self, problem: Problem) -> Task:
        return problem.task(users=USERS, reveal=self.agent().needs)

    def bound(self) -> BoundAgent:
        return self.agent().bind(self.task(self.problem()))

    def test_the_subject_is_the_planner_of_the_agent(self) -> None:
        assert type(self.bound().planner) is self.subject

    # 1. by types

    def test_types_let_in_releases_and_the_task_only(self) -> None:
        hints = typing.get_type_hints(self.subject.plan)
        assert list(inspect.signature(self.subject.plan).parameters) == [
            "self",
            "task",
            "release",
            "ask",
            "previous",
            "streams",
        ]
        assert hints == typing.get_type_hints(Planner.plan)
        assert hints["release"] is Release and hints["task"] is Task and hints["ask"] == Ask
        assert hints["streams"] is Streams and hints["return"] is Publication

    # 2. by imports: tests/test_architecture.py

    # 3. by poison

    def test_destroying_the_raw_sums_before_planning_changes_nothing(self) -> None:
        clean = publications(self.bound(), self.problem())
        poisoned = publications_with_poison(self.bound(), self.problem())
        assert len(clean) > 0 and same(clean, poisoned)

    # 4. and 5. by behaviour

    def test_other_data_or_another_truth_behind_the_same_releases_changes_nothing(self) -> None:
        problem, other = self.problem(), self.other_problem()
        assert self.task(problem) == self.task(other), "give two problems with one task"
        truths = [(p.optimal_value(), p.baseline()[1]) for p in (problem, other)]
        assert truths[0] != truths[1], "give two different truths"
        recorder = with_privatizer(self.bound(), Recorder)
        recorded = publications(recorder, problem)
        for truth, seed in ((problem, 1), (other, 2)):
            bound = self.agent().bind(self.task(truth))
            replay = with_privatizer(
                bound, lambda inner: Replay(inner, recorder.privatizer.releases)
            )
            assert same(recorded, publications(replay, truth, users_seed=seed))

    def test_it_holds_on_to_nothing_raw(self) -> None:
        bound = self.bound()
        publications(bound, self.problem())
        truths = (TabularMDP, LQSystem)
        forbidden = (Trajectory, Secret, *truths, type(bound.statistic), type(bound.privatizer))
        for held in reachable(bound.planner):
            assert not isinstance(held, forbidden)

    # good behaviour

    def test_planning_is_a_function_of_its_arguments(self) -> None:
        bound = self.bound()
        release = bound.privatizer.release(bound.privatizer.init(), Query(0), noise())
        before = {name: block.copy() for name, block in release.blocks.items()}
        first = bound.planner.plan(bound.task, release, no_questions, None, streams(3))
        second = bound.planner.plan(bound.task, release, no_questions, None, streams(3))
        assert same([first], [second])
        assert all(np.array_equal(before[name], release.blocks[name]) for name in before)
        assert first.version == 0
        third = bound.planner.plan(bound.task, release, no_questions, first, streams(4))
        assert third.version == 1

    def test_what_is_published_fits_the_problem_and_cannot_be_written_to(self) -> None:
        problem = self.problem()
        for publication in publications(self.bound(), problem):
            problem.value(publication.policy)
            for array in publication.context.values():
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0


def noise() -> SimulatedNoise:
    """Fresh simulated noise; always the same draws."""
    return SimulatedNoise(np.random.default_rng(11))


def with_privatizer(bound: BoundAgent, wrap) -> BoundAgent:
    return BoundAgent(
        bound.task, bound.statistic, wrap(bound.privatizer), bound.planner, bound.schedule
    )


def publications(bound: BoundAgent, problem: Problem, users_seed: int = 0) -> list[Publication]:
    rng = np.random.default_rng(users_seed)

    def live(publication: Publication) -> Trajectory:
        return problem.rollout(publication.policy, rng)

    return list(drive(bound, live, noise(), streams(7)))


def publications_with_poison(bound: BoundAgent, problem: Problem) -> list[Publication]:
    """As above, but sums are garbage while the planner works, and come back for the next user."""
    rng = np.random.default_rng(0)
    poisoned = with_privatizer(bound, Poisoner)
    poisoner = poisoned.privatizer
    absorb = poisoner.inner.absorb

    def absorb_after_planning(secret: Secret, report, version: int) -> Secret:
        if (secret.sums == np.iinfo(np.int64).min).all():
            poisoner.restore(secret)
        return absorb(secret, report, version)

    poisoner.absorb = absorb_after_planning
    return list(drive(poisoned, lambda p: problem.rollout(p.policy, rng), noise(), streams(7)))


def same(one: list[Publication], two: list[Publication]) -> bool:
    return len(one) == len(two) and all(
        a.version == b.version
        and a.policy == b.policy
        and a.context.keys() == b.context.keys()
        and all(np.array_equal(a.context[name], b.context[name]) for name in a.context)
        for a, b in zip(one, two, strict=True)
    )


def reachable(root: object) -> list[object]:
    """Everything an object's attributes lead to, not following classes, modules and functions."""
    seen: dict[int, object] = {}
    frontier = [getattr(root, "__dict__", {})]
    while frontier:
        for item in gc.get_referents(frontier.pop()):
            if id(item) in seen or inspect.isclass(item) or inspect.ismodule(item):
                continue
            seen[id(item)] = item
            if not inspect.isfunction(item):
                frontier.append(item)
    return list(seen.values())
