import json
import re

import pytest

from tacit.experiment_spec import ExperimentSpec, Named, begin
from tacit.simulation.returns import NOTE, ONCE

LAKE = ("run", "play:FrozenLake-v1", "psrl", "--episodes", "30", "--runs", "2", "-E", "horizon=9")

FILE = """
import gymnasium
from gymnasium.spaces import Discrete

class Coin(gymnasium.Env):
    observation_space, action_space = Discrete(1), Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
    def step(self, action):
        return 0, float(action), False, False, {}

if "Coin-v0" not in gymnasium.registry:
    gymnasium.register("Coin-v0", entry_point=Coin, max_episode_steps=2)
coin = Coin()

def play(policy, rng):
    return [(0, policy.act(0, 0, rng), 1.0, None)]

def guess(policy, rng):
    return float(policy.act([rng.uniform(-1, 1)], 0, rng))

number = 3

def fails():
    raise ValueError("cannot be built")

class Broken(Coin):
    def step(self, action):
        raise RuntimeError("out of coins")

class Unpaid(Coin):
    episodes = 0
    def reset(self, **given):
        self.episodes += 1
        return super().reset(**given)
    def step(self, action):
        return 0, float("nan") if self.episodes > 9 else 1.0, True, False, {}
"""

SEARCH = ("--epsilon", "1", "-E", "returns=0,4", "-E", "horizon=4")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "my_env.py").write_text(FILE)
    return "my_env.py"


def test_words_for_people(call) -> None:
    done = call(*LAKE, "-P", "is_slippery=false")
    assert done.status == 0 and done.err == ""
    for words in (
        "psrl on gym:FrozenLake-v1",
        "17 states (the last one: the episode has ended), 4 actions, horizon 9, rewards from 0 to",
        "per user in the last tenth of 30 (",
        "tested on 200 fresh episodes: learned policies",
        NOTE,
        "NO PRIVACY",
    ):
        assert words in done.out


def test_json_is_one_object_and_the_folder_is_complete(call, tmp_path) -> None:
    done = call(*LAKE, "--out", "kept", "--json")
    assert done.status == 0 and done.err == "" and done.out.count("\n") == 1
    report = json.loads(done.out)
    assert report["note"] == NOTE and report["episodes"] == 30 and "regret" not in report
    assert {"result.json", "manifest.json", "curves.parquet", "returns.png", "policy.json"} <= {
        path.name for path in (tmp_path / "kept").iterdir()
    }
    again = json.loads(call(*LAKE, "--json").out)
    for one in (report, again):
        del one["timing"]
    assert report == again
    assert "already holds a result" in call(*LAKE, "--out", "kept").err


def test_an_unfinished_run_goes_on(call, tmp_path) -> None:
    whole = json.loads(call(*LAKE, "--json").out)
    call(*LAKE, "--out", "kept")
    begun = ExperimentSpec(
        problem=Named("play:FrozenLake-v1"),
        agent=Named("psrl"),
        episodes=30,
        runs=2,
        environment={"horizon": 9, "rewards": [0.0, 1.0]},
    )
    begin(tmp_path / "kept", begun, overwrite=True)
    assert "go on with tacit run --resume kept" in call(*LAKE, "--out", "kept").err
    done = json.loads(call("run", "--resume", "kept", "--json").out)
    for one in (done, whole):
        del one["timing"]
    assert done == whole
    assert "holds no unfinished run" in call("run", "--resume", "kept").err


def test_people_who_come_back_are_covered_and_not_simulated(call) -> None:
    lake = ("run", "play:FrozenLake-v1", "tacit-joint", "--epsilon", "1", *LAKE[3:])
    back = ("-R", "participations=any", "-R", "period=30d")
    report = json.loads(call(*lake, *back, "--json").out)
    assert report["guarantee"]["rule"]["teaches"] == "lifetime" and ONCE in report["note"]
    assert "returning" not in report and report["episodes"] == 30
    said = call(*lake, *back).out
    assert ONCE in said and "any number of times in every period of 30 days" in said
    assert ONCE not in call(*lake).out


@pytest.mark.parametrize("name", ["Coin-v0", "coin", "Coin"])
def test_an_environment_of_a_file(call, file, name: str) -> None:
    horizon = () if name == "Coin-v0" else ("-E", "horizon=2")
    words = ("run", f"{file}:{name}", "tacit-local", "--epsilon", "2", "--episodes", "5")
    done = call(*words, *horizon, "--json")
    report = json.loads(done.out)
    assert report["problem"]["states"] == 2 and report["problem"]["horizon"] == 2
    assert report["guarantee"]["epsilon"] == pytest.approx(2.0)


def test_a_function_of_a_file(call, file) -> None:
    sizes = ("-E", "states=1", "-E", "actions=2", "-E", "horizon=1")
    words = ("run", f"{file}:play", "psrl", "--episodes", "5", "--noise", "secure")
    report = json.loads(call(*words, *sizes, "--json").out)
    assert report["tests"]["policy"]["mean"] == 1.0
    words = ("run", f"{file}:guess", "policy-search", "--episodes", "9", *sizes)
    report = json.loads(call(*words, "-E", "returns=0,1", "--json").out)
    assert report["problem"]["policy parameters"] == 2, "the number that is seen, and 1"


def test_a_search_takes_what_has_no_table(call) -> None:
    words = ("run", "play:CartPole-v1", "tacit-search", "--epsilon", "1", "--episodes", "40")
    done = call(*words, "--runs", "1")
    assert done.status == 0 and "4 parameters, horizon 500, returns from 0 to 500" in done.out
    own = (*words, "--runs", "1", "-E", "horizon=20")
    assert "returns=(0, 500)" in call(*own).err
    report = json.loads(call(*own, "-E", "returns=0,20", "--json").out)
    assert report["problem"]["returns"] == [0.0, 20.0] and report["problem"]["horizon"] == 20
    assert report["problem"]["policy parameters"] == 4, "the known form stays"
    cells = ("-E", "returns=0,20", "-E", "bins=[1, 1, [0], 1]", "--json")
    assert json.loads(call(*own, *cells).out)["problem"]["states"] == 2
    assert (
        "-E returns = '0', but it must be the least and the largest"
        in call(*own, "-E", "returns=0").err
    )


def test_bins(call) -> None:
    words = ("run", "play:CartPole-v1", "psrl", "--episodes", "3", "-E", "horizon=8", "--json")
    report = json.loads(call(*words, "-E", "bins=[1, 1, [0], [-0.5, 0.5]]").out)
    assert report["problem"]["states"] == 7
    assert report["problem"]["parameters"]["bins"] == [[], [], [0.0], [-0.5, 0.5]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("play:CartPole-v1", "psrl"), "continuous observations, Box.*-E bins"),
        (("play:CartPole-v1", "psrl", "-E", "bins=many"), "-E bins = 'many', but it must be like"),
        (("play:Pendulum-v1", "psrl", "-E", "bins=3"), "gym:Pendulum-v1 has continuous actions"),
        (("play:FrozenLake-v1", "psrl", "-E", "rewards=1"), "-E rewards = '1', but it must be the"),
        (("play:FrozenLake-v1", "psrl", "-E", "rewards=1,0"), r"rewards = \(1, 0\)"),
        (("play:FrozenLake-v1", "psrl", "-E", "horizon=x"), "-E horizon = 'x'"),
        (("play:FrozenLake-v1", "tacit-joint"), "tacit-joint is private and needs an epsilon"),
        (("psrl", "play:FrozenLake-v1"), "psrl is an agent, but the problem comes first"),
        (("none.py:play", "psrl"), "none.py, but it must be a Python file"),
        (("my_env.py:play", "psrl"), "give states, actions, horizon"),
        (("my_env.py:plau", "psrl"), "has no 'plau'; did you mean 'play'"),
        (("my_env.py:number", "psrl"), "got int"),
        (("my_env.py:number", "tacit-search", *SEARCH), "got int"),
        (
            ("my_env.py:guess", "tacit-search", *SEARCH),
            "does not say its sizes: give states, actions",
        ),
        (("my_env.py:coin", "psrl"), "Coin has no time limit"),
        (("my_env.py:coin", "psrl", "-P", "a=1"), "-P is for gym:ID"),
        (("broken.py:coin", "psrl"), "broken.py could not be read: ZeroDivision"),
        (("my_env.py:fails", "psrl"), "could not be made: ValueError: cannot be"),
        (
            ("my_env.py:Broken", "tacit-search", *SEARCH),
            "Broken failed while an .*RuntimeError: out of coi",
        ),
        (
            ("my_env.py:Unpaid", "tacit-search", *SEARCH),
            "Unpaid returned nan, but the return of an episode",
        ),
    ],
)
def test_a_mistake_is_one_line(call, file, tmp_path, words, message: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    done = call("run", *words, "--episodes", "5")
    assert done.status == 2 and done.out == "" and done.err.count("\n") == 1
    assert re.search(message, done.err), done.err
