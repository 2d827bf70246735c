"""Samplers: secure ones against the exact law, simulated ones against it, batches jointly.

Secure draws have no seed: each test below fails by chance with probability about 1e-6. Simulated
draws are seeded, so nothing here changes from run to run; thresholds are still set as if it did.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from contracts import listed
from contracts.moments import moments_fit
from tacit.errors import InvalidInput
from tacit.kernels.raw import randomizers as kernels
from tacit.privacy.finite.bits import BinaryResponse, UnaryEncoding
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection

CHANCE = 1e-6
DRAWS = 6_000


def frequencies(reports, outputs):
    index = {tuple(row): i for i, row in enumerate(outputs.tolist())}
    return np.bincount([index[tuple(r)] for r in reports.tolist()], minlength=len(outputs))


def p_value(observed, law):
    """Chi-square test of counts against a law."""
    return stats.chisquare(observed, law / law.sum() * observed.sum()).pvalue


def fits(observed, law):
    """Accepted, with at least five expected per class so that the p-value means what it says."""
    assert (law * observed.sum()).min() > 5
    return p_value(observed, law) > CHANCE


CASES = {
    "subset": SubsetSelection.calibrate(0.6, 5),
    "k-ary": KaryResponse.calibrate(1.5, 4),
    "unary": UnaryEncoding.calibrate(1.5, 4),
}
GROWTH = math.exp(1.2)
LOUDER = {  # the same reports at twice the epsilon
    "subset": SubsetSelection(5, 2, round(2**64 * 2 * GROWTH / (2 * GROWTH + 3))),
    "k-ary": KaryResponse.calibrate(3.0, 4),
    "unary": UnaryEncoding.calibrate(3.0, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_secure_reports_follow_the_exact_law_and_not_that_of_twice_epsilon(name):
    oracle = CASES[name]
    reports = np.array([oracle.encode_secure(1) for _ in range(DRAWS)])
    observed = frequencies(reports, listed.outputs(oracle))
    assert fits(observed, listed.pmf(oracle)[1])
    louder = LOUDER[name]
    assert louder.epsilon == pytest.approx(2 * oracle.epsilon)
    assert p_value(observed, listed.pmf(louder)[1]) < CHANCE
    assert p_value(observed, listed.pmf(oracle)[0]) < CHANCE


def test_secure_bits_follow_the_exact_law():
    response = BinaryResponse.calibrate(2.0, 3, 3)
    truth = np.array([1, 0, 1])
    reports = np.array([response.encode_secure(truth) for _ in range(DRAWS)])
    observed = frequencies(reports, listed.outputs(response))
    assert fits(observed, listed.pmf(response, [truth])[0])
    louder = BinaryResponse.calibrate(4.0, 3, 3)
    assert p_value(observed, listed.pmf(louder, [truth])[0]) < CHANCE


def test_secure_sampling_uses_integers_of_the_operating_system_only(monkeypatch):
    """The coin is one comparison with the declared threshold: both sides of it."""
    oracle = SubsetSelection.calibrate(0.6, 5)
    for drawn, expected in ((oracle.own - 1, 1), (oracle.own, 0)):
        monkeypatch.setattr("secrets.randbits", lambda bits, drawn=drawn: drawn)
        assert oracle.encode_secure(3)[3] == expected
        assert oracle.encode_secure(3).sum() == oracle.size
    unary = UnaryEncoding.calibrate(1.0, 4)
    monkeypatch.setattr("secrets.randbits", lambda bits: unary.flip)
    assert unary.encode_secure(2).tolist() == [0, 0, 1, 0]
    monkeypatch.setattr("secrets.randbits", lambda bits: unary.flip - 1)
    assert unary.encode_secure(2).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("name", CASES)
def test_simulated_reports_follow_the_exact_law(name):
    oracle, rng = CASES[name], np.random.default_rng(7)
    for cell in (0, oracle.domain - 1):
        reports = np.array([oracle.encode(cell, rng) for _ in range(DRAWS)])
        assert fits(frequencies(reports, listed.outputs(oracle)), listed.pmf(oracle)[cell])


def test_simulated_bits_follow_the_exact_law():
    response, rng = BinaryResponse.calibrate(2.0, 3, 3), np.random.default_rng(8)
    truth = np.array([0, 1, 1])
    reports = np.array([response.encode(truth, rng) for _ in range(DRAWS)])
    law = listed.pmf(response, [truth])[0]
    assert fits(frequencies(reports, listed.outputs(response)), law)


BATCHES = {
    "few users": np.array([3, 0, 7, 1, 2]),
    "many users": np.array([400, 0, 700, 100, 50]),
    "one cell": np.array([0, 0, 0, 5000, 0]),
}
BATCHED = {
    "subset": SubsetSelection.calibrate(0.6, 5),
    "k-ary": KaryResponse.calibrate(1.5, 5),
    "unary": UnaryEncoding.calibrate(1.5, 5),
    "symmetric": UnaryEncoding.calibrate(1.5, 5, symmetric=True),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", BATCHED)
def test_batches_have_the_exact_mean_and_covariance(name, batch):
    oracle, counts, rng = BATCHED[name], BATCHES[batch], np.random.default_rng(11)
    n = counts.sum()
    hits = np.array([listed.aggregate(oracle, counts, rng) for _ in range(DRAWS // 2)])
    estimates = (hits - n * oracle.q) / (oracle.p - oracle.q)
    covariance = sum(counts[x] * listed.covariance(oracle, x) for x in range(5))
    mean_off, covariance_off = moments_fit(estimates, counts, covariance)
    assert mean_off < 6 and covariance_off < 6


@pytest.mark.parametrize("name", ["subset", "k-ary"])
def test_independent_marginals_would_not_pass(name):
    """Right mean and right variances, cells drawn on their own: the covariance test refuses it."""
    oracle, counts, rng = BATCHED[name], BATCHES["many users"], np.random.default_rng(12)
    n = counts.sum()
    hits = rng.binomial(counts, oracle.p, (DRAWS, 5)) + rng.binomial(
        n - counts, oracle.q, (DRAWS, 5)
    )
    estimates = (hits - n * oracle.q) / (oracle.p - oracle.q)
    covariance = sum(counts[x] * listed.covariance(oracle, x) for x in range(5))
    mean_off, covariance_off = moments_fit(estimates, counts, covariance)
    assert mean_off < 6 < covariance_off
    variances = np.diag(covariance)
    assert np.var(estimates, axis=0) == pytest.approx(variances, rel=0.1)


def test_sums_of_uniform_subsets_have_the_exact_joint_law():
    """Two 2-subsets of the four cells that are not cell 1: every outcome, by enumeration."""
    rng = np.random.default_rng(13)
    left, hits = np.zeros(3, dtype=np.int64), np.zeros(5, dtype=np.int64)
    drawn = []
    for _ in range(DRAWS):
        hits[:] = 0
        kernels.add_uniform_subsets(2, 2, 1, rng, left, hits)
        drawn.append(tuple(hits.tolist()))
    subsets = [np.isin(np.arange(5), s) for s in itertools.combinations((0, 2, 3, 4), 2)]
    exact = [tuple((a.astype(int) + b).tolist()) for a in subsets for b in subsets]
    outcomes = sorted(set(exact))
    law = np.array([exact.count(o) for o in outcomes]) / len(exact)
    observed = np.array([drawn.count(o) for o in outcomes])
    assert observed.sum() == DRAWS  # nothing else ever comes out
    assert fits(observed, law)


def test_bits_in_batches_have_the_exact_mean_and_variance():
    response, rng = BinaryResponse.calibrate(3.0, 4, 3), np.random.default_rng(14)
    ones, n = np.array([0, 10, 500, 800]), 800
    hits = np.array([listed.sum_rows(response, ones, n, rng) for _ in range(DRAWS // 2)])
    estimates = (hits - n * response.q) / (response.p - response.q)
    assert (
        max(moments_fit(estimates, ones, n * response.variance_outside * np.eye(response.domain)))
        < 6
    )


def test_the_cost_of_a_batch_does_not_grow_with_its_users():
    rng = np.random.default_rng(15)
    for oracle in (SubsetSelection.calibrate(1.0, 72), UnaryEncoding.calibrate(1.0, 72)):
        counts = np.full(72, 10**12)  # a report at a time would take days
        hits = listed.aggregate(oracle, counts, rng)
        assert listed.estimate(oracle, hits, 72 * 10**12) == pytest.approx(counts, rel=1e-3)


def test_empty_batches_are_empty():
    for oracle in BATCHED.values():
        assert not listed.aggregate(
            oracle, np.zeros(5, dtype=np.int64), np.random.default_rng(0)
        ).any()


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (kernels.encode_subset, (2, 3, 0.7)),
        (kernels.encode_subset, (0, 1, 0.2)),
        (kernels.sum_subsets, (np.array([3, 0, 1, 0, 2, 2]), 3, 0.7)),
        (kernels.sum_subsets, (np.array([3000, 0, 100, 0, 2, 2]), 3, 0.7)),
        (kernels.encode_bits, (np.array([0, 1, 0, 0, 1, 1]), 0.6, 0.2)),
        (kernels.sum_bits, (np.array([0, 1, 0, 900, 1, 1]), 900, 0.6, 0.2)),
    ],
)
def test_compiled_and_plain_python_agree(kernel, arguments):
    for seed in range(20):
        outputs = []
        for function in (kernel, kernel.py_func):
            rng, out = np.random.default_rng(seed), np.full(6, -77, dtype=np.int64)
            function(*arguments, rng, out)
            outputs.append((out.tolist(), rng.random()))
        assert outputs[0] == outputs[1]


def test_bad_bits_are_refused():
    response, rng = BinaryResponse.calibrate(1.0, 3, 2), np.random.default_rng(0)
    for bad in ([0, 1], [0, 1, 2], [0, -1, 1], [0.0, 1.0, 0.0]):
        for use in (response.encode_secure, lambda b: response.encode(b, rng)):
            with pytest.raises(InvalidInput, match="bits"):
                use(np.array(bad))
    for epsilon in (0.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="epsilon"):
            BinaryResponse.calibrate(epsilon, 3, 2)
    for differing in (0, 4, 1.5):
        with pytest.raises(InvalidInput, match="differing"):
            BinaryResponse.calibrate(1.0, 3, differing)
