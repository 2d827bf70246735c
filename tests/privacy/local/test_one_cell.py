"""OneCell: the contract of a privatizer, its statement, and what it refuses."""

import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.composition import repeated_delta, subset_loss
from contracts.privatizer import TASK, PrivatizerContract, Question, taking_part
from contracts.replay import ReplayNoise
from privacy.local.cells import (
    always,
    contribution,
    lived,
    one_cell,
    plain_release,
    publication,
    questions,
    some_shares,
    task,
    worst_at,
)
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, WEIGHT_STEPS
from tacit.kernels.raw.cells import add_hits
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.privacy import Noise, Privatizer, Query, SecureNoise, SimulatedNoise
from tacit.privacy.base import Sent
from tacit.privacy.finite import best_oracle
from tacit.privacy.local.one_cell import OneCell, best_oracles
from tacit.publication import Publication
from tacit.statistics.one_step import OneStep


class TestOneCell(PrivatizerContract):
    subject: ClassVar[type] = OneCell

    def statistic(self) -> OneStep:
        return OneStep(TASK)

    def make(self, statistic: OneStep) -> Privatizer:
        return OneCell(statistic, TASK, requested_epsilon=1.0)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(5))

    def publication(self) -> Publication:
        return publication(3, asked=some_shares(3))

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        rng, privatizer = np.random.default_rng(1), self.make(self.statistic())
        users = [lived(rng.integers(2, size=4), rng.random(3)) for _ in range(count)]
        return [
            contribution(privatizer, user, k, self.publication()) for k, user in enumerate(users)
        ]

    def questions(self) -> list[Question]:
        """Every step and kind: whoever was anywhere, with rewards 0, 1 and between."""
        people = [
            lived(np.array(states), np.array(rewards))
            for states, rewards in (
                ([0, 0, 0, 0], [1.0, 1.0, 1.0]),
                ([1, 1, 1, 1], [0.0, 0.0, 0.0]),
                ([1, 0, 1, 0], [0.25, 0.5, 0.75]),
            )
        ]
        return [
            self.question(people, 3, publication(3, asked=always(3, *asked)))
            for asked in questions(3)
        ]

    def question(self, people, coin: int, public: Publication) -> Question:
        privatizer = self.small()
        assert isinstance(privatizer, OneCell)
        _, kind = privatizer.statistic.question(public, coin)
        sent = [contribution(privatizer, user, coin, public) for user in people]
        return Question(public, coin, sent, privatizer.oracles[kind].epsilon)

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Fresh reports: pure epsilons add up."""
        of = taking_part(times)
        privatizer = OneCell(OneStep(of), of, requested_epsilon=1.0)
        return privatizer, times * max(map(subset_loss, privatizer.oracles))

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        of, oracles = taking_part(times), best_oracles(1.0, (8, 4, 4))
        privatizer = OneCell(OneStep(of), of, requested_epsilon=0.5, oracles=oracles)
        return privatizer, max(repeated_delta(oracle, times, 0.5) for oracle in oracles)

    def recorded(self, count: int) -> list[np.ndarray]:
        """Reports of 8 or 4 cells, by the question that each of them is asked."""
        rng, privatizer = np.random.default_rng(2), self.make(self.statistic())
        asked = [privatizer.statistic.question(self.publication(), k) for k in range(count)]
        return [rng.integers(0, 2, size=privatizer.oracles[kind].domain) for _, kind in asked]

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        """A coin and a report for each; one draw more would be an error."""
        reports = self.recorded(len(contributions))
        return ReplayNoise([draw for report in reports for draw in (np.array(0), report)])

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        return plain_release(
            self.make(self.statistic()), self.recorded(len(contributions)), self.publication()
        )


class TestFirstPublication(TestOneCell):
    """Nothing was published but the policy: questions are asked in turn."""

    def publication(self) -> Publication:
        return publication(3)

    def questions(self) -> list[Question]:
        people = [lived([0] * 4, [1.0] * 3), lived([1] * 4, [0.0] * 3), lived([1] * 4, [0.5] * 3)]
        return [self.question(people, coin, self.publication()) for coin in range(3)]


def test_recorded_draws_are_used_up_exactly() -> None:
    """One coin and one report each, no hidden draw, whatever the question."""
    case = TestOneCell()
    privatizer, contributions = case.make(case.statistic()), case.contributions(12)
    recorded = case.without_chance(contributions)
    for c in contributions:
        privatizer.encode(c, case.publication(), recorded)
    with pytest.raises(InvalidInput, match="all recorded noise was used"):
        recorded.happens(1, 2)
    asked = {privatizer.statistic.question(case.publication(), k)[1] for k in range(12)}
    assert asked == {STEP, MOVE, REWARD}


def test_every_message_comes_with_the_id_it_was_made_for() -> None:
    case = TestOneCell()
    privatizer, entry = case.make(case.statistic()), case.publication()
    messages = [privatizer.randomize(c, entry, case.noise()) for c in case.contributions(3)]
    for coins in ([0, 1], [0, 1, 2, 3]):
        with pytest.raises(InvalidInput, match=f"3 messages came with {len(coins)} coins"):
            privatizer.fold(privatizer.init(), Sent(messages, entry, coins))
        with pytest.raises(InvalidInput, match=f"3 messages came with {len(coins)} coins"):
            privatizer.inspect_all(Sent(messages, entry, coins))


def test_answers_to_different_questions_are_not_compared() -> None:
    """How far apart two people are is asked of one question: cells of two kinds are no pair."""
    case = TestOneCell()
    privatizer, entry = case.make(case.statistic()), case.publication()
    asked = [privatizer.statistic.question(entry, k) for k in range(12)]
    user = lived(np.array([0, 1, 0, 1]), np.array([0.0, 1.0, 0.5]))
    other = asked.index(max(asked))
    first, second = (contribution(privatizer, user, k, entry) for k in (0, other))
    assert asked[0] != asked[other]
    message = privatizer.randomize(first, entry, case.noise())
    with pytest.raises(InvalidInput, match="different questions"):
        privatizer.relative_shift(first, second, entry)
    with pytest.raises(InvalidInput, match="different questions"):
        privatizer.log_ratio(message[None], first, second, entry)
    assert privatizer.relative_shift(first, first, entry) == 0.0


def test_the_guarantee_names_its_mechanism_and_its_numbers() -> None:
    privatizer = one_cell(1.0, task(3))
    said = privatizer.guarantee
    assert (said.model, said.delta, said.requested_epsilon) == ("local", 0.0, 1.0)
    assert (said.relation, said.unit, said.participations) == ("replace-one", "user", 1)
    assert said.requested_delta == 0.0 and not said.simulated
    assert "subset selection over 8 cells (step)" in said.mechanism
    assert "k-ary response over 4 cells (move)" in said.mechanism
    assert "k-ary response over 4 cells (reward)" in said.mechanism
    for name, oracle in zip(("step", "move", "reward"), privatizer.oracles, strict=True):
        assert said.noise[f"{name} p"] == oracle.p and said.noise[f"{name} q"] == oracle.q
        assert said.noise[f"{name} domain"] == oracle.domain
    assert any("do not depend on the user's data" in line for line in said.assumptions)


def test_one_step_tasks_have_one_oracle() -> None:
    said = one_cell(1.0, task(1)).guarantee
    assert set(said.noise) == {"reward domain", "reward p", "reward q"}
    assert "8 cells" not in said.mechanism


def test_somebody_who_comes_back_pays_for_every_time() -> None:
    privatizer = one_cell(1.5, task(2, participations=3))
    said = privatizer.guarantee
    assert privatizer.oracles == tuple(best_oracle(0.5, domain) for domain in (8, 4, 4))
    assert 1.5 - 1e-9 < said.epsilon <= 1.5
    assert said.participations == 3 and said.delta_at_requested_epsilon == 0.0
    worst = worst_at(privatizer, 0, publication(2))
    assert 3 * worst == pytest.approx(said.epsilon, abs=1e-12)


@settings(max_examples=100)
@given(st.floats(1e-3, 30.0), st.integers(1, 9), st.integers(1, 4))
def test_no_request_is_exceeded_by_a_rounding_error(epsilon, times, S) -> None:
    said = one_cell(epsilon, task(2, S, participations=times)).guarantee
    assert said.epsilon <= epsilon and said.delta_at_requested_epsilon == 0.0
    assert "WEAKER" not in str(said)


def test_the_guarantee_follows_the_noise_not_the_request() -> None:
    """Recomputed for oracles of 2, 2 and 3: the largest epsilon, and a delta at what was asked."""
    privatizer = one_cell(1.0, task(2))
    for largest in range(KINDS):
        privatizer.oracles = tuple(
            best_oracle(3.0 if kind == largest else 2.0, domain)
            for kind, domain in enumerate((8, 4, 4))
        )
        said = privatizer._account(task(2), 1.0)
        assert said.epsilon == pytest.approx(3.0) and said.requested_epsilon == 1.0
        exact = privatizer.oracles[largest].channel().delta(1.0)
        assert said.delta_at_requested_epsilon == pytest.approx(exact, rel=1e-3) and exact > 0.1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_requests_are_refused(epsilon) -> None:
    with pytest.raises(InvalidInput, match="requested_epsilon = "):
        one_cell(epsilon, task(2))


def test_sums_that_could_overflow_are_refused() -> None:
    with pytest.raises(InvalidInput, match="64-bit"):
        one_cell(1.0, task(2, users=2**33))
    one_cell(1.0, task(2, users=2**33 - 1))


def test_the_largest_sums_that_are_allowed_do_not_overflow() -> None:
    """As many users as there may be, all of whom report every cell, at the largest weight."""
    privatizer, most = one_cell(1.0, task(2, users=2**33 - 1)), 2**33 - 1
    occupancy, table = np.full((2, 2), WEIGHT_STEPS), np.zeros((2, 2), dtype=np.int64)
    sums = privatizer.cell_sums(privatizer.init().sums)
    best = privatizer.weighing._replace(moves=(0.5, 0.5), rewards=(0.5, 0.5), most=0.75)
    places = privatizer.statistic.places
    told = np.full(8, most), most, STEP, 0, places.state, places.number
    add_hits(*told, table, occupancy, best, sums)
    assert int(sums.moves_seen[0, 0, 0]) == most * 4 * WEIGHT_STEPS**2
    assert min(part.min() for part in sums) >= 0


def test_a_report_needs_a_table_and_predictions_of_its_task() -> None:
    privatizer = one_cell(1.0, task(2))
    noise, sent = SimulatedNoise(np.random.default_rng(0)), np.zeros(14, dtype=np.int64)
    table = TabularPolicy(np.zeros((2, 2), dtype=int))
    fine, small = ({"occupancy": np.full((2, n), WEIGHT_STEPS)} for n in (2, 1))
    longer = TabularPolicy(np.zeros((3, 2), dtype=int))
    privatizer.encode(sent, Publication(0, table, fine), noise)
    for bad in (
        Publication(0, table),
        Publication(0, table, small),
        Publication(0, longer, fine),
        Publication(0, uniform_policy(2, 2, 2), fine),
    ):
        with pytest.raises(InvalidInput, match="deterministic table and the occupancy"):
            privatizer.encode(sent, bad, noise)


def test_one_simulated_report_marks_the_release() -> None:
    privatizer, public = one_cell(1.0, task(2)), publication(2)
    secret = privatizer.init()
    for noise in (SecureNoise(), SimulatedNoise(np.random.default_rng(0)), SecureNoise()):
        sent = contribution(privatizer, lived([0, 0, 0], [0.0, 0.0]), 0, public)
        privatizer.absorb(secret, privatizer.encode(sent, public, noise), 0)
    assert privatizer.release(secret, Query(1), SecureNoise()).source == "simulated"
