import math

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.publication import Publication
from tacit.statistics.base import Relation
from tacit.statistics.counts import PolicyTransitions
from tacit.trajectory import Trajectory

TASK = tacit.problem("river-swim", states=3, horizon=4).task(users=5, reveal=["reward"])
TABLE = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 1]])
PUBLICATION = Publication(0, TabularPolicy(TABLE))


def contribution(states, actions) -> np.ndarray:
    statistic = PolicyTransitions(TASK)
    out = np.full(statistic.layout.size, 9, dtype=np.int64)
    trajectory = Trajectory(np.array(states), np.array(actions), np.zeros(len(actions)))
    statistic.contribute(trajectory, PUBLICATION, 0, out)
    return out.reshape(3, 3, 2, 3)


def test_transitions_are_filed_under_the_action_of_the_policy() -> None:
    table = contribution([0, 1, 2, 1, 0], [0, 0, 0, 1])
    assert table.sum() == 3
    assert table[0, 0, 0, 1] == table[1, 1, 0, 2] == table[2, 2, 0, 1] == 1


@pytest.mark.parametrize("actions", [[1, 1, 1, 1], [0, 0, 0, 0], [5, -3, 9, 1], []])
def test_a_user_who_deviates_changes_nothing(actions) -> None:
    """Off-policy actions would mark a silent cell, without noise: infinite epsilon."""
    on_policy = contribution([0, 1, 2, 1, 0], [0, 0, 0, 1])
    assert np.array_equal(contribution([0, 1, 2, 1, 0], actions), on_policy)


def test_cells_off_the_policy_have_no_weight_and_nothing_is_ever_written_there() -> None:
    statistic = PolicyTransitions(TASK)
    weights = statistic.weights(PUBLICATION).reshape(3, 3, 2, 3)
    assert weights.sum() == 3 * 3 * 3
    rng = np.random.default_rng(0)
    for _ in range(50):
        states = rng.integers(-2, 6, size=rng.integers(0, 7))
        table = contribution(states, rng.integers(0, 2, size=4))
        assert table.sum() == 3 and (table[weights == 0] == 0).all()


def test_sensitivities_are_attained() -> None:
    statistic = PolicyTransitions(TASK)
    one, two = (contribution(t.states, t.actions).ravel() for t in statistic.worst_pair())
    for norm, moved in (("l1", np.abs(one - two).sum()), ("l2", math.dist(one, two))):
        assert statistic.sensitivity(norm, Relation.REPLACE_ONE) == pytest.approx(moved)
    assert statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE) == pytest.approx(math.sqrt(3))


def test_a_stochastic_policy_is_refused() -> None:
    publication = Publication(0, uniform_policy(4, 3, 2))
    with pytest.raises(InvalidInput, match="deterministic policy"):
        PolicyTransitions(TASK).weights(publication)
