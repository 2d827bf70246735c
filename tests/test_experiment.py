"""One object holds all that decides a result: what it says before, what it refuses, what it is."""

import json
import threading

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.experiment_spec import ExperimentSpec, Modules, Named, begin, recall
from tacit.privacy.guarantee import Guarantee
from tacit.problems.episodic import CompiledEpisodes
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit.simulation.runs.uncounted import UncountedRun
from tacit.task.task import Task

SMALL = tacit.problem("random-mdp", seed=1)
LOCAL = tacit.agent("tacit-local", epsilon=4.0)


def test_what_is_stated_before_is_what_the_result_states() -> None:
    rule = tacit.Participation(5)
    study = tacit.Experiment(problem=SMALL, agent=LOCAL, episodes=100, participation=rule)
    result = study.run(workers=1)
    assert result.guarantee == study.guarantee.as_simulated()
    assert study.forecast().users == study.bound.task.users == 20  # only first times are counted
    secure = study.with_(noise="secure", episodes=20)
    assert secure.run(workers=1).guarantee == secure.guarantee and not secure.guarantee.simulated


def test_runs_can_be_started_one_by_one() -> None:
    study = tacit.Experiment(problem=SMALL, agent="psrl", episodes=50, runs=3, checkpoints=(20,))
    assert study.grid.tolist() == [20, 50]
    (third,) = study.start(numbers=[2])
    third.advance(50)
    assert np.array_equal(third.score.regret, study.run().regret[2])
    assert type(study.with_(compiled=False).start()[0]) is StepwiseRun
    again = study.with_(agent=LOCAL, participation=5)
    assert isinstance(again.start()[0], UncountedRun)


def test_a_task_beside_a_problem_is_what_the_learner_is_told() -> None:
    told = Task(
        "tabular", SMALL.horizon, dict(SMALL.task(1).sizes), True, users=1, participations=3
    )
    study = tacit.Experiment(problem=SMALL, agent=LOCAL, episodes=70, task=told)
    assert study.bound.task.participations == 3 and study.bound.task.users == 70
    with pytest.raises(InvalidInput, match="a task says itself what is revealed"):
        study.with_(reveal={"reward"})


class Start:
    """A prior that changes nothing, and says so."""

    def begin(self, bound, name):
        return bound

    def stated(self, online: Guarantee) -> Guarantee:
        return online.compose(2)

    def digest(self) -> str:
        return "nothing"

    def to_json(self):
        return {"data": "nothing"}


def test_any_prior_will_do_and_is_part_of_what_is_stated() -> None:
    study = tacit.Experiment(problem=SMALL, agent=LOCAL, episodes=10, prior=Start())
    assert study.guarantee.participations == 2 and study.describe()["prior"] == "nothing"
    assert study.run(workers=1).to_json()["prior"] == {"data": "nothing"}


@pytest.mark.parametrize("name", ["gym:Taxi-v4", "FrozenLake-v1", "gym:CartPole-v1"])
def test_what_is_only_played_has_no_regret(name: str) -> None:
    """Whichever way it is played: an attribute of the instance says so, not its type."""
    world = tacit.environment(name, rewards=(-10, 20), returns=(0, 500), horizon=5)
    agent = "policy-search" if "Cart" in name else "psrl"
    study = tacit.Experiment(problem=world, agent=agent, episodes=3)
    assert study.problem.played
    result = study.run()
    assert result.played and np.isnan(result.regret).all() and np.isfinite(result.returns).all()
    assert "regret" not in result.to_json() and "returns" in result.to_json()
    known = tacit.problem("cart-pole")
    assert type(known) is CompiledEpisodes and not known.played
    with pytest.raises(InvalidInput, match="in a world that is played everybody takes part once"):
        study.with_(participation=3, attendance=tacit.Attendance(people=1))


def spec(problem: str, agent: str = "psrl", **more) -> ExperimentSpec:
    return ExperimentSpec(problem=Named(problem), agent=Named(agent), episodes=4, **more)


FILE = """
def walk(policy, rng):
    return [(0, policy.act(0, 0, rng), 1.0, None)]
"""


def test_names_are_read_where_there_is_a_table_and_played_where_there_is_none(tmp_path) -> None:
    lake = Named("gym:FrozenLake-v1", {"horizon": 6})
    assert not ExperimentSpec(problem=lake, agent=Named("psrl"), episodes=4).make().problem.played
    said = {"horizon": 6, "rewards": [0, 1]}
    played = spec("play:FrozenLake-v1", environment=said).make()
    assert played.problem.played and played.problem.horizon == 6
    assert spec("gym:CartPole-v1", "policy-search").make().problem.played
    (tmp_path / "own.py").write_text(FILE)
    own = {"states": 1, "actions": 2, "horizon": 1, "rewards": [0, 1]}
    found = spec(f"{tmp_path / 'own.py'}:walk", environment=own).make().run()
    assert found.problem["name"] == "walk" and found.returns[0, -1] == 1.0
    for wrong, sentence in (
        (spec("river-swim", environment=said), "only of what is played, and river-swim has"),
        (spec("play:FrozenLake-v1", environment={"reward": 1}), "did you mean 'rewards'"),
        (spec(f"{tmp_path / 'own.py'}:wolk", environment=own), "has no 'wolk'.*walk"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            wrong.make()


ALL = ExperimentSpec(
    problem=Named("river-swim", {"states": 4}),
    agent=Named("tacit-joint", {"epsilon": 2.0}),
    episodes=40,
    runs=2,
    seed=7,
    reveal=("reward",),
    participation=tacit.Participation(
        4, "lifetime", apart="20h", period="3d", attendance="private"
    ),
    attendance=tacit.Attendance("bursts", 10),
    environment={"horizon": 3},
    prior="folder",
    checkpoints=(10, 40),
    noise="secure",
    modules=Modules("somewhere", {"mine": "abc"}),
)


def test_a_spec_is_all_plain_values_and_comes_back(tmp_path) -> None:
    for one in (ALL, spec("random-mdp")):
        again = ExperimentSpec.from_json(json.loads(json.dumps(one.to_json(), allow_nan=False)))
        assert again == one and again.key == one.key and again.label == one.label
    assert ALL.key == ALL.at(8).key != spec("river-swim").key
    begin(tmp_path / "kept", ALL, overwrite=False)
    assert recall(tmp_path / "kept") == ALL
    with pytest.raises(InvalidInput, match="go on with tacit run --resume"):
        begin(tmp_path / "kept", ALL, overwrite=False)


def test_a_spec_makes_the_experiment_that_it_names() -> None:
    made = spec("random-mdp", runs=2, seed=3).make()
    by_hand = tacit.Experiment(problem="random-mdp", agent="psrl", episodes=4, runs=2, seed=3)
    assert made.describe() == by_hand.describe()
    stop = threading.Event()
    stop.set()
    assert made.run(stop=stop).interrupted
