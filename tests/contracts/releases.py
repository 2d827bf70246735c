"""What every privatizer owes in every release: to every cell noise of its own, as large as stated.

Nothing is sampled. A source hands out one step of noise in one cell of one draw and zeros
elsewhere; what it moves is a column of the matrix that leads from draws to everything released. So
the covariance of everything released is known exactly, and compared with what releases state.
"""

from typing import Any, ClassVar

import numpy as np
import pytest

from contracts.audited import STEP, flat, log_density
from contracts.replay import ReplayNoise
from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.privacy import GridLaw, Guarantee, Privatizer, Query
from tacit.privacy.base import AuditRecord
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics import Statistic

IMPULSE = 2**40
"""Steps of noise in the one cell: so many that rounding to one step cannot be seen."""


def bounded_variance() -> float:
    """Of bounded noise of radius 1, by its density."""
    x = np.linspace(-0.999, 0.999, 20001)  # beyond, the density is below e^-500
    density = np.exp(log_density("bounded", x))
    return float((density * x**2).sum() / density.sum())


VARIANCES = {"gaussian": 1.0, "laplace": 2.0, "bounded": bounded_variance()}
"""Of noise of scale 1."""


class Impulse(ReplayNoise):
    """Silent but for one cell of one draw; remembers every law it was asked for."""

    def __init__(self, draw: int = -1, cell: int = -1) -> None:
        super().__init__([])
        self.draw, self.cell = draw, cell
        self.laws: list[GridLaw] = []

    def fill(self, law: GridLaw, out: IntArray) -> None:
        assert out.shape == law.scales.shape, "a scale for every cell"
        out[:] = 0
        if len(self.laws) == self.draw:
            out[self.cell] = IMPULSE
        self.laws.append(law)


class ReleasesContract:
    """Part of :class:`~contracts.privatizer.PrivatizerContract`, whose hooks it uses."""

    count: ClassVar[int] = 4
    """Releases that are looked at, of ``brief()``; each has two people more."""

    def statistic(self) -> Statistic:
        raise NotImplementedError

    def make(self, statistic: Any) -> Privatizer:
        raise NotImplementedError

    def publication(self) -> Publication:
        raise NotImplementedError

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        raise NotImplementedError

    def drawn(self, guarantee: Guarantee) -> list[tuple[str, np.ndarray]]:
        raise NotImplementedError

    def ask(self, privatizer: Any, secret: Any, record: AuditRecord, noise: Any) -> None:
        raise NotImplementedError

    def brief(self) -> Privatizer:
        """One that makes that many releases; a counter should end with them."""
        return self.make(self.statistic())

    def together(self, privatizer: Any, variances: np.ndarray) -> np.ndarray:
        """Covariance of one cell over all releases, from its variances.

        By default that of running sums of reports, each with noise of its own.
        """
        return np.minimum.outer(variances, variances)

    @property
    def noisy(self) -> bool:
        """Whether it is private by noise on the grid: exact laws of other reports are compared."""
        guarantee = self.make(self.statistic()).guarantee
        return bool(self.drawn(guarantee)) and np.isfinite(guarantee.epsilon)

    def lived(
        self,
        privatizer: Any,
        noise: Impulse,
        stored: bool = False,
        renewed: tuple[int, ...] = (),
    ) -> tuple[list[Release], AuditRecord]:
        """Every release, and the answers after it, where the noise is this one.

        Args:
            privatizer: what adds it.
            noise: of everything.
            stored: whether noise is drawn before the release, and kept until then.
            renewed: releases after which a period ends.
        """
        public, two = self.publication(), self.contributions(2)
        secret, released, record = privatizer.init(), [], AuditRecord()
        for number in range(1, self.count + 1):
            for contribution in two:
                report = privatizer.encode(contribution, public, noise)
                secret = privatizer.absorb(secret, report, number)
            source: Any = noise
            if stored:
                scratch = privatizer.restore(privatizer.state(secret))
                drawn = privatizer.draw(scratch, noise)
                for wrong in (drawn[:, :-1], drawn[:1, :1], np.concatenate([drawn, drawn[:1]])):
                    with pytest.raises(InvalidInput, match="the stored noise has shape"):
                        privatizer.replay(secret, wrong)
                privatizer.replay(secret, drawn)
                source = ReplayNoise([])
            released.append(privatizer.release(secret, Query(number), source))
            record.first.append(sum(two))
            record.second.append(sum(two) + two[0])
            record.released.append(flat(released[-1]))
            self.ask(privatizer, secret, record, noise)
            if number in renewed:
                privatizer.renew(secret)
        return released, record

    def covariance(self, **how: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """Of everything released and answered, exactly; the variances stated, and cells of one."""
        privatizer, quiet = self.brief(), Impulse()
        released, record = self.lived(privatizer, quiet, **how)
        assert quiet.laws, "all noise comes from the given source"
        stated = [
            np.broadcast_to(release.law.variance(name), block.shape).ravel()
            for release in released
            for name, block in release.blocks.items()
        ]
        exact = numbers(record)
        moved, variances = [], []
        for draw, law in enumerate(quiet.laws):
            for cell, scale in enumerate(law.scales):
                _, other = self.lived(privatizer, Impulse(draw, cell), **how)
                moved.append((numbers(other) - exact) / (IMPULSE * STEP))
                variances.append(VARIANCES[law.kind] * (scale * STEP) ** 2)
        matrix = np.array(moved).T
        cells = len(flat(released[0]))
        return (matrix * np.array(variances)) @ matrix.T, np.concatenate(stated), cells

    def test_every_cell_of_every_release_has_noise_of_its_own_as_large_as_stated(self) -> None:
        if not self.noisy:
            return
        found, stated, cells = self.covariance()
        size = len(stated)
        privatizer = self.brief()
        expected = np.zeros((size, size))
        for cell in range(cells):
            of = np.arange(cell, size, cells)
            expected[np.ix_(of, of)] = self.together(privatizer, stated[of])
        assert np.diag(expected) == pytest.approx(stated, rel=1e-6)
        near = {"rel": 1e-6, "abs": 1e-6 * stated[stated > 0.0].min(initial=np.inf)}
        assert found[:size, :size] == pytest.approx(expected, **near)
        answers, across = found[size:, size:], found[size:, :size]
        assert answers == pytest.approx(np.diag(self.of_answers(privatizer, len(answers))), **near)
        assert across == pytest.approx(np.zeros(across.shape), **near)

    def of_answers(self, privatizer: Any, count: int) -> np.ndarray:
        """Variances of the answers to all questions, in their order."""
        assert count == 0
        return np.zeros(0)

    def test_noise_that_was_stored_first_is_the_noise_of_the_release(self) -> None:
        if self.make(self.statistic()).served != "joint":
            return
        found, drawn = self.covariance(stored=True)[0], self.covariance()[0]
        assert (found == drawn).all()

    def test_a_new_period_has_the_noise_that_its_releases_state(self) -> None:
        if not self.noisy:
            return
        found, stated, cells = self.covariance(renewed=(1, 3))
        size = len(stated)
        assert np.diag(found)[:size] == pytest.approx(stated, rel=1e-6)
        same = np.equal.outer(np.arange(size) % cells, np.arange(size) % cells)
        assert not found[:size, :size][~same].any(), "no two cells share a draw"


def numbers(record: AuditRecord) -> np.ndarray:
    """Everything that was shown: releases, then answers."""
    return np.concatenate([*record.released, *(answer for _, _, answer in record.answers)])
