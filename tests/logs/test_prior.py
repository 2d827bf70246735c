"""From a log to online: what fits, how much noise there is, what is stated, what it helps."""

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import tacit
from contracts.planner import PlannerContract
from logs.worlds import chain, garnet, mapping, queue, survival, towards_best, uniform
from tacit.agents import Agent, make_agent
from tacit.agents.offline import TacitOffline
from tacit.cli.main import app
from tacit.errors import InvalidInput
from tacit.experiment import Experiment, bind
from tacit.learner import BoundAgent
from tacit.logs.files import save
from tacit.logs.mapping import make_mapping
from tacit.logs.offline import OfflineResult, offline
from tacit.logs.prior import LogPrior
from tacit.logs.simulated import simulate_log
from tacit.planners.warm_start import WarmStartPlanner, share_tried
from tacit.privacy.joint.batched import GaussianLaw
from tacit.privacy.joint.merged_release import MergedRelease
from tacit.problems import Problem, TabularMDP
from tacit.release import Release
from tacit.task.task import Task

JOINT = make_agent("tacit-joint", epsilon=1.0)


def learned(
    problem: TabularMDP, people: int = 5_000, counts: str = "auto", **more
) -> OfflineResult:
    log = simulate_log(problem, uniform(problem), people, np.random.default_rng(0))
    agent = TacitOffline(1.0, counts=counts)
    return offline(log, mapping(problem, **more), agent, noise="simulated")


def experiment(problem, agent=JOINT, *, prior=None, resume=None, **fields) -> tacit.Result:
    """Runs it, where there is a prior beginning with that."""
    begun = None if prior is None else LogPrior.of(prior)
    study = Experiment(problem=problem, agent=agent, prior=begun, **fields)
    return study.run(resume=resume)


@pytest.fixture(scope="module")
def swum() -> OfflineResult:
    return learned(chain())


@pytest.mark.parametrize("make", [chain, garnet, queue])
def test_the_first_users_lose_less_with_a_prior(make) -> None:
    problem = make()
    how = {"episodes": 4_000, "runs": 2, "checkpoints": 1_000}
    without = experiment(problem, **how)
    found = experiment(problem, **how, prior=learned(problem))
    assert (found.regret[:, 0] < 0.7 * without.regret[:, 0]).all()
    assert found.regret[:, -1].mean() < without.regret[:, -1].mean()


def test_returns_begin_with_outcomes_of_a_log() -> None:
    problem, _ = survival(returns=(0, 1))
    made = learned(problem, 20_000, most=1.0)
    assert "outcomes" in made.release.blocks
    how = {"episodes": 2_000, "runs": 2, "checkpoints": 1_000}
    without = experiment(problem, **how)
    found = experiment(problem, **how, prior=made)
    assert found.regret[:, 0].mean() < 0.8 * without.regret[:, 0].mean()


@cache
def swum_once() -> LogPrior:
    return LogPrior.of(learned(chain()))


@dataclass(frozen=True)
class Begun(Agent):
    """tacit-joint that begins with a log of the chain."""

    name: ClassVar[str] = "begun"

    def bind(self, task: Task) -> BoundAgent:
        online = make_agent("tacit-joint", epsilon=100.0, first=5).bind(task)
        return swum_once().begin(online, "tacit-joint")


class TestPriorPlanner(PlannerContract):
    subject: ClassVar[type] = WarmStartPlanner

    def agent(self) -> Agent:
        return Begun()

    def problem(self) -> Problem:
        return chain()

    def other_problem(self) -> Problem:
        return chain(slip=0.4)


def shows(rows: np.ndarray, std: float, users: int) -> Release:
    totals = rows.sum(axis=1) / 2
    blocks = {"transitions": rows, "totals": totals, "starts": rows.sum(axis=0)}
    return Release(users, blocks, GaussianLaw(std), "simulated")


def noisy(means: np.ndarray, std: float, rng: np.random.Generator, users: int = 10) -> Release:
    made = shows(means, std, users)
    blocks = {
        name: block + std * rng.normal(size=block.shape) for name, block in made.blocks.items()
    }
    return replace(made, blocks=blocks)


def merged_with(prior: Release, online: float) -> MergedRelease:
    return MergedRelease(prior.blocks, prior.law.scale("totals"), online, prior.users, "simulated")


@pytest.mark.parametrize(("own", "online"), [(3.0, 5.0), (5.0, 3.0)])
def test_the_merged_release_has_the_noise_that_it_states(own, online) -> None:
    """Cells of next states, whose noise the weights do not depend on."""
    rng = np.random.default_rng(1)
    means = np.array([[400.0, 0.0, 100.0], [0.0, 0.0, 0.0], [20.0, 20.0, 0.0]])
    drawn = []
    for _ in range(4_000):
        merge = merged_with(noisy(means, own, rng), online)
        release = merge(noisy(2.0 * means, online, rng))
        assert release.law.scale("transitions") == merge.std == min(own, online)
        drawn.append(release.blocks["transitions"])
    spread = np.std(drawn, axis=0)
    never = means == 0.0
    assert spread[never] == pytest.approx(np.full(never.sum(), min(own, online)), rel=0.05)


def test_a_pair_shows_more_than_in_either_and_never_more_than_was_seen() -> None:
    means = np.array([[400.0, 100.0], [30.0, 0.0]])
    for own, online in ((3.0, 5.0), (5.0, 3.0)):
        merge = merged_with(shows(means, own, 10), online)
        release = merge(shows(2.0 * means, online, 20))
        ratio = release.blocks["transitions"] / merge.std
        assert (ratio >= np.maximum(means / own, 2.0 * means / online) - 1e-9).all()
        assert (release.blocks["transitions"] <= 3.0 * means + 1e-9).all()
        assert release.users == round(merge.std * (10 / own + 20 / online))


def test_before_the_first_online_release_the_log_alone_is_planned_on() -> None:
    prior = shows(np.array([[40.0, 2.0]]), 5.0, 100)
    empty = replace(shows(np.zeros((1, 2)), 0.0, 0), source="none")
    release = merged_with(prior, 5.0)(empty)
    assert release.users == 100 and release.source == "simulated"
    for name, block in prior.blocks.items():
        assert release.blocks[name] == pytest.approx(block)


def test_a_pair_that_only_one_of_them_shows_is_taken_from_there() -> None:
    seen, empty = np.array([[50.0, 10.0]]), np.zeros((1, 2))
    for first, second in ((seen, empty), (empty, seen)):
        release = merged_with(shows(first, 2.0, 10), 2.0)(shows(second, 2.0, 10))
        assert release.blocks["transitions"] == pytest.approx(seen)


def test_a_log_of_one_habit_leaves_everything_to_try() -> None:
    task = chain().task(users=10)
    habit, all_ = np.tile([100.0, 0.0], 8), np.full(16, 100.0)
    assert share_tried(task, habit, 1.0) == 0.0
    assert share_tried(task, all_, 1.0) == 1.0
    assert share_tried(task, np.zeros(16), 1.0) == 0.0


def test_the_statement_is_the_online_one_and_the_sum_beside_it(swum) -> None:
    how = {"episodes": 500, "runs": 1}
    plain = experiment(chain(), **how).guarantee
    found = experiment(chain(), **how, prior=swum)
    assert replace(found.guarantee, also=()) == plain
    (both,) = found.guarantee.also
    assert both.mu**2 == pytest.approx(plain.mu**2 + swum.guarantee.mu**2)
    assert both.epsilon > plain.epsilon
    said = found.guarantee.statement()
    assert "for a person who is in the log 'made up'" in said
    assert "other releases about that log are not in this sum" in said
    assert found.policy.guarantee == found.guarantee
    said = found.to_json()["prior"]
    assert said["data"] == "made up" and said["guarantee"]["epsilon"] == swum.guarantee.epsilon
    assert "prior" not in experiment(chain(), **how).to_json()


def test_a_folder_is_the_same_prior(tmp_path, swum) -> None:
    save(swum, tmp_path / "log")
    how = {"episodes": 500, "runs": 1}
    first = experiment(chain(), **how, prior=swum)
    second = experiment(chain(), **how, prior=tmp_path / "log")
    assert (first.regret == second.regret).all()
    assert first.prior == second.prior


def test_learning_goes_on_with_its_own_prior_only(tmp_path, swum) -> None:
    how = {"episodes": 300, "runs": 1, "resume": tmp_path}
    experiment(chain(), **how, prior=swum)
    experiment(chain(), **how, prior=swum)
    for other in ({}, {"prior": learned(chain(), 2_000)}):
        with pytest.raises(InvalidInput, match="prior"):
            experiment(chain(), **how, **other)


def test_stepwise_runs_plan_on_the_same_releases(swum) -> None:
    how = {"episodes": 120, "runs": 1, "prior": swum}
    fast, slow = (experiment(chain(), **how, compiled=compiled) for compiled in (True, False))
    assert (fast.regret == slow.regret).all()


def test_an_environment_can_begin_with_a_log_whose_mapping_names_ends() -> None:
    problem = chain()
    log = simulate_log(problem, towards_best(problem), 5_000, np.random.default_rng(0))
    mapped = make_mapping(
        {
            "data": {"name": "played"},
            "columns": {"person": "person", "ends": "ends"},
            "state": [{"column": "state", "size": 8}],
            "action": {"column": "action", "size": 2},
            "task": {"horizon": 12},
        }
    )
    made = offline(log, mapped, TacitOffline(1.0), noise="simulated")

    def play(policy, rng):
        steps, state = [], 0
        for step in range(problem.horizon):
            action = policy.act(state, step, rng)
            after = int(rng.choice(8, p=problem.P[0, state, action]))
            steps.append((state, action, float(problem.R[0, state, action]), after))
            state = after
        return steps

    sizes = {"states": 8, "actions": 2}
    world = tacit.environment(play, sizes=sizes, horizon=12, rewards=(0, 1))
    found = experiment(world, episodes=200, prior=made)
    assert found.to_json()["prior"]["data"] == "played"
    assert found.returns[0, -1] > 2.0  # uniform actions earn 0.2


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (chain(horizon=13), "horizon 12, the problem 13"),
        (chain(states=9), "number of states 8, the problem 9"),
        (queue(places=7, horizon=12), "number of actions 2, the problem 3"),
    ],
)
def test_a_log_of_something_else_is_refused(swum, problem, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        LogPrior.of(swum).begin(bind(problem, JOINT, 100), "tacit-joint")


def test_other_ends_of_an_episode_are_refused(swum) -> None:
    same = chain()
    ends = TabularMDP(same.P[0], same.R[0], 12, 0, terminal=[7])
    with pytest.raises(InvalidInput, match="other terminal states"):
        LogPrior.of(swum).begin(bind(ends, JOINT, 100), "tacit-joint")


@pytest.mark.parametrize("agent", ["psrl", "tacit-local", "private-ucb-vi"])
def test_agents_that_cannot_use_a_prior_say_so(swum, agent) -> None:
    more = {} if agent == "psrl" else {"epsilon": 1.0}
    with pytest.raises(InvalidInput, match=f"{agent} cannot begin with a log"):
        experiment(chain(), make_agent(agent, **more), episodes=10, prior=swum)


def test_counts_of_another_kind_are_refused() -> None:
    made = learned(chain(), 1_000, "outcomes")
    with pytest.raises(InvalidInput, match="counts=transitions"):
        experiment(chain(), episodes=10, prior=made)


def test_what_is_no_prior_is_refused(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="holds no result of tacit offline"):
        experiment(chain(), episodes=10, prior=tmp_path)
    with pytest.raises(InvalidInput, match="not int"):
        experiment(chain(), episodes=10, prior=3)
    with pytest.raises(InvalidInput, match="a prior is what tacit.logs.prior makes of a log"):
        Experiment(problem=chain(), agent=JOINT, episodes=10, prior=tmp_path)


def test_the_command_begins_with_a_folder(tmp_path) -> None:
    problem = tacit.problem("river-swim")
    save(learned(problem, 2_000), tmp_path / "log")
    words = [
        "run",
        "river-swim",
        "tacit-joint",
        "--epsilon",
        "1",
        "--episodes",
        "300",
        "--runs",
        "1",
    ]
    shown = CliRunner().invoke(app, [*words, "--prior", str(tmp_path / "log"), "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["prior"]["people"] > 1_000
    refused = CliRunner().invoke(app, [*words, "--prior", str(tmp_path), "--json"])
    assert "holds no result" in str(refused.exception)
