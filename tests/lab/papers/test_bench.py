"""Side by side: who is timed, who is scored, and what is said about it. No absolute times."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from tacit.agents.catalogue import from_people
from tacit.cli import main as cli
from tacit.experiment_spec import Named
from tacit.problems.tabular_benchmarks import random_mdp
from tacit_lab.bench import by_hand, peer_rlberry, search, speed, utility

SMALL = random_mdp(seed=1)


def contest(algorithm: str, episodes: int) -> speed.SpeedContest:
    return speed.SpeedContest(
        algorithm, SMALL, "random-mdp", 20 * episodes, episodes, False, ("all",)
    )


def test_contenders_take_turns_and_ratios_are_per_round() -> None:
    seen: list[str] = []
    timed, missing = speed.measure(contest("ucb-vi", 30), 2, None, seen.append)
    assert list(timed) == ["tacit", speed.HAND] and missing is None
    turns = [words.rsplit(": ")[1] for words in seen]
    assert turns == ["tacit", speed.HAND] * 2
    found = speed.report(contest("ucb-vi", 30), True, None, lambda _: None)
    ours, hand = found["contenders"]
    assert ours["times_slower"] == 1.0 and ours["range"] == [1.0, 1.0]
    low, high = hand["range"]
    assert 2 < low <= hand["times_slower"] <= high  # interpreted: two orders of magnitude


def test_a_peer_that_is_not_there_is_named_and_does_not_stop_the_others() -> None:
    timed, missing = speed.measure(contest("ucb-vi", 5), 1, Path(sys.executable), lambda _: None)
    assert list(timed) == ["tacit", speed.HAND]
    assert missing is not None and "rlberry" in missing and "was not measured" in missing


FAKE = """
import sys, types
class Agent:
    def __init__(self, env, **options): self.env, self.horizon = env, options["horizon"]
    def fit(self, budget):
        for _ in range(budget):
            state, _ = self.env.reset()
            for _ in range(self.horizon): state, reward, *_ = self.env.step(0)
            assert state in (0, 1) and 0 <= reward <= 1
def module(name, **content):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)
import gymnasium, importlib.metadata, runpy
module("rlberry")
module("rlberry.spaces", Discrete=gymnasium.spaces.Discrete)
for name in ("rlberry_scool", "rlberry_scool.agents"): module(name)
module("rlberry_scool.agents.ucbvi", UCBVIAgent=Agent)
importlib.metadata.version = lambda name: "0"
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_the_script_that_times_the_peer_runs_without_tacit() -> None:
    order = {
        "agent": "ucb-vi",
        "P": SMALL.P[0].tolist(),
        "R": SMALL.R[0].tolist(),
        "initial": SMALL.initial.tolist(),
        "horizon": 2,
        "episodes": 50,
        "seed": 0,
    }
    assert "tacit" not in Path(peer_rlberry.__file__).read_text()
    command = [sys.executable, "-c", FAKE, peer_rlberry.__file__]
    done = subprocess.run(command, input=json.dumps(order), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["microseconds"] > 0


def test_loops_by_hand_learn() -> None:
    assert by_hand.lsvi(SMALL, 5) > 0
    worst = 2_000 * SMALL.optimal_value()
    assert 0 < by_hand.ldp_obi_regret(SMALL, 50.0, 2_000) < worst


@pytest.fixture(scope="module")
def arena_of_six() -> tuple[dict, list[str]]:
    """A small arena, who did what in it, and what was told meanwhile."""
    names = ("uniform", "optimal", "thompson", "ucb-vi", "lsvi-ucb", "tacit-local")
    arena = utility.Arena("tables", Named("random-mdp", {"seed": 1}), 4_000, 40)
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utility, "from_people", lambda: [Named(name) for name in names])
        return utility.report(arena, True, 1, told.append), told


def test_utility_scores_those_who_fit_against_the_baseline(arena_of_six) -> None:
    outcome, _ = arena_of_six
    absent, scored = outcome["does_not_fit"], {one["agent"]: one for one in outcome["agents"]}
    assert outcome["failed"] == {} and outcome["agents"][0]["agent"] == "optimal"
    assert scored["optimal"]["per_seed"] == [0.0, 0.0] and scored["optimal"]["scale"] == ""
    assert scored["uniform"]["per_seed"] == pytest.approx([1.0, 1.0])
    assert list(absent) == ["thompson"] and "random-mdp has no fact" in absent["thompson"]


def test_scales_are_chosen_on_seeds_that_are_not_reported(arena_of_six) -> None:
    outcome, told = arena_of_six
    scored = {one["agent"]: one for one in outcome["agents"]}
    seeds = utility.QUICK
    assert not set(seeds.choosing) & set(seeds.reported)
    chosen = scored["ucb-vi"]["chosen"]
    assert chosen is not None and chosen["seeds"] == list(seeds.choosing)
    tried = {candidate["value"]: candidate["per_seed"] for candidate in chosen["candidates"]}
    assert list(tried) == list(utility.SCALES) and all(len(runs) == 1 for runs in tried.values())
    best = min(tried, key=lambda scale: tried[scale])
    assert chosen["value"] == best and scored["ucb-vi"]["scale"] == f"{best:g}"
    other = scored["lsvi-ucb"]["chosen"]
    assert other is not None
    assert [c["value"] for c in other["candidates"]] == [*utility.SCALES, None]
    assert scored["tacit-local"]["scale"] == "no effect"
    assert "tables: 1 of 25 runs" in told[1] and told[-1].startswith("tables: 25 of 25 runs")


def test_everybody_private_is_asked_for_the_same_and_tries_the_same_scales() -> None:
    seeds = utility.FULL
    planned = {
        item.configuration.agent.name: item
        for item in utility._planned(utility.ARENAS[0], 100, seeds)
    }
    given = {name: item.configuration.agent.parameters for name, item in planned.items()}
    tight = {"calibration": "tight"}
    assert given["psrl"] == {} and given["ldp-obi"] == {"epsilon": utility.EPSILON, **tight}
    both = {"epsilon": utility.EPSILON, "delta": utility.DELTA}
    assert given["tacit-joint"] == both and given["shuffle-obi"] == {**both, **tight}
    for entry in from_people():
        tried = [c.agent.parameters["bonus_scale"] for c in planned[entry.name].candidates]
        if "bonus_scale" in entry.parameters:
            default = entry.parameters["bonus_scale"].default
            assert set(tried) == {*utility.SCALES, default}
        else:
            assert tried == []


def test_tables_need_planning_and_the_old_one_did_not() -> None:
    assert utility.myopic_share(Named("random-mdp", {"seed": 1})) == pytest.approx(0, abs=1e-12)
    for arena in utility.ARENAS[:2]:
        share = utility.myopic_share(arena.problem)
        assert share is not None and share > 0.2
    assert utility.myopic_share(Named("lq-scalar")) is None


def test_the_command(monkeypatch, capsys) -> None:
    monkeypatch.setattr(speed, "contests", lambda quick: [contest("ucb-vi", 10)])
    monkeypatch.setattr(utility, "ARENAS", ())
    rows = [{"who": "a search", "guarantee": "joint", "mean": 1.0, "worst": 0.5, "returns": []}]
    found = {"environment": "x", "episodes": 3, "rows": rows, "missing": "nobody else"}
    monkeypatch.setattr(search, "report", lambda quick, peer, watch: found)
    for words in (["--json"], []):
        monkeypatch.setattr(sys, "argv", ["tacit", "reproduce", "bench", "--size", "quick", *words])
        with pytest.raises(SystemExit) as leave:
            cli.main()
        assert leave.value.code == 0
        out = capsys.readouterr().out
        if words:
            (report,) = json.loads(out)["speed"]
            assert report["not_equal"] == ["all"] and len(report["contenders"]) == 2
        else:
            assert "not equal: all" in out and "pip install rlberry-scool" in out
            assert "a search, joint: 1.0 (worst 0.5)" in out and "nobody else" in out


def test_searches_beside_a_peer_that_is_not_there(monkeypatch) -> None:
    monkeypatch.setattr(search, "simulate", functools.partial(learned_by, users=60))
    found = search.report(True, Path(sys.executable), lambda words: None)
    assert [row["who"] for row in found["rows"]] == [
        "policy-search",
        "tacit-search",
        "tacit-search",
    ]
    assert [row["guarantee"].split()[0] for row in found["rows"]] == ["not", "joint", "local"]
    assert all(len(row["returns"]) == 2 and row["worst"] <= row["mean"] for row in found["rows"])
    assert "No module named 'stable_baselines3'" in found["missing"]
    alone = search.report(True, None, lambda words: None)
    assert "-O peer_python=PATH" in alone["missing"]


def learned_by(environment, agent, people, seeds, users):
    """Fewer people than are asked for: this is about the report."""
    return tacit.simulate(environment, agent, episodes=users, runs=seeds)
