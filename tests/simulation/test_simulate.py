import dataclasses
import json
import threading
from typing import ClassVar

import numpy as np
import pytest

import tacit
from tacit.agents import PSRL, UcbVI
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.problems import TabularMDP, make_problem
from tacit.simulation import simulate
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.runs.stepwise import StepwiseRun

PROBLEMS = {
    "pooled": make_problem("random-mdp", states=3, actions=2, horizon=4, seed=2),
    "per stage": make_problem("river-swim", states=4, horizon=5, inhomogeneous=True),
    "bernoulli": make_problem("river-swim", states=4, horizon=6, rewards="bernoulli"),
    "random start": TabularMDP(
        make_problem("random-mdp", seed=1).P[0], [[0.3, 0.7], [0.1, 0.2]], 3, [0.25, 0.75]
    ),
    "one step": make_problem("random-mdp", states=2, horizon=1, seed=9),
}
AGENTS = {
    "ucb-vi": UcbVI(bonus_scale=0.02),
    "psrl": PSRL(),
    "ldp-obi": tacit.agent("ldp-obi", epsilon=50.0),
    "ldp-obi paper": tacit.agent(
        "ldp-obi", epsilon=5.0, delta=1e-5, randomizer="gaussian", calibration="paper"
    ),
    "ldp-obi bits": tacit.agent("ldp-obi", epsilon=20.0, randomizer="randomized-response"),
    "ldp-obi bounded": tacit.agent(
        "ldp-obi", epsilon=5.0, delta=0.1, randomizer="bounded", calibration="paper"
    ),
    "ldp-obi tight": tacit.agent("ldp-obi", epsilon=20.0, width="tight"),
    "ldp-psrl": tacit.agent("ldp-psrl", epsilon=5.0),
    "obi": tacit.agent("obi"),
    "uniform": tacit.agent("uniform"),
    "optimal": tacit.agent("optimal"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("agent", AGENTS)
def test_compiled_loops_equal_the_driver_to_the_last_bit(problem: str, agent: str) -> None:
    if agent.startswith(("ldp", "obi")) and problem == "per stage":
        with pytest.raises(InvalidInput, match="declared homogeneous"):
            simulate(PROBLEMS[problem], AGENTS[agent], 10)
        return
    runs = {}
    for compiled in (True, False):
        runs[compiled] = simulate(
            PROBLEMS[problem],
            AGENTS[agent],
            episodes=120,
            seeds=2,
            seed=5,
            compiled=compiled,
            checkpoints=7,
        )
    assert np.array_equal(runs[True].regret, runs[False].regret)
    assert np.array_equal(runs[True].reward, runs[False].reward)
    assert runs[True].guarantee == runs[False].guarantee


def test_the_compiled_loop_is_really_the_one_that_ran() -> None:
    problem = PROBLEMS["pooled"]
    for agent in AGENTS.values():
        bound = agent.bind(problem.task(users=10, reveal=agent.needs))
        assert compiled_run(problem, bound, 0, 0, np.array([10])) is not None


def test_known_rewards_go_through_both_paths_and_are_listed() -> None:
    problem = PROBLEMS["bernoulli"]
    told = [
        simulate(problem, PSRL(), 200, reveal=["reward"], compiled=compiled)
        for compiled in (True, False)
    ]
    assert np.array_equal(told[0].regret, told[1].regret)
    assert told[0].guarantee.revealed == ("reward",)
    untold = simulate(problem, PSRL(), 200)
    assert untold.guarantee.revealed == ()
    assert not np.array_equal(told[0].regret, untold.regret)


@pytest.mark.parametrize("agent", ["ucb-vi", "psrl"])
def test_identical_on_repetition_and_for_any_number_of_workers(agent: str) -> None:
    problem = PROBLEMS["pooled"]
    results = [simulate(problem, AGENTS[agent], 3000, seeds=3, workers=w) for w in (1, 2, 5, 1)]
    for other in results[1:]:
        assert np.array_equal(results[0].regret, other.regret)
        assert np.array_equal(results[0].reward, other.reward)


def test_runs_differ_from_each_other_and_from_other_roots_but_not_by_their_number() -> None:
    problem = PROBLEMS["pooled"]
    four = simulate(problem, PSRL(), 500, seeds=4, seed=1)
    assert len({row.tobytes() for row in four.reward}) == 4
    two = simulate(problem, PSRL(), 500, seeds=2, seed=1)
    assert np.array_equal(two.regret, four.regret[:2])
    other = simulate(problem, PSRL(), 500, seeds=2, seed=2)
    assert not np.array_equal(other.reward, two.reward)


def test_agents_meet_the_same_users() -> None:
    """Common random numbers: two agents that play alike see the same rewards."""
    problem = PROBLEMS["bernoulli"]
    optimal = simulate(problem, AGENTS["optimal"], 2000, checkpoints=1)
    learned = simulate(problem, PSRL(), 2000, checkpoints=1)
    alike = np.diff(learned.regret[0]) == 0.0
    reward = [np.diff(result.reward[0])[alike] for result in (optimal, learned)]
    assert alike.sum() > 500 and reward[0].std() > 0.1
    assert np.array_equal(reward[0], reward[1])


def test_regret_is_the_exact_gap_of_every_policy_played() -> None:
    problem = PROBLEMS["bernoulli"]
    uniform = simulate(problem, AGENTS["uniform"], 100)
    gap = problem.optimal_value() - problem.baseline()[1]
    assert uniform.regret[0] == pytest.approx(gap * uniform.episodes)
    assert (simulate(problem, AGENTS["optimal"], 100).regret == 0.0).all()
    for agent in ("ucb-vi", "psrl"):
        steps = np.diff(simulate(problem, AGENTS[agent], 300, checkpoints=1).regret[0])
        assert steps.min() >= -1e-12 and steps.max() <= problem.optimal_value() + 1e-12


def test_rewards_are_the_users_own() -> None:
    """The mean reward of uniform play agrees with its exact value (error probability 1e-9)."""
    problem = PROBLEMS["bernoulli"]
    result = simulate(problem, AGENTS["uniform"], 20_000, seed=11)
    per_episode = result.reward[0, -1] / 20_000
    spread = problem.horizon / 2 / np.sqrt(20_000)  # no return lies outside [0, H]
    assert abs(per_episode - problem.baseline()[1]) < 6.2 * spread


def test_psrl_learns_river_swim() -> None:
    result = simulate(make_problem("river-swim"), PSRL(), 20_000, seeds=2)
    first = result.regret_per_episode(0, 100)
    last = result.regret_per_episode(18_000, 20_000)
    assert (last < 0.02 * first).all()


def test_ucb_vi_learns_when_scaled_and_not_by_its_theorem() -> None:
    problem = make_problem("river-swim", states=4, horizon=8)
    gap = problem.optimal_value() - problem.baseline()[1]
    scaled = simulate(problem, UcbVI(bonus_scale=0.01), 10_000)
    theory = simulate(problem, UcbVI(), 10_000)
    assert scaled.regret_per_episode(9_000, 10_000)[0] < 0.2 * gap
    assert theory.regret_per_episode(9_000, 10_000)[0] > 0.8 * gap
    assert "the theorem" in theory.agent["notes"][0]
    assert scaled.agent["parameters"]["bonus_scale"] == 0.01


def test_ties_are_not_decided_by_the_order_of_actions() -> None:
    """Two equally unknown actions: over many seeds the first one is not preferred."""
    twins = TabularMDP(P=[[[1.0], [1.0]]], R=[[0.0, 1.0]], horizon=1)
    result = simulate(twins, UcbVI(), episodes=1, seeds=400)
    lost = int(result.regret[:, 0].sum())
    # Binomial(400, 1/2) leaves [140, 260] with probability below 1e-8; "first action" gives 400
    assert 140 < lost < 260


class Interrupt:
    """Ctrl-C after some progress."""

    def __init__(self, after: int) -> None:
        self.after, self.seen = after, 0

    def __call__(self, done: int, regret: float) -> None:
        self.seen = done
        if done >= self.after and self.after >= 0:
            self.after = -1
            raise KeyboardInterrupt


@pytest.mark.parametrize("compiled", [True, False])
def test_ctrl_c_leaves_a_valid_prefix(compiled: bool) -> None:
    problem = PROBLEMS["pooled"]
    result = simulate(
        problem, PSRL(), 100_000_000, seeds=3, progress=Interrupt(500), compiled=compiled
    )
    assert result.interrupted and 0 < result.completed < 100_000_000
    assert result.requested_episodes == 100_000_000
    assert np.isfinite(result.regret).all() and result.regret.shape[0] == 3
    assert result.to_json()["interrupted"] is True
    # the prefix is what an uninterrupted run has there
    stop = threading.Event()
    bound = PSRL().bind(problem.task(users=100_000_000))
    again = StepwiseRun(problem, bound, 0, 0, result.episodes, stop)
    again.advance(min(result.completed, 200))
    known = result.episodes <= 200
    assert np.array_equal(result.regret[0][known], again.score.regret[known])


def test_an_interrupt_before_the_first_checkpoint_is_an_empty_result() -> None:
    problem = PROBLEMS["pooled"]
    result = simulate(problem, PSRL(), 10**9, checkpoints=10**9, progress=Interrupt(0))
    assert result.interrupted and result.completed == 0
    assert result.to_json()["regret"]["mean"] is None
    with pytest.raises(InvalidInput, match="nothing to plot"):
        result.plot("never.png")


def test_an_error_in_one_run_is_not_swallowed() -> None:
    @dataclasses.dataclass(frozen=True)
    class Broken(PSRL):
        name: ClassVar[str] = "broken"

        def bind(self, task) -> BoundAgent:
            bound = super().bind(task)

            class Planner:
                def plan(self, task, release, ask, previous, streams):
                    if release.users == 3:
                        raise RuntimeError("no plan for three")
                    return bound.planner.plan(task, release, ask, previous, streams)

            return dataclasses.replace(bound, planner=Planner())

    with pytest.raises(RuntimeError, match="no plan for three"):
        simulate(PROBLEMS["pooled"], Broken(), 100, seeds=2)


def test_a_run_stops_exactly_at_its_users() -> None:
    served = []

    class Counting(TabularMDP):
        def rollout(self, policy, rng):
            served.append(1)
            return super().rollout(policy, rng)

    base = PROBLEMS["pooled"]
    simulate(Counting(base.P[0], base.R[0], base.horizon), PSRL(), 37)
    assert len(served) == 37


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes = 0"),
        ({"episodes": 2.5}, "episodes = 2.5"),
        ({"seeds": 0}, "seeds = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"workers": 0}, "workers = 0"),
        ({"checkpoints": "lag"}, "checkpoints = 'lag'"),
        ({"checkpoints": 0}, "checkpoints = 0"),
        ({"reveal": ["rewards"]}, "did you mean 'reward'"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        simulate(PROBLEMS["pooled"], PSRL(), **{"episodes": 10, **options})


def test_an_agent_of_another_family_is_refused() -> None:
    task = dataclasses.replace(PROBLEMS["pooled"].task(users=5), family="linear")
    with pytest.raises(InvalidInput, match="learns tabular problems, but this problem is linear"):
        PSRL().bind(task)


def test_guarantee_can_be_asked_before_anything_is_run() -> None:
    problem = PROBLEMS["pooled"]
    before = tacit.guarantee(problem, PSRL(), episodes=100)
    after = simulate(problem, PSRL(), 100).guarantee
    assert before.as_simulated() == after and after.simulated and not before.simulated
    assert tacit.guarantee(problem, tacit.agent("optimal"), 5).revealed == ("reward", "transitions")


def test_facts_nobody_uses_are_not_revealed() -> None:
    with pytest.raises(InvalidInput, match="psrl makes no use of transitions"):
        simulate(PROBLEMS["pooled"], PSRL(), 10, reveal=["transitions"])
    assert simulate(PROBLEMS["pooled"], PSRL(), 10, reveal="reward").guarantee.revealed


def test_a_schedule_that_serves_nobody_is_refused() -> None:
    class Stuck(PSRL):
        def bind(self, task) -> BoundAgent:
            return dataclasses.replace(super().bind(task), schedule=lambda served: 0)

    with pytest.raises(InvalidInput, match="asked for 0 users"):
        simulate(PROBLEMS["pooled"], Stuck(), 10)


def test_an_error_in_the_progress_callback_ends_the_runs_at_once() -> None:
    def broken(done: int, regret: float) -> None:
        raise RuntimeError("no display")

    with pytest.raises(RuntimeError, match="no display"):  # so many would never end
        simulate(PROBLEMS["pooled"], PSRL(), 10**10, progress=broken)


def test_numpy_parameters_are_reported_as_plain_numbers() -> None:
    result = simulate(PROBLEMS["pooled"], PSRL(alpha0=np.float32(1.0)), 5)
    assert json.loads(json.dumps(result.to_json()))["agent"]["parameters"]["alpha0"] == 1.0
