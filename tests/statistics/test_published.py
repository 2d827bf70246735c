"""Compiled code on the user's device reads nothing outside what it was given."""

import dataclasses

import numpy as np
import pytest

import tacit
from contracts.privatizer import no_questions, streams
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.learner import BoundAgent
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import Query, SimulatedNoise
from tacit.publication import Publication
from tacit.trajectory import Trajectory


def first(name: str, problem: str, **parameters: object) -> tuple[BoundAgent, Publication]:
    """An agent fitted to a problem, and the first entry it publishes."""
    agent = tacit.agent(name, epsilon=1.0, delta=1e-5, **parameters)
    bound = bind(tacit.problem(problem), agent, 1000)
    noise = SimulatedNoise(np.random.default_rng(0))
    release = bound.privatizer.release(bound.privatizer.init(), Query(0), noise)
    return bound, bound.planner.plan(bound.task, release, no_questions, None, streams(1))


def contribute(bound: BoundAgent, trajectory: object, publication: Publication) -> np.ndarray:
    out = np.zeros(bound.statistic.layout.size, dtype=np.int64)
    bound.statistic.contribute(trajectory, publication, 0, out)
    return out


@pytest.mark.parametrize(
    ("name", "problem", "fact"),
    [
        ("ldp-ucrl-vtr", "river-swim", "V"),
        ("private-linopt-vi", "river-swim", "V"),
        *(
            ("tacit-control", "lq-scalar", fact)
            for fact in ("reference", "path", "whitener", "instruments", "usual", "weights")
        ),
    ],
)
def test_a_publication_of_another_shape_is_refused(name: str, problem: str, fact: str) -> None:
    bound, publication = first(name, problem)
    trajectory = bound.statistic.worst_pair()[0]
    contribute(bound, trajectory, publication)
    longer = np.concatenate([publication.context[fact]] * 2)
    without = {key: value for key, value in publication.context.items() if key != fact}
    for context in ({**without, fact: longer}, without):
        wrong = dataclasses.replace(publication, context=context)
        with pytest.raises(InvalidInput, match=f"must carry '{fact}' of shape"):
            contribute(bound, trajectory, wrong)


def test_a_policy_of_another_shape_is_refused() -> None:
    bound, publication = first("ldp-ucrl-vtr", "river-swim", statistic="index", calibration="tight")
    trajectory = bound.statistic.worst_pair()[0]
    contribute(bound, trajectory, publication)
    short = TabularPolicy(publication.policy.actions[:-1])
    with pytest.raises(InvalidInput, match="a table of shape"):
        contribute(bound, trajectory, dataclasses.replace(publication, policy=short))


@pytest.mark.parametrize("problem", ["river-swim", "remap-walk"])
def test_steps_without_a_reward_are_not_read(problem: str) -> None:
    """As many steps count as all three parts of a trajectory have."""
    bound, publication = first("tacit-joint", problem)
    whole = bound.statistic.worst_pair()[0]
    for steps in (0, 1, 3):
        short = Trajectory(whole.states, whole.actions, whole.rewards[:steps])
        cut = Trajectory(whole.states[: steps + 1], whole.actions[:steps], whole.rewards[:steps])
        one, two = (contribute(bound, t, publication) for t in (short, cut))
        assert np.array_equal(one, two)
        assert np.any(one) == (steps > 0)
