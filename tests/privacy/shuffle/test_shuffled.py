"""The shuffler: what it holds back, what it opens, and what an observer of its output can tell."""

import math
from typing import ClassVar

import numpy as np
import pytest
from scipy import optimize, stats

from contracts import listed
from contracts.composition import repeated_delta, subset_loss
from contracts.privatizer import PrivatizerContract, Question
from contracts.replay import ReplayNoise
from privacy.shuffle.exact import worst_delta
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import MOVE, REWARD, STEP, WEIGHT_STEPS, report_weight
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import Privatizer, Query, Report, SecureNoise, SimulatedNoise
from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.subset import KaryResponse
from tacit.privacy.local.one_cell import DrawnCell, OneCell, best_oracles
from tacit.privacy.shuffle.blanket import Blanket, Crowd
from tacit.privacy.shuffle.shuffled import (
    HeldReports,
    Shuffled,
    hidden_among,
    open_batch,
    useful_crowd,
)
from tacit.publication import Publication
from tacit.statistics import Statistic
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task
from tacit.trajectory import Trajectory


def task(horizon: int = 2, states: int = 2, users: int = 100, participations: int = 1) -> Task:
    sizes = {"states": states, "actions": 2}
    return Task("tabular", horizon, sizes, True, users, participations=participations)


def shuffler(
    horizon: int = 2,
    crowd: int = 3,
    epsilon: float = 1.0,
    delta: float = 1e-3,
    participations: int = 1,
    colluders: int = 0,
    make: type[OneStep] | type[EachStep] = OneStep,
) -> Shuffled:
    facts = task(horizon, participations=participations)
    return Shuffled.calibrated(
        make(facts),
        facts,
        epsilon=epsilon,
        delta=delta,
        crowd=crowd,
        colluders=colluders,
        most=8.0,
    )


def publication(horizon: int = 2, states: int = 2, version: int = 0) -> Publication:
    table = TabularPolicy(np.zeros((horizon, states), dtype=np.int64))
    occupancy = np.full((horizon, states), WEIGHT_STEPS, dtype=np.int64)
    return Publication(version, table, {"occupancy": occupancy})


def contribution(
    statistic: OneStep | EachStep, coin: int, state: int = 0, reward: float = 1.0
) -> np.ndarray:
    H = statistic.horizon
    life = Trajectory(np.full(H + 1, state), np.zeros(H, dtype=np.int64), np.full(H, reward))
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.contribute(life, publication(H), coin, out)
    return out


def noise(seed: int = 0) -> SimulatedNoise:
    return SimulatedNoise(np.random.default_rng(seed))


def weight(local: OneCell, name: str, kind: int) -> int:
    """Of a report about a state that is certainly met, in steps."""
    noise = getattr(local.weighing, name)[0 if kind == STEP else 1]
    return report_weight(WEIGHT_STEPS, noise, local.weighing)


def reports(privatizer: Shuffled, count: int, seed: int = 0) -> list[Report]:
    source, H = noise(seed), privatizer.statistic.horizon
    return [
        privatizer.encode(contribution(privatizer.statistic, k, k % 2), publication(H), source)
        for k in range(count)
    ]


def filled(privatizer: Shuffled, waiting: list[Report]) -> HeldReports:
    secret = privatizer.init()
    for report in waiting:
        privatizer.absorb(secret, report, 0)
    return secret


class TestShuffled(PrivatizerContract):
    stored: ClassVar[bool] = False
    """One step, a crowd of one: every report opens a batch, so the contract's counts hold."""

    subject: ClassVar[type] = Shuffled

    def statistic(self) -> Statistic:
        return OneStep(task(horizon=1))

    def make(self, statistic: Statistic) -> Privatizer:
        return shuffler(horizon=1, crowd=1)

    def noise(self) -> SimulatedNoise:
        return noise(3)

    def publication(self) -> Publication:
        return publication(1)

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        return [contribution(self.statistic(), k, k % 2, 0.3 * k % 1) for k in range(count)]

    def questions(self) -> list[Question]:
        """The report on its way to the shuffler costs what the local view says."""
        sent = [
            contribution(self.statistic(), 0, state, reward)
            for state, reward in ((0, 1.0), (1, 0.0), (1, 0.25))
        ]
        return [Question(self.publication(), 0, sent, self.per_report())]

    def per_report(self) -> float:
        (view,) = self.small().guarantee.also
        return view.epsilon

    make_of: ClassVar[type[OneStep] | type[EachStep]] = OneStep
    raised: ClassVar[float] = -1e-4  # a search stops a little off
    closeness: ClassVar[float] = 1e-4

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """All reports may sit in one batch: people are replaced one report after the other."""
        privatizer = shuffler(
            crowd=100, epsilon=1.0, delta=1e-6, participations=times, make=self.make_of
        )
        (view,) = privatizer.guarantee.also
        losses = [subset_loss(privatizer.local.oracles[kind]) for kind in (STEP, REWARD)]
        assert view.epsilon == pytest.approx(times * max(losses)) and view.participations == times
        step, last = privatizer.local.oracles[STEP], privatizer.local.oracles[REWARD]
        blankets = [Blanket((step, last))]
        if self.make_of is OneStep:
            blankets = [Blanket((step,)), Blanket((last,))]

        def excess(each: float) -> float:
            chain = sum(math.exp(k * each) for k in range(times))
            return chain * max(b.delta(100, each) for b in blankets) / 1e-6 - 1.0

        return privatizer, times * optimize.brentq(excess, 1e-3, 2.0 / times, xtol=1e-9)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        """At 0.5 / times for each report, along the same chain."""
        local = shuffler(crowd=100, epsilon=1.0, delta=1e-6, make=self.make_of).local
        privatizer = Shuffled(
            local, task(participations=times), crowd=100,
            requested=(0.5, 1e-6),
        )  # fmt: skip
        chain = sum(math.exp(k * 0.5 / times) for k in range(times))
        alone = max(b.delta(100, 0.5 / times) for b in privatizer.blankets())
        return privatizer, chain * alone

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        """The reward's coin and a recorded report for each."""
        draws = [(np.array(0), np.eye(4, dtype=int)[k]) for k in range(len(contributions))]
        return ReplayNoise([draw for two in draws for draw in two])

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        local, blocks, cells = self.estimated(len(contributions), REWARD)
        w = weight(local, "rewards", REWARD) / WEIGHT_STEPS
        blocks["rewards"][0, :, 0] = w * cells.reshape(2, 2)
        blocks["rewards_unit"][0, :, 0] = w
        blocks["first"][:] = cells.reshape(2, 2).sum(axis=1)
        return blocks

    def estimated(self, n: int, kind: int) -> tuple[OneCell, dict[str, np.ndarray], np.ndarray]:
        """Empty blocks, and what the reports {0}, {1}, ..., {n - 1} say about every cell."""
        privatizer = self.make(self.statistic())
        local = getattr(privatizer, "local", privatizer)
        blocks = {block.name: np.zeros(block.shape) for block in privatizer.layout.blocks}
        blocks["first_users"][:] = n
        for unit in ("moves_unit", "rewards_unit"):
            blocks[unit][:] = 1.0  # where nobody was asked
        oracle = local.oracles[kind]
        hits = (np.arange(oracle.domain) < n).astype(float)
        return local, blocks, (hits - n * oracle.q) / (oracle.p - oracle.q)


def test_a_batch_never_opens_early_and_then_all_at_once() -> None:
    privatizer = shuffler(horizon=2, crowd=3)
    assert privatizer.batch == 6
    secret, before = privatizer.init(), None
    for k, report in enumerate(reports(privatizer, 14)):
        privatizer.absorb(secret, report, k // 6)
        release = privatizer.release(secret, Query(k), noise())
        assert release.users == 6 * ((k + 1) // 6)
        if before is not None and (k + 1) % 6 != 0:
            assert all(np.array_equal(release.blocks[b], before.blocks[b]) for b in before.blocks)
        before = release
    assert len(secret.waiting) == 2 and secret.opened.version == 1  # a short batch stays shut


def test_waiting_reports_do_not_move_what_is_released() -> None:
    """The release just before the last report is the same whatever the others say."""
    privatizer = shuffler(horizon=2, crowd=3)
    seen = []
    for seed in range(5):
        secret = filled(privatizer, reports(privatizer, 5, seed))
        release = privatizer.release(secret, Query(0), noise())
        seen.append(np.concatenate([block.ravel() for block in release.blocks.values()]))
    assert all(np.array_equal(seen[0], other) for other in seen)


def test_the_opened_batch_does_not_tell_the_order_of_arrival() -> None:
    privatizer = shuffler(horizon=2, crowd=3)
    outputs = []
    for order in ([0, 1, 2, 3, 4, 5], [5, 0, 3, 2, 1, 4], [1, 3, 5, 0, 2, 4]):
        made = reports(privatizer, 6)
        secret = filled(privatizer, [made[i] for i in order])
        outputs.append((secret.opened.reports, secret.sums))
    for rows, sums in outputs:
        assert np.array_equal(rows, outputs[0][0]) and np.array_equal(sums, outputs[0][1])
    assert np.array_equal(outputs[0][0].sum(axis=0), outputs[0][1])


def test_sorting_keeps_every_report() -> None:
    rows = [np.array(row) for row in ([2, 0], [0, 1], [2, 0], [0, 0])]
    batch = open_batch(7, rows)
    assert batch.version == 7 and batch.reports.tolist() == [[0, 0], [0, 1], [2, 0], [2, 0]]


def test_duplicates_strangers_and_reports_under_another_policy_are_refused() -> None:
    privatizer = shuffler(horizon=2, crowd=3)
    made = reports(privatizer, 8)
    secret = filled(privatizer, made[:3])
    with pytest.raises(InvalidInput, match="already absorbed"):
        privatizer.absorb(secret, made[1], 0)
    with pytest.raises(InvalidInput, match="made under version 0, this report under 1"):
        privatizer.absorb(secret, made[3], 1)
    with pytest.raises(InvalidInput, match="crowd = None"):
        privatizer.absorb(secret, Report(made[3].values), 0)
    assert len(secret.waiting) == 3 and secret.users == 0
    for report in made[3:6]:  # the refused one may still be absorbed where it belongs
        privatizer.absorb(secret, report, 0)
    assert secret.users == 6
    with pytest.raises(InvalidInput, match="already absorbed"):
        privatizer.absorb(secret, made[0], 0)


def test_a_batch_has_its_full_crowd_for_every_step() -> None:
    """Six reports about one step would be six, but those about the other would be none."""
    privatizer = shuffler(horizon=2, crowd=3)
    same = [
        privatizer.encode(contribution(privatizer.statistic, 0), publication(), noise(k))
        for k in range(4)
    ]
    secret = filled(privatizer, same[:3])
    with pytest.raises(InvalidInput, match="already has its 3 reports about step 0"):
        privatizer.absorb(secret, same[3], 0)


def test_the_guarantee_is_that_of_one_step_and_not_of_the_batch() -> None:
    """Exact delta of a tiny batch, from its reports; claiming n = B would be refuted."""
    privatizer = shuffler(horizon=2, crowd=3, epsilon=0.6, delta=0.2)
    said = privatizer.guarantee
    assert said.model == "shuffle" and said.epsilon == pytest.approx(0.6)
    assert privatizer.hidden == 3 and "privacy blanket of 3 users" in said.accountant
    report = privatizer.local.oracles[REWARD]
    exact = worst_delta(listed.pmf(report), 3, said.epsilon, [(0, 1)])
    assert exact <= said.delta
    mutant = Shuffled(privatizer.local, task(), crowd=6, requested=(0.6, 0.2))
    claimed = mutant.guarantee.delta_at_requested_epsilon
    assert claimed < exact  # what a bound with n = B = 6 would have said


def test_the_exact_law_of_the_shipped_output_keeps_the_claim_and_half_the_noise_does_not() -> None:
    """Everything an observer of a batch of 2 x 3 users can see, enumerated from the oracles."""
    privatizer = shuffler(horizon=2, crowd=3, epsilon=0.5, delta=0.1)
    said = privatizer.guarantee
    steps = privatizer.local.oracles[STEP], privatizer.local.oracles[REWARD]
    for oracle in steps:
        assert isinstance(oracle, KaryResponse)
        assert worst_delta(listed.pmf(oracle), 3, said.epsilon, [(0, 1)]) <= said.delta
        loud = KaryResponse.calibrate(2 * oracle.epsilon, oracle.domain)
        assert worst_delta(listed.pmf(loud), 3, said.epsilon, [(0, 1)]) > said.delta


def test_sampled_batches_have_the_enumerated_law() -> None:
    """2,000 opened batches of three users against the exact law of their counts.

    Chi-square on the number of reports of the first cell; fails once in 10^6 when right.
    """
    privatizer = shuffler(horizon=1, crowd=3, epsilon=0.8, delta=0.2)
    oracle, source = privatizer.local.oracles[REWARD], noise(11)
    w = weight(privatizer.local, "rewards", REWARD)
    counts, trials = np.zeros(4), 2000
    for _ in range(trials):
        secret = privatizer.init()
        for k in range(3):
            row = contribution(privatizer.statistic, k, reward=0.0)
            privatizer.absorb(secret, privatizer.encode(row, publication(1), source), 0)
        views = privatizer.local.sums.views(secret.sums)
        counts[views["rewards"][1, 0, 0, 0, 0] // w] += 1
    expected = [
        trials * math.comb(3, j) * oracle.p**j * (1 - oracle.p) ** (3 - j) for j in range(4)
    ]
    assert ((counts - expected) ** 2 / expected).sum() < 30.7


def test_secure_reports_are_labelled_and_one_simulated_report_spoils_a_batch() -> None:
    privatizer = shuffler(horizon=1, crowd=2)
    rows = [contribution(privatizer.statistic, k) for k in range(2)]
    for sources, label in (
        ((SecureNoise(),) * 2, "secure"),
        ((SecureNoise(), noise()), "simulated"),
    ):
        secret = privatizer.init()
        for row, source in zip(rows, sources, strict=True):
            privatizer.absorb(secret, privatizer.encode(row, publication(1), source), 0)
        assert privatizer.release(secret, Query(0), noise()).source == label


def test_colluders_and_participations_cost() -> None:
    plain = shuffler(crowd=100, epsilon=1.0, delta=1e-6)
    spied = shuffler(crowd=100, epsilon=1.0, delta=1e-6, colluders=60)
    again = shuffler(crowd=100, epsilon=1.0, delta=1e-6, participations=2)
    local = [p.guarantee.also[0].epsilon for p in (plain, spied, again)]
    assert spied.hidden == 40 and local[1] < local[0]
    watched = Shuffled(plain.local, task(), crowd=100, colluders=60, requested=(1.0, 1e-6))
    assert (
        watched.guarantee.delta_at_requested_epsilon > 1e-6
    )  # the same reports, fewer to hide among
    assert again.guarantee.epsilon == pytest.approx(1.0) and again.guarantee.participations == 2
    once = Crowd(100, 0.5, 1e-6 / (1 + math.exp(0.5)))
    assert Blanket((again.local.oracles[STEP],)).delta(once.users, once.epsilon) <= once.delta
    assert local[2] == pytest.approx(2 * again.local.oracles[STEP].epsilon, rel=0.1)
    with pytest.raises(InvalidInput, match="nobody to hide among"):
        hidden_among(5, 5)


@pytest.mark.parametrize(
    ("times", "crowd", "epsilon", "delta"),
    [(3, 20, 2.0, 0.01), (4, 30, 4.0, 0.01), (6, 60, 6.0, 0.05), (8, 400, 8.0, 0.01)],
)
def test_all_reports_of_a_person_may_sit_in_one_batch(
    times: int, crowd: int, epsilon: float, delta: float
) -> None:
    """Exact laws of the only number a batch of two cells shows, for every mix of other users."""
    facts = task(1, states=1, participations=times)
    privatizer = Shuffled.calibrated(
        OneStep(facts), facts, epsilon=epsilon, delta=delta, crowd=crowd, colluders=0, most=8.0
    )
    said, (p, q) = privatizer.guarantee, map(float, privatizer.local.oracles[REWARD].chances)
    for ones in range(0, crowd - times + 1, 5):
        others = np.convolve(
            stats.binom(ones, p).pmf(np.arange(ones + 1)),
            stats.binom(crowd - times - ones, q).pmf(np.arange(crowd - times - ones + 1)),
        )
        mine = [stats.binom(times, chance).pmf(np.arange(times + 1)) for chance in (p, q)]
        first, second = (np.convolve(others, own) for own in mine)
        for a, b in ((first, second), (second, first)):
            true = np.maximum(a - math.exp(said.epsilon) * b, 0.0).sum()
            assert true <= said.delta


@pytest.mark.parametrize("loud", [STEP, REWARD])
def test_the_worst_crowd_decides(loud: int) -> None:
    """One kind of report says more than the other: its step's users are hidden worse."""
    oracles = [KaryResponse.calibrate(1.0, domain) for domain in (8, 4, 4)]
    oracles[loud] = KaryResponse.calibrate(3.0, oracles[loud].domain)
    facts = task(2)
    local = OneCell(OneStep(facts), facts, requested_epsilon=3.0, oracles=tuple(oracles))
    said = Shuffled(local, facts, crowd=50, requested=(0.5, 1e-4)).guarantee
    true = Blanket((oracles[loud],)).delta(50, 0.5)
    assert said.delta_at_requested_epsilon == pytest.approx(true) and true > 1e-3
    assert said.epsilon == pytest.approx(Blanket((oracles[loud],)).epsilon_at(50, 1e-4), rel=1e-5)


def test_the_statement_shows_both_views() -> None:
    said = shuffler(crowd=200, epsilon=1.0, delta=1e-6).guarantee
    (view,) = said.also
    assert view.model == "local" and view.delta == 0.0 and view.epsilon > 2.0
    assert view.requested_epsilon is None
    text = str(said)
    assert "shuffle model" in text and "Also: (" in text and "local model" in text
    assert "opened in batches of 400 users" in text and "blanket of 200 users" in text


def test_other_oracles_are_refused() -> None:
    facts = task()
    oracles = tuple(UnaryEncoding.calibrate(1.0, domain) for domain in (8, 4, 4))
    local = OneCell(OneStep(facts), facts, requested_epsilon=1.0, oracles=oracles)
    with pytest.raises(InvalidInput, match="subset selection"):
        Shuffled(local, facts, crowd=3, requested=(1.0, 1e-6))


@pytest.mark.parametrize("make", [OneStep, EachStep])
def test_questions_chosen_by_a_planner_are_refused(make) -> None:
    """Then steps would not have their full crowds, and moves no blanket of their own."""
    privatizer, plain = shuffler(horizon=2, crowd=3, make=make), publication()
    row = contribution(privatizer.statistic, 0)
    asked = Publication(0, plain.policy, {**plain.context, "questions": np.linspace(0, 1, 6)})
    with pytest.raises(InvalidInput, match="all steps are asked about alike"):
        privatizer.encode(row, asked, noise())
    privatizer.encode(row, plain, noise())


def test_the_oracle_of_moves_is_never_asked_and_never_the_weakest() -> None:
    for make in (OneStep, EachStep):
        oracles = shuffler(horizon=3, crowd=30, make=make).local.oracles
        assert oracles[MOVE].domain == 4
        assert oracles[MOVE].epsilon <= min(oracles[STEP].epsilon, oracles[REWARD].epsilon)


def test_the_default_crowd_scales_as_it_says() -> None:
    assert useful_crowd(1.0, 1e-6) == 56
    assert useful_crowd(0.1, 1e-6) == pytest.approx(10 * 56, rel=0.01)
    assert useful_crowd(1.0, 1e-12) == pytest.approx(math.sqrt(2) * 56, rel=0.02)


# ---- steps drawn by the users -------------------------------------------------------------------


class TestShuffledDrawn(TestShuffled):
    """A crowd of one again, of users who draw one of three steps."""

    make_of: ClassVar[type[OneStep] | type[EachStep]] = EachStep

    def statistic(self) -> Statistic:
        return EachStep(task(horizon=3))

    def make(self, statistic: Statistic) -> Privatizer:
        return shuffler(horizon=3, crowd=1, make=EachStep)

    def publication(self) -> Publication:
        return publication(3)

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        """The coin of the first step says yes; then as before."""
        draws = [
            (np.array(0), np.array(0), np.eye(8, dtype=int)[k]) for k in range(len(contributions))
        ]
        return ReplayNoise([draw for three in draws for draw in three])

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        local, blocks, cells = self.estimated(len(contributions), STEP)
        for name, axis in (("moves", 1), ("rewards", 2)):
            w = weight(local, name, STEP) / WEIGHT_STEPS
            blocks[name][0, :, 0] = w * cells.reshape(2, 2, 2).sum(axis=axis)
            blocks[f"{name}_unit"][0, :, 0] = w
        blocks["first"][:] = cells.reshape(2, 4).sum(axis=1)
        return blocks


class TestDrawnCell(TestShuffledDrawn):
    stored: ClassVar[bool] = True
    """The local part on its own, without a shuffler."""

    subject: ClassVar[type] = DrawnCell

    def make(self, statistic: Statistic) -> Privatizer:
        return DrawnCell(EachStep(task(horizon=3)), task(horizon=3), requested_epsilon=1.0)

    def per_report(self) -> float:
        return self.small().guarantee.epsilon

    def questions(self) -> list[Question]:
        """Also of people who are somewhere else at every step."""
        (question,) = super().questions()
        moving = np.zeros(self.statistic().layout.size, dtype=np.int64)
        life = Trajectory(np.array([0, 1, 1, 0]), np.zeros(3, dtype=int), np.array([0.5, 1.0, 0.0]))
        self.statistic().contribute(life, self.publication(), 0, moving)
        return [question._replace(contributions=[*question.contributions, moving])]

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Fresh reports: pure epsilons add up."""
        facts = task(horizon=3, participations=times)
        privatizer = DrawnCell(EachStep(facts), facts, requested_epsilon=1.0)
        return privatizer, times * max(map(subset_loss, privatizer.oracles))

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        facts, oracles = task(horizon=3, participations=times), best_oracles(1.0, (8, 4, 4))
        privatizer = DrawnCell(EachStep(facts), facts, requested_epsilon=0.5, oracles=oracles)
        return privatizer, max(repeated_delta(oracle, times, 0.5) for oracle in oracles)


def test_people_who_differ_at_one_step_are_as_far_apart_as_if_it_were_drawn() -> None:
    """Any step may be drawn, so the worst one counts: also where most of them are alike."""
    case = TestDrawnCell()
    statistic, entry = case.statistic(), case.publication()
    privatizer, sent = case.make(statistic), []
    for rewards in ([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.25]):
        out = np.zeros(statistic.layout.size, dtype=np.int64)
        life = Trajectory(np.zeros(4, dtype=int), np.zeros(3, dtype=int), np.array(rewards))
        statistic.contribute(life, entry, 0, out)
        sent.append(out)
    assert privatizer.relative_shift(sent[0], sent[1], entry) == 1.0
    assert privatizer.relative_shift(sent[0], sent[2], entry) == 0.25


def test_users_who_draw_their_step_are_one_crowd() -> None:
    drawn = shuffler(horizon=2, crowd=6, epsilon=0.5, delta=0.05, make=EachStep)
    turns = shuffler(horizon=2, crowd=3, epsilon=0.5, delta=0.05)
    assert drawn.batch == turns.batch == 6 and drawn.crowds == 1 and drawn.hidden == 6
    assert drawn.guarantee.also[0].epsilon > turns.guarantee.also[0].epsilon
    assert "own coin" in str(drawn.guarantee)
    same = [
        drawn.encode(contribution(drawn.statistic, 0), publication(), noise(k)) for k in range(6)
    ]
    assert filled(drawn, same).users == 6  # no quota per step


def test_the_law_of_a_drawn_batch_keeps_the_claim_and_half_the_noise_does_not() -> None:
    """Every multiset of (step, cell) messages of 3 users, enumerated."""
    privatizer = shuffler(horizon=2, crowd=3, epsilon=0.5, delta=0.1, make=EachStep)
    said = privatizer.guarantee
    worst = [(0, 31), (0, 1), (0, 4)]  # cells differ at both steps, or at one
    assert drawn_delta(privatizer, 3, said.epsilon, worst) <= said.delta
    oracles = privatizer.local.oracles
    loud = tuple(KaryResponse.calibrate(2 * o.epsilon, o.domain) for o in oracles)
    local = DrawnCell(privatizer.statistic, task(), requested_epsilon=9.0, oracles=loud)
    noisy = Shuffled(local, task(), crowd=3, requested=(0.5, 0.1))
    assert drawn_delta(noisy, 3, said.epsilon, worst) > said.delta


def drawn_delta(privatizer: Shuffled, users: int, epsilon: float, pairs) -> float:
    """Exact, over a few datasets of the others: all alike, in each of the inputs of the pairs."""
    step, last = privatizer.local.oracles[STEP], privatizer.local.oracles[REWARD]
    rows = [
        np.concatenate([listed.pmf(step)[x], listed.pmf(last)[y]]) / 2
        for x in range(8)
        for y in range(4)
    ]
    pmf = np.array([rows[x] for x in (0, 1, 4, 31, 14)])
    index = {0: 0, 1: 1, 4: 2, 31: 3}
    found = [(index[x], index[y]) for x, y in pairs]
    return worst_delta(pmf, users, epsilon, [*found, *((y, x) for x, y in found)])


def test_drawn_steps_are_uniform_and_their_reports_unbiased() -> None:
    """6,000 reports about a three-step life: steps by chi-square (1e-6), cells by 5 errors."""
    privatizer = shuffler(horizon=3, crowd=1, epsilon=2.0, make=EachStep)
    row, source, secret = (
        contribution(privatizer.statistic, 0, 1, 0.25),
        noise(7),
        privatizer.init(),
    )
    trials = 6000
    for _ in range(trials):
        privatizer.absorb(secret, privatizer.encode(row, publication(3), source), 0)
    release = privatizer.release(secret, Query(0), source)
    local = privatizer.local
    moves, rewards, last = (
        weight(local, name, kind)
        for name, kind in (("moves", STEP), ("rewards", STEP), ("rewards", REWARD))
    )
    ended = local.sums.views(secret.sums)["rewards_weight"][1, 0, 1, 0] / last
    users = np.array([release.blocks["first_users"][0], 0, ended])
    users[1] = trials - users.sum()
    assert ((users - trials / 3) ** 2 / (trials / 3)).sum() < 27.7
    spread = 5 * math.sqrt(2 * trials * local.oracles[STEP].variance_inside + trials / 4)
    before = users[0] + users[1]
    off = release.blocks["moves"][0, 1, 0, 1] - moves / WEIGHT_STEPS * before
    assert abs(off) < spread * moves / WEIGHT_STEPS
    poor = 0.75 * (rewards * before + last * users[2]) / WEIGHT_STEPS
    assert abs(release.blocks["rewards"][0, 1, 0, 0] - poor) < spread
    assert abs(release.blocks["first"][1] - users[0]) < spread
