"""What every privatizer owes to an audit: how far apart two people are, and what speaks for either.

Statistical checks have fixed seeds; each deviates by more than 5 standard errors with probability
below 1e-6 if the code is right.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from contracts.entropy import secure_law
from contracts.replay import ReplayNoise
from tacit.privacy import Guarantee, Noise, Privatizer, Query, SecureNoise, SimulatedNoise
from tacit.privacy.base import AuditRecord, LocalPrivatizer
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics import Statistic

STEP = 2.0**-24
"""Of the grid on which noise is drawn."""

ERRORS = 5.0
"""Standard errors that an average may be off."""


def log_density(kind: str, x: np.ndarray) -> np.ndarray:
    """Of noise of scale 1, up to a constant."""
    if kind == "bounded":
        inside = np.abs(x) < 1.0 - 1e-9
        return np.where(inside, -np.exp(1.0 / (1.0 - np.where(inside, x, 0.0) ** 2)), -np.inf)
    return {"laplace": stats.laplace, "gaussian": stats.norm}[kind].logpdf(x)


class AuditedContract:
    """Part of :class:`~contracts.privatizer.PrivatizerContract`, whose hooks it uses."""

    least_distance: ClassVar[float] = 0.99
    """Of the statistic's own worst pair under ``publication()``, in shares of what is paid for."""

    shown: ClassVar[float] = 1.0
    """Share of mu^2 that all releases together show about the worst pair in the first batch."""

    closeness_of_mu: ClassVar[float] = 1e-6
    """How far mu^2 may be from that, relatively: what rounding to the grid is charged."""

    def statistic(self) -> Statistic:
        raise NotImplementedError

    def make(self, statistic: Any) -> Privatizer:
        raise NotImplementedError

    def small(self) -> Privatizer:
        raise NotImplementedError

    def publication(self) -> Publication:
        raise NotImplementedError

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        raise NotImplementedError

    def drawn(self, guarantee: Guarantee) -> list[tuple[str, np.ndarray]]:
        raise NotImplementedError

    def questions(self) -> list[Any]:
        raise NotImplementedError

    def noisy_cells(self) -> np.ndarray:
        """Of a message: those that carry noise."""
        return np.arange(self.statistic().layout.size)

    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """What the two people contribute who are furthest apart."""
        statistic, public = self.statistic(), self.publication()
        both = [np.zeros(statistic.layout.size, dtype=np.int64) for _ in range(2)]
        for life, out in zip(statistic.worst_pair(), both, strict=True):
            statistic.contribute(life, public, 0, out)
        return both[0], both[1]

    def test_distances_are_shares_of_what_is_paid_for(self) -> None:
        privatizer, public = self.make(self.statistic()), self.publication()
        first, second = self.pair()
        assert self.least_distance <= privatizer.relative_shift(first, second, public) <= 1.0 + 1e-9
        there, back = (
            privatizer.relative_shift(*two, public) for two in ((first, second), (second, first))
        )
        assert there == pytest.approx(back, rel=1e-12)
        assert privatizer.relative_shift(first, first, public) == 0.0

    # reports

    def messages(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the first of the pair, and of the second."""
        privatizer, public = self.make(self.statistic()), self.publication()
        assert isinstance(privatizer, LocalPrivatizer)
        noise = SimulatedNoise(np.random.default_rng(11))
        zero, one = (
            np.array([privatizer.randomize(own, public, noise) for _ in range(count)])
            for own in self.pair()
        )
        return zero, one

    def test_log_ratios_turn_around_with_the_pair_and_stay_within_epsilon(self) -> None:
        privatizer, public = self.make(self.statistic()), self.publication()
        if not isinstance(privatizer, LocalPrivatizer):
            return
        sent, (first, second) = np.concatenate(self.messages(200)), self.pair()
        there = privatizer.log_ratio(sent, first, second, public)
        assert there.shape == (400,) and np.isfinite(there).all()
        assert there == pytest.approx(-privatizer.log_ratio(sent, second, first, public), abs=1e-9)
        assert (privatizer.log_ratio(sent, first, first, public) == 0.0).all()
        if privatizer.guarantee.delta == 0.0:
            assert np.abs(there).max() <= privatizer.guarantee.epsilon * (1 + 1e-12)

    def test_log_ratios_are_those_of_the_noise_stated(self) -> None:
        """Densities of the stated noise, cell by cell, worked out here."""
        privatizer, public = self.make(self.statistic()), self.publication()
        stated = self.drawn(privatizer.guarantee)
        if not isinstance(privatizer, LocalPrivatizer) or not stated:
            return
        sent, pair, units = self.messages(50), self.pair(), self.statistic().layout.units
        (kind, scales), cells = stated[0], self.noisy_cells()
        for world, found in enumerate(sent):
            logs = [
                log_density(kind, (found * STEP - own * units)[:, cells] / scales) for own in pair
            ]
            expected = (logs[1] - logs[0]).sum(axis=1)
            ratio = privatizer.log_ratio(found, *pair, public)
            impossible = np.isinf(expected)  # noise that ends somewhere rules out one of the two
            assert (np.sign(ratio[impossible]) == 2 * world - 1).all()
            assert (np.abs(ratio[impossible]) > 1e8).all()
            assert ratio[~impossible] == pytest.approx(expected[~impossible], abs=1e-6)

    def test_log_ratios_are_those_of_the_exact_laws(self) -> None:
        """Every tape of entropy, for everybody who could send the report."""
        privatizer = self.small()
        if not isinstance(privatizer, LocalPrivatizer):
            return
        for public, _, people, _ in self.questions():
            privatizer.randomize(people[0], public, SecureNoise())  # compiled before it is followed
            laws = [
                secure_law(
                    lambda own=own, public=public: privatizer.randomize(own, public, SecureNoise())
                )
                for own in people
            ]
            outputs = list(laws[0])
            rows = np.array(outputs, dtype=np.int64)
            for one, two in itertools.permutations(range(len(people)), 2):
                expected = [math.log(laws[two][o] / laws[one][o]) for o in outputs]
                found = privatizer.log_ratio(rows, people[one], people[two], public)
                assert found == pytest.approx(expected, abs=1e-9)
                chances = np.array([float(laws[one][o]) for o in outputs])
                assert chances @ np.exp(found) == pytest.approx(1.0, abs=1e-9)

    def test_likelihoods_average_to_one(self) -> None:
        """E_0[P_1 / P_0] is 1, but for what is impossible in world 0."""
        privatizer, public = self.make(self.statistic()), self.publication()
        if not isinstance(privatizer, LocalPrivatizer):
            return
        ratios = [privatizer.log_ratio(sent, *self.pair(), public) for sent in self.messages(4000)]
        likelihoods = np.exp(np.minimum(ratios[0], 700.0))
        error = likelihoods.std() / math.sqrt(len(likelihoods))
        told = float((ratios[1] > 1e8).mean())
        error += math.sqrt(told * (1 - told) / len(ratios[1]))
        assert abs(likelihoods.mean() + told - 1.0) <= ERRORS * error + 1e-12
        assert ratios[1].mean() > 0.0 > ratios[0].mean()

    # releases

    def ask(self, privatizer: Any, secret: Any, record: AuditRecord, noise: Noise) -> None:
        """Whatever can be asked after a release; the answers go into the record."""

    def runs(
        self, privatizer: Any, world: int, batch: int, releases: int, noise: Noise, count: int
    ) -> Iterator[AuditRecord]:
        """Runs in which one of the pair is in that batch, and two others are in every one."""
        public, pair = self.publication(), self.pair()
        others, nobody = self.contributions(2), [0 * pair[0]] * 2
        for _ in range(count):
            secret, record = privatizer.init(), AuditRecord()
            for number in range(releases):
                own = pair if number == batch else nobody
                for contribution in [*others, own[world]]:
                    report = privatizer.encode(contribution, public, noise)
                    privatizer.absorb(secret, report, number)
                record.first.append(sum(others) + own[0])
                record.second.append(sum(others) + own[1])
                record.released.append(flat(privatizer.release(secret, Query(number + 1), noise)))
                self.ask(privatizer, secret, record, noise)
            yield record

    @property
    def _curated(self) -> Any:
        privatizer = self.make(self.statistic())
        private = math.isfinite(privatizer.guarantee.epsilon)
        return (
            privatizer
            if privatizer.has_likelihood and privatizer.device is None and private
            else None
        )

    def test_evidence_has_the_law_that_it_states(self) -> None:
        """Log ratios are Gaussian with variance mu^2 and mean -/+ mu^2 / 2, in either world."""
        privatizer, count = self._curated, 300
        if privatizer is None or privatizer.guarantee.mu is None:
            return
        for batch in (0, 2):
            noise = SimulatedNoise(np.random.default_rng([12, batch]))
            for world in (0, 1):
                runs = self.runs(privatizer, world, batch, 4, noise, count)
                found = [privatizer.log_likelihood_ratio(record) for record in runs]
                squares = np.array([evidence.mu_squared for evidence in found])
                assert squares == pytest.approx(squares[0], rel=1e-5) and squares[0] > 0.0
                ratios, square = np.array([e.log_ratio for e in found]), squares[0]
                off = ratios.mean() - (world - 0.5) * square
                assert abs(off) <= ERRORS * math.sqrt(square / count)
                assert abs(ratios.var() / square - 1.0) <= ERRORS * math.sqrt(2 / count)

    def test_evidence_never_exceeds_what_is_paid_for_and_attains_it(self) -> None:
        privatizer = self._curated
        if privatizer is None or privatizer.guarantee.mu is None:
            return
        releases = self.releases()
        paid = privatizer.guarantee.mu**2
        noise = SimulatedNoise(np.random.default_rng(13))
        for batch in range(releases):
            (record,) = self.runs(privatizer, 0, batch, releases, noise, 1)
            found = privatizer.log_likelihood_ratio(record).mu_squared
            assert found <= paid * (1 + 1e-9)
            turned = dataclasses.replace(record, first=record.second, second=record.first)
            there, back = (
                privatizer.log_likelihood_ratio(one).log_ratio for one in (record, turned)
            )
            assert there == pytest.approx(-back, rel=1e-6, abs=1e-9 * paid)
            if batch == 0:
                distance = privatizer.relative_shift(*self.pair(), self.publication())
                expected = self.shown * distance**2 * paid
                assert found == pytest.approx(expected, rel=self.closeness_of_mu)

    def test_pure_evidence_averages_to_one_and_attains_epsilon(self) -> None:
        """E_0[P_1 / P_0] is 1; without noise the first of the pair is told by all that is paid."""
        privatizer, count = self._curated, 300
        if privatizer is None or privatizer.guarantee.mu is not None:
            return
        paid, noise = privatizer.guarantee.epsilon, SimulatedNoise(np.random.default_rng(14))
        for batch in (0, 2):
            runs = self.runs(privatizer, 0, batch, 4, noise, count)
            ratios = np.array(
                [privatizer.log_likelihood_ratio(record).log_ratio for record in runs]
            )
            assert np.abs(ratios).max() <= paid and ratios.std() > 0.0
            likelihoods = np.exp(ratios)
            off = abs(likelihoods.mean() - 1.0)
            assert off <= ERRORS * likelihoods.std() / math.sqrt(count)
        none = ReplayNoise([0 * self.pair()[0]] * (self.releases() + 1))
        (record,) = self.runs(privatizer, 0, 0, self.releases(), none, 1)
        distance = privatizer.relative_shift(*self.pair(), self.publication())
        assert privatizer.log_likelihood_ratio(record).log_ratio == pytest.approx(
            -distance * paid, rel=1e-9
        )

    def releases(self) -> int:
        """How many releases the guarantee pays for; any number where batches are separate."""
        return 4


def flat(release: Release) -> np.ndarray:
    return np.concatenate([block.ravel() for block in release.blocks.values()])
