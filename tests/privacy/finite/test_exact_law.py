"""Every randomizer has exactly the law it declares: secure, simulated, and in batches."""

import os
import secrets
from fractions import Fraction
from typing import Any, ClassVar

import numba
import numpy as np
import pytest
from scipy import stats

from contracts import listed
from contracts.entropy import Law, secure_law, simulated_law
from contracts.randomizer import (
    KnownEpsilonContract,
    OracleContract,
    close,
    convolved,
    independent_bits,
    subset_law,
)
from tacit.kernels.raw import randomizers as kernels
from tacit.privacy import SecureNoise, SimulatedNoise
from tacit.privacy.finite.bits import BinaryResponse, UnaryEncoding
from tacit.privacy.finite.chances import ONE, happens
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection


class TestSubsetSelection(OracleContract):
    subject: ClassVar[type] = SubsetSelection

    def cases(self) -> list[SubsetSelection]:
        some = [SubsetSelection.calibrate(0.2, 4), SubsetSelection.calibrate(0.6, 5)]
        assert all(case.size > 1 for case in some)
        return [*some, SubsetSelection(3, 2, 3 * ONE // 4 + 1), SubsetSelection(4, 3, ONE - 1)]

    def declared(self, randomizer: SubsetSelection, value: int) -> Law:
        return subset_law(randomizer, value)


class TestKaryResponse(OracleContract):
    subject: ClassVar[type] = KaryResponse

    def cases(self) -> list[KaryResponse]:
        return [KaryResponse.calibrate(e, d) for e, d in ((1.5, 4), (0.01, 2), (20.0, 3))]

    def declared(self, randomizer: KaryResponse, value: int) -> Law:
        return subset_law(randomizer, value)


class TestUnaryEncoding(OracleContract):
    subject: ClassVar[type] = UnaryEncoding

    def cases(self) -> list[UnaryEncoding]:
        return [
            UnaryEncoding.calibrate(1.5, 3),
            UnaryEncoding.calibrate(0.4, 3, symmetric=True),
            UnaryEncoding(2, 3, 1),
        ]

    def declared(self, randomizer: UnaryEncoding, value: int) -> Law:
        keep, flip = Fraction(randomizer.keep, ONE), Fraction(randomizer.flip, ONE)
        ones = [keep if x == value else flip for x in range(randomizer.domain)]
        return independent_bits(ones)


class TestBinaryResponse(KnownEpsilonContract):
    subject: ClassVar[type] = BinaryResponse

    def cases(self) -> list[BinaryResponse]:
        return [BinaryResponse.calibrate(2.0, 3, 3), BinaryResponse(2, 2, ONE // 2 + 1)]

    def inputs(self, randomizer: BinaryResponse) -> list[np.ndarray]:
        return list(listed.outputs(randomizer))

    def declared(self, randomizer: BinaryResponse, value: np.ndarray) -> Law:
        truth = Fraction(randomizer.truth, ONE)
        return independent_bits([truth if bit else 1 - truth for bit in value])

    def test_batches_have_the_law_of_the_sum_of_their_reports(self) -> None:
        case = self.cases()[0]
        rows = np.array([[1, 0, 1], [0, 0, 1]])
        found = simulated_law(lambda rng: listed.sum_rows(case, rows.sum(axis=0), 2, rng))
        assert close(found, convolved([self.declared(case, row) for row in rows], 3))


@pytest.mark.parametrize("threshold", [0, 1, 2**63, ONE - 1, ONE])
def test_a_grid_coin_has_exactly_its_chance(threshold) -> None:
    assert secure_law(lambda: happens(threshold)).get(True, 0) == Fraction(threshold, ONE)


@pytest.mark.parametrize(("chance", "of"), [(0, 7), (1, 7), (6, 7), (7, 7), (2**24 - 1, 2**24)])
def test_noise_sources_have_exact_coins(chance, of) -> None:
    expected = Fraction(chance, of)
    assert secure_law(lambda: SecureNoise().happens(chance, of)).get(True, 0) == expected
    simulated = simulated_law(lambda rng: SimulatedNoise(rng).happens(chance, of))
    assert simulated.get(True, 0) == expected


@numba.njit
def _own_cells(n, cell, size, blanket, bits, keep, flip, rng):  # pragma: no cover
    """How often n compiled reports of each kind name the own cell."""
    report, subset_hits, bit_hits = np.zeros_like(bits), 0, 0
    for _ in range(n):
        kernels.encode_subset(cell, size, blanket, rng, report)
        subset_hits += report[cell]
        kernels.encode_bits(bits, keep, flip, rng, report)
        bit_hits += report[cell]
    return subset_hits, bit_hits


def test_compiled_reports_name_the_own_cell_as_often_as_declared() -> None:
    """Two million reports, exact binomial tests at 1e-6: one percent more is found w.p. > 0.999."""
    n, cell = 2_000_000, 1
    for subset in (SubsetSelection.calibrate(0.6, 5), SubsetSelection.calibrate(2.0, 5)):
        unary = UnaryEncoding.calibrate(1.5, 5)
        bits = (np.arange(5) == cell).astype(np.int64)
        rng = np.random.default_rng(17)
        found = _own_cells(
            n, cell, subset.size, subset.blanket, bits, unary.p, unary.q, rng
        )  # fmt: skip
        for hits, p in zip(found, (subset.p, unary.p), strict=True):
            assert stats.binomtest(int(hits), n, p).pvalue > 1e-6
            refused = stats.binom.isf(5e-7, n, p)  # more hits than this are refused
            assert stats.binom.sf(refused, n, 1.01 * p) > 0.999


def test_what_is_not_followed_is_refused() -> None:
    for look in (
        lambda: secrets.randbelow(1000) == 0,
        lambda: not secrets.randbits(64),
        lambda: secrets.randbits(64) / 2,
        lambda: secrets.randbits(64) % 7,
        lambda: secrets.token_bytes(8),
        lambda: os.urandom(8),
        lambda: int(secrets.randbits(64)),
    ):
        with pytest.raises((AssertionError, TypeError)):
            secure_law(look)
    assert secure_law(lambda: secrets.randbelow(3) == 1)[True] == Fraction(1, 3)
    assert secure_law(lambda: 2 if secrets.randbits(1) else 5) == {
        2: Fraction(1, 2),
        5: Fraction(1, 2),
    }


def test_the_law_can_tell() -> None:
    """One more in 2^64, and an answer that is given again: other laws."""
    oracle = SubsetSelection.calibrate(0.6, 4)
    right = subset_law(oracle, 1)

    def again() -> Any:
        report = oracle.encode_secure(1)
        return report if report[1] else oracle.encode_secure(1)

    assert secure_law(again) != right
    louder = SubsetSelection(4, oracle.size, oracle.own + 1)
    assert secure_law(lambda: louder.encode_secure(1)) != right
    assert secure_law(lambda: oracle.encode_secure(1)) == right
