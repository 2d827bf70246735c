"""tacit-joint: guarantee, schedule, learning, and bit-equal runs in segments."""

import numpy as np
import pytest

import tacit
from tacit.driver import Every, Geometric
from tacit.errors import InvalidInput
from tacit.forecast import bind
from tacit.privacy.local.shaped import LocalShaped
from tacit.simulation.compiled import compiled_run
from tacit.simulation.value_targeted import ValueTargetedRun
from tacit.statistics.base import Relation

AGENTS = {
    "tacit-joint": ("tacit-joint", {"epsilon": 50.0, "first": 5}),
    "tree": ("tacit-joint", {"epsilon": 50.0, "first": 5, "counter": "tree"}),
    "ucrl-vtr": ("ucrl-vtr", {"every": 7}),
    "ldp": ("ldp-ucrl-vtr", {"epsilon": 5.0}),
    "ldp index": ("ldp-ucrl-vtr", {"epsilon": 5.0, "statistic": "index"}),
    "joint": ("private-linopt-vi", {"epsilon": 5.0, "every": 6, "counter": "honaker"}),
    "policy optimisation": ("private-linopt-po", {"epsilon": 5.0, "every": 9}),
    "plain policy optimisation": ("linopt-po", {"every": 4, "statistic": "block"}),
}
PROBLEMS = {
    "table": tacit.problem("random-mdp", states=3, actions=2, horizon=3, seed=2),
    "per stage": tacit.problem("river-swim", states=3, horizon=4, inhomogeneous=True),
    "mixture": tacit.problem("remap-walk", horizon=3),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("agent", AGENTS)
def test_runs_in_segments_equal_the_driver_to_the_last_bit(problem: str, agent: str) -> None:
    name, parameters = AGENTS[agent]
    made = tacit.agent(name, **parameters)
    fast, slow = (
        tacit.simulate(
            PROBLEMS[problem], made, 60, seeds=2, seed=5, compiled=compiled, checkpoints=7
        )
        for compiled in (True, False)
    )
    assert np.array_equal(fast.regret, slow.regret)
    assert np.array_equal(fast.reward, slow.reward)
    assert fast.guarantee == slow.guarantee


def test_lazy_local_noise_is_aggregated_in_its_exact_law() -> None:
    """The noise of 20 users at once has variance 20 sigma^2: most cells carry nothing else.

    On about 4,800 cells the median size is within 0.04 of a normal's (below 1e-3, fixed seeds).
    """
    problem = tacit.problem("river-swim", states=5, horizon=6)
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=1.0, statistic="block", every=20)
    bound = bind(problem, agent, 10_000)
    assert isinstance(bound.privatizer, LocalShaped)
    ratios = []
    for seed in range(8):
        run = compiled_run(problem, bound, seed, 0, np.array([10_000]))
        assert isinstance(run, ValueTargetedRun)
        run.advance(21)
        noisy = bound.statistic.layout.views(run.public.release)["gram"][:, 1:9]
        std = bound.privatizer.noise_std * np.sqrt(run.public.spread[0, :5])
        assert run.public.clock.tolist() == [1, 20]
        ratios.append((noisy / std[:, None, None]).ravel())
    assert np.median(np.abs(np.concatenate(ratios))) == pytest.approx(0.6745, abs=0.04)


@pytest.mark.parametrize("name", ["remap-walk", "random-mdp", "river-swim", "linear-bandit"])
@pytest.mark.parametrize("counter", ["tree", "honaker", "toeplitz", "blt"])
def test_the_guarantee_is_met_with_the_least_noise(name: str, counter: str) -> None:
    problem = tacit.problem(name)
    said = tacit.guarantee(problem, tacit.agent("tacit-joint", epsilon=1.0, counter=counter), 500)
    assert said.model == "joint" and said.epsilon == pytest.approx(1.0, rel=1e-5)
    assert said.epsilon <= 1.0


def test_the_schedule_is_public_and_the_spec_s() -> None:
    assert len(Geometric(100, 1.25).times(10_000)) == 21  # 22 batches
    assert len(Geometric(1000, 1.25).times(100_000)) == 21
    schedule = Geometric(10, 1.5)
    assert schedule.times(100) == [10, 15, 23, 35, 53, 80]
    assert schedule.largest_batch(100) == 27 and schedule(0) == 10 and schedule(15) == 8
    assert Geometric(10, 1.25).times(5) == [] and Every(3)(99) == 3


def test_fewer_releases_carry_less_noise_and_toeplitz_less_than_a_tree() -> None:
    problem = tacit.problem("remap-walk")

    def noise(**parameters) -> float:
        bound = bind(problem, tacit.agent("tacit-joint", epsilon=1.0, **parameters), 10_000)
        return bound.privatizer.law(10_000).std

    assert noise() < noise(growth=1.05) and noise() < noise(counter="honaker")
    assert noise(counter="honaker") < noise(counter="tree")


def test_stages_are_pooled_only_where_the_task_says_so() -> None:
    per_stage = tacit.problem("river-swim", states=3, horizon=4, inhomogeneous=True)
    pooled = tacit.problem("river-swim", states=3, horizon=4)
    agent = tacit.agent("tacit-joint", epsilon=1.0)
    shapes = [
        bind(problem, agent, 50).statistic.layout.blocks[0].shape for problem in (per_stage, pooled)
    ]
    assert shapes == [(4, 3, 2, 3), (1, 3, 2, 3)]
    ratio = [
        bind(problem, agent, 50).statistic.sensitivity("l2", Relation.REPLACE_ONE)
        for problem in (per_stage, pooled)
    ]
    assert ratio[1] / ratio[0] == pytest.approx(2.0)  # H against sqrt(H)


def test_it_learns_a_mixture_where_the_paper_does_not() -> None:
    problem = tacit.problem("remap-walk")
    ours = tacit.simulate(problem, tacit.agent("tacit-joint", epsilon=1.0), 4000, seeds=3, seed=9)
    assert ours.regret[:, -1].mean() / 4000 < 0.6
    paper = tacit.agent("private-linopt-vi", epsilon=1.0, calibration="paper", every=40)
    theirs = tacit.simulate(problem, paper, 2000, seeds=2, seed=9)
    assert theirs.regret[:, -1].mean() / 2000 > 2.6


def test_it_learns_a_table_and_known_rewards_help() -> None:
    problem = tacit.problem("river-swim", states=4, horizon=8)
    agent = tacit.agent("tacit-joint", epsilon=10.0)
    learned = tacit.simulate(problem, agent, 6000, seeds=3, seed=2)
    uniform = problem.optimal_value() - problem.baseline()[1]
    assert learned.regret[:, -1].mean() < 0.35 * 6000 * uniform
    told = tacit.simulate(problem, agent, 6000, seeds=3, seed=2, reveal=["reward"])
    assert told.guarantee.revealed == ("reward",)
    assert told.regret[:, -1].mean() < 0.35 * 6000 * uniform


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "needs an epsilon"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta = 0"),
        ({"epsilon": 1.0, "counter": "none"}, "one of tree, honaker, toeplitz, blt"),
        ({"epsilon": 1.0, "first": 0}, "first = 0"),
        ({"epsilon": 1.0, "growth": 1.0}, "growth = 1"),
        ({"epsilon": 1.0, "reward_share": 1.0}, "reward_share = 1"),
        ({"epsilon": 1.0, "width": -1.0}, "width = -1"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent("tacit-joint", **parameters)
