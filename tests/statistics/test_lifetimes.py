"""Whole lives through counters: brute force on small tables, adaptive adversaries, hostile people.

No test here draws noise to decide: every bound must hold surely, on every transcript.
"""

import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import Participation
from tacit.policies.tabular import uniform_policy
from tacit.privacy.counters import strategy
from tacit.privacy.counters.base import Strategy
from tacit.privacy.counters.fading import Fading
from tacit.publication import Publication
from tacit.statistics.base import LifetimeStatistic, Relation
from tacit.statistics.first_visits import FirstReturns, FirstVisits
from tacit.task.task import Task
from tacit.trajectory import Trajectory, together

ANY = Participation(None, "lifetime")
STEPS = 6
"""Of the counters."""

EMPTY = Trajectory(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def task(S: int, A: int, H: int, **known: Any) -> Task:
    return Task("tabular", H, {"states": S, "actions": A}, True, 100, known=known, rule=ANY)


def fading(statistic: Any) -> Strategy:
    return Fading(STEPS, 0.8, 1.0, statistic.groups, statistic.totals)


COUNTERS: dict[str, Callable[[Any], Strategy]] = {
    "fading": fading,
    **{
        name: lambda _, name=name: strategy(name, STEPS)  # type: ignore[misc]
        for name in ("toeplitz", "tree", "honaker", "normalised")
    },
}


def visits(S: int = 2, A: int = 1, H: int = 1, often: int = 1, cap: int = 9, **known: Any) -> Any:
    return FirstVisits(task(S, A, H, **known), cap, cap, often)


def returns(S: int = 2, A: int = 1, H: int = 1, cap: int = 9) -> Any:
    return FirstReturns(task(S, A, H), cap)


def entry(statistic: LifetimeStatistic, wanted: object = 2) -> Publication:
    pairs = statistic.task.pairs
    flags = np.array(np.broadcast_to(np.asarray(wanted), pairs.action.shape))
    policy = uniform_policy(statistic.task.horizon, *pairs.number.shape)
    return Publication(0, policy, {"wanted": flags})


class Life:
    """One world of one person: what every participation adds, with a memory of its own."""

    def __init__(
        self, statistic: LifetimeStatistic, remembers: bool = True, steps: int = STEPS
    ) -> None:
        self._statistic, self._remembers = statistic, remembers
        self._memory = statistic.memory(1)
        self.items = np.zeros((steps, statistic.layout.size))

    def come(self, step: int, trip: Trajectory, publication: Publication) -> None:
        """Take part at a step of the counter."""
        out, one = np.zeros(self.items.shape[1], dtype=np.int64), np.zeros(1, dtype=np.int64)
        if not self._remembers:
            self._memory.clear()
        self._statistic.add_people(together([trip]), publication, one, self._memory.of(one), out)
        self.items[step] += out * self._statistic.layout.units


def trips(S: int, A: int, H: int, rewards: Sequence[float] = (0.0, 1.0)) -> list[Trajectory]:
    """All trajectories, and the empty one."""
    return [
        EMPTY,
        *(
            Trajectory(np.array(s), np.array(a), np.array(r))
            for s in itertools.product(range(S), repeat=H + 1)
            for a in itertools.product(range(A), repeat=H)
            for r in itertools.product(rewards, repeat=H)
        ),
    ]


def farthest(rows: np.ndarray) -> float:
    """The largest distance of two of these."""
    squares = (rows**2).sum(axis=1)
    apart = squares[:, None] + squares[None] - 2 * rows @ rows.T
    return float(np.sqrt(max(apart.max(), 0.0)))


def all_lives(
    statistic: LifetimeStatistic, at: Sequence[int], every: Iterable[Trajectory], remembers: bool
) -> np.ndarray:
    """What all lives that come at these steps add [lives, steps, cells], each once."""
    public, found = entry(statistic), {}
    for life in itertools.product(list(every), repeat=len(at)):
        world = Life(statistic, remembers)
        for step, trip in zip(at, life, strict=True):
            world.come(step, trip, public)
        found[world.items.tobytes()] = world.items
    return np.array(list(found.values()))


def bound_of(statistic: LifetimeStatistic, counter: Strategy) -> float:
    return statistic.sensitivity("l2", Relation.REPLACE_ONE) * counter.column_norm()  # type: ignore[attr-defined, no-any-return]


# ---- all pairs of lives ----


SMALL: dict[str, tuple[Callable[[], Any], tuple[int, int, int], tuple[int, ...], bool]] = {
    "one step, at once": (visits, (2, 1, 1), (0, 0, 3), True),
    "one step, spread": (visits, (2, 1, 1), (0, 1, 4), False),
    "two steps": (lambda: visits(H=2), (2, 1, 2), (0, 1), False),
    "a pair twice": (lambda: visits(often=2), (2, 1, 1), (0, 1, 3), False),
    "one pair, twice, at once": (lambda: visits(S=1, often=2), (1, 1, 1), (0, 0, 0, 2), False),
    "a cap": (lambda: visits(H=2, cap=1), (2, 1, 2), (0, 2), True),
    "no rewards": (
        lambda: visits(reward=np.zeros((1, 2, 1)), initial=np.ones(2) / 2),
        (2, 1, 1),
        (0, 0, 1),
        False,
    ),
    "returns": (lambda: returns(A=2), (2, 2, 1), (0, 0), True),
    "returns, spread": (lambda: returns(H=2), (2, 1, 2), (0, 3), False),
}
"""Statistic, sizes, steps at which the person comes, and whether the bound can be attained."""


@pytest.mark.parametrize("name", SMALL)
def test_no_two_lives_are_farther_apart_than_declared(name: str) -> None:
    """All pairs of lives, empty participations among them, through every counter."""
    make, sizes, at, attained = SMALL[name]
    statistic = make()
    lives = all_lives(statistic, at, trips(*sizes), True)
    for kind in COUNTERS:
        counter = COUNTERS[kind](statistic)
        _, C = counter.factors()
        rows = np.einsum("ts,nsc->ntc", C, lives).reshape(len(lives), -1)
        worst, bound = farthest(rows), bound_of(statistic, counter)
        assert worst <= bound * (1 + 1e-9), kind
        assert worst >= (0.999 if attained else 0.5) * bound, kind


@pytest.mark.parametrize("kind", COUNTERS)
def test_without_memory_the_same_lives_are_farther_apart(kind: str) -> None:
    """So the bound is not loose: what people do again must not be counted."""
    statistic = visits()
    counter = COUNTERS[kind](statistic)
    lives = all_lives(statistic, (0, 1, 2), trips(2, 1, 1), False)
    rows = np.einsum("ts,nsc->ntc", counter.factors()[1], lives).reshape(len(lives), -1)
    assert farthest(rows) > 1.15 * bound_of(statistic, counter)


@pytest.mark.parametrize("scale", [{"gains": 3.0}, {"totals": 3.0}, {"transitions": 0.1}])
def test_weights_of_blocks_are_bounds_too(scale: dict[str, float]) -> None:
    statistic = visits()
    lives = all_lives(statistic, (0, 1, 4), trips(2, 1, 1), True)
    weights = np.concatenate(
        [np.full(block.size, scale.get(block.name, 1.0)) for block in statistic.layout.blocks]
    )
    for kind in COUNTERS:
        counter = COUNTERS[kind](statistic)
        rows = np.einsum("ts,nsc->ntc", counter.factors()[1], lives * weights)
        declared = statistic.sensitivity("l2", Relation.REPLACE_ONE, scale) * counter.column_norm()
        assert 0.5 * declared < farthest(rows.reshape(len(lives), -1)) <= declared * (1 + 1e-9)


# ---- the bound is written down ----


def test_the_bound_of_a_life_is_that_of_the_proof() -> None:
    """The horizon does not bound a life; pairs, cap and c do."""

    def squared(statistic: Any) -> float:
        return float(statistic.sensitivity("l2", Relation.REPLACE_ONE) ** 2)

    start, reward = np.full(30, 1 / 30), np.zeros((1, 30, 2))
    assert squared(visits(30, 2, 4, cap=10)) == pytest.approx(3 * 10 + 2)
    assert squared(visits(30, 2, 4, cap=99, initial=start)) == pytest.approx(3 * 60)
    assert squared(visits(30, 2, 4, often=3, cap=5, initial=start)) == pytest.approx(3 * 3 * 15)
    assert squared(visits(30, 2, 4, cap=10, initial=start, reward=reward)) == pytest.approx(25)
    assert squared(returns(30, 2, 4)) == pytest.approx(9)
    once = FirstVisits(replace(visits(30, 2, 4).task, rule=None), 10, 10)
    assert squared(once) == pytest.approx(3 * 4 + 2)


# ---- adversaries who react ----


class Adversary:
    """Lives, flags and noise that follow from what was published; everything from one seed.

    It has a list of trips, good and hostile, and picks by a hash of the signs of all rows so far.
    A greedy one tries several pairs of trips for both worlds and keeps the farthest apart.
    """

    def __init__(self, statistic: LifetimeStatistic, counter: Strategy, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.statistic, self.C = statistic, counter.factors()[1]
        self.noise = 0.3 * bound_of(statistic, counter)
        H, S, A = statistic.task.horizon, *statistic.task.pairs.number.shape
        self.sizes = H, S, A

    def trip(self, rng: np.random.Generator) -> Trajectory:
        """Anything at all."""
        H, S, A = self.sizes
        kind, length = rng.integers(5), int(rng.integers(H + 3))
        if kind == 0:
            return EMPTY
        low, high = (-3, 9) if kind == 1 else (0, max(S, A))
        states = rng.integers(low, high, size=length + 1)
        rewards = rng.choice([0.0, 1.0, 0.5, np.nan, np.inf, -9.0], size=length)
        return Trajectory(states, rng.integers(low, high, size=length), rewards)

    def run(self, at: Sequence[int], tries: int) -> float:
        """How far apart the rows of the two worlds are, along one transcript."""
        worlds = Life(self.statistic), Life(self.statistic)
        shown, nodes = np.zeros((0, self.statistic.layout.size)), len(self.C)
        mine = int(self.rng.integers(2))
        for step in range(STEPS):
            told = np.random.default_rng([zlib.crc32(np.sign(shown).tobytes()), step])
            for _ in range(list(at).count(step)):
                public = entry(self.statistic, told.integers(-1, 5, size=self._pairs))
                self._choose(worlds, step, public, told, tries)
            rows = self.C @ worlds[mine].items
            done = [t for t in range(nodes) if not self.C[t, step + 1 :].any()]
            new = rows[done][len(shown) :]
            shown = np.concatenate([shown, new + self.noise * self.rng.normal(size=new.shape)])
        return float(np.linalg.norm(self.C @ (worlds[1].items - worlds[0].items)))

    @property
    def _pairs(self) -> int:
        return len(self.statistic.task.pairs.action)

    def _choose(
        self, worlds: tuple[Life, Life], step: int, public: Publication, told: Any, tries: int
    ) -> None:
        best, kept = -1.0, None
        for _ in range(tries):
            tried = tuple(self._after(world, step, self.trip(told), public) for world in worlds)
            apart = float(np.linalg.norm(self.C @ (tried[1].items - tried[0].items)))
            if apart > best:
                best, kept = apart, tried
        assert kept is not None
        for world, after in zip(worlds, kept, strict=True):
            world.items, world._memory = after.items, after._memory

    def _after(self, world: Life, step: int, trip: Trajectory, public: Publication) -> Life:
        other = Life(self.statistic)
        other.items = world.items.copy()
        other._memory.taught[:], other._memory.spent[:] = world._memory.taught, world._memory.spent
        other.come(step, trip, public)
        return other


ADVERSARIES: dict[str, Callable[[], Any]] = {
    "visits": lambda: visits(3, 2, 3),
    "visits, capped": lambda: visits(3, 2, 3, cap=2),
    "visits, twice": lambda: visits(2, 2, 3, often=2),
    "visits, ends": lambda: visits(3, 2, 3, terminal=np.array([False, False, True])),
    "returns": lambda: returns(3, 2, 3),
    "returns, capped": lambda: returns(3, 2, 3, cap=2),
}


@pytest.mark.parametrize("name", ADVERSARIES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(sorted(COUNTERS)),
    at=st.lists(st.integers(0, STEPS - 1), min_size=1, max_size=7).map(sorted),
    tries=st.sampled_from([1, 4]),
)
def test_no_adversary_who_reacts_gets_beyond(
    name: str, seed: int, kind: str, at: list[int], tries: int
) -> None:
    statistic = ADVERSARIES[name]()
    counter = COUNTERS[kind](statistic)
    found = Adversary(statistic, counter, seed).run(at, tries)
    assert found <= bound_of(statistic, counter) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["visits", "returns"])
def test_greedy_adversaries_come_near(name: str) -> None:
    """So the search is worth something: they see more than two thirds of the bound."""
    statistic = ADVERSARIES[name]()
    counter = fading(statistic)
    adversary = Adversary(statistic, counter, 1)
    found = max(adversary.run((0, 0, 0, 1, 1, 2), 40) for _ in range(4))
    assert 0.67 < found / bound_of(statistic, counter) <= 1 + 1e-9


# ---- conditions ----


def test_attendance_that_is_not_public_breaks_the_bound() -> None:
    """If somebody stays away and steps close by counts, everybody after them is one step off."""
    statistic, steps = visits(), 24
    counter, public = strategy("toeplitz", steps), entry(statistic)
    others = [Trajectory(np.array([s, s]), np.zeros(1, int), np.array([1.0 - s])) for s in (0, 1)]
    items = []
    for came in (1, 0):
        world = Life(statistic, False, steps)  # everybody else is a person of their own
        for step in range(steps - 1):
            world.come(step + came, others[step % 2], public)
        items.append(world.items)
    apart = np.linalg.norm(counter.factors()[1] @ (items[1] - items[0]))
    assert apart > 1.5 * bound_of(statistic, counter)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(["fading", "toeplitz", "normalised"]))
def test_rounding_costs_the_same_however_often_somebody_comes(seed: int, kind: str) -> None:
    """Real counters on small whole numbers, where rounding is all there is, in all steps."""
    statistic, rng = visits(), np.random.default_rng(seed)
    counter, size = COUNTERS[kind](statistic), statistic.layout.size
    one, two = rng.integers(-3, 4, size=(2, STEPS, size))
    found = []
    for items in (one, two):
        state, rows = counter.init(size, 3), []
        for t, item in enumerate(items, 1):
            rows.append(counter.encode(state.secret, t, item))
        found.append(np.concatenate(rows))
    exact = np.linalg.norm(counter.factors()[1] @ (two - one))
    moved = float(np.linalg.norm(found[1] - found[0]))
    assert abs(moved - exact) <= counter.rounding_sensitivity(size, 3)


def test_periods_cost_their_root_only_with_blocks() -> None:
    """On one running counter four periods of one cell cost nearly four times one; in blocks two."""
    C = Fading(40, 0.95, 1.0, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)).factors()[1]
    blocks = C * np.equal.outer(np.arange(40) // 10, np.arange(40) // 10)
    x = np.zeros(40)
    x[[0, 10, 20, 30]] = 1.0
    one = np.linalg.norm(blocks[:, 0])
    assert np.linalg.norm(blocks @ x) == pytest.approx(2.0 * one)
    assert np.linalg.norm(C @ x) > 1.4 * np.linalg.norm(blocks @ x)


def test_counts_cannot_exceed_the_number_of_people() -> None:
    """Ten people who come fifty times each: a pair is counted ten times."""
    statistic, rng = visits(3, 2, 4), np.random.default_rng(2)
    memory, out = statistic.memory(10), np.zeros(statistic.layout.size, dtype=np.int64)
    for _ in range(50):
        lived = [
            Trajectory(rng.integers(3, size=5), rng.integers(2, size=4), rng.random(4))
            for _ in range(10)
        ]
        coins = np.arange(10)
        statistic.add_people(together(lived), entry(statistic), coins, memory.of(coins), out)
    totals = statistic.layout.views(out * statistic.layout.units)["totals"]
    assert (totals == 5.0).all() and (memory.spent == 6).all()
