"""Golden constants of spec linear_jdp, true guarantees, and what must show in a run."""

import math

import numpy as np
import pytest

import tacit
from tacit.agents.lsvi import lsvi_bonus, plus_bonus, switches_at_most
from tacit.agents.lsvi_calibration import spectral_shift
from tacit.agents.lsvi_constants import Sizes, batch_constants, plus_constants, zcdp
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.counters import Toeplitz, Tree

SIZES = Sizes(d=10, H=20, K=5000, beta=0.01)
SYNTHETIC = tacit.problem("synthetic-linear")
SMALL = tacit.problem("synthetic-linear", horizon=5, actions=12)


def test_the_bonuses_have_the_values_of_the_spec() -> None:
    assert lsvi_bonus(SYNTHETIC.task(users=5000), 0.01) == pytest.approx(874.387, abs=1e-3)
    bonus = plus_bonus(10, 20, 5000, 0.01)
    assert bonus.hat == pytest.approx(80.36, abs=5e-3)
    assert bonus.check == pytest.approx(15442.76, abs=5e-3)
    assert bonus.square == pytest.approx(308855.17, abs=5e-3)
    private = plus_constants(SIZES, rho=1.0)
    assert private.ridge == pytest.approx(8334, abs=1)
    assert private.bonus.check == pytest.approx(2.1e9, rel=0.02)
    assert private.bonus.square == pytest.approx(1.5e16, rel=0.05)


@pytest.mark.parametrize(
    ("epsilon", "paper", "tight"), [(1, 0.0208199, 0.0359257), (10, 1.5503552, 2.0008913)]
)
def test_the_budgets_have_the_values_of_the_spec(epsilon, paper, tight) -> None:
    assert zcdp(epsilon, 1e-5) == pytest.approx(paper, abs=1e-6)
    assert gaussian_mu(epsilon, 1e-5) ** 2 / 2 == pytest.approx(tight, abs=1e-6)


@pytest.mark.parametrize(
    ("users", "epsilon", "gram", "answer", "switches"),
    [(1000, 1, 236, 1449, 11), (5000, 1, 307, 2658, 37), (5000, 10, 41.1, 830, 201),
     (100_000, 1, 401, 7755, 315)],
)  # fmt: skip
def test_the_noise_table_of_the_spec(users, epsilon, gram, answer, switches) -> None:
    """Separate prices, unit weights, 19 live stages; the agents use less by the joint price."""
    mu2, tree = gaussian_mu(epsilon, 1e-5) ** 2 / 2, Tree(users)
    packed = tree.column_norm() * math.sqrt(2 * 20 / mu2)
    assert packed / math.sqrt(2) * tree.column_norm() == pytest.approx(gram, rel=5e-3)
    ridge = 1.0 + spectral_shift(packed, tree, 10, 20, users, 0.01)
    assert switches_at_most(10, 20, users, 1.0, ridge) == switches
    assert 19 * math.sqrt(19 * switches / mu2) == pytest.approx(answer, rel=5e-3)


def test_factorised_releases_have_the_error_of_the_spec() -> None:
    counter = Toeplitz(13)
    assert counter.column_norm() * counter.error_std(13) == pytest.approx(1.877, abs=1e-3)


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
    guarantee = tacit.guarantee(made, SYNTHETIC, 5000)
    assert guarantee.epsilon == pytest.approx(true, rel=3e-3)
    assert ("WEAKER than asked" in str(guarantee)) == (guarantee.epsilon > epsilon)


@pytest.mark.parametrize(("epsilon", "true"), [(1, 0.0228), (10, 0.244)])
def test_fresh_published_noise_of_plus_plus_is_priced(epsilon, true) -> None:
    made = tacit.agent("dp-lsvi-ucb++", epsilon=epsilon, calibration="paper")
    guarantee = tacit.guarantee(made, SYNTHETIC, 5000, reveal=["reward"])
    assert guarantee.epsilon == pytest.approx(true, rel=5e-3)


def test_noise_reused_as_printed_has_no_finite_epsilon() -> None:
    made = tacit.agent("dp-lsvi-ucb++", epsilon=1, calibration="paper", reuse_noise=True)
    guarantee = tacit.guarantee(made, SYNTHETIC, 5000)
    assert guarantee.epsilon == math.inf and "no finite epsilon" in str(guarantee)
    assert tacit.simulate(SMALL, made, 20).regret.shape[0] == 1
    with pytest.raises(InvalidInput, match="calibration"):
        tacit.agent("dp-lsvi-ucb++", epsilon=1, reuse_noise=True)


def test_the_published_batch_noise_grows_weaker_with_the_horizon() -> None:
    """mu grows like H^2: nominal epsilon 1 is 1.018 at H = 25 and 1.50 at H = 30."""
    from tacit.privacy.published import linear_batches

    for H, true in ((25, 1.018), (30, 1.50), (50, 4.54)):
        noise = linear_batches(10, H, 5000, 1.0, 1e-5)
        assert noise.true_epsilon(1e-5) == pytest.approx(true, rel=3e-3)
        ours = batch_constants(Sizes(10, H, 5000, 0.01), 1.0, 1e-5)
        assert ours.gram_std == pytest.approx(noise.scales["gram std"])
        assert ours.target_std == pytest.approx(noise.scales["target std"])


TIGHT = ["dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++", "tacit-linear"]


@pytest.mark.parametrize("agent", TIGHT)
@pytest.mark.parametrize("epsilon", [0.5, 10.0, 1e4])
@pytest.mark.parametrize(
    "problem", [SMALL, tacit.problem("river-swim", states=3, horizon=4)], ids=lambda p: p.name
)
def test_tight_calibration_meets_the_request(agent, epsilon, problem) -> None:
    guarantee = tacit.guarantee(tacit.agent(agent, epsilon=epsilon), problem, 1000)
    assert guarantee.model == "joint"
    assert guarantee.epsilon <= epsilon == pytest.approx(guarantee.epsilon, rel=1e-5)


@pytest.mark.parametrize("agent", ["dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++"])
def test_noise_too_fine_for_the_grid_is_refused(agent) -> None:
    with pytest.raises(InvalidInput, match="too fine for the grid"):
        tacit.guarantee(tacit.agent(agent, epsilon=2e7), SMALL, 1000)


@pytest.mark.parametrize(
    ("agent", "parameters"),
    [
        ("lsvi-ucb", {}),
        ("lsvi-ucb++", {}),
        ("dp-lsvi-batch", {"epsilon": 1, "calibration": "paper"}),
        ("dp-lsvi-adaptive", {"epsilon": 1, "calibration": "paper"}),
        ("dp-lsvi-ucb++", {"epsilon": 1, "calibration": "paper"}),
    ],
)
def test_theory_constants_play_ties(agent, parameters) -> None:
    """9.8 per episode in the mean, all five.

    Ties drawn once serve for long: the standard deviation over runs is below 3, so that 150 runs
    leave the bound with probability below 0.0001.
    """
    result = tacit.simulate(SYNTHETIC, tacit.agent(agent, **parameters), 4, seeds=150)
    assert result.regret[:, -1].std() / 4 < 3.0
    assert result.regret[:, -1].mean() / 4 == pytest.approx(9.8, abs=1.0)
    assert "ties decide" in " ".join(result.agent["notes"])


CASES = [
    ("tacit-linear", {"epsilon": 5}),
    ("tacit-linear", {"epsilon": 5, "sums": "answered"}),
    ("lsvi-ucb++", {"bonus_scale": 0.05}),
    ("dp-lsvi-batch", {"epsilon": 5}),
    ("dp-lsvi-adaptive", {"epsilon": 500}),
    ("dp-lsvi-ucb++", {"epsilon": 500}),
]


@pytest.mark.parametrize(
    "problem", [SMALL, tacit.problem("river-swim", states=3, horizon=4)], ids=lambda p: p.name
)
@pytest.mark.parametrize(("agent", "parameters"), CASES)
def test_segments_equal_the_driver_bit_by_bit(problem, agent, parameters) -> None:
    made = tacit.agent(agent, **parameters)
    fast, slow = (
        tacit.simulate(problem, made, 120, seeds=2, seed=3, compiled=compiled)
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
    known = tacit.simulate(SMALL, tacit.agent("tacit-linear", epsilon=1), 300, reveal=["reward"])
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
    wide = tacit.task.Task(
        "tabular", 2, {"states": 6000, "actions": 1}, False, 1000,
        known={"features": np.full((6000, 1, 2), 0.5)},
    )  # fmt: skip
    assert "uses answered queries" in agent.notes(wide)[0]
    assert type(agent.bind(wide).privatizer).__name__ == "Curator"
