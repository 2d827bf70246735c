"""Randomizers with few outputs, written out: all outputs, their probabilities, their moments.

Worked out here from what a randomizer declares, for tests to compare with.
"""

import itertools
import math
from typing import Any

import numpy as np

from tacit.kernels.raw import randomizers as kernels
from tacit.privacy.finite.bits import BinaryResponse, UnaryEncoding
from tacit.privacy.finite.oracle import Randomizer
from tacit.privacy.finite.subset import SubsetSelection

KNOWN = (SubsetSelection, UnaryEncoding, BinaryResponse)


def outputs(randomizer: Randomizer) -> np.ndarray:
    """All reports [outputs, D], as rows of zeros and ones in lexicographic or binary order."""
    assert isinstance(randomizer, KNOWN), "of another randomizer its contract states the law"
    cells = randomizer.domain
    if not isinstance(randomizer, SubsetSelection):
        return np.array(list(itertools.product((0, 1), repeat=cells)))
    rows = itertools.combinations(range(cells), randomizer.size)
    return np.array([[int(x in row) for x in range(cells)] for row in rows])


def pmf(randomizer: Randomizer, inputs: Any = None) -> np.ndarray:
    """Probability of each output given each cell, or given each of these rows of true bits."""
    cells, rows = randomizer.domain, outputs(randomizer)
    p, q = (float(chance) for chance in randomizer.chances)
    if isinstance(randomizer, SubsetSelection):
        with_own = p / math.comb(cells - 1, randomizer.size - 1)
        without = float(1 - randomizer.chances[0]) / math.comb(cells - 1, randomizer.size)
        return np.where(rows.T == 1, with_own, without)
    chance = np.where(np.eye(cells) if inputs is None else np.asarray(inputs), p, q)
    return np.prod(np.where(rows[None] == 1, chance[:, None], 1 - chance[:, None]), axis=2)


def estimate(randomizer: Randomizer, hits: np.ndarray, n: int) -> np.ndarray:
    """Unbiased number of users with a one, per bit, from the sum of n reports."""
    p, q = randomizer.chances
    return (hits - float(n * q)) / float(p - q)


def covariance(oracle: Any, cell: int) -> np.ndarray:
    """Of one report's estimates [D, D], given the user's cell: rows of subsets add up to zero."""
    matrix = np.full((oracle.domain, oracle.domain), oracle.covariance_outside)
    np.fill_diagonal(matrix, oracle.variance_outside)
    if isinstance(oracle, SubsetSelection):
        p, q = oracle.chances
        both = p * (oracle.size - 1) / (oracle.domain - 1)
        matrix[cell, :] = matrix[:, cell] = float((both - p * q) / (p - q) ** 2)
    matrix[cell, cell] = oracle.variance_inside
    return matrix


def aggregate(oracle: Any, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The sum of the reports of counts[x] users in each cell x, as simulations draw it."""
    hits, sampler = np.empty(oracle.domain, dtype=np.int64), oracle.sampler
    if sampler.size > 0:
        kernels.sum_subsets(counts, sampler.size, sampler.blanket, rng, hits)
    else:
        kernels.sum_bits(counts, int(counts.sum()), sampler.chances.p, sampler.chances.q, rng, hits)
    return hits


def sum_rows(response: BinaryResponse, ones: np.ndarray, n: int, rng: Any) -> np.ndarray:
    """The sum of n reports on rows of bits when ones[j] of the users hold a one at j."""
    hits = np.empty_like(ones)
    kernels.sum_bits(ones, n, response.p, response.q, rng, hits)
    return hits
