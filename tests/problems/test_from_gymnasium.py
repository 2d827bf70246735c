"""Toy-text environments as exact problems, against dynamic programming on their own tables."""

import gymnasium
import numpy as np
import pytest

import tacit
from tacit import InvalidInput
from tacit.policies.tabular import TabularPolicy


def backward(table, horizon, choose):
    """Undiscounted raw values of a running episode; what ends pays its last reward, then nothing.

    ``choose`` maps (h, s, {action: value}) to the value of the action played.
    """
    V = {s: 0.0 for s in table}
    for h in reversed(range(horizon)):
        V = {
            s: choose(
                h,
                s,
                {
                    a: sum(p * (r + (0.0 if done else V[n])) for p, n, r, done in outcomes)
                    for a, outcomes in by_action.items()
                },
            )
            for s, by_action in table.items()
        }
    return np.array([V[s] for s in range(len(table))])


def made(id, options):
    """The environment itself, without what only tacit understands."""
    return gymnasium.make(id, **{k: v for k, v in options.items() if k != "masks"}).unwrapped


def best(h, s, values):
    return max(values.values())


def raw(problem, value):
    """An episode's value in the environment's own units, through the reported map per step."""
    rescaling = problem.describe()["rescaling"]
    return problem.horizon * rescaling["offset"] + rescaling["scale"] * value


CASES = [
    ("FrozenLake-v1", {}, 30, 16),
    ("FrozenLake-v1", {"map_name": "8x8"}, 60, 64),
    ("FrozenLake-v1", {"is_slippery": False}, 6, 16),
    ("CliffWalking-v1", {}, 15, 48),
    ("CliffWalkingSlippery-v1", {}, 25, 48),
    ("Taxi-v4", {"masks": False}, 20, 500),
]


@pytest.mark.parametrize(("id", "options", "horizon", "states"), CASES)
def test_exact_values_agree_with_dynamic_programming_on_the_table(id, options, horizon, states):
    inner = made(id, options)
    problem = tacit.problem(f"gym:{id}", horizon=horizon, **options)
    assert problem.states == states == len(inner.P)
    optimum = inner.initial_state_distrib @ backward(inner.P, horizon, best)
    assert raw(problem, problem.optimal_value()) == pytest.approx(optimum, rel=0, abs=1e-8)
    actions = np.random.default_rng(2).integers(problem.actions, size=(horizon, states))
    fixed = backward(inner.P, horizon, lambda h, s, values: values[actions[h, s]])
    assert raw(problem, problem.value(TabularPolicy(actions))) == pytest.approx(
        inner.initial_state_distrib @ fixed, rel=0, abs=1e-8
    )


@pytest.mark.parametrize(
    ("id", "horizon", "value"),
    [
        ("CliffWalking-v1", 13, -13.0),  # one up, eleven right, one down: -1 each, then it is over
        ("CliffWalking-v1", 40, -13.0),
        ("CliffWalking-v1", 12, -12.0),
    ],
)
def test_known_optimum_does_not_grow_after_the_end(id, horizon, value):
    problem = tacit.problem(f"gym:{id}", horizon=horizon)
    assert raw(problem, problem.optimal_value()) == pytest.approx(value, rel=0, abs=1e-9)


@pytest.mark.parametrize(("id", "options", "horizon", "states"), CASES)
def test_terminal_states_absorb_and_pay_zero(id, options, horizon, states):
    table = made(id, options).P
    problem = tacit.problem(f"gym:{id}", horizon=horizon, **options)
    ends = {
        n
        for by_action in table.values()
        for outcomes in by_action.values()
        for p, n, _, done in outcomes
        if done and p > 0
    }
    rescaling = problem.describe()["rescaling"]
    assert ends
    for s in ends:
        assert (problem.P[0, s, :, s] == 1.0).all()
        paid = rescaling["offset"] + rescaling["scale"] * problem.R[0, s]
        np.testing.assert_allclose(paid, 0.0, rtol=0, atol=1e-12)
    assert problem.describe()["terminal_states"] == len(ends)


def test_rescaling_is_the_identity_when_rewards_fit():
    assert tacit.problem("gym:FrozenLake-v1", horizon=5).describe()["rescaling"] == {
        "offset": 0.0,
        "scale": 1.0,
    }
    assert tacit.problem("gym:Taxi-v4", horizon=5).describe()["rescaling"] == {
        "offset": -10.0,
        "scale": 30.0,
    }


def test_bernoulli_rewards_have_the_same_values():
    plain, coins = (
        tacit.problem("gym:CliffWalking-v1", horizon=9, rewards=rewards)
        for rewards in ("deterministic", "bernoulli")
    )
    assert coins.truth.bernoulli and plain.optimal_value() == coins.optimal_value()


# ---- a state that is entered both ways ----------------------------------------------------------


class BothWays(gymnasium.Env):
    """State 1 is entered by going on (0, action 0) and by ending (0, action 1)."""

    P = {
        0: {0: [(1.0, 1, -2.0, False)], 1: [(0.5, 1, 2.0, True), (0.5, 2, -1.0, False)]},
        1: {0: [(1.0, 0, 3.0, False)], 1: [(1.0, 1, 0.5, False)]},
        2: {0: [(1.0, 0, 0.0, False)], 1: [(0.0, 1, 9.0, True), (1.0, 2, 0.25, False)]},
    }
    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)


class BothWaysSpread(BothWays):
    initial_state_distrib = np.array([0.5, 0.25, 0.25])


class Phantoms(BothWays):
    """State 2 only ends, state 1 only goes on: the other ways have probability zero."""

    P = {
        0: {0: [(1.0, 1, 0.5, False), (0.0, 1, 0.5, True)]},
        1: {0: [(0.0, 2, 0.0, False), (1.0, 2, 1.0, True)]},
        2: {0: [(1.0, 0, 1.0, False)]},
    }


@pytest.fixture
def registered():
    """Registers a class under an id for one test."""
    id = "TacitTest-v0"

    def register(kind):
        gymnasium.register(id, entry_point=kind)
        return id

    yield register
    del gymnasium.registry[id]


@pytest.fixture(params=[BothWays, BothWaysSpread], ids=["from 0", "spread start"])
def both_ways(request, registered):
    return registered(request.param), request.param


def test_outcomes_of_probability_zero_do_not_count(registered):
    problem = tacit.problem(f"gym:{registered(Phantoms)}", horizon=5)
    assert problem.states == 3 and problem.describe()["terminal_states"] == 1
    assert problem.P[0, 2, 0, 2] == 1.0 and problem.P[0, 1, 0, 2] == 1.0
    assert raw(problem, problem.optimal_value()) == 1.5


@pytest.mark.parametrize("horizon", [1, 2, 3, 7])
def test_a_state_entered_both_ways_gets_a_separate_end(both_ways, horizon):
    id, kind = both_ways
    start = getattr(kind, "initial_state_distrib", np.array([1.0, 0.0, 0.0]))
    problem = tacit.problem(f"gym:{id}", horizon=horizon)
    assert problem.states == 4 and problem.describe()["terminal_states"] == 1
    assert (problem.P[0, 3, :, 3] == 1.0).all() and problem.P[0, 0, 1, 3] == 0.5
    assert np.array_equal(problem.initial, [*start, 0.0])
    optimum = start @ backward(BothWays.P, horizon, best)
    assert raw(problem, problem.optimal_value()) == pytest.approx(optimum, rel=0, abs=1e-12)


def test_the_separate_end_by_hand(both_ways):
    """H = 2 from 0: going on gives -2 + 3 = 1. Ending gives 1/2 * 2 + 1/2 * (-1 + 1/4) = 5/8.

    If the ending step went on in state 1 it would give 17/8; if state 1 absorbed, going on -2.
    """
    id, _ = both_ways
    problem = tacit.problem(f"gym:{id}", horizon=2)
    scale = problem.describe()["rescaling"]
    Q = 2 * scale["offset"] + scale["scale"] * problem.optimal_q()[0, 0]
    np.testing.assert_allclose(Q, [1.0, 0.625], rtol=0, atol=1e-12)


# ---- what it refuses (the suite's configuration turns any warning into an error) ----------------


@pytest.mark.parametrize(
    ("id", "options", "message"),
    [
        ("Blackjack-v1", {}, "gym:Blackjack-v1 does not expose its transition table `P`; only"),
        ("NoSuchLake-v1", {}, "could not make 'NoSuchLake-v1': .*`NoSuchLake` doesn't exist"),
        ("FrozenLake-v99", {}, "could not make 'FrozenLake-v99': .*version `v99`"),
        ("no id at all", {}, "could not make 'no id at all': Malformed environment ID"),
        ("nowhere:Foo-v0", {}, "could not make 'nowhere:Foo-v0': .*nowhere"),
        ("FrozenLake-v1", {"lake": 1}, "could not make 'FrozenLake-v1': .*argument 'lake'"),
        ("FrozenLake-v1", {"map_name": "9x9"}, "make 'FrozenLake-v1': it does not know '9x9'"),
        ("FrozenLake-v1", {"horizon": 0}, "horizon = 0, but it must be a whole number >= 1"),
        ("FrozenLake-v1", {"rewards": "coins"}, "rewards = 'coins', but it must be one of"),
    ],
)
def test_what_cannot_be_read_is_refused(id, options, message):
    with pytest.raises(InvalidInput, match=message):
        tacit.problem(f"gym:{id}", **{"horizon": 5, **options})


def test_the_horizon_must_be_given():
    with pytest.raises(InvalidInput, match="needs the parameter 'horizon'"):
        tacit.problem("gym:FrozenLake-v1")
