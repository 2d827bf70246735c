"""Terminal states, allowed actions and sparse tables: what is declared is honoured by everybody."""

import re

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit import InvalidInput
from tacit.agents import make_agent
from tacit.learner import drive
from tacit.planners.base import MANY_STATES
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, check_allowed
from tacit.privacy import SimulatedNoise
from tacit.problems.tabular import TabularMDP
from tacit.statistics.counts import JointCounts, VisitCounts
from tacit.streams import planner_streams
from tacit.trajectory import Trajectory

SEEDS = st.integers(0, 2**32 - 1)
AGENTS = {
    "psrl": {},
    "ucb-vi": {"bonus_scale": 0.01},
    "obi": {},
    "ldp-obi": {"epsilon": 20.0},
    "ldp-psrl": {"epsilon": 20.0},
    "shuffle-obi": {"epsilon": 5.0, "batch": 10},
    "pucb": {"epsilon": 2000.0, "calibration": "tight"},
    "private-ucb-vi": {"epsilon": 200.0, "delta": 1e-5, "calibration": "tight"},
    "private-ucb-po": {"epsilon": 200.0, "delta": 1e-5, "calibration": "tight"},
    "dp-ucbvi": {"epsilon": 200.0, "delta": 1e-5, "calibration": "tight"},
    "tacit-joint": {"epsilon": 20.0, "first": 4},
    "tacit-local": {"epsilon": 20.0, "batch": 7},
    "uniform": {},
    "optimal": {},
}


def random_facts(seed, S=5, A=3, H=4):
    """Dense tables with terminal states and forbidden actions, rubbish where nothing is read."""
    rng = np.random.default_rng(seed)
    weights = rng.random((S, A, S)) * (rng.random((S, A, S)) < 0.5) + 1e-3 * np.eye(S)[:, None]
    P = weights / weights.sum(-1, keepdims=True)
    terminal = rng.random(S) < 0.3
    terminal[rng.integers(S)] = False
    allowed = rng.random((S, A)) < 0.6
    allowed[~allowed.any(axis=1), rng.integers(A)] = True
    R = rng.random((S, A))
    P[terminal], R[terminal] = 7.0, -3.0
    facts = {"terminal": terminal, "allowed": allowed, "end_reward": float(rng.random())}
    return P, R, H, rng.dirichlet(np.ones(S)), facts


def problem(seed=3, **sizes) -> TabularMDP:
    P, R, H, start, facts = random_facts(seed, **sizes)
    return TabularMDP(P, R, H, start, **facts)


def as_steps(P):
    """Rows (s, a, s', p) of everything above zero, in no order."""
    rows = np.array([(*where, P[where]) for where in zip(*np.nonzero(P), strict=True)])
    return np.random.default_rng(0).permutation(rows)


def written_out(P, R, facts):
    """The same problem without facts: ends absorb and pay, forbidden actions pay below all."""
    P, R = P.copy(), R.copy()
    over = facts["terminal"]
    P[over], R[over] = np.eye(len(P))[over][:, None], facts["end_reward"]
    forbidden = ~facts["allowed"] & ~over[:, None]
    P[forbidden], R[forbidden] = np.eye(len(P))[np.nonzero(forbidden)[0]], -1e9
    return P, R


def by_hand(P, R, H, choose):
    V = np.zeros((H + 1, len(P)))
    for h in reversed(range(H)):
        V[h] = choose(h, R + P @ V[h + 1])
    return V


# ---- exact values -------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_values_are_those_of_the_problem_written_out(seed):
    P, R, H, start, facts = random_facts(seed)
    made = TabularMDP(P, R, H, start, **facts)
    P, R = written_out(P, R, facts)
    best = by_hand(P, R, H, lambda h, Q: Q.max(axis=1))
    np.testing.assert_allclose(made.optimal_values(), best, rtol=0, atol=1e-9)
    assert made.optimal_value() == pytest.approx(start @ best[0], abs=1e-9)
    played = np.argmax(made.optimal_q(), axis=2)
    check_allowed(TabularPolicy(played), made.pairs)
    assert made.value(TabularPolicy(played)) == pytest.approx(made.optimal_value(), abs=1e-12)
    may = np.where(facts["terminal"][:, None], True, facts["allowed"])
    chances = np.repeat((may / may.sum(axis=1, keepdims=True))[None], H, axis=0)
    spread = by_hand(P, R, H, lambda h, Q: np.where(may, Q * chances[h], 0.0).sum(axis=1))
    assert made.value(StochasticPolicy(chances)) == pytest.approx(start @ spread[0], abs=1e-9)
    assert made.baseline()[1] == pytest.approx(start @ spread[0], abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_sparse_tables_are_the_dense_ones(seed):
    P, R, H, start, facts = random_facts(seed)
    dense = TabularMDP(P, R, H, start, **facts)
    P = np.where(facts["terminal"][:, None, None], 0.0, P)  # nothing is said about ends
    matrix = scipy.sparse.csr_array(P.reshape(-1, len(P)))
    listed = [
        np.flatnonzero(row).tolist() if not over else []
        for row, over in zip(facts["allowed"], facts["terminal"], strict=True)
    ]
    for form, allowed in ((as_steps(P), listed), (matrix, facts["allowed"])):
        sparse = TabularMDP(form, R, H, start, **{**facts, "allowed": allowed})
        assert np.array_equal(sparse.P, dense.P) and np.array_equal(sparse.R, dense.R)
        assert np.array_equal(sparse.optimal_values(), dense.optimal_values())
        assert sparse.task(9) == dense.task(9)
        policy = TabularPolicy(np.argmax(dense.optimal_q(), axis=2))
        lives = [p.rollout(policy, np.random.default_rng(1)) for p in (dense, sparse)]
        assert all(np.array_equal(a, b) for a, b in zip(*map(parts, lives), strict=True))


def parts(lived: Trajectory):
    return lived.states, lived.actions, lived.rewards


def test_a_table_of_716_states_is_kept_as_lists():
    """Dense it would be 103 MB; here are 2,148 pairs with six next states each."""
    S, A = 716, 25
    rng = np.random.default_rng(0)
    allowed = [rng.choice(A, size=3, replace=False) for _ in range(S)]
    steps = [
        (s, a, n, 1 / 6) for s in range(S) for a in allowed[s] for n in rng.integers(S, size=6)
    ]
    made = TabularMDP(steps, rng.random((S, A)), 20, allowed=allowed)
    assert len(made.pairs.action) == 3 * S
    kept = sum(part.nbytes for part in made.truth if isinstance(part, np.ndarray))
    assert kept < 4e6
    task = made.task(100)
    assert VisitCounts(task, squares=True).layout.size == 3 * S * (S + 3)  # not 25 S (S + 3)
    assert made.optimal_value() > made.baseline()[1]


# ---- users --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_an_ended_episode_stays_and_pays_the_public_constant(seed):
    made, rng = problem(seed), np.random.default_rng(seed)
    over = np.diff(made.pairs.first) == 0
    for _ in range(50):
        lived = made.rollout(TabularPolicy(np.argmax(made.optimal_q(), axis=2)), rng)
        ended = over[lived.states]
        first = int(np.argmax(ended)) if ended.any() else made.horizon
        assert (lived.states[first:] == lived.states[first]).all()
        assert (lived.rewards[first:] == made.end_reward).all()


@pytest.mark.parametrize("statistic", [VisitCounts, lambda task: JointCounts(task, 0.5)])
def test_nothing_is_counted_after_the_end(statistic):
    """Whatever is reported from a terminal state on changes no cell; nor does it count before."""
    made = problem()
    subject = statistic(made.task(10))
    over = int(np.flatnonzero(np.diff(made.pairs.first) == 0)[0])
    s, a = int(made.pairs.state[0]), int(made.pairs.action[0])
    H, rng = made.horizon, np.random.default_rng(0)
    found = set()
    for _ in range(20):
        states = np.concatenate([[s, over], rng.integers(-2, 9, size=H - 1)])
        actions = np.concatenate([[a], rng.integers(-2, 9, size=H - 1)])
        rewards = np.concatenate([[0.5], rng.normal(size=H - 1)])
        out = np.zeros(subject.layout.size, dtype=np.int64)
        subject.contribute(Trajectory(states, actions, rewards), None, 0, out)
        found.add(out.tobytes())
    assert len(found) == 1
    views = subject.layout.views(out)
    assert np.count_nonzero(views["transitions"]) == 1
    assert views["transitions"].reshape(-1, made.states)[0, over] > 0


def test_a_forbidden_action_counts_as_an_allowed_one():
    made = problem()
    s = int(made.pairs.state[0])
    bad = int(np.flatnonzero(made.pairs.number[s] < 0)[0])
    subject = VisitCounts(made.task(10))
    out = np.zeros(subject.layout.size, dtype=np.int64)
    H = made.horizon
    subject.contribute(Trajectory([s] * (H + 1), [bad] * H, [0.0] * H), None, 0, out)
    assert subject.layout.views(out)["visits"].ravel()[made.pairs.first[s]] == H


@pytest.mark.parametrize("statistic", [VisitCounts, lambda task: JointCounts(task, 0.5)])
def test_the_worst_pair_is_one_that_can_be_lived(statistic):
    made = problem()
    alive = set(made.pairs.state.tolist())
    subject = statistic(made.task(10))
    for lived in subject.worst_pair():
        assert set(lived.states.tolist()) <= alive
        for s, a in zip(lived.states, lived.actions, strict=False):
            assert made.pairs.number[s, a] >= 0


# ---- agents -------------------------------------------------------------------------------------


def publications(made, name, users=60):
    agent = make_agent(name, **AGENTS[name])
    bound = agent.bind(made.task(users, sorted(agent.needs)))
    rng = np.random.default_rng(1)
    noise = SimulatedNoise(np.random.default_rng(2))
    lives = drive(bound, lambda p: made.rollout(p.policy, rng), noise, planner_streams(0, 0))
    return list(lives)


@pytest.mark.parametrize("name", AGENTS)
def test_no_agent_ever_plays_a_forbidden_action(name):
    made = problem(7)
    assert made.task(1).masked
    for publication in publications(made, name):
        check_allowed(publication.policy, made.pairs)


@pytest.mark.parametrize("name", [n for n in AGENTS if n not in ("tacit-local", "shuffle-obi")])
def test_compiled_runs_equal_the_driver(name):
    made = problem(7)
    agent = make_agent(name, **AGENTS[name])
    fast, slow = (
        tacit.Experiment(
            problem=made, agent=agent, episodes=60, checkpoints=1, compiled=compiled, runs=2
        ).run()
        for compiled in (True, False)
    )
    assert np.array_equal(fast.regret, slow.regret) and np.array_equal(fast.reward, slow.reward)


@pytest.mark.parametrize("name", ["psrl", "ucb-vi", "obi"])
@pytest.mark.parametrize("every", [1, 3])
def test_large_tables_equal_the_driver_and_plan_on_lists(name, every):
    """Above MANY_STATES the compiled run lists what was seen; the driver reads whole tables."""
    made = problem(1, S=MANY_STATES + 3, A=3, H=5)
    agent = make_agent(name, **AGENTS[name], every=every)
    fast, slow = (
        tacit.Experiment(
            problem=made, agent=agent, episodes=40, checkpoints=1, compiled=compiled, runs=1
        ).run()
        for compiled in (True, False)
    )
    assert np.array_equal(fast.regret, slow.regret)
    gaps = np.diff(fast.regret[0], prepend=0.0)
    changes = np.flatnonzero(np.abs(np.diff(gaps)) > 1e-9) + 1
    assert (changes % every == 0).all()


def test_agents_that_do_not_know_masks_refuse_them():
    with pytest.raises(InvalidInput, match="lsvi-ucb does not know which actions are allowed"):
        make_agent("lsvi-ucb").bind(problem(7).task(10))


def test_ends_are_known_to_the_planner():
    """Optimists value what they never saw; an end is worth its public constant from the start."""
    P = np.eye(3)[[[1, 2], [1, 1], [2, 2]]]
    made = TabularMDP(P, [[0.0, 0.0]] * 3, 3, terminal=[1, 2], end_reward=0.25)
    first = publications(made, "ucb-vi", users=1)[0]
    assert first.context["Q"].shape == (3, 2)  # pairs of state 0 only
    told = publications(made, "optimal", users=1)[0]
    assert made.value(told.policy) == pytest.approx(0.5)


# ---- Gymnasium ----------------------------------------------------------------------------------


def test_taxi_brings_its_masks_and_its_ends():
    taxi = tacit.problem("gym:Taxi-v4", horizon=10)
    free = tacit.problem("gym:Taxi-v4", horizon=10, masks=False)
    assert taxi.task(1).masked and not free.task(1).masked
    assert taxi.describe()["pairs"] < free.describe()["pairs"] == 496 * 6
    assert taxi.optimal_value() == pytest.approx(free.optimal_value())  # what is masked is useless
    assert taxi.baseline()[1] > free.baseline()[1]


def test_the_environment_terminates_and_shows_the_mask():
    lake = tacit.problem("gym:FrozenLake-v1", horizon=50, is_slippery=False)
    env = lake.environment()
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 1, 1, 1]
    state, _, terminated, truncated, info = env.step(1)
    assert (state, terminated, truncated) == (4, False, False)
    state, _, terminated, truncated, info = env.step(2)
    assert (state, terminated, truncated) == (5, True, False) and not info["action_mask"].any()
    taxi = tacit.problem("gym:Taxi-v4", horizon=5).environment()
    _, info = taxi.reset(seed=0)
    with pytest.raises(InvalidInput, match="is not allowed in state"):
        taxi.step(int(np.argmin(info["action_mask"])))


def test_icu_sepsis_loads_with_its_admissible_actions():
    """Best and uniform value over 20 steps, worked out from its data files elsewhere."""
    pytest.importorskip("icu_sepsis")
    sepsis = tacit.problem("gym:Sepsis/ICU-Sepsis-v2", horizon=20)
    assert (sepsis.states, sepsis.actions, sepsis.describe()["terminal_states"]) == (716, 25, 2)
    assert sepsis.optimal_value() == pytest.approx(0.7922, abs=1e-4)
    assert sepsis.baseline()[1] == pytest.approx(0.6854, abs=1e-4)


# ---- what is refused ----------------------------------------------------------------------------

STEPS = [(0, 0, 1, 1.0), (1, 0, 0, 0.5), (1, 0, 1, 0.5)]
NAMES = {"states": ["home", "away"]}
BAD = {
    "unknown end": ({"terminal": [2]}, "terminal = 2, but it must be a whole number >= 0 and <= 1"),
    "unknown name": ({"terminal": ["awai"], "labels": NAMES}, "'awai'; did you mean 'away'?"),
    "all over": ({"terminal": [0, 1]}, "every state is terminal, but an episode must be able to"),
    "wrong flags": ({"terminal": np.array([True])}, "terminal has shape [1], but it must be 2"),
    "stuck": ({"allowed": [[0], []]}, "no action is allowed in state 1; allow one, or declare"),
    "short mask": ({"allowed": [[0]]}, "allowed lists the actions of 1 states, but there are 2"),
    "wide mask": ({"allowed": np.ones((2, 2), bool)}, "allowed has shape [2, 2], but it must be"),
    "end pays": ({"end_reward": 1.5}, "end_reward = 1.5, but it must be a finite number >= 0 and"),
    "names": ({"labels": {"states": ["a"]}}, "1 different names are given for 2 states"),
    "no such labels": (
        {"labels": {"steps": ["a"]}},
        "labels name 'steps', but only states, actions",
    ),
    "state": ({"P": [(2, 0, 0, 1.0)]}, "row 0 of P names state 2, but it must be a whole number"),
    "half": ({"P": [(0, 0, 0.5, 1.0)]}, "row 0 of P names next state 0.5, but it must be a whole"),
    "negative": ({"P": [(0, 0, 1, -1.0)]}, "row 0 of P has probability -1, but it cannot be"),
    "sum": ({"P": STEPS[:2]}, "the probabilities of state 1, action 0 sum to 0.5, but they must"),
    "missing": ({"P": STEPS[1:]}, "state 0, action 0 sum to 0, but they must sum to 1; an action"),
    "matrix": ({"P": scipy.sparse.eye_array(3)}, "P is a sparse matrix [3, 3], but R asks for"),
    "rewards": ({"R": [0.0, 1.0]}, "R has shape [2], but beside sparse probabilities it must be"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_facts_are_refused_with_their_place_and_value(change, message):
    given = {"P": STEPS, "R": [[0.0], [1.0]], "horizon": 2, **change}
    with pytest.raises(InvalidInput, match=re.escape(message)):
        TabularMDP(**given)


def test_flags_may_be_plain_lists():
    given = {"P": STEPS, "R": [[0.0], [1.0]], "horizon": 2}
    by_flags = TabularMDP(**given, terminal=[False, True], allowed=[[True], [False]])
    assert by_flags.task(1) == TabularMDP(**given, terminal=[1]).task(1)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"terminal": np.array([0, 1])}, "terminal has shape [2] of int64, but it must be flags"),
        ({"allowed": np.ones((2, 3), bool)}, "allowed has shape [2, 3] of bool, but it must be"),
        ({"terminal": np.array([True, False]), "end_reward": np.array(2.0)}, "end_reward = 2, but"),
        (
            {"allowed": np.ones((2, 2), bool), "features": np.ones((2, 2, 2, 1))},
            "no agent learns from features where actions are forbidden",
        ),
    ],
)
def test_a_task_checks_what_it_is_told(known, message):
    sizes = {"states": 2, "actions": 2}
    with pytest.raises(InvalidInput, match=re.escape(message)):
        tacit.task.task.Task("tabular", 3, sizes, True, 10, known=known)


def test_policies_that_play_what_is_forbidden_are_refused():
    made = problem(7)
    table = np.argmax(made.optimal_q(), axis=2)
    s = int(made.pairs.state[0])
    table[1, s] = int(np.flatnonzero(made.pairs.number[s] < 0)[0])
    with pytest.raises(InvalidInput, match=f"plays action {table[1, s]} in state {s} at step 1"):
        made.value(TabularPolicy(table))
    chances = np.full((made.horizon, made.states, made.actions), 1 / made.actions)
    with pytest.raises(InvalidInput, match="where it is not allowed"):
        made.rollout(StochasticPolicy(chances), np.random.default_rng(0))


def test_a_declared_range_of_returns_is_rescaled_with_the_rewards() -> None:
    lake = tacit.problem("gym:FrozenLake-v1", horizon=30, returns=[0, 1])
    assert lake.task(10).returns == (0.0, 1.0)
    assert lake.task(10) != tacit.problem("gym:FrozenLake-v1", horizon=30).task(10)
    cliff = tacit.problem("gym:CliffWalking-v1", horizon=10, returns=[-1000, -10])
    low, high = cliff.task(10).returns
    assert low == 0.0 and high == pytest.approx(9.9)
    with pytest.raises(InvalidInput, match="the largest of returns"):
        tacit.TabularMDP(np.ones((1, 1, 1)), [[0.5]], 3, returns=(0.0, 4.0)).task(10)
