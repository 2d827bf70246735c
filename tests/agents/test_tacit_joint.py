"""tacit-joint: guarantee, schedule, learning, and bit-equal runs in segments."""

import itertools
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.grid import STEPS
from tacit.learner import Learner
from tacit.privacy.local.weighted import LocalWeighted
from tacit.privacy.noise import GridLaw, SimulatedNoise
from tacit.schedules import Every, Geometric, PlansPerRelease
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.loops.value_targeted import ValueTargetedRun
from tacit.statistics.base import Relation
from tacit.statistics.counts import JointCounts
from tacit.statistics.first_visits import FirstVisits
from tacit.streams import planner_streams
from tacit.task.participation import Participation

TIGHT = {"calibration": "tight"}
AGENTS = {
    "published": ("ucrl-vtr", {"bonus_scale": 0.01}),
    "published radius": ("ucrl-vtr", {"radius": "theorem", "bonus_scale": 1e-3, "every": 3}),
    "published widths": ("linopt-vi", {"bonus_scale": 0.01}),
    "published noise": (
        "ldp-ucrl-vtr",
        {"epsilon": 1e5, "radius": "experiment", "bonus_scale": 1e-4},
    ),
    "tacit-joint": ("tacit-joint", {"epsilon": 50.0, "first": 5}),
    "tree": ("tacit-joint", {"epsilon": 50.0, "first": 5, "counter": "tree"}),
    "ucrl-vtr": ("ucrl-vtr", {"every": 7, **TIGHT}),
    "ldp": ("ldp-ucrl-vtr", {"epsilon": 5.0, **TIGHT}),
    "ldp index": ("ldp-ucrl-vtr", {"epsilon": 5.0, "statistic": "index", **TIGHT}),
    "joint": ("private-linopt-vi", {"epsilon": 5.0, "every": 6, "counter": "honaker", **TIGHT}),
    "policy optimisation": ("private-linopt-po", {"epsilon": 5.0, "every": 9, **TIGHT}),
    "plain policy optimisation": ("linopt-po", {"every": 4, "statistic": "block", **TIGHT}),
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
        tacit.Experiment(
            problem=PROBLEMS[problem],
            agent=made,
            episodes=60,
            seed=5,
            compiled=compiled,
            checkpoints=7,
            runs=2,
        ).run()
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
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=1.0, statistic="block", every=20, **TIGHT)
    bound = bind(problem, agent, 10_000)
    assert isinstance(bound.privatizer, LocalWeighted)
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
@pytest.mark.parametrize("counter", ["tree", "honaker", "toeplitz", "normalised", "blt"])
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


def test_several_publications_share_a_release() -> None:
    schedule = PlansPerRelease((0, 10, 50, 52, 60), plans=4)
    served, edges = 0, []
    while served < 60:
        served += schedule(served)
        edges.append(served)
    assert edges == [10, 20, 30, 40, 50, 51, 52, 54, 56, 58, 60]
    assert [schedule.number(at) for at in (0, 9, 10, 49, 50, 60)] == [0, 0, 1, 1, 2, 4]
    few = PlansPerRelease((0, 10, 50), plans=4, least=15)
    assert [few(at) for at in (0, 10, 30)] == [10, 20, 20]


def test_releases_that_are_planned_on_again_cost_nothing_and_say_the_same() -> None:
    """One noise vector per release, whatever the number of publications; also after a restart."""
    bound = bind(tacit.problem("river-swim", states=4, horizon=6), VISITS, 2000)
    noise = Counted(np.random.default_rng(1))
    learner, streams = Learner(bound, noise), planner_streams(1, 0)
    total = np.full(bound.statistic.layout.size, STEPS, dtype=np.int64)
    seen = []
    while learner.served < 2000:
        publication = learner.publish(streams)
        assert learner.release is not None
        seen.append((learner.release.users, learner.release.blocks["totals"].copy()))
        if publication.version % 3 == 0:
            stored = bound.privatizer.state(learner.secret)
            learner.secret = bound.privatizer.restore(stored)
        learner.absorb_sums(total, learner.left)
    times = bound.schedule.times
    assert len(seen) > 2 * len(times) and noise.drawn == len(times) - 2
    for (users, block), (again, other) in itertools.pairwise(seen):
        assert (users == again) == np.array_equal(block, other)
    assert sorted({users for users, _ in seen}) == list(times[:-1])


class Counted(SimulatedNoise):
    """Counts how often noise is drawn."""

    drawn = 0

    def fill(self, law: GridLaw, out: np.ndarray) -> None:
        self.drawn += 1
        super().fill(law, out)


VISITS = tacit.agent("tacit-joint", epsilon=20.0)


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
    staged, visits = (bind(problem, agent, 50).statistic for problem in (per_stage, pooled))
    assert isinstance(staged, JointCounts) and isinstance(visits, FirstVisits)
    assert staged.layout.blocks[0].shape == (4, 3, 2, 3)
    assert visits.layout.blocks[0].shape == (6, 3)
    assert visits.sensitivity("l2", Relation.REPLACE_ONE) ** 2 == pytest.approx(3 * 4 + 2)


def clinic(**more) -> tacit.TabularMDP:
    """Many states, three treatments of different use in each; whoever is cured earns 1, once."""
    rng, S = np.random.default_rng(3), 80
    cured = rng.uniform(0.02, 0.5, size=(S, 3))
    P = np.zeros((S + 1, 3, S + 1))
    P[:S, :, :S] = (1 - cured)[..., None] * rng.dirichlet(np.full(S, 0.2), size=(S, 3))
    P[:S, :, S] = cured
    R = np.append(cured, np.zeros((1, 3)), axis=0)
    start = np.append(np.full(S, 1 / S), 0.0)
    return tacit.TabularMDP(P, R, 8, start, terminal=[S], start_known=True, **more)


def test_public_sizes_choose_what_a_table_is_learned_by() -> None:
    """More cells than users and noise can fill, and a small range of returns: returns."""
    declared, silent = clinic(returns=(0.0, 1.0)), clinic()

    def learned_by(problem: tacit.TabularMDP, users: int, epsilon: float, rule: Any = 1) -> str:
        bound = bind(problem, tacit.agent("tacit-joint", epsilon=epsilon), users, (), rule)
        return type(bound.statistic).__name__

    assert learned_by(declared, 10_000, 1.0) == "FirstReturns"
    assert learned_by(silent, 10_000, 1.0) == "FirstVisits"
    assert learned_by(declared, 10_000_000, 1.0) == "FirstVisits"
    assert learned_by(declared, 40_000, 20.0) == "FirstVisits"
    assert learned_by(clinic(returns=(0.0, 2.0)), 10_000, 1.0) == "FirstVisits"
    assert learned_by(declared, 10_000, 1.0, Participation(3)) == "FirstReturns"
    twice = Participation(3, "lifetime", often=2)  # a state counts once, a pair may count twice
    assert learned_by(declared, 10_000, 1.0, twice) == "FirstVisits"


def test_it_learns_by_returns() -> None:
    problem = clinic(returns=(0.0, 1.0))
    agent = tacit.agent("tacit-joint", epsilon=4.0)
    result = tacit.simulate(problem, agent, 20000, runs=2, seed=4)
    closed = [
        (problem.value(learned.policy) - problem.baseline()[1])
        / (problem.optimal_value() - problem.baseline()[1])
        for learned in result.policies
    ]
    assert min(closed) > 0.5


def test_tables_that_cannot_be_explored_in_full_teach_every_step() -> None:
    """And what is believed of them is so sure that nothing in the whole table is noise."""
    problem = tacit.problem("river-swim", states=40, horizon=30)
    few, many = (bind(problem, VISITS, users) for users in (1000, 1_000_000))
    assert few.statistic.cap == 80 and few.planner.vast and not few.planner.capped
    assert many.statistic.cap == 10 and not many.planner.vast and many.planner.capped


def test_who_stays_where_they_are_tries_something_else() -> None:
    """Of pairs that nobody knows, one state has others at other stages."""
    bound = bind(tacit.problem("river-swim", states=3, horizon=20), VISITS, 1000)
    streams = planner_streams(0, 0)._replace(draws=1)
    learner = Learner(bound, SimulatedNoise(np.random.default_rng(1)))
    learner.publish(streams)
    learner.absorb_sums(np.zeros(bound.statistic.layout.size, dtype=np.int64), learner.left)
    actions = learner.publish(streams).policy.actions
    assert all(len(set(actions[:, s])) == 2 for s in range(3))


def test_it_learns_a_mixture_where_the_paper_does_not() -> None:
    problem = tacit.problem("remap-walk")
    ours = tacit.simulate(problem, tacit.agent("tacit-joint", epsilon=1.0), 4000, runs=3, seed=9)
    assert ours.regret[:, -1].mean() / 4000 < 0.6
    paper = tacit.agent("private-linopt-vi", epsilon=1.0, calibration="paper", every=40)
    theirs = tacit.simulate(problem, paper, 2000, runs=2, seed=9)
    assert theirs.regret[:, -1].mean() / 2000 > 2.6


def test_it_learns_a_table_and_known_rewards_help() -> None:
    problem = tacit.problem("river-swim", states=4, horizon=8)
    agent = tacit.agent("tacit-joint", epsilon=10.0)
    learned = tacit.simulate(problem, agent, 6000, runs=3, seed=2)
    uniform = problem.optimal_value() - problem.baseline()[1]
    assert learned.regret[:, -1].mean() < 0.35 * 6000 * uniform
    told = tacit.Experiment(
        problem=problem, agent=agent, episodes=6000, seed=2, reveal=["reward"], runs=3
    ).run()
    assert told.guarantee.revealed == ("reward",)
    assert told.regret[:, -1].mean() < 0.35 * 6000 * uniform


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "needs an epsilon"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta = 0"),
        ({"epsilon": 1.0, "counter": "none"}, "one of tree, honaker, toeplitz, normalised, blt"),
        ({"epsilon": 1.0, "first": 0}, "first = 0"),
        ({"epsilon": 1.0, "growth": 1.0}, "growth = 1"),
        ({"epsilon": 1.0, "reward_share": 1.0}, "reward_share = 1"),
        ({"epsilon": 1.0, "width": -1.0}, "width = -1"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent("tacit-joint", **parameters)
