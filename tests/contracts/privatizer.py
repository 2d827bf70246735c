"""What every privatizer owes. Subclass as ``TestX(PrivatizerContract)`` and set ``subject``."""

import copy
import dataclasses
import itertools
import math
import pickle
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from contracts.audited import STEP, AuditedContract
from contracts.entropy import Law, secure_law, simulated_law
from contracts.randomizer import close
from contracts.releases import ReleasesContract
from contracts.replay import ReplayNoise
from tacit.errors import InvalidInput, RawDataLeak
from tacit.planners.base import Streams
from tacit.policies.tabular import uniform_policy
from tacit.privacy import (
    GridLaw,
    Guarantee,
    Noise,
    Privatizer,
    Query,
    Secret,
    SecureNoise,
    SimulatedNoise,
    ZeroNoise,
)
from tacit.privacy.base import LocalPrivatizer, Sent
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics import Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task

TASK = Task(
    family="tabular",
    horizon=3,
    sizes={"states": 2, "actions": 2},
    homogeneous=True,
    users=20,
)


def taking_part(times: int) -> Task:
    """The task for people who come that often."""
    return dataclasses.replace(TASK, participations=times)


class Question(NamedTuple):
    """What one report may be about: all people who could send it, and what it may cost them."""

    publication: Publication
    coin: int
    contributions: list[np.ndarray]
    epsilon: float


class Witness(SimulatedNoise):
    """Simulated noise that remembers every law it was asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.default_rng(seed))
        self.laws: list[GridLaw] = []

    def fill(self, law: GridLaw, out: np.ndarray) -> None:
        self.laws.append(law)
        super().fill(law, out)

    def next(self) -> float:
        """Tells two sources apart that were not asked for the same draws."""
        return float(self._rng.random())


class PrivatizerContract(AuditedContract, ReleasesContract):
    """Override ``make``, and ``noise`` and ``drawn`` for mechanisms that draw noise on a grid.

    One whose reports have finitely many outputs says ``questions`` instead: their law is worked
    out exactly, for both samplers and on every path. ``coming_back`` says what participations cost.

    A mechanism that does not release sums of contributions overrides ``contributions`` (what its
    statistic can produce), ``without_chance`` and ``expected`` (what is released then).
    """

    subject: ClassVar[type]
    exactness: ClassVar[float] = 1e-9
    """How far a release without noise may be from the exact sums (rounding to the grid)."""

    def statistic(self) -> Statistic:
        return VisitCounts(TASK)

    def make(self, statistic: Statistic) -> Privatizer:
        raise AssertionError("the subclass makes the privatizer")

    def noise(self) -> Noise:
        return ZeroNoise()

    def publication(self) -> Publication:
        return Publication(0, uniform_policy(3, 2, 2))

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        rng = np.random.default_rng(1)
        size = self.statistic().layout.size
        return [rng.integers(0, 3, size=size) for _ in range(count)]

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        """Recorded draws in place of noise, after which the release is known: here zeros."""
        zero = np.zeros(self.statistic().layout.size, dtype=np.int64)
        return ReplayNoise([zero] * 20)

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        """The release after those draws: here the exact sums."""
        layout = self.statistic().layout
        return layout.views(sum(contributions) * layout.units)

    def absorbed(self, privatizer: Privatizer, noise: Noise, order: list[int]) -> Secret:
        contributions = self.contributions(len(order))
        secret = privatizer.init()
        reports = [privatizer.encode(c, self.publication(), noise) for c in contributions]
        for i in order:
            secret = privatizer.absorb(secret, reports[i], 0)
        return secret

    def test_the_subject_is_what_make_makes(self) -> None:
        assert type(self.make(self.statistic())) is self.subject

    def test_the_guarantee_is_frozen_hashable_and_survives_json(self) -> None:
        guarantee = self.make(self.statistic()).guarantee
        again = Guarantee.from_json(guarantee.to_json())
        assert again == guarantee and hash(again) == hash(guarantee)
        with pytest.raises(AttributeError):
            guarantee.epsilon = 0.0  # type: ignore[misc]

    def test_no_privacy_is_said_loudly_and_only_then(self) -> None:
        guarantee = self.make(self.statistic()).guarantee
        assert ("NO PRIVACY" in str(guarantee)) == (not np.isfinite(guarantee.epsilon))
        assert (guarantee.model == "none") == (not np.isfinite(guarantee.epsilon))

    def test_secret_state_is_neither_printed_nor_pickled_nor_copied(self) -> None:
        privatizer = self.make(self.statistic())
        secret = self.absorbed(privatizer, self.noise(), [0, 1, 2])
        assert not any(character.isdigit() for character in repr(secret))
        for leak in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(RawDataLeak):
                leak(secret)

    def test_encode_leaves_the_contribution_alone_and_keeps_no_view_of_it(self) -> None:
        privatizer, noise = self.make(self.statistic()), self.noise()
        contribution = self.contributions(1)[0]
        before = contribution.copy()
        report = privatizer.encode(contribution, self.publication(), noise)
        assert np.array_equal(contribution, before)
        sent = report.values.copy()
        contribution[:] = -1
        assert np.array_equal(report.values, sent)

    def test_all_noise_comes_from_the_given_source(self) -> None:
        """With recorded draws instead of noise, the release is known in advance."""
        privatizer, contributions = self.make(self.statistic()), self.contributions(3)
        recorded, secret = self.without_chance(contributions), privatizer.init()
        for contribution in contributions:
            report = privatizer.encode(contribution, self.publication(), recorded)
            secret = privatizer.absorb(secret, report, 0)
        release = privatizer.release(secret, Query(1), recorded)
        expected = self.expected(contributions)
        assert release.blocks.keys() == expected.keys()
        for name, block in release.blocks.items():
            assert block.shape == expected[name].shape
            assert np.allclose(block, expected[name], rtol=0, atol=self.exactness)

    def test_a_report_counts_once(self) -> None:
        privatizer, noise = self.make(self.statistic()), self.noise()
        report = privatizer.encode(self.contributions(1)[0], self.publication(), noise)
        secret = privatizer.absorb(privatizer.init(), report, 0)
        with pytest.raises(InvalidInput, match="already absorbed"):
            privatizer.absorb(secret, report, 0)
        assert secret.users == 1

    def test_the_order_of_arrival_does_not_matter_to_the_last_bit(self) -> None:
        privatizer = self.make(self.statistic())
        one = self.release(privatizer, self.absorbed(privatizer, self.noise(), [0, 1, 2, 3, 4]))
        two = self.release(privatizer, self.absorbed(privatizer, self.noise(), [4, 2, 0, 3, 1]))
        assert blocks_equal(one, two)

    def test_the_release_is_complete_public_and_read_only(self) -> None:
        privatizer = self.make(self.statistic())
        release = self.release(privatizer, self.absorbed(privatizer, self.noise(), [0, 1, 2]))
        assert release.users == 3
        declared = {block.name: block.shape for block in privatizer.layout.blocks}
        assert {name: block.shape for name, block in release.blocks.items()} == declared
        for name, block in release.blocks.items():
            assert np.isfinite(block).all()
            assert (release.law.variance(name) >= 0).all()
            with pytest.raises(ValueError, match="read-only"):
                block[...] = 0

    def test_the_release_does_not_hang_on_the_secret_state(self) -> None:
        privatizer = self.make(self.statistic())
        secret = self.absorbed(privatizer, self.noise(), [0, 1, 2])
        release = self.release(privatizer, secret)
        before = {name: block.copy() for name, block in release.blocks.items()}
        secret.sums[:] = np.iinfo(np.int64).min
        assert all(np.array_equal(release.blocks[name], before[name]) for name in before)

    def test_asking_again_gives_the_same_value(self) -> None:
        privatizer, noise = self.make(self.statistic()), self.noise()
        secret = self.absorbed(privatizer, noise, [0, 1])
        first = privatizer.release(secret, Query(1), noise)
        second = privatizer.release(secret, Query(1), noise)
        assert blocks_equal(first, second)

    stored: ClassVar[bool] = True
    """Whether its state can be stored; one that cannot must refuse."""

    def test_state_as_arrays_goes_on_as_if_never_stopped(self) -> None:
        privatizer = self.make(self.statistic())
        going, other = Witness(5), Witness(5)
        secret = self.absorbed(privatizer, self.noise(), [0, 1, 2])
        if not self.stored:
            with pytest.raises(InvalidInput, match="cannot be stored"):
                privatizer.state(secret)
            return
        arrays = {name: array.copy() for name, array in privatizer.state(secret).items()}
        again = privatizer.restore(arrays)
        for contribution in self.contributions(2):
            for state, noise in ((secret, going), (again, other)):
                report = privatizer.encode(contribution, self.publication(), noise)
                privatizer.absorb(state, report, 0)
        one = privatizer.release(secret, Query(1), going)
        two = privatizer.release(again, Query(1), other)
        assert blocks_equal(one, two) and one.users == two.users == 5
        assert one.source == two.source and going.next() == other.next()
        for name in one.blocks:
            assert np.array_equal(one.law.variance(name), two.law.variance(name))

    def test_the_guarantee_is_what_the_event_gives(self) -> None:
        privatizer = self.make(self.statistic())
        said, event = privatizer.guarantee, privatizer.event
        assert said.epsilon == event.epsilon(said.delta) and said.mu == event.mu
        if said.requested_epsilon is not None:
            assert said.delta_at_requested_epsilon == event.delta(said.requested_epsilon)

    def test_nobody_yet_is_a_release_too(self) -> None:
        privatizer = self.make(self.statistic())
        assert self.release(privatizer, privatizer.init()).users == 0

    # what noise there is, on every path and from every sampler

    def drawn(self, guarantee: Guarantee) -> list[tuple[str, np.ndarray]]:
        """Kind and scales (natural units) of every draw for three reports and one release.

        From what the guarantee states as its noise: that is the noise which must be there.
        """
        return []

    def questions(self) -> list[Question]:
        """Of ``small()``: for each, the laws of its reports are compared exactly."""
        return []

    def small(self) -> Privatizer:
        """One whose reports can be enumerated."""
        return self.make(self.statistic())

    def test_the_noise_drawn_is_the_noise_stated(self) -> None:
        privatizer, witness = self.make(self.statistic()), Witness(4)
        secret = privatizer.init()
        for contribution in self.contributions(3):
            report = privatizer.encode(contribution, self.publication(), witness)
            secret = privatizer.absorb(secret, report, 0)
        privatizer.release(secret, Query(1), witness)
        expected = self.drawn(privatizer.guarantee)
        assert [law.kind for law in witness.laws] == [kind for kind, _ in expected]
        for law, (_, scales) in zip(witness.laws, expected, strict=True):
            assert law.scales * STEP == pytest.approx(scales, rel=1e-12)
        stated = np.isfinite(privatizer.guarantee.epsilon)
        assert expected or self.questions() or not stated, "say what noise protects people"

    def test_every_path_adds_up_to_the_same_sums(self) -> None:
        """Reports one by one, in two halves, folded, or summed before: same draws, same sums."""
        privatizer, public = self.make(self.statistic()), self.publication()
        contributions, coins = self.contributions(8), list(range(8))
        whole, halves, folded, summed = Witness(7), Witness(7), Witness(7), Witness(7)
        secret = privatizer.init()
        for contribution in contributions:
            privatizer.absorb(secret, privatizer.encode(contribution, public, whole), 0)
        others = []
        if isinstance(privatizer, LocalPrivatizer):
            one, many = privatizer.init(), privatizer.init()
            for contribution, coin in zip(contributions, coins, strict=True):
                message = privatizer.randomize(contribution, public, halves)
                report = privatizer.collect(message, public, coin, "simulated")
                privatizer.absorb(one, report, 0)
            messages = [privatizer.randomize(c, public, folded) for c in contributions]
            for part in (slice(0, 3), slice(3, 8)):
                privatizer.fold(many, Sent(messages[part], public, coins[part], "simulated"))
            assert whole.next() == halves.next() == folded.next()
            others += [one, many]
        if getattr(privatizer, "absorbs_sums", False):
            one = privatizer.init()
            for contribution in contributions:
                one = privatizer.absorb_sums(one, contribution, 1, public, summed)
            others.append(one)
        for other in others:
            assert np.array_equal(secret.sums, other.sums)
            assert (secret.users, secret.source) == (other.users, other.source)

    def test_a_message_that_no_device_makes_is_refused(self) -> None:
        """On every way in: too short, too long, or beyond what an honest report can reach."""
        privatizer, public = self.make(self.statistic()), self.publication()
        if not isinstance(privatizer, LocalPrivatizer):
            return
        honest = privatizer.randomize(self.contributions(1)[0], public, Witness(7))
        privatizer.collect(honest, public, 0)
        ends = np.iinfo(np.int64)
        for wrong in (
            honest[:-1],
            np.append(honest, 0),
            np.full_like(honest, ends.max),
            np.full_like(honest, ends.min),
        ):
            secret = privatizer.init()
            for collect in (
                lambda wrong=wrong: privatizer.collect(wrong, public, 0),
                lambda wrong=wrong, secret=secret: privatizer.fold(
                    secret, Sent([honest, wrong], public, [0, 1])
                ),
            ):
                with pytest.raises(InvalidInput):
                    collect()

    def test_many_users_at_once_bring_the_noise_of_each(self) -> None:
        """Exact sums are added to the last bit, and variances of what users draw add up."""
        privatizer, public = self.make(self.statistic()), self.publication()
        if not getattr(privatizer, "absorbs_sums", False):
            return  # the law of the sum cannot be drawn
        contributions, one, all_of_them = self.contributions(8), Witness(7), Witness(7)
        secret, total = privatizer.init(), np.sum(contributions, axis=0)
        for contribution in contributions:
            privatizer.absorb(secret, privatizer.encode(contribution, public, one), 0)
        many = privatizer.absorb_sums(privatizer.init(), total, 8, public, all_of_them)
        assert (secret.users, secret.source) == (many.users, many.source)
        alone, together = (sum(law.scales**2 for law in w.laws) for w in (one, all_of_them))
        assert np.allclose(alone, together, rtol=1e-12)
        if not one.laws:
            assert np.array_equal(secret.sums, many.sums)

    def test_the_exact_law_of_a_report_costs_what_is_stated(self) -> None:
        """Every tape of entropy, on every path: an answer that is given again is another law."""
        privatizer = self.small()
        for question in self.questions():
            laws = {name: self.laws(privatizer, name, question) for name in ("encode", "halves")}
            for secure, simulated in laws.values():
                assert worst_log_ratio(secure) == pytest.approx(question.epsilon, abs=1e-12)
                assert all(map(close, secure, simulated))
            assert laws["encode"] == laws["halves"]

    def laws(
        self, privatizer: Privatizer, path: str, question: Question
    ) -> tuple[list[Law], list[Law]]:
        """Of the report, for everybody who could send it: secure and simulated."""
        public, coin = question.publication, question.coin

        def sent(contribution: np.ndarray, noise: Noise) -> np.ndarray:
            if path == "halves" and isinstance(privatizer, LocalPrivatizer):
                message = privatizer.randomize(contribution, public, noise)
                return privatizer.collect(message, public, coin).values
            return privatizer.encode(contribution, public, noise).values

        secure = [secure_law(lambda c=c: sent(c, SecureNoise())) for c in question.contributions]
        simulated = [
            simulated_law(lambda rng, c=c: sent(c, SimulatedNoise(rng)))
            for c in question.contributions
        ]
        return secure, simulated

    # what coming back costs

    tight: ClassVar[bool] = True
    """Whether ``coming_back`` asks for epsilon 1 and gets no more and hardly less."""

    closeness: ClassVar[float] = 2e-6
    """How far the stated epsilon may be from what is worked out, relatively."""

    raised: ClassVar[float] = -1e-12
    """By how much it must be above: Gaussian noise is discrete on its grid, and that costs 1e-8."""

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Calibrated to epsilon 1 for that many participations, and what they truly cost.

        How they add up is stated by the subclass, and worked out from the noise alone
        (``contracts.composition``), without the library's accounting.
        """
        raise AssertionError("the subclass says what taking part several times costs")

    def test_every_participation_is_paid_for(self) -> None:
        for times in (1, 2, 3):
            privatizer, true = self.coming_back(times)
            said = privatizer.guarantee
            assert said.participations == times
            assert said.epsilon == pytest.approx(true, rel=self.closeness)
            assert said.epsilon >= true * (1 + self.raised) or math.isinf(true)
            if self.tight:
                assert 0.999 < said.epsilon <= said.requested_epsilon == 1.0

    def too_little(self, times: int) -> tuple[Privatizer, float | None]:
        """With noise that does not suffice, and the true delta at the epsilon asked for.

        None where nothing can be asked for.
        """
        raise AssertionError("the subclass says what too little noise for several times gives")

    def test_too_little_noise_gets_the_true_delta_of_all_participations(self) -> None:
        """Never below it; where it is a bound, a thousandth above at most."""
        for times in (1, 2, 3):
            privatizer, true = self.too_little(times)
            stated = privatizer.guarantee.delta_at_requested_epsilon
            if true is None:
                assert stated is None
            else:
                assert true * (1 - 1e-9) <= stated <= true * 1.001 + 1e-9

    def release(self, privatizer: Privatizer, secret: Secret) -> Release:
        return privatizer.release(secret, Query(1), self.noise())


def worst_log_ratio(laws: list[Law]) -> float:
    """Over all outputs and all pairs of people."""
    assert len(laws) > 1 and all(law.keys() == laws[0].keys() for law in laws)
    worst = max(
        one[output] / two[output] for one, two in itertools.permutations(laws, 2) for output in one
    )
    return math.log(worst.numerator) - math.log(worst.denominator)


def blocks_equal(one: Release, two: Release) -> bool:
    return one.blocks.keys() == two.blocks.keys() and all(
        np.array_equal(one.blocks[name], two.blocks[name]) for name in one.blocks
    )


def streams(seed: int = 0) -> Streams:
    """Fresh planner streams; the same seed gives the same draws."""
    return Streams(np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2]))


def no_questions(query: Any) -> Release:
    raise AssertionError("this planner should not ask for anything")
