"""What every statistic owes: no two lives, whatever is in them, are farther apart than declared.

Subclass as ``TestX(StatisticContract)`` (or ``LogStatisticContract``), set ``subject`` and say in
``cases`` where it is used.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import tacit
from contracts import hostile
from tacit.experiment import bind
from tacit.learner import Learner
from tacit.logs.rows import in_memory
from tacit.privacy.noise import SimulatedNoise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.statistics.base import NORMS, LifetimeStatistic, ReadsPublication, Relation
from tacit.streams import planner_streams
from tacit.task.participation import Participation
from tacit.trajectory import Trajectory, together

LIVES, CONTEXTS = 120, 6
"""Hostile lives of each case, and publications nobody would make."""

OVER = 1 + 1e-9
"""Rounding of the distance itself, which is of float64."""


@dataclasses.dataclass
class Case:
    """A statistic, what people acted on, and hostile lives."""

    statistic: Any
    entry: Publication
    life: Callable[..., Any]
    coin: int = 5


def used_by(
    problem: str | Problem,
    agent: str,
    sizes: Mapping[str, Any] | None = None,
    rule: Participation | int = 1,
    reveal: tuple[str, ...] = (),
    **parameters: Any,
) -> Case:
    """The statistic of an agent on a problem, and the first entry that it publishes."""
    world = tacit.problem(problem, **(sizes or {})) if isinstance(problem, str) else problem
    bound = bind(world, tacit.agent(agent, **parameters), 1000, reveal, rule)
    learner = Learner(bound, SimulatedNoise(np.random.default_rng(0)))
    return case_of(bound.statistic, learner.publish(planner_streams(0, 0)).for_user(0), bound.task)


def case_of(statistic: Any, entry: Publication, task: Any) -> Case:
    """The case of a statistic that was made for this task."""
    H, sizes = task.horizon, task.sizes
    if "inputs" in sizes:
        return Case(
            statistic, entry, lambda g: hostile.path(g, H, sizes["states"], sizes["inputs"])
        )
    if task.family == "episodic":
        return Case(statistic, entry, lambda g: hostile.earned(g, H))
    return Case(statistic, entry, lambda g: hostile.life(g, H, sizes["states"], sizes["actions"]))


class StatisticContract:
    """Override ``cases``; where lives are not trajectories also ``lives`` and ``contribution``."""

    subject: Any = None
    compared: ClassVar[float] = 0.4
    """Share of the declared distance that hostile lives reach at least: so they reach it at all."""

    weighted: ClassVar[bool] = False
    """Whether noise is in proportion to public weights, and so what is declared."""

    def cases(self) -> dict[str, Case]:
        """Where it is used, by name."""
        raise NotImplementedError

    def lives(self, case: Case, rng: np.random.Generator, count: int) -> list[Any]:
        """Hostile lives, the declared worst pair among them, and what becomes of that."""
        worst = list(case.statistic.worst_pair())
        found = [*worst, *(case.life(rng) for _ in range(count))]
        with np.errstate(all="ignore"):
            return found + [hostile.altered(rng, worst[k % 2]) for k in range(count // 4)]

    def contribution(self, case: Case, life: Any, entry: Publication) -> np.ndarray:
        """What one of them contributes, in natural units; of the weight that its noise has."""
        statistic = case.statistic
        out = np.full(statistic.layout.size, 77, dtype=np.int64)
        statistic.contribute(life, entry, case.coin, out)
        found = out * statistic.layout.units
        if self.weighted:
            weights = statistic.weights(entry)
            assert not found[weights == 0.0].any(), "nothing is told where there is no noise"
            found = found / np.where(weights > 0.0, weights, 1.0)
        return found

    def entries(self, case: Case, rng: np.random.Generator) -> list[Publication]:
        """What may have been published."""
        steered = isinstance(case.statistic, ReadsPublication)
        worst = list(case.statistic.worst_contexts().values()) if steered else []
        return hostile.publications(rng, case.entry, worst, CONTEXTS)

    def check(self, case: Case, rows: np.ndarray) -> float:
        """Compare all pairs with what is declared; the largest share of it, in L2."""
        if not rows.shape[1]:
            return 1.0
        if hasattr(case.statistic, "largest_cell"):  # floats of counters err in proportion to it
            assert np.abs(rows).max() <= case.statistic.largest_cell() * OVER
        shares = {}
        for norm, metric in zip(NORMS, ("cityblock", "euclidean"), strict=True):
            apart = float(pdist(rows, metric).max())
            alone = float(np.linalg.norm(rows, 1 if norm == "l1" else 2, axis=1).max())
            for relation, moved in zip(Relation, (apart, alone), strict=True):
                declared = case.statistic.sensitivity(norm, relation)
                assert moved <= declared * OVER, (norm, relation)
                shares[norm, relation] = moved / declared
        return shares["l2", Relation.REPLACE_ONE]

    def test_no_two_hostile_lives_are_farther_apart_than_declared(self) -> None:
        largest = []
        for name, case in self.cases().items():
            rng = np.random.default_rng(len(name))
            lives = self.lives(case, rng, LIVES)
            for entry in self.entries(case, rng):
                rows = np.array([self.contribution(case, one, entry) for one in lives])
                largest.append(self.check(case, rows))
        assert max(largest) >= self.compared

    def test_plain_kernels_bound_them_too_and_say_the_same(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Compiled or not: ``min`` and whole numbers of what is none differ between the two."""
        for case in self.cases().values():
            rng = np.random.default_rng(1)
            lives, entries = self.lives(case, rng, 24), self.entries(case, rng)[-2:]
            compiled = [self.contribution(case, one, e) for e in entries for one in lives]
            with hostile.without_compiler(monkeypatch):
                plain = [self.contribution(case, one, e) for e in entries for one in lives]
            for row in range(len(entries)):
                self.check(case, np.array(plain[row * len(lives) :][: len(lives)]))
            assert np.allclose(compiled, plain, rtol=1e-9, atol=3 * 2.0**-24)

    def test_many_hostile_lives_add_up_to_the_sum_of_each(self) -> None:
        for case in self.cases().values():
            if not hasattr(case.statistic, "add_many"):
                continue
            rng = np.random.default_rng(2)
            lives = alike(self.lives(case, rng, 40))
            entry, statistic = case.entry, case.statistic
            total = np.zeros(statistic.layout.size, dtype=np.int64)
            coins = np.full(len(lives), case.coin)
            statistic.add_many(together(lives), entry, coins, total)
            for one in lives:
                out = np.zeros_like(total)
                statistic.contribute(one, entry, case.coin, out)
                total -= out
            assert not total.any()

    def test_whole_lives_are_no_farther_apart_either(self) -> None:
        """Of people who come again, in one item of a counter, where people are remembered."""
        for case in self.cases().values():
            statistic, rng = case.statistic, np.random.default_rng(3)
            if not isinstance(statistic, LifetimeStatistic) or not statistic.lifetime:
                continue
            trips, rows = self.lives(case, rng, 60), []
            for _ in range(60):
                memory, out = statistic.memory(1), np.zeros(statistic.layout.size, dtype=np.int64)
                often, some = rng.choice([1, 2, 40]), rng.choice([1, len(trips)])
                for k in rng.choice(rng.integers(len(trips), size=some), size=often):
                    coins, who = np.array([case.coin]), np.zeros(1, dtype=np.int64)
                    trip = together([trips[k]])
                    statistic.add_people(trip, case.entry, coins, memory.of(who), out)
                rows.append(out * statistic.layout.units)
            self.check(case, np.array(rows))


def alike(lives: list[Trajectory]) -> list[Trajectory]:
    """Those of the length that most have: lives that are added up together are of one length."""
    shapes = [(one.states.shape, one.actions.shape, one.rewards.shape) for one in lives]
    usual = max(shapes, key=shapes.count)
    return [one for one, shape in zip(lives, shapes, strict=True) if shape == usual]


class LogStatisticContract(StatisticContract):
    """Of the people of a log: in memory, in columns of every type, as nobody arranged them."""

    def lives(self, case: Case, rng: np.random.Generator, count: int) -> list[Any]:
        """Rows of one person each, the declared worst pair among them."""
        return [*case.statistic.worst_pair(), *(case.life(rng) for _ in range(4 * count))]

    def contribution(self, case: Case, life: Any, entry: Publication) -> np.ndarray:
        """What one of them adds."""
        out = np.zeros(case.statistic.layout.size, dtype=np.int64)
        case.statistic.add(in_memory(life, 1), out)
        return out * case.statistic.layout.units

    def test_the_worst_pair_is_as_far_apart_as_declared(self) -> None:
        shares = []
        for case in self.cases().values():
            worst = case.statistic.worst_pair()
            rows = np.array([self.contribution(case, one, case.entry) for one in worst])
            shares.append(self.check(case, rows))
        assert max(shares) > 1 - 1e-6

    def test_columns_of_any_type_are_bounded_by_plain_kernels(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As they are; compiled, every set of types would take long."""
        for case in self.cases().values():
            rng, rows = np.random.default_rng(4), []
            with hostile.without_compiler(monkeypatch):
                for _ in range(200):
                    kinds = rng.choice(hostile.WHOLES), rng.choice(hostile.KINDS)
                    life = case.life(rng, whole=kinds[0], real=kinds[1])
                    life = life._replace(chance=life.chance.astype(rng.choice(hostile.REALS)))
                    out = np.zeros(case.statistic.layout.size, dtype=np.int64)
                    case.statistic.add(life, out)
                    rows.append(out * case.statistic.layout.units)
            self.check(case, np.array(rows))

    def entries(self, case: Case, rng: np.random.Generator) -> list[Publication]:
        """Logs know none."""
        return [case.entry]

    def check(self, case: Case, rows: np.ndarray) -> float:
        """The number of people is the same in neighbouring logs."""
        layout = case.statistic.layout
        (people,) = layout.views(np.arange(layout.size))["people"]
        assert (rows[:, people] == 1.0).all()
        return super().check(case, rows)
