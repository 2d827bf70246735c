import json
import re

import pytest

from tacit.simulation.learn_result import NOTE, ONCE

LAKE = ("learn", "gym:FrozenLake-v1", "psrl", "--users", "30", "--seeds", "2", "--horizon", "9")

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

SEARCH = ("--epsilon", "1", "--module", "my_env.py", "--returns", "0,4", "--horizon", "4")


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
    from tacit.cli import resuming

    whole = json.loads(call(*LAKE, "--json").out)
    call(*LAKE, "--out", "kept")
    begun = {"problem_name": "gym:FrozenLake-v1", "agent_name": "psrl", "command": "learn"}
    rest = ("problem_parameters", "agent_parameters", "epsilon", "delta", "calibration", "states")
    begun |= dict.fromkeys((*rest, "actions", "bins", "module", "returns"))
    begun |= {"users": 30, "seeds": 2, "seed": 0, "rewards": "0,1", "horizon": 9}
    begun |= {"participations": 1, "noise": "simulated"}
    resuming.begin(tmp_path / "kept", begun, overwrite=True)
    assert "go on with tacit learn --resume kept" in call(*LAKE, "--out", "kept").err
    assert "go on with tacit learn" in call("run", "--resume", "kept").err
    done = json.loads(call("learn", "--resume", "kept", "--json").out)
    for one in (done, whole):
        del one["timing"]
    assert done == whole
    assert "holds no unfinished run" in call("learn", "--resume", "kept").err


def test_people_who_come_back_are_covered_and_not_simulated(call) -> None:
    lake = ("learn", "gym:FrozenLake-v1", "tacit-joint", "--epsilon", "1", *LAKE[3:])
    back = ("--participations", "any", "--period", "30d")
    report = json.loads(call(*lake, *back, "--json").out)
    assert report["guarantee"]["rule"]["teaches"] == "lifetime" and ONCE in report["note"]
    assert "returning" not in report and report["episodes"] == 30
    said = call(*lake, *back).out
    assert ONCE in said and "any number of times in every period of 30 days" in said
    assert ONCE not in call(*lake).out


@pytest.mark.parametrize("name", ["gym:Coin-v0", "coin", "Coin"])
def test_an_environment_of_a_file(call, file, name: str) -> None:
    horizon = () if name.startswith("gym:") else ("--horizon", "2")
    words = ("learn", name, "tacit-local", "--epsilon", "2", "--users", "5", "--module", file)
    done = call(*words, *horizon, "--json")
    report = json.loads(done.out)
    assert report["problem"]["states"] == 2 and report["problem"]["horizon"] == 2
    assert report["guarantee"]["epsilon"] == pytest.approx(2.0)


def test_a_function_of_a_file(call, file) -> None:
    sizes = ("--states", "1", "--actions", "2", "--horizon", "1")
    words = ("learn", "play", "psrl", "--users", "5", "--module", file, "--noise", "secure")
    report = json.loads(call(*words, *sizes, "--json").out)
    assert report["tests"]["policy"]["mean"] == 1.0
    words = ("learn", "guess", "policy-search", "--users", "9", "--module", file, *sizes)
    report = json.loads(call(*words, "--returns", "0,1", "--json").out)
    assert report["problem"]["policy parameters"] == 2, "the number that is seen, and 1"


def test_a_search_takes_what_has_no_table(call) -> None:
    words = ("learn", "gym:CartPole-v1", "tacit-search", "--epsilon", "1", "--users", "40")
    done = call(*words, "--seeds", "1")
    assert done.status == 0 and "4 parameters, horizon 500, returns from 0 to 500" in done.out
    own = (*words, "--seeds", "1", "--horizon", "20")
    assert "returns=(0, 500)" in call(*own).err
    report = json.loads(call(*own, "--returns", "0,20", "--json").out)
    assert report["problem"]["returns"] == [0.0, 20.0] and report["problem"]["horizon"] == 20
    assert report["problem"]["policy parameters"] == 4, "the known form stays"
    cells = ("--returns", "0,20", "--bins", "[1, 1, [0], 1]", "--json")
    assert json.loads(call(*own, *cells).out)["problem"]["states"] == 2
    assert "largest return of an episode" in call(*own, "--returns", "0").err


def test_bins(call) -> None:
    words = ("learn", "gym:CartPole-v1", "psrl", "--users", "3", "--horizon", "8", "--json")
    report = json.loads(call(*words, "--bins", "[1, 1, [0], [-0.5, 0.5]]").out)
    assert report["problem"]["states"] == 7
    assert report["problem"]["parameters"]["bins"] == [[], [], [0.0], [-0.5, 0.5]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gym:CartPole-v1", "psrl"), "continuous observations, Box.*--bins"),
        (("gym:CartPole-v1", "psrl", "--bins", "many"), "--bins 'many', but it must look like"),
        (("gym:Pendulum-v1", "psrl", "--bins", "3"), "gym:Pendulum-v1 has continuous actions"),
        (("gym:FrozenLake-v1", "psrl", "--rewards", "1"), "--rewards '1', but it must be the"),
        (("gym:FrozenLake-v1", "psrl", "--rewards", "1,0"), r"rewards = \(1, 0\)"),
        (("gym:FrozenLake-v1", "psrl", "--horizon", "x"), "--horizon = 'x'"),
        (("gym:FrozenLake-v1", "tacit-joint"), "tacit-joint is private and needs an epsilon"),
        (("river-swim", "psrl"), "'river-swim' is not something to play.*tacit run"),
        (("psrl", "gym:FrozenLake-v1"), "psrl is an agent, but the problem comes first"),
        (("play", "psrl", "--module", "none.py"), "none.py, but it must be a Python file"),
        (("play", "psrl", "--module", "my_env.py"), "give states, actions, horizon"),
        (("plau", "psrl", "--module", "my_env.py"), "has no 'plau'; did you mean 'play'"),
        (("number", "psrl", "--module", "my_env.py"), "got int"),
        (("number", "tacit-search", *SEARCH), "got int"),
        (("guess", "tacit-search", *SEARCH), "does not say its sizes: give states, actions"),
        (("coin", "psrl", "--module", "my_env.py"), "Coin has no time limit"),
        (("coin", "psrl", "--module", "my_env.py", "-P", "a=1"), "-P is for gym:ID"),
        (("coin", "psrl", "--module", "broken.py"), "broken.py could not be read: ZeroDivision"),
        (("fails", "psrl", "--module", "my_env.py"), "could not be made: ValueError: cannot be"),
        (("Broken", "tacit-search", *SEARCH), "Broken failed while an .*RuntimeError: out of coi"),
        (("Unpaid", "tacit-search", *SEARCH), "Unpaid returned nan, but the return of an episode"),
    ],
)
def test_a_mistake_is_one_line(call, file, tmp_path, words, message: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    done = call("learn", *words, "--users", "5")
    assert done.status == 2 and done.out == "" and done.err.count("\n") == 1
    assert re.search(message, done.err), done.err
