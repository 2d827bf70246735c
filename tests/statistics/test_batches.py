"""Statistics that add up many users: the sum of each, whatever was there before."""

import copy
import pickle
from inspect import isabstract

import numpy as np
import pytest

import tacit
import tacit.simulation.dispatch  # knows every statistic
from tacit.errors import InvalidInput, RawDataLeak
from tacit.experiment import bind
from tacit.learner import Learner
from tacit.privacy import SimulatedNoise
from tacit.simulation.score import new_score
from tacit.simulation.users import simulated_users
from tacit.statistics.base import BatchStatistic, Memory
from tacit.streams import planner_streams
from tacit.trajectory import Trajectory, VectorTrajectory

TABLE = ("random-mdp", {"states": 3, "actions": 2, "horizon": 4, "seed": 2})
STAGES = ("river-swim", {"states": 3, "horizon": 4, "inhomogeneous": True})
MIXTURE = ("remap-walk", {"states": 10, "horizon": 3})
SYSTEM = ("random-lq", {"horizon": 6, "seed": 3})
SEARCH = ("cart-pole", {})
ONCE = ("gym:FrozenLake-v1", {"horizon": 20, "returns": [0, 1]})
CASES = {
    "FirstReturns": (ONCE, "tacit-joint", {"epsilon": 5.0}),
    "VisitCounts": (TABLE, "psrl", {}),
    "LinearSums": (TABLE, "tacit-linear", {"epsilon": 5.0, "sums": "additive"}),
    "CuratedTransitions": (TABLE, "tacit-linear", {"epsilon": 5.0, "sums": "answered"}),
    "FirstVisits": (TABLE, "tacit-joint", {"epsilon": 5.0}),
    "JointCounts": (STAGES, "tacit-joint", {"epsilon": 5.0}),
    "MultiTargets": (MIXTURE, "tacit-joint", {"epsilon": 5.0}),
    "ValueTargets": (MIXTURE, "ucrl-vtr", {}),
    "PolicyTransitions": (
        MIXTURE,
        "ldp-ucrl-vtr",
        {"epsilon": 5.0, "statistic": "index", "calibration": "tight"},
    ),
    "ControlMoments": (SYSTEM, "certainty-equivalence", {}),
    "InstrumentedResponses": (SYSTEM, "tacit-control", {"epsilon": 50.0}),
    "WindowedReturn": (SEARCH, "tacit-search", {"epsilon": 5.0}),
    "Nothing": (TABLE, "uniform", {}),
}


def kinds(base: type) -> set[str]:
    """Of all that can be made; what wraps another statistic adds up as that one does."""
    found = {kind for kind in base.__subclasses__() if kind.__module__.startswith("tacit.")}
    below = {name for kind in found for name in kinds(kind)}
    return {kind.__name__ for kind in found if not isabstract(kind)} - {"NormBudget"} | below


def test_no_statistic_is_left_out() -> None:
    assert kinds(BatchStatistic) == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_many_users_add_up_to_the_sum_of_each(name: str) -> None:
    (system, sizes), agent, parameters = CASES[name]
    problem, rng = tacit.problem(system, **sizes), np.random.default_rng(1)
    bound = bind(problem, tacit.agent(agent, **parameters), 100)
    statistic = bound.statistic
    assert type(statistic).__name__ == name
    publication = Learner(bound, SimulatedNoise(rng)).publish(planner_streams(0, 0))
    score = new_score(problem, np.array([20]))
    lives = simulated_users(problem, rng).live(publication.policy, 0, 20, score)
    coins, before = 7 * np.arange(20), np.arange(statistic.layout.size)
    together, one = before.copy(), np.zeros_like(before)
    statistic.add_many(lives, publication, coins, together)
    for coin, *life in zip(coins.tolist(), *lives, strict=True):
        lived = (VectorTrajectory if system in ("random-lq", "cart-pole") else Trajectory)(*life)
        statistic.contribute(lived, publication, coin, one)
        assert one.any() or not one.size
        together -= one
    assert np.array_equal(together, before)


def test_who_took_part_is_as_private_as_what_they_did() -> None:
    """Neither a memory nor the people of it are printed, pickled or copied."""
    memory = Memory(2, 3)
    memory.taught[1], memory.spent[1] = 77, 77777
    people = memory.of(np.array([1, 1]))
    for secret in (memory, people):
        assert "77" not in repr(secret) + str(secret) and "hidden" in repr(secret)
        for leak in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(RawDataLeak):
                leak(secret)
    memory.clear()
    assert not people.taught.any() and not people.spent.any(), "a new period begins"
    with pytest.raises(InvalidInput, match="the memory of who taught what would need a table"):
        Memory(2**40, 2**20)
    assert people.taught is memory.taught and people.spent is memory.spent and not people.forget
