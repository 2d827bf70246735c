import math

import numpy as np
import pytest

import tacit
from tacit.agents import TacitLocal
from tacit.errors import InvalidInput
from tacit.planners.tacit_local import DirectionalPlanner, NoisyPosteriorPlanner
from tacit.privacy.local.one_cell import OneCell
from tacit.problems import make_problem
from tacit.schedules import CappedBatches

SMALL = make_problem("random-mdp", seed=1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "tacit-local is private and needs an epsilon"),
        ({"epsilon": 0.0}, "epsilon = 0"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"epsilon": math.nan}, "epsilon = nan"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"epsilon": 1.0, "exploration": "greedy"}, "one of posterior, optimistic"),
        ({"epsilon": 1.0, "bonus_scale": -0.1}, "bonus_scale = -0.1"),
        ({"epsilon": 1.0, "bonus_scale": math.nan}, "bonus_scale = nan"),
        ({"epsilon": 1.0, "beta": 0.0}, "beta = 0"),
        ({"epsilon": 1.0, "beta": 1.0}, "beta = 1"),
        ({"epsilon": 1.0, "batch": 0}, "batch = 0"),
        ({"epsilon": 1.0, "batch": 2.5}, "batch = 2.5"),
        ({"epsilon": 1.0, "delta": 1e-5}, "delta"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent("tacit-local", **parameters)


@pytest.mark.parametrize(
    ("epsilon", "batch", "least"),
    [(0.99, 200, 200), (1.0, 200, 50), (9.99, 200, 50), (10.0, 200, 5), (0.5, 30, 30)],
)
def test_batches_are_the_specified_ones(epsilon, batch, least) -> None:
    bound = TacitLocal(epsilon, batch=batch).bind(SMALL.task(users=10))
    assert bound.schedule == CappedBatches(least, batch, 0.02)


def test_parts_follow_the_parameters() -> None:
    posterior = TacitLocal(1.0).bind(SMALL.task(users=10))
    assert type(posterior.planner) is NoisyPosteriorPlanner
    optimistic = TacitLocal(1.0, exploration="optimistic", bonus_scale=0.7, beta=0.3)
    planner = optimistic.bind(SMALL.task(users=10)).planner
    assert type(planner) is DirectionalPlanner
    assert (planner.bonus_scale, planner.beta) == (0.7, 0.3)
    assert type(posterior.privatizer) is OneCell
    assert posterior.planner.weighing == planner.weighing == posterior.privatizer.weighing
    assert TacitLocal(1.0).bonus_scale == 0.1


@pytest.mark.parametrize("epsilon", [0.2, 1, 20.0])
def test_the_guarantee_is_pure_local_and_what_was_asked_for(epsilon) -> None:
    said = tacit.guarantee(SMALL, TacitLocal(epsilon), 1000)
    assert said.model == "local" and said.delta == said.delta_at_requested_epsilon == 0.0
    assert epsilon * (1 - 1e-9) < said.epsilon <= epsilon
    assert "asked" not in str(said)


@pytest.mark.parametrize("exploration", ["posterior", "optimistic"])
def test_it_learns_a_problem_it_has_never_seen(exploration) -> None:
    """In the last tenth of 200 000 episodes at most 1% of what playing at random loses."""
    problem = make_problem("random-mdp", states=4, actions=3, horizon=5, seed=21)
    agent = TacitLocal(4.0, exploration=exploration)
    result = tacit.simulate(problem, agent, 200_000, seeds=2, seed=3)
    random_play = problem.optimal_value() - problem.baseline()[1]
    assert random_play > 0.5
    assert result.regret_per_episode(180_000, 200_000).max() < 0.01 * random_play
    assert result.guarantee.simulated


def regret(problem, agent, episodes, seeds=4):
    return tacit.simulate(problem, agent, episodes, seeds=seeds, seed=7).regret[:, -1].mean()


def test_less_privacy_costs_less() -> None:
    """Mean of 16 runs, measured 3203, 253 and 86; one run in 16 is three times the mean."""
    problem = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=12)
    regrets = [regret(problem, TacitLocal(epsilon), 30_000, 16) for epsilon in (0.2, 1.0, 5.0)]
    assert regrets[0] > 5 * regrets[1] > 10 * regrets[2] > 0.0


def test_it_beats_the_published_algorithm_by_far() -> None:
    """Measured 180 times; 50 is asked for, at the same epsilon and with the same users."""
    problem = make_problem("random-mdp", seed=13)
    published = tacit.agent("ldp-obi", epsilon=2.0, calibration="paper")
    assert regret(problem, published, 20_000) > 50 * regret(problem, TacitLocal(2.0), 20_000)


def test_same_seed_same_run_other_seed_other_run() -> None:
    problem = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=12)
    runs = [
        tacit.simulate(problem, TacitLocal(1.0), 3000, seeds=2, seed=seed).regret
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])
