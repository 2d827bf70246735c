"""``tacit.learn``: agents for tables learn what can only be played."""

import dataclasses
import json
import threading

import gymnasium
import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.simulation.learn_result import NOTE, compared

CHANCES = np.array([[0.1, 0.9], [0.8, 0.2]])
SIZES = {"states": 2, "actions": 2, "horizon": 3, "rewards": (0, 1)}


def bandit(policy, rng):
    """Three rounds; in each the state says which action pays; the third may be missed."""
    steps, state = [], int(rng.integers(2))
    for step in range(3):
        action = policy.act(state, step, rng)
        following = int(rng.integers(2))
        reward = float(rng.random() < CHANCES[state, action])
        steps.append((state, action, reward, following))
        state = following
        if step == 1 and rng.random() < 0.3:
            steps[-1] = (*steps[-1][:3], None)
            break
    return steps


BEST = 0.85 * (2 + 0.7)
UNIFORM = 0.5 * (2 + 0.7)


def tables(result) -> list[list]:
    return [learned.publication.policy.actions.tolist() for learned in result.policies]


PRIVATE = {
    "ldp-obi": {"epsilon": 50.0},
    "ldp-psrl": {"epsilon": 50.0},
    "shuffle-obi": {"epsilon": 3.0},
    "tacit-local": {"epsilon": 4.0},
    "tacit-joint": {"epsilon": 2.0},
    "tacit-linear": {"epsilon": 2.0},
}
AGENTS = {"psrl": {}, "ucb-vi": {}, "obi": {}, "uniform": {}, "lsvi-ucb": {}, **PRIVATE}


@pytest.mark.parametrize(
    ("name", "users", "earned"),
    [("psrl", 300, 2.2), ("tacit-joint", 2500, 2.0), ("tacit-local", 2500, 2.0)],
)
def test_learning_beats_uniform_actions(name: str, users: int, earned: float) -> None:
    agent = tacit.agent(name, **AGENTS[name])
    result = tacit.learn(bandit, agent, users, 2, **SIZES)
    assert result.tests["uniform"]["mean"] == pytest.approx(UNIFORM, abs=0.2)
    assert result.tests["policy"]["mean"] > earned and BEST > earned
    assert result.late().mean() > earned - 0.2
    assert result.warning == "" and result.tests["difference"]["ci95"][0] > 0
    assert [row[:2] for row in tables(result)[0]] == [[1, 0]] * 3
    assert result.policy.act(0, step=0) == 1 and result.policy.users == users


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_for_tables_learns(name: str) -> None:
    agent = tacit.agent(name, **AGENTS[name])
    result = tacit.learn(bandit, agent, 30, **SIZES)
    assert result.completed == 30 and np.isfinite(result.returns).all()
    assert np.isnan(result.regret).all() and result.guarantee.simulated
    assert result.problem["states"] == 3 and result.policies[0].publication.policy.horizon == 3


@pytest.mark.parametrize("name", PRIVATE)
def test_secure_noise_is_stated_as_such_and_takes_no_seed(name: str) -> None:
    agent = tacit.agent(name, **PRIVATE[name])
    result = tacit.learn(bandit, agent, 8, noise="secure", **SIZES)
    assert not result.guarantee.simulated and result.completed == 8
    seeded = tacit.learn(bandit, agent, 8, **SIZES)
    assert seeded.guarantee.epsilon == result.guarantee.epsilon


def test_a_run_is_what_its_seed_says_whatever_runs_beside_it() -> None:
    agent = tacit.agent("tacit-local", epsilon=4.0)
    first, again = (tacit.learn(bandit, agent, 60, 2, **SIZES) for _ in range(2))
    other = tacit.learn(bandit, agent, 60, 2, seed=1, **SIZES)
    alone = tacit.learn(bandit, agent, 60, 1, **SIZES)
    assert np.array_equal(first.reward, again.reward) and tables(first) == tables(again)
    assert first.to_json()["tests"] == again.to_json()["tests"]
    assert not np.array_equal(first.reward, other.reward)
    assert np.array_equal(first.reward[:1], alone.reward)
    assert not np.array_equal(first.reward[0], first.reward[1])


def test_one_environment_serves_all_runs() -> None:
    lake = gymnasium.make("FrozenLake-v1", disable_env_checker=True)
    options = {"horizon": 12, "rewards": (0, 1), "checkpoints": 5}
    both = tacit.learn(lake, tacit.agent("psrl"), 20, 2, **options)
    alone = tacit.learn("gym:FrozenLake-v1", "psrl", 20, 1, **options)
    assert np.array_equal(both.reward[:1], alone.reward)
    assert both.episodes.tolist() == [5, 10, 15, 20]


def test_rewards_are_clipped_for_the_agent_and_not_for_the_reader() -> None:
    def paying(most: float):
        calls = []

        def play(policy, rng):
            calls.append(0)
            steps = bandit(policy, rng)
            return [(s, a, r * most if len(calls) > 1 else r, n) for s, a, r, n in steps]

        return play

    one, seven = (
        tacit.learn(paying(most), tacit.agent("psrl"), 40, **SIZES) for most in (1.0, 7.0)
    )
    assert tables(one) == tables(seven)
    assert np.allclose(7 * one.reward, seven.reward)
    assert "clip" not in json.dumps(seven.to_json())


def test_the_agent_sees_nothing_but_the_statistic(monkeypatch) -> None:
    """Whatever is written down about returns, the policies stay the same."""
    from tacit.simulation.runs import stepwise

    agent = tacit.agent("psrl")
    before = tacit.learn(bandit, agent, 40, **SIZES)
    real = stepwise.record
    monkeypatch.setattr(stepwise, "record", lambda reward, *score: real(-99.0, *score))
    after = tacit.learn(bandit, agent, 40, **SIZES)
    assert tables(after) == tables(before) and not np.array_equal(after.reward, before.reward)


def test_the_result_says_what_it_is(tmp_path) -> None:
    agent = tacit.agent("tacit-joint", epsilon=1.0)
    result = tacit.learn(bandit, agent, 50, 2, **SIZES)
    mean, low, high = result.band()
    assert np.all((0 <= low) & (low <= mean) & (mean <= high) & (high <= 3))
    assert len(mean) == len(result.episodes)
    assert np.allclose(result.returns @ np.diff(result.episodes, prepend=0), result.reward[:, -1])
    report = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert report["note"] == NOTE and "regret" not in report
    assert report["returns"]["late"] == pytest.approx(result.late().mean())
    assert report["warning"] == result.warning
    frame = result.frame()
    assert list(frame.columns) == ["seed", "episode", "returns", "reward"]
    assert len(frame) == result.returns.size
    assert result.plot(tmp_path / "returns.png").stat().st_size > 10_000
    page = result._repr_html_()
    assert "bandit" in page and NOTE in page and "(1, 1e-05)-differential privacy" in page
    assert "<img" in page and "regret" not in page


def test_a_policy_that_learned_nothing_is_called_so() -> None:
    hopeless = tacit.learn(bandit, tacit.agent("ldp-psrl", epsilon=0.001), 20, 2, **SIZES)
    assert hopeless.warning.startswith("Not shown to be better than uniform actions (")
    assert hopeless.warning.endswith("not shown to be better than uniform actions.")
    reference = tacit.learn(bandit, tacit.agent("uniform"), 20, 2, **SIZES)
    assert reference.warning == "" and reference.tests["difference"]["mean"] == 0.0


def test_it_is_kept_on_disk(tmp_path) -> None:
    result = tacit.learn(bandit, "psrl", 30, 2, **SIZES)
    again = tacit.LearnResult.load(result.save(tmp_path / "kept"))
    assert again.to_json() == result.to_json() and tables(again) == tables(result)
    policy = tacit.load_policy(tmp_path / "kept" / "policy.json")
    assert policy.act(1, step=2) == result.policy.act(1, step=2)
    with pytest.raises(InvalidInput, match="tacit.learn made them, and tacit.LearnResult reads"):
        tacit.Result.load(tmp_path / "kept")
    other = tacit.simulate("random-mdp", "psrl", 5).save(tmp_path / "other")
    with pytest.raises(InvalidInput, match="tacit.Result reads it"):
        tacit.LearnResult.load(other)


def test_stopping_keeps_what_was_done() -> None:
    stop, told = threading.Event(), []

    def progress(done: int, earned: float) -> None:
        told.append((done, earned))
        if done >= 20:
            stop.set()

    result = tacit.learn(bandit, tacit.agent("psrl"), 10**6, progress=progress, stop=stop, **SIZES)
    assert result.interrupted and 0 < result.completed < 10**6
    assert told and all(0.0 <= earned <= 3.0 for _, earned in told)
    assert result.returns.shape == (1, len(result.episodes)) and result.policies == ()
    assert "no learned policy" in result.tested() and result.warning == ""
    json.dumps(result.to_json(), allow_nan=False)


def test_what_was_interrupted_goes_on(tmp_path) -> None:
    stop, agent = threading.Event(), tacit.agent("tacit-joint", epsilon=2.0)

    def progress(done: int, earned: float) -> None:
        if done >= 20:
            stop.set()

    kept = {"resume": tmp_path / "kept", **SIZES}
    first = tacit.learn(bandit, agent, 2000, 2, progress=progress, stop=stop, **kept)
    assert first.interrupted
    second = tacit.learn(bandit, agent, 2000, 2, **kept)
    whole = tacit.learn(bandit, agent, 2000, 2, **SIZES)
    assert np.array_equal(second.reward, whole.reward) and tables(second) == tables(whole)
    with pytest.raises(InvalidInput, match="holds the progress of a run with"):
        tacit.learn(bandit, agent, 2000, 2, seed=1, **kept)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"environment": 3}, "must be a Gymnasium environment.*got int"),
        ({"environment": tacit.problem("river-swim")}, "got TabularMDP.*tacit.simulate"),
        ({"environment": "gym:Nothing-v0"}, "could not make 'Nothing-v0'"),
        ({"environment": "gym:CartPole-v1"}, "leave states and actions out"),
        ({"horizon": None}, "does not say its sizes: give horizon"),
        ({"states": None, "actions": None}, "give states, actions"),
        ({"states": 0}, "states = 0"),
        ({"horizon": 2.5}, "horizon = 2.5"),
        ({"users": 0}, "users = 0"),
        ({"noise": "loud"}, "noise = 'loud', but it must be one of simulated, secure"),
        ({"rewards": (1, 0)}, r"rewards = \(1, 0\)"),
        ({"rewards": (0, 0.5)}, "paid 1 in an episode before the first user"),
        ({"states": 1}, "bandit played state 1, but states are whole numbers from 0 to 0"),
        ({"environment": "psrl", "agent": bandit}, "psrl is an agent, but the problem comes"),
        ({"agent": bandit}, "agent is .*, but it must be an agent"),
        ({"agent": "optimal"}, "nobody knows the"),
        ({"agent": "ofu-rl"}, "nobody knows the start of bandit"),
        ({"agent": "psrrl"}, "unknown agent 'psrrl'; did you mean 'psrl'"),
        ({"checkpoints": "all"}, "checkpoints = 'all'"),
    ],
)
def test_bad_input_is_one_sentence(changed: dict, message: str) -> None:
    given = {"environment": bandit, "agent": "psrl", "users": 10, **SIZES, **changed}
    with pytest.raises(InvalidInput, match=message):
        tacit.learn(given.pop("environment"), given.pop("agent"), given.pop("users"), **given)


def told(policy, uniform, constant, **more) -> tacit.LearnResult:
    """A result whose policies returned this on test episodes [runs, episodes]."""
    result = tacit.learn(bandit, tacit.agent("psrl"), 10, len(policy), **SIZES)
    played = {"policy": policy, "uniform": uniform, "constant": constant}
    played = {who: np.asarray(returns, dtype=float) for who, returns in played.items()}
    return dataclasses.replace(result, tests=compared(played, "action 2") | more)


def around(*means: float) -> np.ndarray:
    """Test episodes of every run: their mean, give or take 1."""
    return np.array(means)[:, None] + np.tile([-1.0, 1.0], 100)


def test_an_interval_about_the_agent_covers_runs() -> None:
    """Three gains of 5.98, 0.9 and 4.97: the t interval over runs has two degrees of freedom."""
    result = told(around(9.0, 4.0, 8.0), around(3.02, 3.1, 3.03), around(3.0, 3.0, 3.0))
    gains = np.array([5.98, 0.9, 4.97])
    half = 4.30265 * gains.std(ddof=1) / np.sqrt(3)
    said = result.tested()
    assert f"{gains.mean() - half:.3g} to {gains.mean() + half:.3g} over runs" in said
    low, high = result.tests["difference"]["ci95"]
    assert f"over test episodes, of these 3 policies only: {low:.3g} to {high:.3g}" in said
    assert 4.0 < gains.mean() + half - high, "else runs make no difference"
    report = json.loads(json.dumps(result.to_json(), allow_nan=False))["gain"]
    assert report["ci95"] == pytest.approx([gains.mean() - half, gains.mean() + half], rel=1e-5)
    assert report["ci95_of_these_policies"] == [low, high]
    assert result.warning.startswith(
        "Not shown to be better than uniform actions (3.05) or action 2 alone"
    )


def test_what_is_better_than_chance_in_every_run_need_not_be_better_than_one_action() -> None:
    result = told(around(9.0, 4.0, 8.0), around(4.0, -1.0, 3.0), around(3.0, 3.1, 3.0))
    assert result.warning.startswith("Not shown to be better than action 2 alone (3.033): what")


def test_one_run_tells_of_no_other() -> None:
    result = told(around(9.0), around(3.0), around(4.0))
    assert "learned policy 9 per episode" in result.tested()
    assert result.tested().endswith(
        "over test episodes, of this policy only: one run tells of no other"
    )
    assert "over runs" not in result.tested() and result.warning == ""
    assert result.to_json()["gain"]["ci95"] == [None, None]


def test_runs_that_agree_know_no_more_than_was_tried() -> None:
    result = told(around(9.0, 9.0), [[1.0] * 200] * 2, [[0.0] * 200] * 2)
    low, high = result.tests["difference"]["ci95"]
    assert high - low > 0.1 and f"{low:.3g} to {high:.3g} over runs" in result.tested()


def test_what_never_differed_has_no_interval() -> None:
    """A t interval of equal numbers has no width, and would promise that nothing else can come."""
    result = told([[9.0] * 200] * 2, around(3.0, 3.1), around(4.0, 4.0))
    assert result.per_run() == [f"run {k}: 9 in each of 200 test episodes" for k in (0, 1)]
    level = dataclasses.replace(result, reward=np.tile(9.0 * result.episodes, (2, 1)))
    assert "(the same in each of 2 runs)" in level.earned() and "interval" not in level.earned()
    uneven = dataclasses.replace(level, reward=level.reward * np.array([[1.0], [1.1]]))
    assert "(mean of 2 runs, 95% interval over runs " in uneven.earned()


def test_a_run_that_failed_is_named_and_not_hidden_in_a_mean() -> None:
    """Acrobot: -100, -500, -99, where uniform actions and any constant one return -500."""
    result = told(around(-100, -500, -99), around(-499, -499, -499), around(-500, -500, -500))
    assert result.failed == {1: "not shown to be better than uniform actions"}
    lines = result.per_run()
    assert lines[0].startswith("run 0: -100 (95% interval -100.1 to -99.86 over test episodes)")
    assert lines[1].endswith("; failed: not shown to be better than uniform actions")
    assert "1 of 3 runs failed: run 1 (-500), not shown to be better" in result.warning
    report = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert report["failed"] == [{"run": 1, "why": result.failed[1]}]
    assert [row["return"]["mean"] for row in report["tests"]["runs"]] == [-100, -500, -99]
    assert "failed: not shown" in result._repr_html_()


@pytest.mark.parametrize(
    ("policy", "constant", "failed"),
    [
        ((9.0, 9.0, 9.0), 0.0, {}),
        ((9.0, 9.0, 2.0), 3.0, {2: "worse than action 2 alone"}),
        ((9.0, 9.0, 4.0), 3.0, {2: "it gained less than half of what the best run did"}),
        ((9.0, 9.0, 5.2), 3.0, {}),
        ((9.0, 9.0, 0.5), 3.0, {2: "not shown to be better than uniform actions"}),
    ],
)
def test_when_a_run_has_failed(policy, constant: float, failed: dict) -> None:
    uniform = np.zeros((3, 200)) + np.tile([1.0, -1.0], 100)
    result = told(around(*policy), uniform + 1.0, around(*[constant] * 3))
    assert result.failed == failed and bool(result.warning) == bool(failed)


def test_standing_still_is_no_gain_over_standing_still() -> None:
    """CliffWalking: -60 is the cost of 60 steps at the edge; uniform actions fall and pay 680."""
    still = [[-60.0] * 200] * 3
    result = told(still, around(-680, -680, -680), still)
    assert result.failed == {}
    assert result.warning == (
        "Not shown to be better than action 2 alone (-60): what was learned returned -60."
    )


def test_the_best_constant_action_is_chosen_on_other_episodes() -> None:
    """Action 1 pays 0.9 in state 0 and 0.2 in state 1, action 0 pays 0.1 and 0.8."""
    result = tacit.learn(bandit, "psrl", 10, 2, **SIZES)
    constant = result.tests["constant"]
    assert constant["name"] == "action 1"
    assert constant["mean"] == pytest.approx(0.55 * 2.7, abs=0.2)
    assert len(set(constant["per_seed"])) == 2, "each run on its own episodes"


def test_results_of_before_are_read_and_say_what_they_know(tmp_path) -> None:
    result = tacit.learn(bandit, "psrl", 10, 2, **SIZES)
    folder = result.save(tmp_path / "kept")
    manifest = json.loads((folder / "manifest.json").read_text())
    for key in ("constant", "runs"):
        del manifest["tests"][key]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    before = tacit.LearnResult.load(folder)
    assert "over runs" in before.tested() and "alone" not in before.tested()
    assert before.failed == {} and [line[:7] for line in before.per_run()] == ["run 0: ", "run 1: "]
    assert before.warning == "" and before.to_json()["failed"] == []
