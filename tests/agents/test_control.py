"""Agents for linear systems: golden facts of docs/papers/lq_jdp.md, calibration, learning."""

import itertools
import math

import numpy as np
import pytest

import tacit
from contracts.planner import noise, publications, streams
from tacit.agents.paper_constants import control_joint
from tacit.errors import InvalidInput
from tacit.learner import drive
from tacit.planners import lq_design
from tacit.planners.lq_model import linear_task
from tacit.planners.lq_posterior import prior
from tacit.planners.tacit_control import TUNING
from tacit.problems import LQSystem
from tacit.statistics import Relation

SYSTEMS = ("lq-scalar", "lq-double-integrator", "lq-thermal")
SCALAR = tacit.problem("lq-scalar")


def regret(problem, name: str, episodes: int, seeds: int = 2, **parameters) -> np.ndarray:
    agent = tacit.agent(name, **parameters)
    return tacit.simulate(problem, agent, episodes, seeds, seed=11, workers=1).regret[:, -1]


# ---- Private-OFU-RL -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_paper_mode_is_doing_nothing(name: str, epsilon: float) -> None:
    """docs/papers/lq_jdp.md#x2: to the last bit, at every epsilon; a figure has K = 10^4."""
    problem = tacit.problem(name)
    published = regret(problem, "private-ofu-rl", 150, 1, epsilon=epsilon, calibration="paper")
    assert np.array_equal(published, regret(problem, "do-nothing", 150, 1))


@pytest.mark.parametrize(
    ("asked", "true"), [(0.1, 0.042), (1.0, 0.521), (10.0, 6.92), (30.0, 28.0)]
)
def test_the_true_epsilon_of_the_published_noise(asked: float, true: float) -> None:
    """docs/papers/lq_jdp.md#e3, for gamma = 0.6."""
    agent = tacit.agent("private-ofu-rl", epsilon=asked, calibration="paper")
    bound = agent.bind(SCALAR.task(1000, ["start"]))
    assert bound.guarantee.epsilon == pytest.approx(true, rel=0.01)
    levels = (1000 - 1).bit_length()
    root = math.sqrt(8 * math.log(2 / 1e-5)) / asked
    q = (1 + 0.6**2) / (1 + 0.6) ** 2
    assert bound.guarantee.mu == pytest.approx(math.sqrt(2) * (q + 0.5) / root, rel=1e-5)
    assert bound.privatizer.noise_std == control_joint(10, 0.6, asked, 1e-5, levels)[0]


@pytest.mark.parametrize("counter", ["tree", "honaker", "toeplitz", "normalised"])
def test_tight_calibration_meets_the_request(counter: str) -> None:
    agent = tacit.agent("private-ofu-rl", epsilon=1.0, counter=counter, calibration="tight")
    bound = agent.bind(SCALAR.task(1000, ["start"]))
    assert 0.999 < bound.guarantee.epsilon <= 1.0 and bound.guarantee.model == "joint"
    one = bound.statistic.sensitivity("l2", Relation.REPLACE_ONE)
    column = bound.privatizer.strategy.column_norm()
    assert bound.privatizer.noise_std >= column * one / 0.2680512


def test_energy_clipping_needs_less_noise() -> None:
    task = SCALAR.task(1000, ["start"])
    stds = [
        tacit.agent("private-ofu-rl", epsilon=1.0, clipping=clipping, calibration="tight")
        .bind(task)
        .privatizer.noise_std
        for clipping in ("step", "energy")
    ]
    assert stds[1] < 0.4 * stds[0]


def test_optimism_without_privacy_learns() -> None:
    """docs/papers/lq_jdp.md#x1: far below doing nothing (357 and 216 at K = 1000)."""
    assert regret(SCALAR, "ofu-rl", 1000, calibration="tight").max() < 90
    assert regret(tacit.problem("lq-double-integrator"), "ofu-rl", 300).max() < 110


def test_solves_can_be_certified() -> None:
    agent = tacit.agent("ofu-rl", certify=True)
    bound = agent.bind(SCALAR.task(40, ["start"]))
    for publication in publications(bound, SCALAR)[-3:]:
        value, bound_below = publication.context["value"], publication.context["bound"]
        assert bound_below <= value + 1e-9 and value - bound_below < 0.02 * value


# ---- references ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_references_without_privacy_learn_fast(name: str) -> None:
    problem = tacit.problem(name)
    idle = regret(problem, "do-nothing", 1000, 1)[0]
    assert regret(problem, "thompson", 1000).max() < 0.1 * idle
    assert regret(problem, "certainty-equivalence", 1000).max() < 0.15 * idle


# ---- tacit-control ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "at_one", "at_ten"),
    [
        ("lq-scalar", 240.0, 75.0),
        ("lq-double-integrator", 340.0, 150.0),
        ("lq-thermal", 290.0, 75.0),
    ],
)
def test_it_learns_at_ten_thousand_users(name: str, at_one: float, at_ten: float) -> None:
    problem = tacit.problem(name)
    assert regret(problem, "tacit-control", 10_000, epsilon=1.0).mean() <= at_one
    assert regret(problem, "tacit-control", 10_000, epsilon=10.0).mean() <= at_ten


@pytest.mark.parametrize("name", SYSTEMS)
def test_it_does_no_harm_where_nothing_can_be_learned(name: str) -> None:
    problem = tacit.problem(name)
    idle = regret(problem, "do-nothing", 1000, 1)[0]
    assert regret(problem, "tacit-control", 1000, epsilon=0.1).max() <= 1.1 * idle


def test_the_gate_opens_at_small_epsilon_once_there_are_users_enough() -> None:
    assert regret(SCALAR, "tacit-control", 10_000, 3, epsilon=0.1).mean() < 0.6 * 3572


def small(**changes) -> LQSystem:
    given = {
        "A": [[0.6, 0.2], [0.0, 0.5]],
        "B": [[0.05], [0.25]],
        "Q": np.eye(2),
        "R": [[0.1]],
        "horizon": 12,
        "noise": 0.08,
        "start": [0.7, 0.7],
        "input_bound": 0.27,
    }
    return LQSystem(**{**given, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"start": [[0.7, 0.7], [-0.7, -0.7]]},
        {"noise": [[0.08, 0.0], [0.06, 0.01]]},
        {"start": [[0.7, 0.7], [0.7, -0.7], [0.1, 0.9]]},
    ],
)
def test_it_learns_from_starts_without_a_mean_and_under_uneven_unknown_noise(changes) -> None:
    """Private starts of mean zero leave only cross moments to learn A from."""
    problem = small(**changes)
    idle = 5000 * (problem.optimal_value() - problem.baseline()[1])
    assert regret(problem, "tacit-control", 5000, epsilon=5.0).mean() < 0.5 * idle


def test_weak_inputs_cost_little() -> None:
    """Inputs a tenth as strong as declared: the prior hopes for more than there is."""
    problem = small(B=[[0.005], [0.025]])
    idle = 5000 * (problem.optimal_value() - problem.baseline()[1])
    lost = regret(problem, "tacit-control", 5000, epsilon=1.0).mean() - idle
    strong = small()
    assert lost < 0.02 * 5000 * (strong.optimal_value() - strong.baseline()[1])


def test_what_the_first_users_are_excited_with_does_not_grow_with_those_to_come() -> None:
    """A system that promises much and has little to give: early excitation is paid in vain."""
    problem = tacit.problem("random-lq", states=3, inputs=2, seed=263)
    bound = tacit.agent("tacit-control", epsilon=1.0).bind(problem.task(1_000_000, ["start"]))
    rng, facts = np.random.default_rng(0), linear_task(bound.task)
    gains = np.zeros((facts.H, facts.d, facts.n))
    hoped = lq_design.prospect(facts, prior(facts), gains, TUNING, rng).idle
    users = drive(bound, lambda p: problem.rollout(p.policy, rng), noise(), streams(7))
    for publication in itertools.islice(users, 3):
        met = int(publication.context["done"]) + publication.users
        assert publication.context["spent"] <= 2.0 * TUNING.budget * met * hoped
    assert publication.context["spent"] > 0.0


def test_the_belief_finds_the_truth_without_noise() -> None:
    """Exact releases: the posterior's mean goes to Theta, its noise to W."""
    problem = small()
    agent = tacit.agent("tacit-control", epsilon=1e5, delta=0.1)
    bound = agent.bind(problem.task(4000, ["start"]))
    last = publications(bound, problem)[-1]
    assert np.allclose(last.context["reference"], problem.theta, atol=0.05)
    assert np.allclose(last.context["W"], problem.noise_covariance, atol=2e-4)
    facts = linear_task(bound.task)
    assert last.context["sigma"][0, 0] < 0.05 * prior(facts).sigma[0, 0]


def test_gains_and_excitation_stay_within_the_cap() -> None:
    agent = tacit.agent("tacit-control", epsilon=5.0)
    bound = agent.bind(SCALAR.task(3000, ["start"]))
    for publication in publications(bound, SCALAR):
        widest = max(np.linalg.norm(K, 2) for K in publication.policy.gains)
        assert widest + publication.policy.amplitude <= SCALAR.gain + 1e-12


def test_the_noise_is_the_least_that_suffices_and_revealing_is_optional() -> None:
    agent = tacit.agent("tacit-control", epsilon=1.0)
    guarantee = tacit.guarantee(SCALAR, agent, 1000)
    assert 0.9999 < guarantee.epsilon <= 1.0 and guarantee.model == "joint"
    assert "noise" not in guarantee.revealed
    told = tacit.guarantee(SCALAR, agent, 1000, reveal=["noise"])
    assert told.epsilon == guarantee.epsilon and "noise" in told.revealed
    with pytest.raises(InvalidInput, match="no use of dynamics"):
        tacit.guarantee(SCALAR, agent, 1000, reveal=["dynamics"])
    with pytest.raises(InvalidInput, match="no fact .start. to reveal"):
        tacit.guarantee(tacit.problem("random-mdp"), agent, 1000)


# ---- compiled segments are the driver -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("do-nothing", {}),
        ("certainty-equivalence", {}),
        ("thompson", {}),
        ("ofu-rl", {}),
        ("ofu-rl", {"calibration": "tight"}),
        ("private-ofu-rl", {"epsilon": 100.0}),
        ("private-ofu-rl", {"epsilon": 100.0, "calibration": "tight"}),
        ("tacit-control", {"epsilon": 20.0}),
    ],
)
def test_segments_equal_the_driver_to_the_last_bit(name: str, parameters: dict) -> None:
    problem = small(start=[[0.7, 0.7], [0.1, -0.9]])
    agent = tacit.agent(name, **parameters)
    fast = tacit.simulate(problem, agent, 150, 2, seed=3)
    slow = tacit.Experiment(
        problem=problem, agent=agent, episodes=150, seed=3, compiled=False, runs=2
    ).run()
    assert np.array_equal(fast.regret, slow.regret) and np.array_equal(fast.reward, slow.reward)
