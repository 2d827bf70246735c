"""The noise in released prefixes has exactly the law that is stated."""

import numpy as np
import pytest
from scipy import stats

from privacy.counters.recorded import NAMES, make
from tacit.privacy.counters.base import Strategy

SIGMA = 2.0**20
REPLICATES = 4000
ERROR = 1e-6
"""Probability that one correct counter fails the check (all of its comparisons together)."""


def released(counter: Strategy, n: int, size: int, seed: int, factor: float = 1.0) -> np.ndarray:
    """Prefixes of a stream of zeros, in units of sigma: pure noise, one replicate per cell."""
    rng = np.random.default_rng(seed)

    def draw(node: int) -> np.ndarray:
        std = SIGMA * factor
        return np.rint(std * rng.standard_normal(size)).astype(np.int64)

    state = counter.init(size, 1)
    item = np.zeros(size, dtype=int)
    return np.array([counter.step(state, item, draw)[0] for _ in range(n)]) / SIGMA


def has_covariance(samples: np.ndarray, covariance: np.ndarray) -> bool:
    """Whether zero-mean Gaussian samples [n, replicates] can have this covariance.

    Whitened samples are independent standard normals if and only if it is right. Their n squared
    norms are chi-squared; so is |u + v|^2 / 2 for every pair of rows. Bonferroni over all of them.
    """
    n, count = samples.shape
    white = np.linalg.solve(np.linalg.cholesky(covariance), samples)
    sums = [white[i] for i in range(n)]
    sums += [(white[i] + white[j]) / np.sqrt(2) for i in range(n) for j in range(i)]
    level = ERROR / len(sums) / 2
    low, high = stats.chi2.ppf([level, 1 - level], df=count)
    return all(low <= float(row @ row) <= high for row in sums)


@pytest.mark.parametrize("name", NAMES)
def test_prefixes_have_the_stated_covariance(name: str) -> None:
    counter = make(name, 9)
    samples = released(counter, 9, REPLICATES, seed=7)
    assert has_covariance(samples, counter.covariance())
    for factor in (2 / 3, 3 / 2):
        scaled = released(counter, 9, REPLICATES, seed=7, factor=factor)
        assert not has_covariance(scaled, counter.covariance())
    independent = np.diag(np.diag(counter.covariance()))  # right variances, wrong correlations
    assert not has_covariance(samples, independent)


@pytest.mark.parametrize("counter", [make(n, 9) for n in NAMES], ids=str)
@pytest.mark.parametrize("position", [1, 4])
def test_the_charge_is_exact_for_streams_that_react(counter: Strategy, position: int) -> None:
    # Log-likelihood ratio of two worlds that differ in one item, along the same releases, to which
    # every other item reacts: normal with mean mu^2 / 2 and variance mu^2, mu the item's own cost.
    rng = np.random.default_rng(position)
    step = int(SIGMA)
    state, (twin, _) = counter.init(REPLICATES, 4 * step), counter.buffers(REPLICATES)
    ratio, cost = np.zeros(REPLICATES), 0.0
    prefix = np.zeros(REPLICATES)
    for t in range(1, 10):
        item = np.rint(step * np.tanh(prefix / SIGMA)).astype(int)
        replaced = item + (step if t == position else 0)
        stds = np.full((len(counter.nodes(t)), 1), SIGMA)
        noise = np.rint(stds * rng.standard_normal((len(stds), REPLICATES))).astype(int)
        before = {name: array.copy() for name, array in state.secret.items()}
        rows = counter.encode(before, t, item.copy())
        shift = counter.encode(twin, t, replaced) - rows
        ratio += (((noise - shift) / stds) ** 2 - (noise / stds) ** 2).sum(axis=0) / 2
        cost += float(np.median(((shift / stds) ** 2).sum(axis=0)))
        prefix, _ = counter.step(
            state, item, dict(zip(counter.nodes(t), noise, strict=True)).__getitem__
        )
    assert cost <= (counter.shift(step, REPLICATES, 4 * step) / SIGMA) ** 2
    if position == 1:
        assert cost == pytest.approx((counter.column_norm() * step / SIGMA) ** 2, rel=1e-3)
    standard = (ratio - cost / 2) / np.sqrt(cost)
    assert stats.kstest(standard, "norm").pvalue > ERROR
    for factor in (2 / 3, 3 / 2):
        assert stats.kstest(standard * factor, "norm").pvalue < ERROR
