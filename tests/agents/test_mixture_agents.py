"""Agents on linear mixtures: golden guarantees, equalities, what is refused."""

import dataclasses
import math

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.learner import drive
from tacit.privacy import Exact, ZeroNoise, accounting
from tacit.streams import planner_streams

TIGHT = {"calibration": "tight"}


def river(states: int, horizon: int | None = None, over: bool = True, **more):
    H = horizon or 2 * states
    return tacit.problem(
        "river-swim", states=states, horizon=H, kernel="vtr", reward_scale=1 / H if over else 1.0
    )


@pytest.mark.parametrize(
    ("states", "epsilon", "delta", "sigma", "true"),
    [
        (3, 1.0, 0.1, 75.975, 0.0),
        (3, 10.0, 0.1, 7.598, 1.714),
        (3, 1.0, 1e-5, 127.994, 0.246),
        (5, 1.0, 0.1, 132.924, 0.0),
        (5, 10.0, 0.1, 13.292, 2.155),
        (5, 1.0, 1e-5, 217.122, 0.294),
    ],
)
def test_paper_mode_prints_the_true_epsilon(states, epsilon, delta, sigma, true) -> None:
    """docs/papers/mixture_ldp.md#noise-scales, first and last column."""
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=epsilon, delta=delta, calibration="paper")
    said = tacit.guarantee(river(states), agent, 100)
    assert said.noise["std at weight 1"] == pytest.approx(sigma, abs=6e-4)
    assert said.epsilon == pytest.approx(true, abs=6e-4)
    mu = math.sqrt((2 * states - 1) * (states**2 + 3 * states)) / said.noise["std at weight 1"]
    assert said.epsilon == pytest.approx(accounting.gaussian_epsilon(mu, delta), abs=1e-6)
    assert said.requested_epsilon == epsilon


@pytest.mark.parametrize(
    ("statistic", "states", "epsilon", "delta", "sigma"),
    [
        ("gram", 3, 1.0, 0.1, 4.856),
        ("block", 3, 10.0, 0.1, 1.260),
        ("gram", 5, 1.0, 1e-5, 22.384),
        ("index", 3, 1.0, 0.1, 3.434),
        ("index", 3, 10.0, 0.1, 0.891),
        ("index", 5, 1.0, 1e-5, 15.828),
    ],
)
def test_tight_noise_is_that_of_the_spec(statistic, states, epsilon, delta, sigma) -> None:
    """docs/papers/mixture_ldp.md#noise-scales, "clipped" and "one-hots"."""
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=epsilon, delta=delta, statistic=statistic, **TIGHT)
    said = tacit.guarantee(river(states), agent, 100)
    assert said.noise["std at weight 1"] == pytest.approx(sigma, abs=6e-4)
    assert said.epsilon == pytest.approx(epsilon, rel=1e-6) and said.epsilon <= epsilon


@pytest.mark.parametrize(
    ("problem", "p1", "p2", "r"),
    [
        ("remap-walk", 27136, 13568, 124.9),
        ("river-swim", 4.797e4, 2.145e4, 124.9),
    ],
)
def test_joint_noise_is_that_of_the_spec(problem, p1, p2, r) -> None:
    """docs/papers/mixture_jdp.md#noise-scales: noise of a node at h = 1, tight columns."""
    parameters = {"states": 5, "horizon": 10} if problem == "river-swim" else {}
    agent = tacit.agent("private-linopt-vi", epsilon=1.0, centre=False, **TIGHT)
    bound = bind(tacit.problem(problem, **parameters), agent, 10_000)
    a_over_mu = math.sqrt(14) / accounting.gaussian_mu(1.0, 1e-5)
    scales = bound.statistic.scales
    assert a_over_mu / scales.gram[0] == pytest.approx(p1, rel=1e-3)
    assert a_over_mu / scales.target[0] == pytest.approx(p2, rel=1e-3)
    assert a_over_mu / scales.reward_gram[0] == pytest.approx(r, rel=1e-3)
    assert a_over_mu / scales.reward_target[0] == pytest.approx(r, rel=1e-3)
    assert bound.privatizer.noise_std <= a_over_mu * (1 + 1e-4)
    assert bound.guarantee.epsilon <= 1.0
    paper = tacit.agent("private-linopt-vi", epsilon=1.0, calibration="paper")
    said = tacit.guarantee(tacit.problem(problem, **parameters), paper, 10_000)
    assert said.noise["node std"] == pytest.approx(825.3, abs=0.05)
    assert said.epsilon <= 0.159  # table 4.3: H = 10, nominal 1, generic features


def test_paper_mode_of_a_generic_mixture_is_the_tabulated_one() -> None:
    """A norm bound sqrt(d1) H on the features and worst angles: exactly table 4.3 at most."""
    problem = tacit.problem("hard-mixture", dimension=2, horizon=5)
    agent = tacit.agent("private-linopt-vi", epsilon=10.0, calibration="paper")
    said = tacit.guarantee(problem, agent, 1000)
    assert 0 < said.epsilon <= 3.00 and "stronger than asked" in str(said)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_the_bandit_has_its_own_update(calibration: str) -> None:
    agent = tacit.agent("ldp-bandit", epsilon=1.0, delta=0.01, calibration=calibration)
    problem = tacit.problem("linear-bandit", contexts=20, arms=5)
    said = tacit.guarantee(problem, agent, 100)
    std = said.noise["std at weight 1"]
    if calibration == "paper":
        assert std == pytest.approx(4 * math.sqrt(2 * math.log(250)))
        mu = math.sqrt(4.5) / std
        assert said.epsilon == pytest.approx(accounting.gaussian_epsilon(mu, 0.01), rel=1e-5)
    else:
        assert std == pytest.approx(math.sqrt(4.5) / accounting.gaussian_mu(1.0, 0.01), rel=1e-5)


def policies(bound, problem, users_seed: int = 0) -> list:
    rng = np.random.default_rng(users_seed)
    played = drive(
        bound, lambda p: problem.rollout(p.policy, rng), ZeroNoise(), planner_streams(0, 0)
    )
    return [(p.policy, p.context["V"].tobytes()) for p in played]


PAIRS = [
    ("ldp-ucrl-vtr", "ucrl-vtr", {"statistic": "block"}, ["reward"]),
    ("ldp-ucrl-vtr", "ucrl-vtr", {}, ["reward"]),
    ("private-linopt-vi", "linopt-vi", {}, []),
    ("private-linopt-vi", "linopt-vi", {"statistic": "block"}, []),
    ("private-linopt-po", "linopt-po", {}, []),
]


@pytest.mark.parametrize("problem", ["remap-walk", "random-mdp"])
@pytest.mark.parametrize(("private", "plain", "parameters", "reveal"), PAIRS)
def test_without_noise_a_private_agent_is_its_plain_one(
    private, plain, parameters, reveal, problem
) -> None:
    truth = tacit.problem(problem, horizon=3)
    noisy = bind(truth, tacit.agent(private, epsilon=1.0, **parameters, **TIGHT), 40)
    exact = bind(truth, tacit.agent(plain, **parameters, **TIGHT), 40)
    silent = dataclasses.replace(noisy, privatizer=Exact(noisy.statistic, noisy.task))
    assert policies(silent, truth) == policies(exact, truth)


@pytest.mark.parametrize("problem", ["remap-walk", "random-mdp"])
def test_with_the_reward_revealed_linopt_is_ucrl(problem: str) -> None:
    truth = tacit.problem(problem, horizon=3)
    told = bind(truth, tacit.agent("linopt-vi", **TIGHT), 40, reveal=["reward"])
    assert policies(told, truth) == policies(
        bind(truth, tacit.agent("ucrl-vtr", **TIGHT), 40), truth
    )
    untold = bind(truth, tacit.agent("linopt-vi", **TIGHT), 40)
    assert policies(untold, truth) != policies(told, truth)


def test_ucrl_vtr_learns_and_paper_noise_drowns_it() -> None:
    problem = river(3)
    plain = tacit.simulate(problem, tacit.agent("ucrl-vtr", every=5, **TIGHT), 1500, runs=2, seed=3)
    uniform = problem.optimal_value() - problem.baseline()[1]
    assert plain.regret[:, -1].mean() < 0.25 * uniform * 1500
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=10.0, delta=0.1, calibration="paper", every=5)
    paper = tacit.simulate(problem, agent, 1500, runs=2, seed=3)
    assert paper.regret[:, -1].mean() > 0.6 * uniform * 1500


def test_the_widths_of_the_paper_are_those_of_the_spec() -> None:
    """docs/papers/mixture_ldp.md#radius: q1 + q2 + q3, with the numbers given there."""
    from tacit.planners.widths import PaperLocal
    from tacit.privacy.base import BlockLaw
    from tacit.release import Release

    problem = river(3, over=False)
    bound = bind(
        problem, tacit.agent("ldp-ucrl-vtr", epsilon=1.0, delta=0.1, calibration="paper"), 9
    )
    std = bound.privatizer.noise_std
    assert std == pytest.approx(4 * 6**3 * math.sqrt(2 * math.log(150)))
    layout = bound.statistic.layout
    zeros = layout.views(np.zeros(layout.size))
    law = BlockLaw("gaussian", dict.fromkeys(zeros, std), zeros)
    release = Release(100, zeros, law, "simulated")
    p = dataclasses.replace(bound.planner.sums.transitions, theta_norm=math.sqrt(18))
    widths, _ = PaperLocal(1.0, 0.01).widths(
        bound.task, release, bound.planner.sums._replace(transitions=p)
    )
    assert widths.fixed[0] == pytest.approx(6059.8 + 2483.5 + 482.8, abs=0.3)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ldp-ucrl-vtr", {}, "needs an epsilon"),
        ("ldp-ucrl-vtr", {"epsilon": 1.0, "delta": 0.0}, "delta = 0"),
        ("ldp-ucrl-vtr", {"epsilon": 1.0, "statistic": "cells"}, "one of gram, block, index"),
        (
            "ldp-ucrl-vtr",
            {"epsilon": 1.0, "calibration": "paper", "statistic": "index"},
            "full Gram matrices",
        ),
        ("ucrl-vtr", {"statistic": "block"}, "full Gram matrices"),
        ("ucrl-vtr", {"radius": "half"}, "one of theorem, experiment"),
        (
            "private-linopt-po",
            {"epsilon": 1.0, "calibration": "tight", "norm": "remark"},
            "leave it out",
        ),
        ("private-linopt-vi", {"epsilon": 1.0, "counter": "abacus"}, "one of tree, honaker"),
        (
            "private-linopt-vi",
            {"epsilon": 1.0, "calibration": "paper", "counter": "blt"},
            "the paper uses the tree",
        ),
        ("private-linopt-po", {"epsilon": 1.0, "rate": "fast"}, "one of paper, tight"),
        ("ucrl-vtr", {"every": 0}, "every = 0"),
        ("linopt-vi", {"ridge": 0.0}, "ridge = 0"),
        ("ucrl-vtr", {"epsilon": 1.0}, "adds no noise"),
    ],
)
def test_bad_parameters(name: str, parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent(name, **parameters)


def test_horizon_one_goes_to_the_bandit() -> None:
    one = tacit.problem("random-mdp", horizon=1)
    with pytest.raises(InvalidInput, match="ldp-bandit"):
        tacit.guarantee(one, tacit.agent("ldp-ucrl-vtr", epsilon=1.0), 10)
    assert tacit.guarantee(one, tacit.agent("ldp-bandit", epsilon=1.0), 10).epsilon <= 1.0
    with pytest.raises(InvalidInput, match="horizon 1, but this one has 2"):
        tacit.guarantee(tacit.problem("random-mdp"), tacit.agent("ldp-bandit", epsilon=1.0), 10)
    assert tacit.simulate(one, tacit.agent("ucrl-vtr"), 20).regret[0, -1] == 0.0


def test_large_epsilon_needs_no_case_of_its_own() -> None:
    """The classical Gaussian bound fails from epsilon = 2 H on (docs/papers/mixture_ldp.md#e12)."""
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=30.0, delta=0.01, **TIGHT)
    assert tacit.guarantee(river(3), agent, 100).epsilon == pytest.approx(30.0, rel=1e-6)
