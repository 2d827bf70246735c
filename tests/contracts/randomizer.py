"""What every randomizer with finitely many outputs owes: exactly the law it declares.

Subclass as ``TestX(RandomizerContract)``, or as ``TestX(OracleContract)`` if it is an oracle, set
``subject``, name some small cases, and state the law once more, from the whole numbers that the
randomizer declares.
"""

import itertools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pytest

from contracts import listed
from contracts.entropy import Law, secure_law, simulated_law
from tacit.errors import InvalidInput
from tacit.kernels.raw import randomizers as kernels
from tacit.privacy.finite.chances import ONE
from tacit.privacy.finite.oracle import Oracle, Randomizer
from tacit.privacy.finite.subset import SubsetSelection

FLOATS = 1e-12
"""Simulated samplers use chances that are rounded to floats."""


class RandomizerContract:
    """Override the three hooks. Every class with ``encode_secure`` owes this."""

    subject: ClassVar[type]

    def cases(self) -> list[Randomizer]:
        raise AssertionError("the subclass names small randomizers")

    def inputs(self, randomizer: Randomizer) -> list[Any]:
        raise AssertionError("the subclass lists all inputs")

    def declared(self, randomizer: Randomizer, value: Any) -> Law:
        raise AssertionError("the subclass states the law, in fractions")

    def secure(self, randomizer: Any, value: Any) -> Law:
        return secure_law(lambda: randomizer.encode_secure(value))

    def test_the_subject_is_what_is_tested(self) -> None:
        assert {type(case) for case in self.cases()} == {self.subject}

    def test_secure_reports_have_exactly_the_declared_law(self) -> None:
        """All tapes of entropy: a threshold that is off by one in 2^64 is another law."""
        for case in self.cases():
            for value in self.inputs(case):
                assert self.secure(case, value) == self.declared(case, value)

    def test_simulated_reports_have_the_declared_law_up_to_floats(self) -> None:
        for case in self.cases():
            for value in self.inputs(case):
                found = simulated_law(lambda rng, c=case, v=value: c.encode(v, rng))
                assert close(found, self.declared(case, value))


class KnownEpsilonContract(RandomizerContract):
    """Of those that say what one report costs, with a worst pair of inputs."""

    def test_the_largest_log_ratio_of_the_exact_law_is_epsilon(self) -> None:
        for case in self.cases():
            laws = [self.secure(case, value) for value in self.inputs(case)]
            assert all(law.keys() == laws[0].keys() for law in laws)
            worst = max(
                one[output] / two[output]
                for one, two in itertools.permutations(laws, 2)
                for output in one
            )
            exact = math.log(worst.numerator) - math.log(worst.denominator)
            assert exact - FLOATS <= case.epsilon <= exact + FLOATS

    def test_the_channel_is_that_of_the_exact_law(self) -> None:
        """Its delta at some epsilons is the hockey stick of the worst two inputs."""
        for case in self.cases():
            laws = [self.secure(case, value) for value in self.inputs(case)]
            for share in (0.0, 0.3, 0.9):
                at = Fraction(math.exp(share * case.epsilon))
                worst = max(
                    sum(max(one[o] - at * two[o], 0) for o in one)
                    for one, two in itertools.permutations(laws, 2)
                )
                found = case.channel().delta(share * case.epsilon)
                assert found == pytest.approx(float(worst), abs=1e-10)


class OracleContract(KnownEpsilonContract):
    """Of randomizers of one cell: what is computed from their law, and their batches too."""

    def inputs(self, randomizer: Oracle) -> list[int]:
        return list(range(randomizer.domain))

    def table(self, case: Oracle) -> tuple[np.ndarray, np.ndarray]:
        """All reports [outputs, D], and the declared chance of each for every cell [D, outputs]."""
        laws = [self.declared(case, cell) for cell in range(case.domain)]
        reports = list(laws[0])
        return np.array(reports), np.array([[float(law[r]) for r in reports] for law in laws])

    def test_a_report_is_a_row_of_zeros_and_ones(self) -> None:
        for case in self.cases():
            reports, _ = self.table(case)
            assert reports.shape[1] == case.domain and set(np.unique(reports)) <= {0, 1}
            assert case.ones is None or set(reports.sum(axis=1)) == {case.ones}

    def test_estimates_are_unbiased_with_the_stated_moments(self) -> None:
        """A user outside of two cells is in their covariance, whichever three cells these are."""
        for case in self.cases():
            reports, pmf = self.table(case)
            estimates = listed.estimate(case, reports, 1)
            wide = max(1.0, np.abs(estimates).max())
            for cell, law in enumerate(pmf):
                mean = law @ estimates
                assert mean == pytest.approx(np.eye(case.domain)[cell], abs=1e-11 * wide)
                exact = (estimates - mean).T @ (law[:, None] * (estimates - mean))
                stated = np.full_like(exact, case.covariance_outside)
                np.fill_diagonal(stated, case.variance_outside)
                stated[cell, :] = stated[:, cell] = exact[cell]  # of which nothing is stated but
                stated[cell, cell] = case.variance_inside
                assert stated == pytest.approx(exact, rel=1e-6, abs=1e-10 * wide**2)

    def test_log_ratios_are_those_of_the_declared_law(self) -> None:
        """For people whose cell is drawn from one distribution or from another."""
        for case in self.cases():
            reports, pmf = self.table(case)
            first = np.arange(1.0, case.domain + 1) / np.arange(1, case.domain + 1).sum()
            second = np.eye(case.domain)[0]
            found = case.log_ratio(reports, first, second)
            assert found == pytest.approx(np.log(second @ pmf) - np.log(first @ pmf), abs=1e-9)

    def test_bad_cells_and_generators_are_refused(self) -> None:
        case, rng = self.cases()[0], np.random.default_rng(0)
        for cell in (-1, case.domain, 1.5, math.nan, "0"):
            for use in (case.encode_secure, lambda c: case.encode(c, rng)):
                with pytest.raises(InvalidInput, match="cell = .* >= 0 and <= "):
                    use(cell)
        with pytest.raises(InvalidInput, match="numpy Generator"):
            case.encode(0, None)

    @pytest.mark.parametrize("counts", [(1, 0), (1, 1), (2, 1)])
    def test_batches_have_the_law_of_the_sum_of_their_reports(self, counts) -> None:
        """As few users as that are drawn one by one; see below for the other way."""
        for case in self.cases():
            if case.sampler is None:
                continue
            users = np.resize([*counts, 0, 0, 0], case.domain)
            found = simulated_law(lambda rng, c=case, u=users: listed.aggregate(c, u, rng))
            reports = [self.declared(case, x) for x in range(case.domain) for _ in range(users[x])]
            assert close(found, convolved(reports, case.domain))

    def test_large_batches_have_it_too(self) -> None:
        """The pass over the cells is taken at once: it costs nothing."""
        with mock.patch.object(kernels, "PASS_COST", 0):
            for case in self.cases():
                if case.sampler is not None and case.domain <= 4:
                    users = np.resize([2, 1, 0, 0], case.domain)
                    found = simulated_law(lambda rng, c=case, u=users: listed.aggregate(c, u, rng))
                    reports = [self.declared(case, x) for x in (0, 0, 1)]
                    assert close(found, convolved(reports, case.domain))


def close(found: Law, expected: Law) -> bool:
    outputs: set[Hashable] = {*found, *expected}
    return all(abs(found.get(o, 0) - expected.get(o, 0)) < FLOATS for o in outputs)


def convolved(laws: list[Law], cells: int) -> Law:
    """The law of the sum of independent reports."""
    total: Law = {(0,) * cells: Fraction(1)}
    for law in laws:
        longer: Law = {}
        for (one, p), (two, q) in itertools.product(total.items(), law.items()):
            key = tuple(int(x) for x in np.add(one, two))
            longer[key] = longer.get(key, Fraction(0)) + p * q
        total = longer
    return total


def independent_bits(ones: list[Fraction]) -> Law:
    """The law of a row of bits with these chances of a one."""
    law: Law = {(): Fraction(1)}
    for chance in ones:
        law = {
            (*bits, bit): mass * (chance if bit else 1 - chance)
            for bits, mass in law.items()  # type: ignore[misc]
            for bit in (0, 1)
        }
    return law


def subset_law(oracle: SubsetSelection, cell: int) -> Law:
    """p shared among the subsets with the own cell, 1 - p among those without it."""
    p, others = Fraction(oracle.own, ONE), oracle.domain - 1
    with_own = p / math.comb(others, oracle.size - 1)
    without = (1 - p) / math.comb(others, oracle.size)
    rows = itertools.combinations(range(oracle.domain), oracle.size)
    named = [tuple(int(x in row) for x in range(oracle.domain)) for row in rows]
    return {row: with_own if row[cell] else without for row in named}
