import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import tacit
from auditing.small import learner
from contracts.composition import counts_l1, counts_l2, gaussian_delta, one_draw, pure_delta
from contracts.privatizer import TASK, PrivatizerContract, taking_part
from contracts.releases import ReleasesContract
from contracts.replay import ReplayNoise
from tacit.auditing import audit_target
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.references import UniformPlanner
from tacit.privacy import (
    Noise,
    Privatizer,
    Query,
    Secret,
    SecureNoise,
    SimulatedNoise,
    ZeroNoise,
)
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.charges import exact
from tacit.privacy.counters import KINDS, strategy
from tacit.privacy.counters.fading import Fading
from tacit.privacy.joint.counted import CountedSums, counted_noise
from tacit.statistics import Relation, Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


def counted(
    statistic: Statistic,
    kind: str,
    *,
    releases: int = 20,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    task: Task = TASK,
    batch: int = 10,
    factor: float = 1.0,
) -> CountedSums:
    counter = strategy(kind, releases)
    std = counted_noise(statistic, task, counter, batch, epsilon, delta)
    return CountedSums(
        statistic,
        task,
        counter,
        factor * std,
        batch=batch,
        requested=(epsilon, delta),
    )


def prefixes(mechanism: CountedSums) -> np.ndarray:
    """Covariance of all prefixes of a counter and of the sum that closes it, in one cell."""
    B, _ = mechanism.strategy.factors()
    closed = np.zeros((len(B) + 1, B.shape[1] + 1))
    closed[:-1, :-1], closed[-1, :-1], closed[-1, -1] = B, B[-1], 1.0
    return mechanism.noise_std**2 * closed @ closed.T


class TestTree(PrivatizerContract):
    subject: ClassVar[type] = CountedSums
    kind: ClassVar[str] = "tree"

    def brief(self) -> Privatizer:
        """Its last release closes the counter."""
        return counted(self.statistic(), self.kind, releases=3)

    def together(self, privatizer: CountedSums, variances: np.ndarray) -> np.ndarray:
        return prefixes(privatizer)

    def make(self, statistic: Statistic) -> Privatizer:
        return counted(statistic, self.kind)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(8))

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        """The first release closes the first node."""
        counter = strategy(self.kind, 20)
        assert list(counter.nodes(1)) == [0]
        std = guarantee.noise["node std"]
        return [("gaussian", np.full(self.statistic().layout.size, std))]

    raised: ClassVar[float] = 5e-9

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Columns of the counter may overlap in every row: distances add up.

        Rounding of the Toeplitz counters to the grid is the only other cost: below 1e-6 of it.
        """
        privatizer = counted(self.statistic(), self.kind, task=taking_part(times))
        _, C = privatizer.strategy.factors()
        column = math.sqrt((C**2).sum(axis=0).max())
        return privatizer, one_draw(column * counts_l2(3) / privatizer.noise_std, times, 1e-5)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        counter = strategy(self.kind, 20)
        privatizer = CountedSums(
            self.statistic(), taking_part(times), counter, 60.0, batch=10,
            requested=(0.5, 1e-5),
        )  # fmt: skip
        column = math.sqrt((counter.factors()[1] ** 2).sum(axis=0).max())
        return privatizer, gaussian_delta(times * column * counts_l2(3) / 60.0, 0.5)

    def releases(self) -> int:
        return 20


class TestLaplaceTree(PrivatizerContract):
    """Pure: every node that holds a person costs the L1 distance over the scale."""

    subject: ClassVar[type] = CountedSums

    def make(self, statistic: Statistic, task: Task = TASK, **more) -> Privatizer:
        return self.through(20, statistic, task, **more)

    def through(self, length: int, statistic: Statistic, task: Task = TASK, **more) -> CountedSums:
        asked = {"requested": (1.0, 0.0), **more}
        counter = strategy("tree", length)
        return CountedSums(statistic, task, counter, kind="laplace", batch=10, **asked)

    def brief(self) -> Privatizer:
        return self.through(3, self.statistic())

    def together(self, privatizer: CountedSums, variances: np.ndarray) -> np.ndarray:
        return prefixes(privatizer)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(8))

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        return [("laplace", np.full(self.statistic().layout.size, guarantee.noise["node scale"]))]

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        privatizer = self.make(self.statistic(), taking_part(times))
        _, C = privatizer.strategy.factors()
        return privatizer, times * C.sum(axis=0).max() * counts_l1(3) / privatizer.scale

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        privatizer = self.make(
            self.statistic(), taking_part(times), scale=100.0, requested=(0.5, 0.0)
        )
        bound = times * 5 * counts_l1(3) / 100.0  # item 1 is in the blocks of 1, 2, 4, 8, 16
        return privatizer, pure_delta(bound, 0.5)

    def releases(self) -> int:
        return 20


@pytest.mark.parametrize("kind", ["honaker", "toeplitz", "blt"])
def test_laplace_noise_goes_through_trees_only(kind: str) -> None:
    with pytest.raises(InvalidInput, match=f"a {kind} counter has no known price for Laplace"):
        CountedSums(
            VisitCounts(TASK), TASK, strategy(kind, 20), kind="laplace", batch=10,
            requested=(1.0, 0.0),
        )  # fmt: skip


@pytest.mark.parametrize("releases", [1, 7, 8, 100])
def test_laplace_noise_is_the_least_for_the_whole_stream(releases: int) -> None:
    statistic, counter = VisitCounts(TASK), strategy("tree", releases)
    asked = {"requested": (2.0, 0.0)}
    mechanism = CountedSums(statistic, TASK, counter, kind="laplace", batch=10, **asked)
    nodes = counter.factors()[1].sum(axis=0).max()
    assert mechanism.guarantee.epsilon <= 2.0 and mechanism.guarantee.delta == 0.0
    assert mechanism.scale == pytest.approx(nodes * counts_l1(3) / 2.0, rel=1e-12)
    stated = {"node scale": mechanism.scale, "nodes of one item": nodes, "releases": releases}
    assert dict(mechanism.guarantee.noise) == stated
    rng, secret, squares = np.random.default_rng(5), mechanism.init(), []
    for node in range(1, min(releases, 7) + 1):
        release = mechanism.release(secret, Query(node), SimulatedNoise(rng))
        flat = np.concatenate([block.ravel() for block in release.blocks.values()])
        squares.append(np.mean(flat**2) / release.law.variance("visits"))
    assert 0.5 < np.mean(squares) < 2.0


@pytest.mark.parametrize("times", [1, 3, 7])
def test_what_laplace_noise_costs_is_rounded_up(times: int) -> None:
    task, statistic, counter = taking_part(times), VisitCounts(TASK), strategy("tree", 20)
    moved = times * Fraction(counts_l1(3)) * int(counter.column_sum())
    for epsilon in np.random.default_rng(0).random(40):
        asked = {"requested": (float(epsilon), 0.0)}
        mechanism = CountedSums(statistic, task, counter, kind="laplace", batch=10, **asked)
        assert moved / Fraction(mechanism.scale) <= exact(mechanism.guarantee.epsilon)
        assert mechanism.guarantee.epsilon <= epsilon


@pytest.mark.parametrize(("factor", "violated"), [(1.0, False), (0.05, True)])
def test_a_learner_with_laplace_noise_is_audited(factor: float, violated: bool) -> None:
    problem = tacit.problem("random-mdp", horizon=3, seed=4)
    task = problem.task(users=3)
    statistic, counter = VisitCounts(task), strategy("tree", 3)
    scale = factor * counted_noise(statistic, task, counter, 10, 3.0, 0.0, "laplace")
    asked = {"requested": (3.0, 0.0)}
    mechanism = CountedSums(statistic, task, counter, scale, kind="laplace", batch=10, **asked)
    target = learner(problem, BoundAgent(task, statistic, mechanism, UniformPlanner()))
    found = audit_target(target, 3.0, 0.0, 3000, confidence=0.999, rng=np.random.default_rng(2))
    assert (found.verdict == "violated") is violated


class TestHonaker(TestTree):
    """Prefixes are fewer than nodes, so what is released shows less than what is paid for."""

    kind: ClassVar[str] = "honaker"
    shown: ClassVar[float] = 0.8131160


class TestToeplitz(TestTree):
    kind: ClassVar[str] = "toeplitz"
    exactness: ClassVar[float] = 1e-6
    closeness_of_mu: ClassVar[float] = 1e-5  # rounding


class TestNormalised(TestToeplitz):
    kind: ClassVar[str] = "normalised"


class TestBuffered(TestToeplitz):
    kind: ClassVar[str] = "blt"


class TestFading(ReleasesContract):
    """Cells that are in all batches alike: what is released is the sum of faded rows."""

    alpha: ClassVar[float] = 0.8

    def statistic(self) -> Statistic:
        return VisitCounts(TASK)

    def make(self, statistic: Statistic) -> CountedSums:
        groups = np.full(statistic.layout.size, -1)
        counter = Fading(self.count, self.alpha, 1.0, groups, np.zeros(0, dtype=np.int64))
        asked = {"batch": 10, "requested": (1.0, 1e-5)}
        return CountedSums(statistic, TASK, counter, **asked)

    def publication(self) -> None:
        return None

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        size = self.statistic().layout.size
        return [np.random.default_rng(i).integers(0, 3, size=size) for i in range(count)]

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        return [("gaussian", np.full(self.statistic().layout.size, guarantee.noise["node std"]))]

    def ask(self, privatizer, secret, record, noise) -> None:
        """Nothing."""

    def together(self, privatizer: CountedSums, variances: np.ndarray) -> np.ndarray:
        lag = np.subtract.outer(np.arange(self.count), np.arange(self.count))
        rows = np.where(lag >= 0, self.alpha ** np.abs(lag), 0.0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return privatizer.noise_std**2 * rows @ rows.T


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_batch_of_the_largest_contributions_is_not_clipped(kind: str) -> None:
    mechanism = counted(VisitCounts(TASK), kind, batch=10)
    size, secret = mechanism.layout.size, mechanism.init()
    most = np.rint(3 / mechanism.layout.units).astype(np.int64)  # H = 3 in every cell
    mechanism.absorb_sums(secret, 7 * most, 7, None, ZeroNoise())
    with pytest.raises(InvalidInput, match="10 users share a batch at most, and 4 more came after"):
        mechanism.absorb_sums(secret, 4 * most, 4, None, ZeroNoise())
    mechanism.absorb_sums(secret, 3 * most, 3, None, ZeroNoise())
    with pytest.raises(InvalidInput, match="1 more came after 10"):
        mechanism.absorb(secret, mechanism.encode(most, None, SecureNoise()), 0)
    zeros = ReplayNoise([np.zeros(size, dtype=np.int64)])
    blocks = mechanism.release(secret, Query(1), zeros).blocks
    assert all(np.allclose(block, 30.0, rtol=0, atol=1e-6) for block in blocks.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("releases", [1, 8, 9, 100])
def test_the_guarantee_is_one_charge_for_the_whole_stream(kind: str, releases: int) -> None:
    statistic = VisitCounts(TASK)
    mechanism = counted(statistic, kind, releases=releases)
    assert mechanism.guarantee.epsilon <= 1.0
    assert mechanism.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    delta = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    column = strategy(kind, releases).column_norm()
    least = column * delta / gaussian_mu(1.0, 1e-5)
    assert least <= mechanism.noise_std <= least * (1 + 1e-5)
    stated = {"node std": mechanism.noise_std, "column norm": column, "releases": releases}
    assert dict(mechanism.guarantee.noise) == stated


def test_the_guarantee_follows_the_noise() -> None:
    halved = counted(VisitCounts(TASK), "toeplitz", factor=0.5).guarantee
    assert halved.epsilon > 1.9 and halved.delta_at_requested_epsilon > 1e-3
    assert "WEAKER than asked" in str(halved)


def test_participations_add_up_linearly() -> None:
    """Two items of one person may overlap in every later release: mu doubles, not sqrt 2."""
    import dataclasses

    statistic = VisitCounts(TASK)
    once = counted(statistic, "toeplitz")
    twice = CountedSums(
        statistic,
        dataclasses.replace(TASK, participations=2),
        once.strategy,
        once.noise_std,
        batch=10,
        requested=(1.0, 1e-5),
    )
    assert twice.event.mu == pytest.approx(2 * once.event.mu)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", ["simulated", "secure"])
def test_every_release_has_its_declared_variance(kind: str, source: str) -> None:
    """Mean square of the noise in each prefix within 6 standard errors; 2/3 and 3/2 are not."""
    statistic = VisitCounts(Task("tabular", 2, {"states": 4, "actions": 3}, True, 100))
    mechanism = counted(statistic, kind, releases=5)
    noise = SecureNoise() if source == "secure" else SimulatedNoise(np.random.default_rng(1))
    squares: dict[int, list[float]] = {}
    laws = {}
    for _ in range(25):
        secret: Secret = mechanism.init()
        for node in range(1, 6):
            release = mechanism.release(secret, Query(node), noise)
            flat = np.concatenate([block.ravel() for block in release.blocks.values()])
            squares.setdefault(node, []).append(np.mean(flat**2))
            assert release.source == source
            laws[node] = release.law
    draws = 25 * statistic.layout.size
    for node, values in squares.items():
        declared = laws[node].variance("visits")
        ratio = np.mean(values) / declared
        spread = 6 * math.sqrt(2 / draws)
        assert abs(ratio - 1) < spread < 1 / 3


@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_every_release_is_the_exact_prefix(kind: str) -> None:
    """Each user is counted in one item only: a batch that is not emptied would count them again."""
    statistic = VisitCounts(TASK)
    mechanism, rng = counted(statistic, kind, releases=6), np.random.default_rng(0)
    zeros = ReplayNoise([np.zeros(statistic.layout.size, dtype=np.int64)] * 50)
    secret, exact = mechanism.init(), np.zeros(statistic.layout.size)
    for node in range(1, 7):
        for _ in range(4):
            contribution = rng.integers(0, 3, statistic.layout.size)
            exact += contribution * statistic.layout.units
            secret = mechanism.absorb(secret, mechanism.encode(contribution, None, zeros), node)
        release = mechanism.release(secret, Query(node), zeros)
        flat = np.concatenate([block.ravel() for block in release.blocks.values()])
        assert np.allclose(flat, exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_that_was_drawn_outlives_a_restart(kind: str) -> None:
    """All nodes of the next step are drawn, and none is used: nothing is drawn again."""
    mechanism = counted(VisitCounts(TASK), kind, releases=4)
    noise = SimulatedNoise(np.random.default_rng(1))
    secret = mechanism.init()
    for number in (1, 2, 3, 4, 5):
        mechanism.draw(secret, noise)
        again = mechanism.restore(mechanism.state(secret))
        one, two = (
            mechanism.release(state, Query(number), ReplayNoise([])) for state in (secret, again)
        )
        for name, block in one.blocks.items():
            assert np.array_equal(block, two.blocks[name]) and block.any()


# ---- periods ----


def lived_through(
    mechanism: CountedSums, noise: Noise, items: np.ndarray, renewed: tuple[int, ...], saved: bool
) -> list[tuple[np.ndarray, float, np.ndarray]]:
    """All releases of these items, as numbers, with their law and with what an audit reads."""
    secret, found = mechanism.init(), []
    for node, item in enumerate(items, 1):
        if node in renewed:
            mechanism.renew(secret)
            mechanism.renew(secret)  # once more changes nothing
        if saved:
            secret = mechanism.restore(mechanism.state(secret))
        secret = mechanism.absorb(secret, mechanism.encode(item, None, noise), node)
        release = mechanism.release(secret, Query(node), noise)
        flat = np.concatenate([block.ravel() for block in release.blocks.values()])
        found.append((flat, release.law.scale("visits"), mechanism.audit_view(secret, release)))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_renewed_counter_goes_on_with_its_sums_and_forgets_their_items(kind: str) -> None:
    """Prefixes are of everybody; what rests on items is of the period. Stops change no bit."""
    statistic, rng = VisitCounts(TASK), np.random.default_rng(0)
    mechanism = counted(statistic, kind, releases=6)
    items = rng.integers(0, 3, (7, statistic.layout.size))
    quiet = ReplayNoise([np.zeros(statistic.layout.size, dtype=np.int64)] * 99)
    shown = lived_through(mechanism, quiet, items, (3, 5), False)
    for t, (flat, _, own) in enumerate(shown, 1):
        begin = max(b for b in (0, 2, 4) if b < t)
        units = statistic.layout.units
        assert np.allclose(flat, items[:t].sum(axis=0) * units, rtol=0, atol=1e-6)
        assert np.allclose(own, items[begin:t].sum(axis=0) * units, rtol=0, atol=1e-6)
    runs = [
        lived_through(mechanism, SimulatedNoise(np.random.default_rng(3)), items, (3, 5), saved)
        for saved in (False, True)
    ]
    for one, two in zip(*runs, strict=True):
        assert np.array_equal(one[0], two[0]) and one[1] == two[1]


@pytest.mark.parametrize("kind", KINDS)
def test_after_renewals_every_release_has_its_declared_variance(kind: str) -> None:
    """Mean square of the noise within 6 standard errors, and more than without a renewal."""
    statistic = VisitCounts(Task("tabular", 2, {"states": 4, "actions": 3}, True, 100))
    mechanism, noise = (
        counted(statistic, kind, releases=5),
        SimulatedNoise(np.random.default_rng(1)),
    )
    items = np.zeros((5, statistic.layout.size), dtype=np.int64)
    runs = [lived_through(mechanism, noise, items, (3, 4), False) for _ in range(25)]
    draws = 25 * statistic.layout.size
    for node in range(5):
        square = np.mean([run[node][0] ** 2 for run in runs])
        assert abs(square / runs[0][node][1] ** 2 - 1) < 6 * math.sqrt(2 / draws) < 1 / 3
    assert runs[0][4][1] > 1.05 * mechanism._noise(mechanism._units(5)).std


def test_a_full_batch_takes_nobody_else() -> None:
    mechanism = counted(VisitCounts(TASK), "tree", batch=2)
    noise, secret = SimulatedNoise(np.random.default_rng(0)), mechanism.init()
    zero = np.zeros(mechanism.layout.size, dtype=np.int64)
    for _ in range(2):
        secret = mechanism.absorb(secret, mechanism.encode(zero, None, noise), 0)
    with pytest.raises(InvalidInput, match="1 more came after 2; release first"):
        mechanism.absorb(secret, mechanism.encode(zero, None, noise), 0)
    mechanism.release(secret, Query(1), noise)
    mechanism.absorb(secret, mechanism.encode(zero, None, noise), 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("releases", [1, 4, 6, 20, 100])
def test_the_forecast_law_is_the_noisiest_release(kind: str, releases: int) -> None:
    mechanism = counted(VisitCounts(TASK), kind, releases=releases)
    worst = max(mechanism._noise(mechanism._units(t)).std for t in range(1, releases + 1))
    assert mechanism.law(1).std == pytest.approx(worst)


def test_rounding_is_paid_for() -> None:
    statistic = VisitCounts(TASK)
    bare = strategy("toeplitz", 20).column_norm() * statistic.sensitivity(
        "l2", Relation.REPLACE_ONE
    )
    mechanism = counted(statistic, "toeplitz")
    assert mechanism.event.mu * mechanism.noise_std > bare * (1 + 2e-8)


def test_one_simulated_node_marks_every_later_release() -> None:
    mechanism, secret = counted(VisitCounts(TASK), "tree"), None
    secret = mechanism.init()
    mechanism.release(secret, Query(1), SimulatedNoise(np.random.default_rng(0)))
    assert mechanism.release(secret, Query(2), SecureNoise()).source == "simulated"


def test_a_joint_agent_is_audited_by_its_releases() -> None:
    problem = tacit.problem("random-mdp", horizon=3, seed=4)

    class Joint(tacit.Agent):
        name = "joint"

        def bind(self, task: Task) -> BoundAgent:
            statistic = VisitCounts(task)
            mechanism = counted(statistic, "tree", releases=3, epsilon=2.0, task=task)
            return BoundAgent(task, statistic, mechanism, UniformPlanner())

    found = tacit.audit(problem, Joint(), trials=5000, confidence=0.999)
    assert found.verdict == "consistent"
    assert [report.source for report in found.reports] == ["simulated", "secure"]


def test_releases_come_once_and_in_order() -> None:
    mechanism, noise = counted(VisitCounts(TASK), "tree"), SimulatedNoise(np.random.default_rng(0))
    secret = mechanism.init()
    first = mechanism.release(secret, Query(1), noise)
    assert mechanism.release(secret, Query(1), noise) is first
    with pytest.raises(InvalidInput, match="release 3 was asked for, but the next one is 2"):
        mechanism.release(secret, Query(3), noise)
    mechanism.release(secret, Query(2), noise)
    with pytest.raises(InvalidInput, match="made once, in order"):
        mechanism.release(secret, Query(1), noise)


def test_release_zero_is_exact_only_before_anybody() -> None:
    mechanism, noise = counted(VisitCounts(TASK), "tree"), SimulatedNoise(np.random.default_rng(0))
    secret = mechanism.init()
    release = mechanism.release(secret, Query(0), noise)
    assert all((block == 0).all() for block in release.blocks.values())
    assert release.law.variance("visits") == 0
    late = mechanism.init()
    report = mechanism.encode(np.ones(mechanism.layout.size, dtype=np.int64), None, noise)
    mechanism.absorb(late, report, 0)
    with pytest.raises(InvalidInput, match="release 0 was asked for"):
        mechanism.release(late, Query(0), noise)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "consistent"), (0.4, "violated")])
def test_the_whole_learner_is_audited(factor: float, verdict: str) -> None:
    problem = tacit.problem("random-mdp", horizon=3, seed=4)
    task = problem.task(users=3)
    statistic = VisitCounts(task)
    mechanism = counted(
        statistic, "tree", releases=3, epsilon=3.0, delta=0.01, task=task, factor=factor
    )
    target = learner(problem, BoundAgent(task, statistic, mechanism, UniformPlanner()))
    rng = np.random.default_rng(2)
    found = audit_target(target, 3.0, 0.01, 3000, confidence=0.999, rng=rng)
    assert found.verdict == verdict


def test_noise_too_fine_for_the_grid_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too small for the grid"):
        counted(VisitCounts(TASK), "tree", factor=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_one_release_more_than_steps_is_the_sum_of_everybody(kind: str) -> None:
    """Asked for at once, or with noise that was drawn and stored first, as the service does."""
    mechanism = counted(VisitCounts(TASK), kind, releases=3, batch=2)
    assert mechanism.guarantee.epsilon == pytest.approx(1.0)
    rng, secret = np.random.default_rng(4), mechanism.init()
    contributions = rng.integers(0, 3, size=(8, mechanism.layout.size))
    mechanism.release(secret, Query(0), ZeroNoise())
    for version, (one, two) in enumerate(contributions.reshape(4, 2, -1), start=1):
        mechanism.absorb_sums(secret, one + two, 2, None, ZeroNoise())
        stored = mechanism.restore(mechanism.state(secret))
        noise = SimulatedNoise(np.random.default_rng(version))
        drawn = mechanism.draw(mechanism.restore(mechanism.state(secret)), noise)
        mechanism.replay(stored, drawn)
        twin = mechanism.release(stored, Query(version), ZeroNoise())
        again = SimulatedNoise(np.random.default_rng(version))
        released = mechanism.release(secret, Query(version), again)
        for name, block in released.blocks.items():
            assert block.tobytes() == twin.blocks[name].tobytes()
    last = mechanism.strategy.error_std(3)
    assert released.law.std == pytest.approx(mechanism.noise_std * math.hypot(last, 1.0))
    exact = mechanism.layout.views(contributions.sum(axis=0) * mechanism.layout.units)
    off = np.concatenate([(released.blocks[name] - exact[name]).ravel() for name in exact])
    assert 0.6 < off.std() / released.law.std < 1.5 and released.users == 8
    mechanism.absorb_sums(secret, contributions[0], 1, None, ZeroNoise())
    with pytest.raises(InvalidInput, match="closed once"):
        mechanism.release(secret, Query(5), SimulatedNoise(rng))
