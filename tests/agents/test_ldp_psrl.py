import math

import numpy as np
import pytest

import tacit
from dense import dense
from tacit.agents import LdpOBI, LdpPSRL
from tacit.errors import InvalidInput
from tacit.kernels.public.posterior import DirichletPrior

PROBLEM = tacit.problem("random-mdp", seed=1)


@pytest.mark.parametrize("horizon", [1, 2, 20])
@pytest.mark.parametrize("epsilon", [0.2, 20.0])
def test_noise_and_its_true_cost(horizon: int, epsilon: float) -> None:
    problem = tacit.problem("random-mdp", horizon=horizon)
    paper = tacit.guarantee(problem, LdpPSRL(epsilon, "paper"), 100)
    assert set(paper.noise.values()) == {8 * horizon / epsilon} and len(paper.noise) == 4
    assert paper.epsilon == pytest.approx(epsilon * (8 * horizon - 2) / (8 * horizon))
    assert tacit.guarantee(problem, LdpPSRL(epsilon), 100) == paper  # nothing to correct
    tight = tacit.guarantee(problem, LdpPSRL(epsilon, "tight"), 100)
    assert tight.noise["reward_squares scale"] == pytest.approx((8 * horizon - 2) / epsilon)
    assert epsilon * (1 - 1e-12) < tight.epsilon <= epsilon and tight.delta == 0.0


@pytest.mark.parametrize("users", [2, 10_000])
def test_the_prior_is_the_published_one(users: int) -> None:
    task = PROBLEM.task(users=users)
    prior = LdpPSRL(2.0, "paper").bind(task).planner.prior
    one, every = math.log(24 / 0.1), math.log(48 / 0.1)
    b = 8 * 2 / 2.0
    assert prior.alpha0 == pytest.approx(max(math.sqrt(2 * users), every) * (8 * every) ** 0.5 * b)
    assert prior.lambda0 == pytest.approx(max(math.sqrt(users), one) * math.sqrt(8 * one) * b)
    assert prior.nu0 == prior.lambda0 and prior.beta0 == pytest.approx(5 * prior.lambda0)
    assert f"{prior.lambda0:.4g} visits" in LdpPSRL(2.0, "paper").notes(task)[0]


@pytest.mark.parametrize("calibration", ["corrected", "paper", "tight"])
@pytest.mark.parametrize(
    ("randomizer", "delta"), [("gaussian", 1e-5), ("randomized-response", 0.0), ("bounded", 0.1)]
)
def test_other_randomizers(randomizer: str, delta: float, calibration: str) -> None:
    """Not in the paper: four tables, and pseudo-counts as large as their noise may become."""
    agent = LdpPSRL(20.0, calibration, randomizer=randomizer, delta=delta)
    task = PROBLEM.task(users=1000)
    bound = agent.bind(task)
    said = bound.guarantee
    if calibration != "paper" or randomizer == "randomized-response":
        assert said.epsilon <= 20.0 * (1 + 1e-9) and said.delta <= delta
    prior, S, A, H = bound.planner.prior, 2, 2, 2
    one, every = (math.log(6 * S**power * A / 0.1) for power in (1, 2))
    if randomizer == "gaussian":
        sigma, wide = said.noise["visits std"], (one if calibration == "paper" else every)
        half = 1 if calibration == "paper" else 2
        assert prior.lambda0 == pytest.approx(sigma * math.sqrt(half * 999 * one))
        assert prior.alpha0 == pytest.approx(sigma * math.sqrt(half * 999 * S * wide))
        assert (calibration == "corrected") == any("corrected" in n for n in agent.notes(task))
    elif randomizer == "bounded":
        radii = said.noise["visits radius"], said.noise["transitions radius"]
        assert radii[1] == pytest.approx(math.sqrt(S) * radii[0])
        assert prior.lambda0 == pytest.approx(radii[0] * math.sqrt(2 * 999 * one))
        assert prior.alpha0 == pytest.approx(math.sqrt(S) * radii[1] * math.sqrt(2 * 999 * every))
    else:
        e = math.exp(said.noise["epsilon per bit"])
        if calibration != "tight":
            assert said.noise["epsilon per bit"] == pytest.approx(20.0 / (8 * H))
        w = (2 * e - 1 if calibration == "paper" else e + 1) / (e - 1)
        pairs = (4 if calibration == "paper" else 8) * S * A
        assert prior.lambda0 == pytest.approx(w * math.sqrt(999 * H / 2 * math.log(pairs / 0.1)))
        assert prior.alpha0 == pytest.approx(S * prior.lambda0)


def test_negative_counts_meet_the_floors_and_nothing_breaks() -> None:
    """Far outside the good event: everything stays a finite model."""
    rng = np.random.default_rng(0)
    tables = [np.full((1, 2, 2), -1e6), np.full((1, 2, 2), -1e6), np.full((1, 2, 2), -1e6)]
    P, R = np.zeros((1, 2, 2, 2)), np.zeros((1, 2, 2))
    known = np.full((1, 2, 2), np.nan)
    for function in (dense.sample_model, dense.sample_model.py_func):
        function(*tables, np.full((1, 2, 2, 2), -1e6), known, DirichletPrior(1, 1, 1, 1), rng, P, R)
        assert np.allclose(P.sum(axis=-1), 1.0) and np.isfinite(R).all()


def test_it_learns_more_than_ldp_obi() -> None:
    """As in docs/papers/tabular_ldp.md#replication (four problems, deterministic seeds)."""
    totals = []
    for agent in (LdpPSRL(20.0, "paper"), LdpOBI(20.0, calibration="paper")):
        runs = [
            tacit.simulate(tacit.problem("random-mdp", seed=seed), agent, 50_000).regret[0, -1]
            for seed in (2, 3, 4, 5)
        ]
        totals.append(sum(runs))
    assert totals[0] < 0.5 * totals[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "ldp-psrl is private and needs an epsilon"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"epsilon": 1.0, "delta": 0.1}, "leave delta out"),
        ({"epsilon": 1.0, "randomizer": "gaussian"}, "needs a delta > 0"),
        ({"epsilon": 1.0, "beta": 0.0}, "beta = 0"),
        ({"epsilon": 1.0, "calibration": "loose"}, "one of corrected, paper, tight"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent("ldp-psrl", **parameters)


def test_stage_dependent_problems_are_refused() -> None:
    problem = tacit.problem("river-swim", inhomogeneous=True)
    for agent in (LdpPSRL(1.0), tacit.agent("obi")):
        with pytest.raises(InvalidInput, match=f"{agent.name} adds up the stages"):
            tacit.guarantee(problem, agent, 10)
