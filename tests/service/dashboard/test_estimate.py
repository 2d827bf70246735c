"""The band against exact values: simulated releases, policies planned on them, the truth."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard.made_up import Stored, joint_run, local_run
from tacit.agents import LdpOBI, TacitLocal
from tacit.agents.linopt import PrivateLinOptVI
from tacit.agents.tacit_joint import TacitJoint
from tacit.planners.evaluation.by_release import COVERAGE, Baseline, ValueBand, value_band
from tacit.planners.evaluation.draws import project
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, uniform_policy
from tacit.problems import TabularMDP, make_problem
from tacit.publication import Publication
from tacit_service.rehearsal.people import fleet_population

SWIM = make_problem("river-swim", states=4, horizon=6)
TWO = make_problem("random-mdp", states=2, actions=2, horizon=2, seed=7)
STAGED = make_problem("river-swim", states=3, horizon=4, inhomogeneous=True)
RUNS, ENOUGH = 50, 37
"""Were the coverage exactly 0.9, fewer than 37 of 50 would happen with probability 3e-4."""


def hits(run, problem, agent, users, factor=1.0) -> tuple[int, int, float]:
    """How often the band holds the true value and the true gain, and its mean width."""
    found, gained, width = 0, 0, 0.0
    zero = TabularPolicy(np.zeros((problem.horizon, problem.states), dtype=np.int64))
    for seed in range(RUNS):
        bound, release, entry = run(problem, agent, users, seed)
        noisy = release.with_noise(factor)
        guess = value_band(bound.task, bound.planner, noisy, entry, seed, {"zero": zero})
        truth = exact(problem, entry.policy, guess.kind)
        low, _, high = guess.baselines[0].gain
        found += guess.low - 1e-9 <= truth <= guess.high + 1e-9
        gained += low - 1e-9 <= truth - exact(problem, zero, guess.kind) <= high + 1e-9
        width += (guess.high - guess.low) / RUNS
    return found, gained, width


def coach() -> TabularMDP:
    """The example's people, as if all of them were the average person."""
    folder = Path(__file__).parents[3] / "examples" / "health_coach"
    task = make_problem("random-mdp", states=12, actions=4, horizon=7, seed=0).task(users=10)
    people = fleet_population({"python": "population.py:coach"}, folder, task)
    P, R = (
        np.tensordot(people.shares, [getattr(one, name)[0] for one in people.problems], axes=1)
        for name in "PR"
    )
    return TabularMDP(P, R, 7, people.problems[0].initial, rewards="bernoulli")


def exact(problem, policy, kind) -> float:
    if kind == "even":
        return float(problem.values(policy)[0].mean())
    return problem.value(policy)


@pytest.mark.parametrize(
    ("run", "problem", "agent", "users"),
    [
        (local_run, SWIM, TacitLocal(2.0), 3_000),
        (local_run, TWO, TacitLocal(1.0), 3_000),
        (local_run, STAGED, TacitLocal(4.0), 10_000),
        (joint_run, STAGED, TacitJoint(1.0, 1e-5), 1_000),
        (joint_run, SWIM, TacitJoint(3.0, 1e-5), 1_500),
    ],
)
def test_the_band_holds_the_exact_value_nine_times_out_of_ten(run, problem, agent, users) -> None:
    found, gained, _ = hits(run, problem, agent, users)
    assert COVERAGE == 0.9
    assert found >= ENOUGH
    assert gained >= ENOUGH


@pytest.mark.parametrize(
    ("run", "agent"), [(local_run, TacitLocal(2.0)), (joint_run, TacitJoint(1.0, 1e-6))]
)
def test_the_band_of_the_shipped_example_says_something(run, agent) -> None:
    """The coach at its full population: at most half of what is possible, and the truth in it."""
    found, gained, width = hits(run, coach(), agent, 10_000)
    assert found >= ENOUGH
    assert gained >= ENOUGH
    assert width < 0.5 * 7


def test_a_band_that_ignores_the_noise_misses() -> None:
    """So the test above can fail: with the noise left out of the law the bands are too short."""
    agent = TacitLocal(2.0)
    blind, _, narrow = hits(local_run, SWIM, agent, 3_000, factor=0.01)
    _, _, wide = hits(local_run, SWIM, agent, 3_000)
    assert blind < ENOUGH
    assert 2 * narrow < wide


def test_exact_numbers_give_the_exact_value() -> None:
    """Counts of very many users without noise: the band shrinks to the truth, also by state."""
    problem, many = SWIM, 1e12
    bound = LdpOBI(1.0).bind(problem.task(users=10))
    P, R = problem.P, problem.R
    visits = np.full(R.shape, many)
    blocks = {"visits": visits, "transitions": many * P, "reward": many * R}
    release = Stored(5, blocks, dict.fromkeys(blocks, np.zeros(())))
    policy = TabularPolicy(np.array([[0, 1, 0, 1]] * problem.horizon))
    guess = value_band(bound.task, bound.planner, release, Publication(1, policy), 0)
    truth = problem.values(policy)[0]
    assert guess.kind == "even"
    assert guess.middle == pytest.approx(truth.mean())
    assert guess.high - guess.low < 1e-3
    assert [middle for _, middle, _ in guess.states] == pytest.approx(list(truth))
    random = uniform_policy(problem.horizon, 4, 2)
    guess = value_band(bound.task, bound.planner, release, Publication(1, random), 0)
    assert isinstance(random, StochasticPolicy)
    assert guess.middle == pytest.approx(problem.values(random)[0].mean())


def test_where_noise_hides_everything_it_is_said() -> None:
    bound, release, publication = local_run(SWIM, TacitLocal(0.05), 100, 0)
    guess = value_band(bound.task, bound.planner, release, publication, 0)
    assert guess.hidden > 0.5
    bound, release, publication = local_run(SWIM, TacitLocal(2.0), 30_000, 0)
    assert value_band(bound.task, bound.planner, release, publication, 0).hidden < 0.1


@pytest.mark.parametrize(
    ("gain", "needed"),
    [((0.1, 1.0, 2.0), 100), ((-1.0, 1.0, 3.0), 400), ((-0.5, 0.0, 0.5), None)],
)
def test_users_needed_follow_from_the_square_root_law(gain, needed) -> None:
    assert Baseline("zero", (0.0, 1.0, 2.0), gain).users_needed(100) == needed


def test_the_same_release_gives_the_same_band() -> None:
    bound, release, publication = local_run(TWO, TacitLocal(1.0), 500, 1)
    first, again, other = (
        value_band(bound.task, bound.planner, release, publication, seed) for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_large_models_are_drawn_in_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, release, publication = local_run(TWO, TacitLocal(4.0), 2_000, 1)
    whole = value_band(bound.task, bound.planner, release, publication, 3)
    monkeypatch.setattr("tacit.planners.evaluation.by_release.MOST_NUMBERS", 8)
    pieces = value_band(bound.task, bound.planner, release, publication, 3)
    assert pieces.low == pytest.approx(whole.low, abs=0.05)
    assert pieces.high == pytest.approx(whole.high, abs=0.05)
    monkeypatch.setattr("tacit.planners.evaluation.by_release.MOST_NUMBERS", 7)
    assert value_band(bound.task, bound.planner, release, publication, 3) == ValueBand("none")


def test_regressions_show_the_optimistic_value_and_say_so() -> None:
    task = SWIM.task(users=100)
    bound = PrivateLinOptVI(1.0, calibration="tight", every=10, statistic="block").bind(task)
    V = np.zeros((7, 4))
    V[0] = [1.0, 2.0, 3.0, 6.0]
    actions = TabularPolicy(np.zeros((6, 4), dtype=np.int64))
    release = Stored(10, {"gram": np.zeros(3)}, {"gram": np.zeros(())})
    entry = Publication(1, actions, {"V": V})
    assert value_band(task, bound.planner, release, entry, 0) == ValueBand(
        "optimistic", 3.0, 3.0, 3.0
    )
    unsaid = Publication(1, actions)
    assert value_band(task, bound.planner, release, unsaid, 0) == ValueBand("none")
    nobody = Stored(0, release.blocks, release.variances)
    assert value_band(task, bound.planner, nobody, entry, 0) == ValueBand("none")


def test_of_returns_there_is_no_band() -> None:
    table = make_problem("random-mdp", states=3, actions=2, horizon=8, seed=4)
    problem = TabularMDP(table.P[0], table.R[0] / 8.0, 8, returns=(0.0, 1.0))
    bound, release, entry = joint_run(problem, TacitJoint(epsilon=0.1, delta=1e-5), 30, 0)
    assert "returns" in release.blocks
    assert value_band(bound.task, bound.planner, release, entry, 0) == ValueBand("none")


@given(
    y=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8),
    total=st.floats(1e-3, 1e3),
)
def test_projection_is_the_nearest_feasible_point(y: list[float], total: float) -> None:
    """Its optimality condition: y - x is the same on the support, and not larger elsewhere."""
    point = np.array(y)
    x = project(point, np.asarray(total))
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)
    gap = point - x
    assert gap[x == 0].max(initial=-np.inf) <= gap[x > 0].min() + 1e-6
    assert np.ptp(gap[x > 0]) <= 1e-6
