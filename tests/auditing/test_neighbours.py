"""The audited pairs: as far apart as is paid for, and never further.

A pair further apart than 1 would show that a declared sensitivity is too small.
"""

import itertools

import numpy as np
import pytest

import tacit
from auditing.small import (
    PRICED_FOR_ALL,
    PROBLEMS,
    bound_to,
    cases,
    fitting,
    made,
    private_agents,
)
from tacit.auditing.agent import _first_publication
from tacit.auditing.neighbours import NEARLY, canaries, contribution
from tacit.kernels.public.questions import KINDS
from tacit.statistics.base import Relation

FITS = [(name, problem) for name in private_agents() for problem in fitting(name)]
LOOSE = {"ldp-ucrl-vtr": 0.5}
"""Agents whose declared sensitivity no pair of some problem comes near, by the share it reaches.

As published every stage is paid for at the largest value of all, and features at their norm.
"""


def test_every_private_agent_has_small_problems() -> None:
    assert {name for name, _ in FITS} == set(private_agents())
    assert len(private_agents()) >= 15 and len(FITS) > 60


@pytest.mark.parametrize(("name", "problem"), FITS)
def test_pairs_are_as_far_apart_as_is_paid_for_and_never_further(name: str, problem: str) -> None:
    bound = bound_to(made(name), PROBLEMS[problem])
    for case in cases(bound):
        assert LOOSE.get(name, 0.85) <= case.distance <= 1.0 + 1e-9
        first, second = (contribution(bound, life, case.publication, 0) for life in case.lives)
        assert bound.privatizer.relative_shift(first, second, case.publication) == case.distance
        assert bound.privatizer.relative_shift(first, first, case.publication) == 0.0


@pytest.mark.parametrize(("name", "problem"), [fit for fit in FITS if fit[0] in PRICED_FOR_ALL])
def test_what_is_priced_for_any_features_is_never_moved_further(name: str, problem: str) -> None:
    bound = bound_to(made(name, calibration="corrected"), PROBLEMS[problem])
    for case in cases(bound):
        assert 0.0 < case.distance <= (0.01 if name == "dp-lsvi-ucb++" else 0.8)


STEERED = ["ldp-ucrl-vtr", "private-linopt-vi", "tacit-control", "private-ofu-rl", "dp-lsvi-ucb++"]


@pytest.mark.parametrize("name", STEERED)
def test_other_searches_find_nothing_beyond_it_either(name: str) -> None:
    """Searches of other seeds, under other first publications, on problems of other seeds."""
    others = {
        "lq": [tacit.problem("random-lq", seed=seed) for seed in range(3, 6)],
        "tabular": [
            *(tacit.problem("hard-mixture", dimension=3, horizon=3, seed=s) for s in (2, 3)),
            *(
                tacit.problem("low-rank", states=3, actions=2, dimension=2, horizon=2, seed=s)
                for s in (3, 4)
            ),
            tacit.problem("random-mdp", states=3, actions=3, horizon=2, seed=9),
        ],
    }
    bound_to_some = 0
    for problem in itertools.chain(*others.values()):
        try:
            bound = bound_to(made(name), problem)
        except tacit.InvalidInput:
            continue
        bound_to_some += 1
        for seed in (1, 2):
            found = [case.distance for case in cases(bound, seed)]
            assert all(LOOSE.get(name, 0.85) <= distance <= 1.0 + 1e-9 for distance in found)
    assert bound_to_some >= 3


@pytest.mark.parametrize("problem", fitting("ldp-ucrl-vtr"))
def test_the_least_noise_is_paid_for_to_what_a_pair_can_be_apart(problem: str) -> None:
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=1.0, calibration="tight")
    for case in cases(bound_to(agent, PROBLEMS[problem])):
        assert 0.85 <= case.distance <= 1.0 + 1e-9


def test_a_sensitivity_that_is_too_small_shows_as_a_distance_above_one() -> None:
    """The check above can fail: declare a tenth less than is true."""
    bound = bound_to(made("private-linopt-vi"), PROBLEMS["random-mdp"])
    bound.privatizer._sensitivity *= 0.9
    assert max(case.distance for case in cases(bound)) > 1.05


def test_all_three_kinds_of_questions_are_audited() -> None:
    bound = bound_to(made("tacit-local"), PROBLEMS["random-mdp, larger"])
    found = cases(bound)
    assert [case.name for case in found] == ["steps", "moves", "rewards"]
    asked = []
    for case in found:
        marks = [
            bound.statistic.layout.views(contribution(bound, case.lives[0], case.publication, coin))
            for coin in range(200)
        ]
        steps = {int(np.argmax(mark["question"])) // KINDS for mark in marks}
        asked.append({int(np.argmax(mark["question"])) % KINDS for mark in marks})
        assert steps == (set(range(3)) if case.name == "rewards" else {0, 1})
    assert all(len(kinds) == 1 for kinds in asked) and len(set.union(*asked)) == 3


def test_values_are_published_that_bring_the_pair_out() -> None:
    """Under the values that are published first, which are all alike, nobody differs from anybody.

    So an audit under them would show nothing, whatever the noise.
    """
    centred = tacit.agent("ldp-ucrl-vtr", epsilon=1.0, calibration="tight")
    bound = bound_to(centred, PROBLEMS["random-mdp"])
    publication = _first_publication(bound, np.random.default_rng(0))
    (case,) = cases(bound)
    first, second = (contribution(bound, life, publication, 0) for life in case.lives)
    assert bound.privatizer.relative_shift(first, second, publication) < 1e-3
    assert case.distance > 0.99 and case.publication.version == publication.version
    for name, values in case.context.items():
        assert np.array_equal(case.publication.context[name], values)


CANARIES = ["tacit-joint", "private-linopt-po", "tacit-linear", "tacit-control"]


@pytest.mark.parametrize("name", CANARIES)
def test_canaries_move_the_sums_in_orthogonal_directions(name: str) -> None:
    problem = "lq-double-integrator" if name == "tacit-control" else "river-swim"
    bound = bound_to(made(name), PROBLEMS[problem])
    (case, *_), rng = cases(bound), np.random.default_rng(1)
    people = canaries(bound, case, 4, rng)
    assert people[0] is case and 1 <= len(people) <= 4
    assert len(people) > 1 or name == "tacit-control"
    moves = []
    for person in people:
        assert NEARLY * case.distance < person.distance <= 1.0 + 1e-9
        first, second = (contribution(bound, life, case.publication, 0) for life in person.lives)
        moves.append((second - first) * bound.statistic.layout.units)
    for one, two in itertools.combinations(moves, 2):
        assert abs(one @ two) <= 1e-9 * np.linalg.norm(one) * np.linalg.norm(two)
    assert all(np.linalg.norm(move) > 0.0 for move in moves)


def test_one_canary_is_the_case_itself() -> None:
    bound = bound_to(made("tacit-joint"), PROBLEMS["river-swim"])
    case, *_ = cases(bound)
    assert canaries(bound, case, 1, np.random.default_rng(0)) == [case]


def test_distances_are_in_units_of_the_declared_sensitivity() -> None:
    """Golden: half of the way, by hand, for sums in the L2 norm."""
    bound = bound_to(made("private-linopt-vi"), PROBLEMS["random-mdp"])
    (case,) = cases(bound)
    first, second = (contribution(bound, life, case.publication, 0) for life in case.lives)
    apart = np.linalg.norm((second - first) * bound.statistic.layout.units)
    declared = bound.statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert case.distance == pytest.approx(apart / declared, rel=1e-12)
