"""Simulated people: exact values over several types, and problems named by a deployment."""

from pathlib import Path

import numpy as np
import pytest

from tacit.errors import InvalidInput
from tacit.policies.tabular import TabularPolicy
from tacit.problems import TabularMDP, make_problem
from tacit.task.task import Task
from tacit_service.rehearsal.people import Population, fleet_population

STAY = np.eye(2)[:, None, :].repeat(2, axis=1)


def likes(action: int) -> TabularMDP:
    """Two states that never change; one action is worth 1."""
    R = np.zeros((2, 2))
    R[:, action] = 1.0
    return TabularMDP(STAY, R, horizon=3)


def always(action: int) -> TabularPolicy:
    return TabularPolicy(np.full((3, 2), action))


def test_values_are_averages_over_the_types() -> None:
    people = Population([(3.0, likes(0)), (1.0, likes(1))], {"first": always(0)})
    assert people.value(always(0)) == pytest.approx(3 * 0.75)
    assert people.value(always(1)) == pytest.approx(3 * 0.25)
    assert people.value(people.references["uniform"]) == pytest.approx(1.5)
    assert people.ceiling() == pytest.approx(3.0)
    assert people.best() == always(0) or people.value(people.best()) == pytest.approx(2.25)
    drawn = [people.person(u) for u in (0.0, 0.7, 0.76, 0.999)]
    assert drawn == [people.problems[0]] * 2 + [people.problems[1]] * 2


def test_the_best_policy_of_one_type_is_the_optimum() -> None:
    problem = make_problem("random-mdp", states=4, actions=3, horizon=5, seed=3)
    people = Population([(1.0, problem)])
    assert people.value(people.best()) == pytest.approx(problem.optimal_value(), abs=1e-12)


def test_the_best_policy_of_several_types_beats_all_that_differ_in_one_place() -> None:
    """Exhaustively: every policy on two steps, two states, two actions."""
    rng = np.random.default_rng(0)
    types = [
        (share, TabularMDP(rng.dirichlet(np.ones(2), (2, 2)), rng.random((2, 2)), 2, [0.5, 0.5]))
        for share in (0.5, 0.3, 0.2)
    ]
    people = Population(types)
    table = people.best().actions
    best = people.value(people.best())
    assert best <= people.ceiling() + 1e-12
    for h in range(2):
        for s in range(2):
            other = table.copy()
            other[h, s] = 1 - other[h, s]
            assert people.value(TabularPolicy(other)) <= best + 1e-12


def test_bad_populations_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        Population([])
    with pytest.raises(InvalidInput, match="share"):
        Population([(0.0, likes(0))])
    with pytest.raises(InvalidInput, match="same states"):
        Population([(1.0, likes(0)), (1.0, make_problem("river-swim", states=3, horizon=3))])
    with pytest.raises(InvalidInput, match="shape"):
        Population([(1.0, likes(0))], {"x": TabularPolicy(np.zeros((1, 2), dtype=int))})


def task(horizon=3, states=2, actions=2, homogeneous=True) -> Task:
    return Task("tabular", horizon, {"states": states, "actions": actions}, homogeneous, 10)


def test_a_deployment_names_its_people(tmp_path) -> None:
    named = {"problem": "river-swim", "states": 4, "horizon": 6}
    people = fleet_population(named, tmp_path, task(6, 4))
    assert people.problems[0].name == "river-swim"
    (tmp_path / "mine.py").write_text(
        "from tacit.problems import make_problem\n"
        "def town(states): return make_problem('river-swim', states=states, horizon=6)\n"
        "def broken(): raise OSError('gone')\n"
        "def other(): return 7\n"
    )
    own = {"python": "mine.py:town", "states": 4}
    assert fleet_population(own, tmp_path, task(6, 4)).states == 4
    for section, words in [
        ({}, "no simulated people"),
        ({"problem": "river-swim", "states": 5, "horizon": 6}, "but .task. says 6, 4 and 2"),
        ({"problem": "nowhere"}, "nowhere"),
        ({"problem": "lq-scalar"}, "tabular"),
        ({"python": "mine.py:broken"}, "OSError: gone"),
        ({"python": "mine.py:missing"}, "AttributeError"),
        ({"python": "mine.py"}, "file.py:function"),
        ({"python": "none.py:town"}, "file.py:function"),
        ({"python": "mine.py:other"}, "makes a int"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            fleet_population(section, tmp_path, task(6, 4))
    changing = {**named, "inhomogeneous": True}
    with pytest.raises(InvalidInput, match="from step to step"):
        fleet_population(changing, tmp_path, task(6, 4))
    assert not fleet_population(changing, tmp_path, task(6, 4, homogeneous=False)).homogeneous


def test_people_who_end_elsewhere_are_refused_by_the_state() -> None:
    ends = {"terminal": np.array([False, True])}
    task = Task("tabular", 3, {"states": 2, "actions": 2}, homogeneous=True, users=9, known=ends)
    section = {"problem": "random-mdp", "states": 2, "actions": 2, "horizon": 3}
    with pytest.raises(InvalidInput, match=r"in state 1 they may play 0, 1, by \[task\] none"):
        fleet_population(section, Path(), task)
