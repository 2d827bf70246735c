"""Agents of docs/papers/linear_jdp.md: true guarantees, and what must show in a run."""

import dataclasses
import math

import numpy as np
import pytest

import tacit
from tacit import Participation
from tacit.errors import InvalidInput

SYNTHETIC = tacit.problem("synthetic-linear")
SMALL = tacit.problem("synthetic-linear", horizon=5, actions=12)


@pytest.mark.parametrize(
    ("agent", "epsilon", "true"),
    [
        ("dp-lsvi-batch", 1, 0.639),
        ("dp-lsvi-batch", 10, 8.23),
        ("dp-lsvi-adaptive", 1, 2.32),
        ("dp-lsvi-adaptive", 10, 32.5),
    ],
)
def test_published_noise_prints_its_true_epsilon(agent, epsilon, true) -> None:
    made = tacit.agent(agent, epsilon=epsilon, calibration="paper")
    guarantee = tacit.guarantee(SYNTHETIC, made, 5000)
    assert guarantee.epsilon == pytest.approx(true, rel=3e-3)
    assert ("WEAKER than asked" in str(guarantee)) == (guarantee.epsilon > epsilon)


def test_noise_reused_as_printed_has_no_finite_epsilon() -> None:
    made = tacit.agent("dp-lsvi-ucb++", epsilon=1, calibration="paper", reuse_noise=True)
    guarantee = tacit.guarantee(SYNTHETIC, made, 5000)
    assert guarantee.epsilon == math.inf and "no finite epsilon" in str(guarantee)
    assert tacit.simulate(SMALL, made, 20).regret.shape[0] == 1
    with pytest.raises(InvalidInput, match="calibration"):
        tacit.agent("dp-lsvi-ucb++", epsilon=1, reuse_noise=True)


TIGHT = {"calibration": "tight"}
PRIVATE = [*((n, TIGHT) for n in ("dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++"))]
PRIVATE += [("tacit-linear", {})]


@pytest.mark.parametrize(("agent", "parameters"), PRIVATE)
@pytest.mark.parametrize("epsilon", [0.5, 10.0, 1e4])
@pytest.mark.parametrize(
    "problem", [SMALL, tacit.problem("river-swim", states=3, horizon=4)], ids=lambda p: p.name
)
def test_tight_calibration_meets_the_request(agent, parameters, epsilon, problem) -> None:
    made = tacit.agent(agent, epsilon=epsilon, **parameters)
    guarantee = tacit.guarantee(problem, made, 1000)
    assert guarantee.model == "joint"
    assert guarantee.epsilon <= epsilon == pytest.approx(guarantee.epsilon, rel=1e-5)


@pytest.mark.parametrize("agent", ["dp-lsvi-adaptive", "dp-lsvi-ucb++"])
@pytest.mark.parametrize("calibration", ["corrected", "tight"])
def test_the_rule_of_switching_changes_neither_noise_nor_guarantee(agent, calibration) -> None:
    bound = [
        tacit.agent(agent, epsilon=1, calibration=calibration, switching=rule).bind(
            SMALL.task(1000)
        )
        for rule in ("determinant", "rayleigh")
    ]
    assert bound[0].guarantee == bound[1].guarantee
    assert bound[0].planner.switching.most == bound[1].planner.switching.most


@pytest.mark.parametrize("agent", ["dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++"])
def test_noise_too_fine_for_the_grid_is_refused(agent) -> None:
    with pytest.raises(InvalidInput, match="too small for the grid"):
        tacit.guarantee(SMALL, tacit.agent(agent, epsilon=2e7, **TIGHT), 1000)


@pytest.mark.parametrize(
    ("agent", "parameters"),
    [
        ("lsvi-ucb", {}),
        ("lsvi-ucb++", {}),
        ("dp-lsvi-batch", {"epsilon": 1}),
        ("dp-lsvi-adaptive", {"epsilon": 1, "calibration": "paper"}),
        ("dp-lsvi-adaptive", {"epsilon": 1}),
        ("dp-lsvi-ucb++", {"epsilon": 1}),
    ],
)
def test_theory_constants_play_ties(agent, parameters) -> None:
    """9.8 per episode in the mean, all five.

    Ties drawn once serve for long: the standard deviation over runs is below 3, so that 150 runs
    leave the bound with probability below 0.0001.
    """
    result = tacit.simulate(SYNTHETIC, tacit.agent(agent, **parameters), 4, runs=150)
    assert result.regret[:, -1].std() / 4 < 3.0
    assert result.regret[:, -1].mean() / 4 == pytest.approx(9.8, abs=1.0)
    assert "ties decide" in " ".join(result.agent["notes"])


@pytest.mark.parametrize("seed", [21, 22, 24])
def test_learners_without_privacy_learn_where_few_users_are_enough(seed) -> None:
    """lsvi-ucb by its theorem; tight lsvi-ucb++ needs optimism about what was never seen, too."""
    problem = tacit.problem("random-mdp", states=2, actions=2, horizon=2, seed=seed)
    uniform = 3000 * (problem.optimal_value() - problem.baseline()[1])
    plain, plus = (
        tacit.simulate(problem, agent, 3000, runs=2, seed=5).regret[:, -1].max()
        for agent in (tacit.agent("lsvi-ucb"), tacit.agent("lsvi-ucb++", **TIGHT))
    )
    assert plus < 0.1 * uniform and plus < plain < 0.8 * uniform


CASES = [
    ("tacit-linear", {"epsilon": 5}),
    ("tacit-linear", {"epsilon": 5, "sums": "answered"}),
    ("lsvi-ucb++", {"bonus_scale": 0.05}),
    ("dp-lsvi-batch", {"epsilon": 5, **TIGHT}),
    ("dp-lsvi-batch", {"epsilon": 500, "bonus_scale": 0.1}),
    ("dp-lsvi-adaptive", {"epsilon": 500, **TIGHT}),
    ("dp-lsvi-adaptive", {"epsilon": 5000, "bonus_scale": 0.1}),
    ("dp-lsvi-ucb++", {"epsilon": 500, **TIGHT}),
    ("dp-lsvi-adaptive", {"epsilon": 500, "switching": "rayleigh", **TIGHT}),
    ("dp-lsvi-ucb++", {"epsilon": 500, "switching": "rayleigh", **TIGHT}),
]


@pytest.mark.parametrize(
    "problem", [SMALL, tacit.problem("river-swim", states=3, horizon=4)], ids=lambda p: p.name
)
@pytest.mark.parametrize(("agent", "parameters"), CASES)
def test_segments_equal_the_driver_bit_by_bit(problem, agent, parameters) -> None:
    made = tacit.agent(agent, **parameters)
    fast, slow = (
        tacit.Experiment(
            problem=problem, agent=made, episodes=120, seed=3, compiled=compiled, runs=2
        ).run()
        for compiled in (True, False)
    )
    assert np.array_equal(fast.regret, slow.regret)
    assert np.array_equal(fast.reward, slow.reward)


def test_what_lsvi_ucb_keeps_does_not_grow_with_the_users() -> None:
    """Tables instead of trajectories: far below 1 GB at 10^5 users, and at any number."""
    agent = tacit.agent("lsvi-ucb")
    kept = [agent.bind(SYNTHETIC.task(users)).privatizer.init().sums.nbytes for users in (9, 10**5)]
    assert kept[0] == kept[1] < 1e6


def test_known_rewards_are_used_and_not_collected() -> None:
    known = tacit.Experiment(
        problem=SMALL, agent=tacit.agent("tacit-linear", epsilon=1), episodes=300, reveal=["reward"]
    ).run()
    assert known.regret[0, -1] == pytest.approx(0.0, abs=1e-9)
    bound = tacit.agent("tacit-linear", epsilon=1).bind(SMALL.task(10, reveal=["reward"]))
    assert [b.shape[0] for b in bound.statistic.layout.blocks] == [4, 4, 0]


def test_it_learns_where_function_approximation_pays() -> None:
    """A tenth of the uniform policy's regret, on an instance no constant was chosen on."""
    problem = tacit.problem("low-rank", states=12, actions=6, dimension=4, horizon=5, seed=21)
    result = tacit.simulate(problem, tacit.agent("tacit-linear", epsilon=10), 20_000)
    uniform = 20_000 * (problem.optimal_value() - problem.baseline()[1])
    assert result.regret[0, -1] < 0.1 * uniform


def test_with_many_states_it_asks_instead_and_says_so() -> None:
    problem = tacit.problem("low-rank", states=20, actions=3, dimension=2, horizon=3)
    agent = tacit.agent("tacit-linear", epsilon=1)
    assert "uses additive sums" in agent.notes(problem.task(1000))[0]
    wide = tacit.task.task.Task(
        "tabular", 2, {"states": 6000, "actions": 1}, False, 1000,
        known={"features": np.full((6000, 1, 2), 0.5)},
    )  # fmt: skip
    assert "uses answered queries" in agent.notes(wide)[0]
    assert type(agent.bind(wide).privatizer).__name__ == "Curator"
    assert agent.teaches(wide) == "every" and agent.teaches(problem.task(1000)) == "lifetime"
    lives = dataclasses.replace(wide, rule=Participation(3, "lifetime"))
    assert type(agent.bind(lives).privatizer).__name__ == "CountedSums"
    assert agent.notes(lives) == (
        "uses additive sums: answered queries do not bound what a person adds in all",
    )
