"""TabularMDP: what it refuses, its exact values, its sampled episodes, its public description."""

import itertools
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import InvalidInput, TabularMDP
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, uniform_policy
from tacit.task.task import Task

P2 = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75]]])  # S = A = 2
R2 = np.array([[0.0, 0.25], [1.0, 0.5]])


def changed(array, where, value):
    copy = np.array(array, dtype=float)
    copy[where] = value
    return copy


def forward_value(problem, probabilities):
    """Expected return by pushing the state distribution forward: nothing shared with the source."""
    law, total = problem.initial.copy(), 0.0
    for h in range(problem.horizon):
        g = h if len(problem.P) > 1 else 0
        pairs = law[:, None] * probabilities[h]
        total += (pairs * problem.R[g]).sum()
        law = np.einsum("sa,san->n", pairs, problem.P[g])
    return total


def deterministic_policies(H, S, A):
    for actions in itertools.product(range(A), repeat=H * S):
        yield np.array(actions).reshape(H, S)


@st.composite
def tiny_problems(draw):
    """S, A, H with at most 64 deterministic policies; rows may hold zeros, tables may be staged."""
    S, A, H = draw(st.sampled_from([(2, 2, 2), (2, 2, 3), (3, 2, 2), (2, 3, 1), (1, 3, 3)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    stages = () if draw(st.booleans()) else (H,)
    weights = rng.integers(0, 4, size=(*stages, S, A, S)) + 1e-3 * np.eye(S)[:, None]
    R = rng.integers(0, 9, size=(*(() if draw(st.booleans()) else (H,)), S, A)) / 8
    return TabularMDP(weights / weights.sum(-1, keepdims=True), R, H, rng.dirichlet(np.ones(S)))


# ---- what it refuses ----------------------------------------------------------------------------

BAD_TABLES = {
    "row short of one": (dict(P=changed(P2, (1, 0), [0.5, 0.4])), "P[1, 0] sums to 0.9, but"),
    "row above one": (dict(P=changed(P2, (0, 1), [0.5, 1.0])), "P[0, 1] sums to 1.5, but"),
    "row of a stage": (
        dict(P=changed([P2] * 3, (2, 1, 0), [0.5, 0.0])),
        "P[2, 1, 0] sums to 0.5, but it must sum to 1",
    ),
    "negative": (
        dict(P=changed(P2, (0, 1), [-0.25, 1.25])),
        "P[0, 1, 0] = -0.25, but probabilities cannot be negative",
    ),
    "NaN in P": (dict(P=changed(P2, (0, 0, 1), np.nan)), "P[0, 0, 1] = nan, but"),
    "infinite P": (dict(P=changed(P2, (1, 1, 0), np.inf)), "P[1, 1, 0] = inf, but"),
    "text in P": (dict(P=[["a"]]), "P must be an array of real numbers"),
    "ragged P": (dict(P=[[1.0], [1.0, 2.0]]), "P must be an array of real numbers"),
    "flat P": (dict(P=P2[0]), "P has shape [2, 2], but it must be [states, actions, states]"),
    "stages of P": (dict(P=[P2] * 2), "P has shape [2, 2, 2, 2], but it must be"),
    "stages of P, horizon": (dict(P=[P2] * 2), "with horizon = 3"),
    "P not square": (dict(P=np.full((2, 2, 4), 0.25)), "P has shape [2, 2, 4], but its first and"),
    "P empty": (dict(P=np.zeros((0, 2, 0))), "P has shape [0, 2, 0], but"),
    "NaN in R": (dict(R=changed(R2, (0, 1), np.nan)), "R[0, 1] = nan, but"),
    "infinite R": (dict(R=changed(R2, (1, 0), -np.inf)), "R[1, 0] = -inf, but"),
    "R above one": (dict(R=changed(R2, (1, 0), 1.5)), "R[1, 0] = 1.5, but mean rewards must lie"),
    "R below zero": (dict(R=changed([R2] * 3, (2, 0, 1), -0.25)), "R[2, 0, 1] = -0.25, but"),
    "shape of R": (dict(R=np.zeros((2, 3))), "R has shape [2, 3], but P asks for"),
    "stages of R": (dict(R=[R2] * 2), "[horizon, states, actions] = [3, 2, 2]"),
    "start state": (dict(initial=2), "initial = 2, but it must be a whole number >= 0 and <= 1"),
    "negative start state": (dict(initial=-1), "initial = -1, but"),
    "start sums": (dict(initial=[0.5, 0.25]), "initial sums to 0.75, but it must sum to 1"),
    "start negative": (dict(initial=[1.5, -0.5]), "initial[1] = -0.5, but"),
    "start NaN": (dict(initial=[1.0, np.nan]), "initial[1] = nan, but"),
    "start shape": (dict(initial=[0.5, 0.25, 0.25]), "initial has shape [3], but it must be a"),
    "horizon zero": (dict(horizon=0), "horizon = 0, but it must be a whole number >= 1"),
    "horizon broken": (dict(horizon=2.5), "horizon = 2.5, but"),
    "horizon yes": (dict(horizon=True), "horizon = True, but"),
    "rewards word": (
        dict(rewards="bernouli"),
        "rewards = 'bernouli', but it must be one of deterministic, bernoulli",
    ),
    "flat coordinates": (dict(coordinates=[0.0, 1.0]), "coordinates have shape [2], but there"),
    "no coordinates": (dict(coordinates=np.zeros((2, 0))), "coordinates have shape [2, 0], but"),
    "coordinates of others": (dict(coordinates=np.zeros((3, 1))), "each of the 2 states"),
    "rewards not a word": (dict(rewards=1), "rewards = 1, but it must be one of deterministic"),
}


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_tables_of_fewer_digits_are_taken_within_their_precision(kind):
    rng = np.random.default_rng(0)
    P, start = rng.dirichlet(np.ones(50), size=(50, 2)), rng.dirichlet(np.ones(50))
    R, step = np.full((50, 2), 1.0, dtype=kind), np.finfo(kind).eps
    R[0, 0] = 1 + step
    assert np.abs(P.astype(kind).astype(float).sum(-1) - 1).max() > 1e-8  # else nothing is shown
    problem = TabularMDP(P.astype(kind), R, 3, start.astype(kind))
    assert np.abs(problem.P.sum(-1) - 1).max() < 1e-14 and problem.R.max() == 1.0
    assert np.abs(problem.P[0] - P).max() < 50 * step and abs(problem.initial.sum() - 1) < 1e-14
    with pytest.raises(InvalidInput, match="sums to"):  # more than rounding explains
        TabularMDP((P * (1 + 60 * step)).astype(kind), R, 3)
    with pytest.raises(InvalidInput, match="sums to"):  # as precise as it gets, and wrong
        TabularMDP(P.astype(kind).astype(float), R, 3)
    assert StochasticPolicy(P.astype(kind)).probabilities.sum(-1) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(("change", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_input_is_refused_with_its_place_and_value(change, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        TabularMDP(**{"P": P2, "R": R2, "horizon": 3, **change})


def test_rounding_errors_in_a_row_are_not_refused():
    row = [0.1] * 10  # sums to 1 - 1.1e-16
    assert sum(row) != 1.0
    problem = TabularMDP(np.tile(row, (10, 1, 1)), np.zeros((10, 1)), 2, row)
    assert np.array_equal(problem.initial, row)


BAD_POLICIES = {
    "too few stages": (
        TabularPolicy(np.zeros((2, 2), int)),
        "the policy has shape [2, 2], but tabular needs [horizon, states] = [3, 2]",
    ),
    "too many states": (TabularPolicy(np.zeros((3, 3), int)), "the policy has shape [3, 3], but"),
    "no such action": (
        TabularPolicy(np.array([[0, 1], [0, 2], [0, 0]])),
        "the policy plays action 2, but tabular has actions 0 to 1",
    ),
    "negative action": (
        TabularPolicy(np.array([[0, 1], [0, 0], [-1, 0]])),
        "the policy plays action -1, but",
    ),
    "too many actions": (
        uniform_policy(3, 2, 3),
        "has shape [3, 2, 3], but tabular needs [horizon, states, actions] = [3, 2, 2]",
    ),
    "not a policy": (
        np.zeros((3, 2), int),
        "tabular needs a TabularPolicy or a StochasticPolicy, got <class 'numpy.ndarray'>",
    ),
}


@pytest.mark.parametrize(("policy", "message"), BAD_POLICIES.values(), ids=BAD_POLICIES)
def test_bad_policies_are_refused_by_scoring_and_by_rollouts(policy, message):
    problem = TabularMDP(P2, R2, horizon=3)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        problem.value(policy)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        problem.rollout(policy, np.random.default_rng(0))


def test_policies_refuse_tables_that_are_none():
    with pytest.raises(InvalidInput, match=re.escape("got shape (2, 2) of float64")):
        TabularPolicy(np.zeros((2, 2)))
    with pytest.raises(InvalidInput, match=re.escape("got shape (4,) of int64")):
        TabularPolicy(np.zeros(4, np.int64))
    with pytest.raises(InvalidInput, match=re.escape("probabilities[0, 1] sums to 0.5, but")):
        StochasticPolicy([[[1.0, 0.0], [0.25, 0.25]]])
    with pytest.raises(InvalidInput, match=re.escape("[horizon, states, actions], got [1, 2]")):
        StochasticPolicy([[1.0, 0.0]])


# ---- tables belong to the problem ---------------------------------------------------------------


def test_callers_arrays_are_neither_changed_nor_kept():
    P, R, initial = P2.copy(), R2.copy(), np.array([0.5, 0.5])
    problem = TabularMDP(P, R, 3, initial)
    value = problem.optimal_value()
    problem.rollout(uniform_policy(3, 2, 2), np.random.default_rng(0))
    assert np.array_equal(P, P2) and np.array_equal(R, R2)
    assert np.array_equal(initial, [0.5, 0.5])
    P[:], R[:], initial[:] = P[::-1].copy(), 0.0, [1.0, 0.0]
    assert np.array_equal(problem.P[0], P2) and np.array_equal(problem.R[0], R2)
    assert problem.optimal_value() == value == TabularMDP(P2, R2, 3, [0.5, 0.5]).optimal_value()


@pytest.mark.parametrize("name", ["P", "R", "initial", "optimal_q", "optimal_values"])
def test_tables_cannot_be_written(name):
    table = getattr(TabularMDP(P2, R2, 3), name)
    table = table() if callable(table) else table
    with pytest.raises(ValueError, match="read-only"):
        table[...] = 0.0


# ---- exact values -------------------------------------------------------------------------------


@pytest.mark.parametrize("staged", [("P",), ("R",), ("P", "R")], ids="+".join)
def test_equal_stages_give_the_homogeneous_problem_bit_for_bit(staged):
    H, tables = 4, {"P": P2, "R": R2}
    plain = TabularMDP(**tables, horizon=H, initial=[0.25, 0.75])
    tables.update({name: np.array([tables[name]] * H) for name in staged})
    staged_problem = TabularMDP(**tables, horizon=H, initial=[0.25, 0.75])
    assert plain.homogeneous and not staged_problem.homogeneous
    assert np.array_equal(plain.optimal_q(), staged_problem.optimal_q())
    rng = np.random.default_rng(5)
    for policy in (
        TabularPolicy(rng.integers(2, size=(H, 2))),
        StochasticPolicy(rng.dirichlet([1, 1], size=(H, 2))),
    ):
        assert np.array_equal(plain.values(policy), staged_problem.values(policy))
        one, other = (p.rollout(policy, np.random.default_rng(1)) for p in (plain, staged_problem))
        assert np.array_equal(one.states, other.states)


def test_horizon_one_is_homogeneous_however_it_is_given():
    assert TabularMDP([P2], [R2], horizon=1).homogeneous


@settings(max_examples=40, deadline=None)
@given(tiny_problems())
def test_optimal_value_is_the_best_of_all_deterministic_policies(problem):
    H, S, A = problem.horizon, problem.states, problem.actions
    scores = []
    for actions in deterministic_policies(H, S, A):
        scores.append(forward_value(problem, np.eye(A)[actions]))
        assert problem.value(TabularPolicy(actions)) == pytest.approx(scores[-1], abs=1e-12)
    assert problem.optimal_value() == pytest.approx(max(scores), abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(tiny_problems(), st.integers(0, 2**32 - 1))
def test_stochastic_value_is_the_mixture_over_deterministic_policies(problem, seed):
    H, S, A = problem.horizon, problem.states, problem.actions
    pi = np.random.default_rng(seed).dirichlet(np.ones(A), size=(H, S))
    h, s = np.indices((H, S))
    mixture = sum(
        pi[h, s, actions].prod() * problem.value(TabularPolicy(actions))
        for actions in deterministic_policies(H, S, A)
    )
    assert problem.value(StochasticPolicy(pi)) == pytest.approx(mixture, abs=1e-12)


def test_describe_is_plain_json_and_holds_the_exact_values():
    problem = TabularMDP(P2, R2, 3, rewards="bernoulli", name="mine", facts={"origin": "here"})
    facts = json.loads(json.dumps(problem.describe()))
    assert facts["optimal_value"] == problem.optimal_value()
    uniform = forward_value(problem, np.full((3, 2, 2), 0.5))
    assert facts["baseline"] == {"name": "uniform policy", "value": pytest.approx(uniform)}
    assert (facts["name"], facts["rewards"], facts["origin"]) == ("mine", "bernoulli", "here")


# ---- sampled episodes ---------------------------------------------------------------------------


@pytest.mark.parametrize("rewards", ["deterministic", "bernoulli"])
@pytest.mark.parametrize("kind", ["tabular", "stochastic"])
def test_sampled_returns_agree_with_the_exact_value(rewards, kind):
    """Seeds are fixed; over seeds, |z| > 4.5 happens with probability 7e-6 per case (4 cases)."""
    rng = np.random.default_rng(11)
    H, S, A, n = 4, 3, 2, 8000
    problem = TabularMDP(
        rng.dirichlet(np.ones(S), size=(H, S, A)),
        rng.random((H, S, A)),
        H,
        rng.dirichlet(np.ones(S)),
        rewards=rewards,
    )
    policy = {
        "tabular": TabularPolicy(rng.integers(A, size=(H, S))),
        "stochastic": StochasticPolicy(rng.dirichlet(np.ones(A), size=(H, S))),
    }[kind]
    episodes = [problem.rollout(policy, rng) for _ in range(n)]
    returns = np.array([episode.rewards.sum() for episode in episodes])

    def z(value):
        return abs(returns.mean() - value) / (returns.std(ddof=1) / np.sqrt(n))

    assert z(problem.value(policy)) < 4.5
    assert z(problem.value(policy) + 0.1) > 4.5  # the check has power: an error of 0.1 in H = 4
    assert z(problem.value(policy) - 0.1) > 4.5
    starts = np.bincount([episode.states[0] for episode in episodes], minlength=S) / n
    error = np.sqrt(problem.initial * (1 - problem.initial) / n)
    assert (abs(starts - problem.initial) < 4.5 * error).all()
    paid = {float(r) for episode in episodes for r in episode.rewards}
    assert paid == {0.0, 1.0} if rewards == "bernoulli" else paid <= set(problem.R.flat)


# ---- the public description ---------------------------------------------------------------------

FACTS = {"reward": "R", "transitions": "P", "initial": "initial"}


@pytest.mark.parametrize("reveal", [(), ("reward",), ("initial", "transitions"), tuple(FACTS)])
def test_task_tells_what_is_asked_and_nothing_else(reveal):
    problem = TabularMDP(P2, R2, 3, [0.5, 0.5])
    task = problem.task(100, reveal=reveal)
    assert task.revealed == tuple(sorted(reveal)) == tuple(sorted(task.known))
    for fact in reveal:
        assert np.array_equal(task.known[fact], getattr(problem, FACTS[fact]))
        with pytest.raises(ValueError, match="read-only"):
            task.known[fact][...] = 0.0
    assert dict(task.sizes) == {"states": 2, "actions": 2}
    assert (task.horizon, task.users, task.homogeneous) == (3, 100, True)
    with pytest.raises(TypeError):
        task.known["reward"] = R2
    with pytest.raises(AttributeError):
        task.users = 7


def test_a_task_keeps_its_own_copy_of_what_it_was_told():
    mine, sizes = R2.copy(), {"states": 2, "actions": 2}
    task = Task("tabular", 3, sizes, True, users=9, known={"reward": mine})
    before = task.digest()
    mine[0, 0], sizes["states"] = 0.5, 7  # still the caller's, and still writeable
    assert np.array_equal(task.known["reward"], R2) and task.sizes["states"] == 2
    assert task.digest() == before
    assert Task("tabular", 3, task.sizes, True, 9, task.known, participations=2) != task


def test_unknown_facts_and_no_users_are_refused():
    problem = TabularMDP(P2, R2, 3)
    with pytest.raises(InvalidInput, match="no fact 'rewards' to reveal; did you mean 'reward'?"):
        problem.task(10, reveal={"rewards"})
    with pytest.raises(InvalidInput, match="no fact 'xyz' .*known: initial, reward, transitions"):
        problem.task(10, reveal={"xyz"})
    with pytest.raises(InvalidInput, match="users = 0, but it must be a whole number >= 1"):
        problem.task(0)


def test_tasks_are_equal_exactly_when_they_tell_the_same():
    one = TabularMDP(P2, R2, 3, name="one")
    same = TabularMDP(P2.tolist(), R2.tolist(), 3, [1.0, 0.0], name="same")
    other = TabularMDP(P2[::-1], R2[::-1], 3)
    every = tuple(FACTS)
    assert one.task(9, every) == same.task(9, every[::-1])
    assert hash(one.task(9, every)) == hash(same.task(9, every))
    assert one.task(9) == other.task(9)  # a secret that was not revealed makes no difference
    distinct = [
        one.task(9),
        one.task(10),
        one.task(9, ["reward"]),
        one.task(9, ["transitions"]),
        one.task(9, ["reward", "transitions"]),
        other.task(9, ["reward"]),
        other.task(9, ["transitions"]),
        TabularMDP(P2, R2, 4).task(9),
        TabularMDP([P2] * 3, R2, 3).task(9),
        TabularMDP(np.ones((1, 2, 1)), [[0, 0]], 3).task(9),
    ]
    assert len({task.digest() for task in distinct}) == len(distinct)
    assert all(a != b for a, b in itertools.combinations(distinct, 2))
