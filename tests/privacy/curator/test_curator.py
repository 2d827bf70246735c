"""The curator: what it answers, what it refuses, what it charges, and that audits can tell."""

import dataclasses
import itertools
import math
from typing import ClassVar

import numpy as np
import pytest

import tacit
from auditing.small import learner
from contracts.composition import gaussian_delta, one_draw
from contracts.privatizer import STEP, PrivatizerContract, Witness
from contracts.replay import ReplayNoise
from tacit.auditing import audit_target
from tacit.errors import InvalidInput
from tacit.kernels.raw.linear_sums import weighted_regression
from tacit.learner import BoundAgent
from tacit.planners.base import next_version
from tacit.policies.tabular import uniform_policy
from tacit.privacy import Noise, Privatizer, Query, SecureNoise, SimulatedNoise
from tacit.privacy.base import AuditRecord
from tacit.privacy.counters.tree import Tree
from tacit.privacy.curator.curator import Curator
from tacit.privacy.curator.declared_answers import Answers, Price, grid_rounding
from tacit.privacy.curator.paper import Independent, ReusedNoise
from tacit.privacy.filter import BudgetExhausted
from tacit.publication import Publication
from tacit.release import ValueQuery
from tacit.statistics import Statistic
from tacit.statistics.linear import CuratedTransitions

PROBLEM = tacit.problem("synthetic-linear", horizon=2, actions=2)
TASK = PROBLEM.task(users=8)
TINY = tacit.problem("low-rank", states=2, actions=2, dimension=2, horizon=2, seed=1)
RANGES = np.array([2.0, 1.0])


def curator(
    statistic: CuratedTransitions | None = None,
    *,
    kind: type[Curator] = Curator,
    rounds: int = 3,
    gram_std: float = 2.0,
    answer_std: float | np.ndarray = 2.0,
    epsilon: float = 50.0,
    users: int = 8,
    problem: tacit.LinearMDP = PROBLEM,
    ranges: np.ndarray = RANGES,
    participations: int = 1,
) -> Curator:
    task = dataclasses.replace(problem.task(users=users), participations=participations)
    statistic = statistic or CuratedTransitions(task)
    answers = Answers({"value": ranges}, {"value": np.full(2, answer_std)}, rounds, {"value": True})
    return kind(
        statistic,
        task,
        Tree(users),
        gram_std,
        answers,
        Price.joint(statistic.pairs, statistic.largest_weight),
        batch=8,
        requested=(epsilon, 1e-5),
    )


def noise(seed: int = 3) -> SimulatedNoise:
    return SimulatedNoise(np.random.default_rng(seed))


def question(version: int, h: int, values=(0.0, 1.0), target: str = "value") -> ValueQuery:
    return ValueQuery((version, target, h), target, h, np.array(values))


class TestCurator(PrivatizerContract):
    subject: ClassVar[type] = Curator
    answers: ClassVar[int] = 2  # of a round that have noise of their own
    matrices: ClassVar[int] = 2  # of a release that have
    least_distance: ClassVar[float] = 0.7  # what is declared holds for any noise; audits search

    def statistic(self) -> Statistic:
        return CuratedTransitions(TASK)

    def make(self, statistic: Statistic) -> Privatizer:
        assert isinstance(statistic, CuratedTransitions)
        return curator(statistic, kind=self.subject)

    def noise(self) -> Noise:
        return noise(8)

    def publication(self) -> Publication:
        return Publication(0, uniform_policy(2, 2, 2))

    tight: ClassVar[bool] = False  # the noise is given here; agents calibrate it

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        size = self.statistic().layout.blocks[0].size * self.matrices // 2
        return [("gaussian", np.full(size, guarantee.noise["gram node std"]))]

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Contributions of one person may meet under one draw: distances add up."""
        return curator(participations=times), one_draw(curator().mu, times, 1e-5)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        return curator(participations=times, epsilon=0.5), gaussian_delta(times * curator().mu, 0.5)

    def ask(self, privatizer: Curator, secret, record: AuditRecord, noise: Noise) -> None:
        """All rounds that were declared, for the values that tell the pair apart best."""
        if secret.rounds == privatizer.answers.rounds:
            return
        count = len(record.released)
        totals = [np.sum(batches, axis=0) for batches in (record.first, record.second)]
        for stage in (1, 0):
            query = question(count, stage, privatizer.worst_query(*totals, stage))
            answer = privatizer.release(secret, query, noise).blocks["answer"]
            record.answers.append((query, count, answer))

    def releases(self) -> int:
        return 8

    count: ClassVar[int] = 2  # of many cells each

    def together(self, privatizer: Curator, variances: np.ndarray) -> np.ndarray:
        """Of Gram matrices: that of the counter."""
        return privatizer.gram_std**2 * Tree(8).covariance()[: self.count, : self.count]

    def of_answers(self, privatizer: Curator, count: int) -> np.ndarray:
        assert count == self.count * privatizer.answer_size / privatizer.answers.rounds
        return np.full(count, 2.0**2)

    def test_the_noise_of_answers_is_the_noise_stated(self) -> None:
        mechanism, witness = curator(self.statistic(), kind=self.subject), Witness(2)
        secret = mechanism.init()
        for version in (1, 2):
            mechanism.release(secret, question(version, 0), witness)
        stated = mechanism.guarantee.noise["value answer std"]
        assert len(witness.laws) == self.answers
        for law in witness.laws:
            assert law.kind == "gaussian" and law.scales * STEP == pytest.approx(stated)

    def test_all_noise_comes_from_the_given_source(self) -> None:
        """Gram matrices and answers, with recorded zeros instead of noise, are exact."""
        statistic, contributions = self.statistic(), self.contributions(3)
        mechanism = curator(statistic, kind=self.subject)
        size, d = statistic.layout.blocks[0].size * self.matrices // 2, 10
        zeros = ReplayNoise([np.zeros(n, dtype=np.int64) for n in (size, self.answers * d)])
        secret = mechanism.init()
        for contribution in contributions:
            mechanism.absorb(secret, mechanism.encode(contribution, None, zeros), 0)
        exact = statistic.layout.views(sum(contributions) * statistic.layout.units)
        release = mechanism.release(secret, Query(1), zeros)
        assert np.allclose(release.blocks["gram"], exact["gram"], rtol=0, atol=1e-9)
        answer = mechanism.release(secret, question(1, 0), zeros).blocks["answer"]
        per_pair = exact["table"][0] @ (np.array([0.0, 1.0]) - 1.0) + exact["reward"][0]
        expected = per_pair.ravel() @ statistic.phi.reshape(-1, d)
        assert np.allclose(answer, expected, rtol=0, atol=1e-6)

    def test_the_release_is_complete_public_and_read_only(self) -> None:
        mechanism = curator(self.statistic(), kind=self.subject)
        release = self.release(mechanism, self.absorbed(mechanism, self.noise(), [0, 1, 2]))
        assert release.users == 3 and list(release.blocks) == ["gram"]
        with pytest.raises(ValueError, match="read-only"):
            release.blocks["gram"][...] = 0


class TestReusedNoise(TestCurator):
    subject: ClassVar[type] = ReusedNoise
    answers: ClassVar[int] = 1
    matrices: ClassVar[int] = 1
    stored: ClassVar[bool] = False

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Nothing is left to lose."""
        return curator(kind=ReusedNoise, participations=times), math.inf

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        return curator(kind=ReusedNoise, participations=times), 1.0


def test_evidence_is_the_ratio_of_the_densities_of_answers() -> None:
    """Of any sums and any answers, not only where both worlds are as far from nothing."""
    mechanism, rng = curator(answer_std=np.array([2.0, 5.0])), np.random.default_rng(4)
    layout = mechanism.statistic.layout
    first, second = (rng.integers(-(2**27), 2**27, size=layout.size) for _ in range(2))
    gram = mechanism.layout.size
    second[:gram] = first[:gram]  # Gram matrices tell nothing
    released = mechanism.layout.units * first[:gram]
    record, expected, squares = AuditRecord([first], [second], [released]), 0.0, 0.0
    for stage, std in ((0, 2.0), (1, 5.0)):
        query = question(1, stage, (0.3, 0.9))
        answer = rng.normal(0.0, 30.0, size=10)
        means = [mechanism.mean(sums, query) for sums in (first, second)]
        off = [((answer - mean) ** 2).sum() / (2 * std**2) for mean in means]
        expected += off[0] - off[1]
        squares += ((means[1] - means[0]) ** 2).sum() / std**2
        record.answers.append((query, 1, answer))
    found = mechanism.log_likelihood_ratio(record)
    assert found.log_ratio == pytest.approx(expected, rel=1e-9)
    assert found.mu_squared == pytest.approx(squares, rel=1e-9)


def test_every_question_has_the_noise_declared_for_it() -> None:
    """Stages with different noise: the law is stage by stage, and each answer gets its own draw."""
    mechanism = curator(answer_std=np.array([2.0, 5.0]))
    witness, d = Witness(2), 10
    secret = mechanism.init()
    answers = {h: mechanism.release(secret, question(1, h), witness) for h in (0, 1)}
    (law,) = witness.laws
    assert law.scales * STEP == pytest.approx(np.repeat([5.0, 2.0], d))  # last stage first
    assert [answers[h].law.scale("answer") for h in (0, 1)] == [2.0, 5.0]
    drawn = np.concatenate([np.full(d, 7), np.full(d, 3)]) * 2**24
    secret, replay = mechanism.init(), ReplayNoise([drawn])
    found = [mechanism.release(secret, question(1, h), replay).blocks["answer"] for h in (0, 1)]
    assert np.array_equal(found, [np.full(d, 3.0), np.full(d, 7.0)])


def test_the_same_question_has_the_same_answer_and_is_charged_once() -> None:
    mechanism, source = curator(), noise()
    secret = mechanism.init()
    mechanism.release(secret, Query(1), source)
    before = secret.filter.spent.mu_squared
    assert float(before) == pytest.approx(mechanism._cost(0)) and before > 0, "the whole stream"
    first = mechanism.release(secret, question(1, 0), source)
    once = secret.filter.spent.mu_squared
    assert mechanism.release(secret, question(1, 0), ReplayNoise([])) is first
    other = mechanism.release(secret, question(1, 1), ReplayNoise([]))
    assert before < once == secret.filter.spent.mu_squared
    assert not np.array_equal(first.blocks["answer"], other.blocks["answer"])


def test_the_filter_has_no_more_than_what_is_stated() -> None:
    """A second lock beside the number of rounds: all that is declared fits, hardly more."""
    mechanism = curator(rounds=3)
    budget = mechanism.init().filter.budget
    assert budget.delta == mechanism.guarantee.delta == 1e-5
    assert 0.0 <= budget.epsilon / mechanism.guarantee.epsilon - 1.0 <= 1.1e-6
    assert 1.0 <= budget.mu_squared / mechanism.mu**2 <= 1.0 + 1e-5


def test_a_question_that_comes_back_opens_and_pays_the_next_round() -> None:
    """One charge per round, before its noise: a source that fails to draw finds it made."""
    mechanism, source = curator(rounds=3), noise()
    secret = mechanism.init()
    mechanism.release(secret, question(1, 0), source)
    first = secret.filter.spent.mu_squared
    for _ in range(2):
        with pytest.raises(InvalidInput, match="all recorded noise was used"):
            mechanism.release(secret, question(2, 0), ReplayNoise([]))
    assert secret.filter.spent.mu_squared > first and secret.rounds == 3
    with pytest.raises(BudgetExhausted):
        mechanism.release(secret, question(3, 0), source)


def test_what_was_not_declared_is_not_answered() -> None:
    mechanism, source = curator(), noise()
    secret = mechanism.init()
    for bad in (question(1, 2), question(1, -1), question(1, 0, target="square")):
        with pytest.raises(InvalidInput, match="was not declared"):
            mechanism.release(secret, bad, source)


@pytest.mark.parametrize("epsilon", [1e-3, 1e3])
def test_asking_too_often_is_refused_for_good(epsilon: float) -> None:
    """After two rounds the third is refused, however much more was asked for than is stated."""
    mechanism = curator(rounds=2, epsilon=epsilon)
    secret, source = mechanism.init(), noise()
    for version in (1, 2):
        mechanism.release(secret, Query(version), source)
        for h in (0, 1):
            mechanism.release(secret, question(version, h), source)
    mechanism.release(secret, Query(3), source)
    with pytest.raises(BudgetExhausted):
        mechanism.release(secret, question(3, 0), ReplayNoise([]))


def test_the_cap_is_hard_where_a_round_is_smaller_than_rounding() -> None:
    """Ten million users and rounds: the budget alone would let ten more of them pass."""
    declared = 10**7
    mechanism = curator(rounds=declared, users=declared, answer_std=1e5, gram_std=1e3)
    room = mechanism._budget.mu_squared - mechanism.mu**2
    assert room > 10 * (mechanism._cost(declared) - mechanism._cost(declared - 1)) > 0
    secret, source = mechanism.init(), noise()
    mechanism._pay(secret, declared - 1)  # as if all but one had been asked
    secret.rounds = declared - 1
    for h in (0, 1):
        mechanism.release(secret, question(1, h), source)
    paid = secret.filter.spent.mu_squared
    assert float(paid) == pytest.approx(mechanism.mu**2, rel=1e-9)
    for _ in range(2):
        with pytest.raises(BudgetExhausted, match="all 10,000,000 declared rounds"):
            mechanism.release(secret, question(2, 0), ReplayNoise([]))
    assert secret.filter.closed and secret.filter.spent.mu_squared == paid


def test_an_answer_before_the_first_release_pays_for_the_stream_too() -> None:
    mechanism, source = curator(rounds=2), noise()
    early, late = mechanism.init(), mechanism.init()
    mechanism.release(early, question(1, 0), source)
    mechanism.release(late, Query(1), source)
    mechanism.release(late, question(1, 0), source)
    paid = (float(secret.filter.spent.mu_squared) for secret in (early, late))
    assert next(paid) == pytest.approx(next(paid), rel=1e-12)


def test_the_filter_has_spent_what_the_guarantee_says() -> None:
    mechanism, source = curator(rounds=2), noise()
    secret = mechanism.init()
    for version in (1, 2):
        mechanism.release(secret, Query(version), source)
        for h in (0, 1):
            mechanism.release(secret, question(version, h), source)
    assert float(secret.filter.spent.mu_squared) == pytest.approx(mechanism.mu**2)


def test_wild_values_are_clipped() -> None:
    """r + V stays within [0, R] whatever is asked: an answer moves by at most w R."""
    mechanism = curator()
    statistic = mechanism.statistic
    for values in ((-1e9, 1e9), (np.nan, np.inf), (0.0, 1.0)):
        answers = []
        for states in ((0, 0, 0), (0, 1, 0)):
            zeros = ReplayNoise([np.zeros(20, dtype=np.int64)])
            secret = mechanism.init()
            trajectory = tacit.trajectory.Trajectory(
                np.array(states), np.zeros(2), np.array([1.0, 0.0])
            )
            out = np.zeros(statistic.layout.size, dtype=np.int64)
            statistic.contribute(trajectory, Publication(0, uniform_policy(2, 2, 2)), 0, out)
            mechanism.absorb(secret, mechanism.encode(out, None, zeros), 0)
            answers.append(mechanism.release(secret, question(0, 0, values), zeros))
        one, two = (answer.blocks["answer"] for answer in answers)
        assert max(np.linalg.norm(one), np.linalg.norm(two)) <= RANGES[0] / 2 + 1e-6
        assert np.linalg.norm(one - two) <= RANGES[0] + 1e-6


@pytest.mark.parametrize("source", ["simulated", "secure"])
def test_answers_have_their_declared_noise(source: str) -> None:
    """Mean square within 6 standard errors of the declared variance; 2/3 and 3/2 are not."""
    mechanism = curator(rounds=40, answer_std=5.0)
    generator: Noise = SecureNoise() if source == "secure" else noise()
    secret = mechanism.init()
    values = []
    for version in range(40):
        release = mechanism.release(secret, question(version, 0), generator)
        assert release.law.scale("answer") == 5.0 and release.source == source
        values.append(release.blocks["answer"])
    ratio = np.mean(np.array(values) ** 2) / 25.0
    assert abs(ratio - 1) < 6 * math.sqrt(2 / 400) < 1 / 2


class AskAll:
    """A planner that asks everything it may, for a value function that tells states apart."""

    def plan(self, task, release, ask, previous, streams):
        version = next_version(previous)
        if release.users:
            for h in (0, 1):
                ask(question(version, h))
        return Publication(version, uniform_policy(task.horizon, 2, 2))


def audited(mechanism: Curator, claimed: float, trials: int = 500) -> str:
    """A false alarm on a right mechanism has probability below 0.001."""
    bound = BoundAgent(TINY.task(users=3), mechanism.statistic, mechanism, AskAll())
    rng = np.random.default_rng(4)
    return audit_target(
        learner(TINY, bound), claimed, 1e-5, trials, confidence=0.999, rng=rng
    ).verdict


def test_the_audit_passes_the_curator_and_catches_reused_noise() -> None:
    """The noise is the same at both stages, so the difference of two answers is exact."""
    loud = {"users": 3, "rounds": 2, "gram_std": 10.0, "answer_std": 10.0, "problem": TINY}
    honest = curator(**loud)
    claimed = honest.guarantee.epsilon
    assert 0.3 < claimed < 2.0
    assert audited(honest, claimed) != "violated"
    assert audited(curator(**loud, kind=ReusedNoise), claimed) == "violated"
    weak = curator(**{**loud, "gram_std": 0.5, "answer_std": 0.5})
    assert audited(weak, claimed) == "violated"


def test_reused_noise_says_that_no_epsilon_holds() -> None:
    guarantee = curator(kind=ReusedNoise).guarantee
    assert guarantee.epsilon == math.inf and guarantee.model == "none"
    assert "no finite epsilon" in str(guarantee)


def test_independent_noise_is_a_counter_with_its_column_norm() -> None:
    counter = Independent(7)
    B, C = counter.factors()
    assert np.array_equal(B @ C, np.tril(np.ones((7, 7))))
    assert counter.column_norm() == pytest.approx(np.sqrt((C**2).sum(axis=0).max()))
    assert [counter.error_std(t) for t in (1, 7)] == [1.0, 1.0]
    state, total = counter.init(2, 10), np.zeros(2)
    for t in range(7):
        item = np.array([t, 1])
        total += item
        prefix, state = counter.step(state, item, lambda node: np.zeros(2, dtype=np.int64))
        assert np.array_equal(prefix, total)


def test_rounding_is_bounded_by_what_is_paid_for_it() -> None:
    """Replacing one of many users moves no answer further than distance plus rounding.

    The bound is on the difference of two rounded answers; values, weights and rewards are such
    that nothing is whole on the grid.
    """
    rng = np.random.default_rng(7)
    mechanism = curator(users=300)
    statistic = mechanism.statistic
    paid = grid_rounding(statistic, PROBLEM.task(users=300), float(RANGES.min()))
    table, reward = (statistic.layout.views(np.zeros(statistic.layout.size, dtype=np.int64))[n]
                     for n in ("table", "reward"))  # fmt: skip
    steps = 2.0**24
    for _ in range(200):
        u, phi = rng.uniform(-0.5, 0.5, 2), statistic.phi
        sums, exact = [], []
        base_table = rng.integers(0, int(1e3 * steps), table[0].shape)
        base_reward = rng.integers(0, int(1e3 * steps), reward[0].shape)
        for s, a, n, r in rng.integers(0, 2, (2, 4)):
            one_table, one_reward, r = base_table.copy(), base_reward.copy(), r * rng.random()
            one_table[s, a, n] += int(steps)
            one_reward[s, a] += round(steps * r)
            out = np.empty(10)
            weighted_regression(one_table, one_reward, phi, u, True, out)
            sums.append(np.rint(out) / steps)
            exact.append(phi[s, a] * (r + u[n]))
        moved = math.dist(*sums)
        assert moved <= math.dist(*exact) + paid
    assert paid < 1e-6


def test_no_two_people_are_further_apart_than_mu_says() -> None:
    """All trajectories of two stages, everything declared, values chosen against them.

    Gram matrices through the counter and all rounds of two targets: one with the reward in it, of
    range 2 and 1, one of values alone. What is found comes within a tenth of what is charged.
    """
    of = TINY.task(users=4)
    statistic, counter, rounds = CuratedTransitions(of), Tree(4), 3
    ranges = {"value": np.array([2.0, 1.0]), "square": np.array([4.0, 1.0])}
    stds = {"value": np.array([3.0, 2.0]), "square": np.array([5.0, 1.5])}
    rewards = {"value": True, "square": False}
    price = Price.joint(statistic.pairs, 1.0)
    mechanism = Curator(
        statistic, of, counter, 4.0, Answers(ranges, stds, rounds, rewards), price,
        requested=(1.0, 1e-5),
    )  # fmt: skip

    def step(s: int, a: int, r: int, after: int, h: int) -> np.ndarray:
        """Gram matrix, then every answer for every corner of the values, in units of its noise."""
        phi = statistic.phi[s, a]
        parts = [counter.column_norm() / 4.0 * np.outer(phi, phi).ravel()]
        for name, both in ranges.items():
            top = both[h] - rewards[name]
            for values in itertools.product((0.0, top), repeat=2):
                target = rewards[name] * r + values[after] - both[h] / 2
                parts.append(math.sqrt(rounds) / stds[name][h] * target * phi)
        return np.concatenate(parts)

    def apart(one: np.ndarray, two: np.ndarray) -> float:
        """Squared: each target's answers are worst for one choice of values."""
        gram, answers = np.split((one - two) ** 2, [4])
        return float(gram.sum() + answers.reshape(2, 4, 2).sum(axis=2).max(axis=1).sum())

    worst = 0.0
    for h in (0, 1):
        steps = [step(*x, h) for x in itertools.product((0, 1), repeat=4)]
        worst += max(apart(one, two) for one in steps for two in steps)
    assert worst <= mechanism.mu**2 <= 1.1 * worst


def test_rounding_is_part_of_the_price() -> None:
    """More states, more users or a smaller range: more rounding, and a larger mu for it."""
    small, large = curator(), curator(answer_std=0.004, gram_std=0.004)
    task = PROBLEM.task(users=8)
    by = grid_rounding(small.statistic, task, 1.0)
    assert grid_rounding(small.statistic, task, 0.1) > by
    assert grid_rounding(small.statistic, PROBLEM.task(users=10**9), 1.0) > 5 * by
    for mechanism in (small, large):
        price = Price.joint(mechanism.statistic.pairs, 1.0)
        loads = (Tree(8).column_norm() / mechanism.gram_std) ** 2, 3 * mechanism.answers.load()
        assert mechanism.mu**2 >= price.rounded(by).total(*loads) > price.total(*loads)
        for one in ((loads[0], 0 * loads[1]), (0.0, loads[1])):  # Gram and answers, each
            assert price.rounded(by).total(*one) > price.total(*one)


def test_questions_of_another_shape_are_refused() -> None:
    mechanism = curator()
    with pytest.raises(InvalidInput, match=r"shape \[3\], but one number per state"):
        mechanism.release(mechanism.init(), question(1, 0, (0.0, 1.0, 2.0)), noise())


def test_answers_that_could_leave_the_integers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="64-bit integers"):
        curator(ranges=np.array([1e12, 1.0]), answer_std=1e12)


def test_gram_noise_too_fine_for_the_grid_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Gram noise of 0.001 is too small for the grid"):
        curator(gram_std=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stds": {"value": np.zeros(2)}}, "needs a positive noise std"),
        ({"stds": {"value": np.full(2, 1e-3)}}, "too small for the grid"),
        ({"ranges": {"value": np.full(2, 0.5)}}, "a range of 1 or more"),
        ({"stds": {"other": np.ones(2)}}, "must name the same targets"),
        ({"rounds": -1}, "rounds"),
    ],
)
def test_badly_declared_answers_are_refused(change: dict, message: str) -> None:
    good = {
        "ranges": {"value": RANGES},
        "stds": {"value": np.ones(2)},
        "rounds": 1,
        "rewards": {"value": True},
    }
    with pytest.raises(InvalidInput, match=message):
        Answers(**{**good, **change})
