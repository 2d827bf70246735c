"""tacit.learn with tacit-search: compiled and stepwise runs, any environment, saved policies."""

import gymnasium
import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.forecast import bind
from tacit.learned_policy import load_policy
from tacit.policies.parametric import declared
from tacit.problems.classic_control import CLASSIC, cart_pole
from tacit.simulation.api import new_run
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.runs.segment import ReportRun, SegmentRun
from tacit.simulation.runs.stepwise import StepwiseRun


def agent(model: str, epsilon: float = 1.0):
    return tacit.agent("tacit-search", epsilon=epsilon, model=model)


@pytest.mark.parametrize(("model", "kind"), [("joint", SegmentRun), ("local", ReportRun)])
def test_compiled_runs_equal_the_driver_to_the_last_bit(model: str, kind: type, stop) -> None:
    problem, users = cart_pole(), 300
    bound = bind(problem, agent(model), users)
    grid = checkpoints(users, 50)
    runs = [new_run(problem, bound, 5, 0, grid, stop, compiled) for compiled in (True, False)]
    assert type(runs[0]) is kind and type(runs[1]) is StepwiseRun
    for run in runs:
        for part in (7, 93, 200):
            run.advance(part)
        run.conclude()
    fast, slow = runs
    assert fast.score.reward.tolist() == slow.score.reward.tolist()
    assert fast.final[0].policy == slow.final[0].policy
    assert fast.learner.publication.version == slow.learner.publication.version


@pytest.fixture
def stop():
    import threading

    return threading.Event()


@pytest.mark.parametrize("returned", [None, "4", [(0, 1, 1.0, None)], np.inf, 1 / 3j])
def test_what_an_episode_returned_is_a_finite_number(returned) -> None:
    said = {"returns": (0, 1), "form": declared([1.0]), "horizon": 2, "states": 1, "actions": 2}
    with pytest.raises(InvalidInput, match="returned .*, but the return of an episode is a finite"):
        tacit.learn(lambda policy, rng: returned, agent("joint"), users=20, **said)


@pytest.mark.parametrize(("model", "epsilon"), [("joint", 1.0), ("local", 2.0)])
def test_a_pole_is_balanced_from_five_thousand_people(model: str, epsilon: float, tmp_path) -> None:
    found = tacit.learn("gym:CartPole-v1", agent(model, epsilon), users=5000)
    assert found.guarantee.model == model and found.guarantee.epsilon <= epsilon
    assert found.guarantee.delta == (0.0 if model == "local" else 1e-5)
    assert found.tests["policy"]["mean"] > 450 > 30 > found.tests["uniform"]["mean"]
    assert not found.warning and (np.diff(found.regret) >= 0.0).all()
    assert 0.0 <= found.band()[0].min() <= found.band()[0].max() <= 500.0
    learned = found.policies[0]
    again = load_policy(learned.save(tmp_path / "policy.json"))
    assert again == learned and again.to_frame().shape == (4, 4)
    people, means, errors, least, most = again.publication.context["curve"].T
    assert people.sum() == 5000 and (errors > 0.0).all() and means[-1] > 450 > means[0]
    assert ((least <= means) & (means <= most)).all()
    env = gymnasium.make("CartPole-v1")  # Gymnasium's own, not ours
    observation, _ = env.reset(seed=3)
    steps, over = 0, False
    while not over:
        observation, _, ended, cut, _ = env.step(again.act(observation, steps))
        steps, over = steps + 1, ended or cut
    assert steps > 300
    assert type(found).from_json(found.to_json(), found.frame()).tests == found.tests


def test_an_environment_itself_is_played() -> None:
    env = gymnasium.make("CartPole-v1", max_episode_steps=30)
    found = tacit.learn(env, agent("joint", 4.0), users=60, returns=(0, 30))
    assert found.problem["name"] == "gym:CartPole-v1" and found.problem["policy parameters"] == 5
    assert found.tests["policy"]["mean"] <= 30.0
    box = gymnasium.make("Pendulum-v1", max_episode_steps=5)
    found = tacit.learn(box, agent("local"), users=20, returns=(-80, 0))
    action = found.policies[0].act(np.zeros(3), 0)
    assert action.shape == (1,) and abs(action[0]) <= 2.0
    table = gymnasium.make("FrozenLake-v1")
    found = tacit.learn(table, agent("local"), users=20, returns=(0, 1), horizon=10)
    assert found.policies[0].act(3, 0) in range(4)


def test_a_function_that_says_its_return_is_played() -> None:
    """One step: the action should have the sign of what is seen."""

    def guess(policy, rng) -> float:
        seen = rng.uniform(-1, 1, size=1)
        return float(policy.act(seen, 0, rng) == (seen[0] > 0))

    found = tacit.learn(
        guess,
        agent("joint", 2.0),
        users=800,
        returns=(0, 1),
        form=declared([1.0]),
        horizon=1,
        states=1,
        actions=2,
    )
    assert found.tests["policy"]["mean"] > 0.95


def test_without_privacy_the_same_search_learns_from_fewer() -> None:
    found = tacit.learn("gym:CartPole-v1", "policy-search", users=1000)
    assert found.guarantee.model == "none" and found.tests["policy"]["mean"] > 300


def test_secure_noise_runs_the_same_way() -> None:
    found = tacit.learn("gym:CartPole-v1", agent("local"), users=24, noise="secure")
    assert not found.guarantee.simulated and found.completed == 24


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(InvalidInput, match="rewards="):
        tacit.learn("gym:FrozenLake-v1", "psrl", users=10, horizon=5)
    with pytest.raises(InvalidInput, match="returns="):
        tacit.learn("gym:FrozenLake-v1", agent("joint"), users=10)
    with pytest.raises(InvalidInput, match="returned"):
        tacit.learn(gymnasium.make("CartPole-v1"), agent("joint"), users=10, returns=(-5, 3))
    with pytest.raises(InvalidInput, match="is episodic"):
        tacit.simulate(cart_pole(), "optimal", 10)
    assert set(CLASSIC) <= set(gymnasium.registry)
