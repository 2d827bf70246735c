"""tacit-search in environments: compiled and stepwise runs, any environment, saved policies."""

import gymnasium
import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.learned_policy import load_policy
from tacit.policies.parametric import scoring_of
from tacit.problems.classic_control import CLASSIC, cart_pole
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.runs.segment import ReportRun, SegmentRun
from tacit.simulation.runs.stepwise import StepwiseRun


def agent(model: str, epsilon: float = 1.0):
    return tacit.agent("tacit-search", epsilon=epsilon, model=model)


@pytest.mark.parametrize(("model", "kind"), [("joint", SegmentRun), ("local", ReportRun)])
def test_compiled_runs_equal_the_driver_to_the_last_bit(model: str, kind: type, stop) -> None:
    problem, users = cart_pole(), 300
    bound = bind(problem, agent(model), users)
    grid = checkpoints(users, 50)
    given = (problem, bound, 5, 0, grid)
    runs = [compiled_run(*given), StepwiseRun(*given, stop)]
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
    said = {"returns": (0, 1), "scoring": scoring_of([1.0]), "horizon": 2}
    said["sizes"] = {"states": 1, "actions": 2}
    with pytest.raises(InvalidInput, match="returned .*, but the return of an episode is a finite"):
        tacit.simulate(tacit.environment(lambda policy, rng: returned, **said), agent("joint"), 20)


@pytest.mark.parametrize(("model", "epsilon"), [("joint", 1.0), ("local", 2.0)])
def test_a_pole_is_balanced_from_five_thousand_people(model: str, epsilon: float, tmp_path) -> None:
    found = tacit.simulate(
        tacit.environment("gym:CartPole-v1"), agent(model, epsilon), episodes=5000
    )
    assert found.guarantee.model == model and found.guarantee.epsilon <= epsilon
    assert found.guarantee.delta == (0.0 if model == "local" else 1e-5)
    assert found.tests["policy"]["mean"] > 450 > 30 > found.tests["uniform"]["mean"]
    assert not found.warning and (np.diff(found.reward) >= 0.0).all()
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
    found = tacit.simulate(
        tacit.environment(env, returns=(0, 30)), agent("joint", 4.0), episodes=60
    )
    assert found.problem["name"] == "gym:CartPole-v1" and found.problem["policy parameters"] == 5
    assert found.tests["policy"]["mean"] <= 30.0
    box = gymnasium.make("Pendulum-v1", max_episode_steps=5)
    found = tacit.simulate(tacit.environment(box, returns=(-80, 0)), agent("local"), episodes=20)
    action = found.policies[0].act(np.zeros(3), 0)
    assert action.shape == (1,) and abs(action[0]) <= 2.0
    table = gymnasium.make("FrozenLake-v1")
    found = tacit.simulate(
        tacit.environment(table, returns=(0, 1), horizon=10), agent("local"), episodes=20
    )
    assert found.policies[0].act(3, 0) in range(4)


def test_a_function_that_says_its_return_is_played() -> None:
    """One step: the action should have the sign of what is seen."""

    def guess(policy, rng) -> float:
        seen = rng.uniform(-1, 1, size=1)
        return float(policy.act(seen, 0, rng) == (seen[0] > 0))

    found = tacit.simulate(
        tacit.environment(
            guess,
            returns=(0, 1),
            horizon=1,
            scoring=scoring_of([1.0]),
            sizes={"states": 1, "actions": 2},
        ),
        agent("joint", 2.0),
        episodes=800,
    )
    assert found.tests["policy"]["mean"] > 0.95


def test_without_privacy_the_same_search_learns_from_fewer() -> None:
    found = tacit.simulate(tacit.environment("gym:CartPole-v1"), "policy-search", episodes=1000)
    assert found.guarantee.model == "none" and found.tests["policy"]["mean"] > 300


def test_secure_noise_runs_the_same_way() -> None:
    found = tacit.Experiment(
        problem=tacit.environment("gym:CartPole-v1"),
        agent=agent("local"),
        noise="secure",
        episodes=24,
    ).run()
    assert not found.guarantee.simulated and found.completed == 24


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(InvalidInput, match="rewards="):
        tacit.simulate(tacit.environment("gym:FrozenLake-v1", horizon=5), "psrl", episodes=10)
    with pytest.raises(InvalidInput, match="returns="):
        tacit.simulate(tacit.environment("gym:FrozenLake-v1"), agent("joint"), episodes=10)
    with pytest.raises(InvalidInput, match="returned"):
        tacit.simulate(
            tacit.environment(gymnasium.make("CartPole-v1"), returns=(-5, 3)),
            agent("joint"),
            episodes=10,
        )
    with pytest.raises(InvalidInput, match="is episodic"):
        tacit.simulate(cart_pole(), "optimal", 10)
    assert set(CLASSIC) <= set(gymnasium.registry)
