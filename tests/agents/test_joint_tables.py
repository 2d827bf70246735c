"""PUCB, Private-UCB-VI and -PO, DP-UCBVI: what they guarantee, what is refused, that they learn."""

import math

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.privacy import accounting

NAMES = ("pucb", "private-ucb-vi", "private-ucb-po", "dp-ucbvi")
RIVER = tacit.problem("river-swim", states=6, horizon=20)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_delta_the_guarantee_is_pure_and_exact(name: str) -> None:
    agent = tacit.agent(name, epsilon=1.0, calibration="tight")
    said = tacit.guarantee(RIVER, agent, 100_000)
    assert said.model == "joint" and said.delta == 0.0
    assert said.epsilon == pytest.approx(1.0, rel=1e-12) and said.epsilon <= 1.0
    assert said.noise["node scale"] == pytest.approx((6 * 20 - 2) * 17)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counter", ["tree", "honaker", "toeplitz", "normalised", "blt"])
def test_with_a_delta_the_noise_is_gaussian(name: str, counter: str) -> None:
    parameters = {"delta": 1e-5, "counter": counter, "every": 10, "calibration": "tight"}
    agent = tacit.agent(name, epsilon=1.0, **parameters)
    bound = bind(RIVER, agent, 1000)
    assert bound.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    column = bound.privatizer.strategy.column_norm()
    least = column * math.sqrt(6 * 20 - 2) / accounting.gaussian_mu(1.0, 1e-5)
    assert bound.privatizer.scale == pytest.approx(least, rel=1e-5)
    assert bound.privatizer.strategy.length == 99


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("epsilon", "users"), [(1.0, 100_000), (0.5, 1000)])
def test_the_published_noise_gives_about_twice_the_epsilon(name, epsilon, users) -> None:
    """docs/papers/pucb.md#e1: 3H counters are left and 3H others entered."""
    agent = tacit.agent(name, epsilon=epsilon, calibration="paper")
    said = tacit.guarantee(RIVER, agent, users)
    levels = math.ceil(math.log2(users))
    assert said.noise["node scale"] == pytest.approx(3 * 20 * levels / epsilon)
    assert said.epsilon == pytest.approx((6 * 20 - 2) / (3 * 20) * epsilon)
    assert said.delta_at_requested_epsilon > 0.0 and "WEAKER than asked" in str(said)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("calibration", ["corrected", "paper"])
def test_what_does_not_go_together_is_refused(name: str, calibration: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} as published adds Laplace noise"):
        tacit.agent(name, epsilon=1.0, delta=1e-5, calibration=calibration)
    with pytest.raises(InvalidInput, match="goes through a tree, not through blt"):
        tacit.agent(name, epsilon=1.0, counter="blt", calibration=calibration)


def test_every_stage_has_its_own_tables() -> None:
    assert bind(RIVER, tacit.agent("pucb", epsilon=1.0), 10).statistic.stages == 20


def test_the_published_bonus_asks_for_millions_of_visits() -> None:
    """The numbers of docs/papers/pucb.md#e2, docs/papers/private_ucb.md#e2 and DP-UCBVI's."""
    needed = {}
    for name in ("pucb", "private-ucb-vi", "dp-ucbvi"):
        bound = bind(RIVER, tacit.agent(name, epsilon=1.0, calibration="paper"), 100_000)
        law = bound.privatizer.law(1)
        needed[name] = bound.planner.break_even(bound.task, law, 20.0)
    assert needed["pucb"] == pytest.approx(5.0e6, rel=0.02)
    assert needed["private-ucb-vi"] == pytest.approx(4.3e5, rel=0.02)
    assert needed["dp-ucbvi"] == pytest.approx(6.6e8, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_with_little_noise_they_learn(name: str) -> None:
    problem = tacit.problem("river-swim", states=3, horizon=6)
    parameters = {"delta": 1e-5, "counter": "blt", "every": 20, "calibration": "tight"}
    agent = tacit.agent(name, epsilon=100.0, **parameters)
    found = tacit.Experiment(
        problem=problem, agent=agent, episodes=4000, checkpoints=8, runs=2
    ).run()
    late = (found.regret[:, -1] - found.regret[:, -2]) / np.diff(found.episodes)[-1]
    assert late.mean() < 0.5 * (problem.optimal_value() - problem.baseline()[1])
