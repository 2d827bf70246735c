"""Reports of local randomizers with finite output, one user at a time and summed over a batch.

A report is a row of D zeros and ones; a collector only ever needs the sum of the rows. Batches are
drawn from the exact joint law of that sum: the ones of one subset-selection report are dependent.
These are the simulated samplers (numpy Generators); the secure ones do not use floats at all.

Randomized response on the steps of a trajectory comes last: a cell of a pooled table stands for one
bit per step (did the step fall into it?). The device flips every bit with probability q and sends,
per cell, how many are then set: the number of ones among the bits decides the law of that sum, so
the simulated sum is drawn without drawing the bits.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel

PASS_COST = 5
"""Steps of a pass over the cells cost about as much as this many reported ones (measured)."""


@kernel
def mark_subset(size: int, skip: int, rng: np.random.Generator, report: IntArray) -> None:
    """Set a uniform ``size``-subset of the cells to one, never cell ``skip`` (-1: any cell).

    Floyd's method: ``size`` uniforms. The cells other than ``skip`` must be zero on entry.
    """
    pool = report.shape[0] - (1 if skip >= 0 else 0)
    for last in range(pool - size, pool):
        pick = int(rng.random() * (last + 1))
        chosen = pick + 1 if 0 <= skip <= pick else pick
        if report[chosen] == 1:
            chosen = last + 1 if 0 <= skip <= last else last
        report[chosen] = 1


@kernel
def encode_subset(
    cell: int, size: int, blanket: float, rng: np.random.Generator, report: IntArray
) -> None:
    """One subset-selection report: overwrite ``report`` [D] with ``size`` ones.

    With probability ``blanket`` a uniform subset of all cells, else the user's own cell and a
    uniform subset of the others: the law of docs/papers/tabular_ldp.md#b1 with
    p = 1 - blanket (1 - size / D), written as a mixture whose first part forgets the cell.
    """
    report[:] = 0
    if rng.random() < blanket:
        mark_subset(size, -1, rng, report)
    else:
        report[cell] = 1
        mark_subset(size - 1, cell, rng, report)


@kernel
def add_uniform_subsets(
    n: int, size: int, skip: int, rng: np.random.Generator, left: IntArray, hits: IntArray
) -> None:
    """Add the sum of n uniform ``size``-subsets of the cells other than ``skip`` (-1: all cells).

    Cell by cell: a subset that still has to place r ones among m remaining cells takes the next
    one with probability r / m, independently of all others. So it is enough to know how many
    subsets have r ones left (``left`` [> size], overwritten), and the cost does not grow with n.
    """
    D = hits.shape[0]
    left[:] = 0
    left[size] = n
    cells = D - (1 if skip >= 0 else 0)
    for j in range(D):
        if j == skip:
            continue
        for r in range(1, size + 1):  # upwards, so that no subset is asked twice
            if left[r] > 0:
                takes = left[r] if r >= cells else rng.binomial(left[r], r / cells)
                hits[j] += takes
                left[r] -= takes
                left[r - 1] += takes
        cells -= 1


@kernel
def sum_subsets(
    counts: IntArray, size: int, blanket: float, rng: np.random.Generator, hits: IntArray
) -> None:
    """Sum of the reports of counts[x] users in every cell x, into ``hits`` [D], exactly in law.

    Report by report while that is cheaper, else in one pass for the reports that forgot their cell
    and one pass per cell for those that did not; which one depends on the counts only.
    """
    D = hits.shape[0]
    hits[:] = 0
    n = 0
    groups = 0
    for x in range(D):
        n += counts[x]
        groups += 1 if counts[x] > 0 else 0
    if float(n) * (size + 2) <= PASS_COST * D * (size + groups * (size - 1)):
        report = np.zeros(D if size > 1 else 0, dtype=np.int64)
        for x in range(D):
            for _ in range(counts[x]):
                if size == 1:  # as ``encode_subset``, without looking at all cells
                    hits[int(rng.random() * D) if rng.random() < blanket else x] += 1
                    continue
                encode_subset(x, size, blanket, rng, report)
                for j in range(D):
                    hits[j] += report[j]
        return
    left = np.zeros(size + 1, dtype=np.int64)
    forgot = 0
    for x in range(D):
        if counts[x] > 0:
            kept = rng.binomial(counts[x], 1.0 - blanket)
            forgot += counts[x] - kept
            hits[x] += kept
            add_uniform_subsets(kept, size - 1, x, rng, left, hits)
    add_uniform_subsets(forgot, size, -1, rng, left, hits)


@kernel
def encode_bits(
    bits: IntArray, keep: float, flip: float, rng: np.random.Generator, report: IntArray
) -> None:
    """Independent bits: a one is reported as one w.p. ``keep``, a zero as one w.p. ``flip``."""
    for j in range(bits.shape[0]):
        report[j] = 1 if rng.random() < (keep if bits[j] == 1 else flip) else 0


@kernel
def sum_bits(
    ones: IntArray, n: int, keep: float, flip: float, rng: np.random.Generator, hits: IntArray
) -> None:
    """Sum of n such reports when ones[j] of the users hold a one at j.

    Given the users' bits all reported bits are independent, so two binomials per cell are the exact
    joint law.
    """
    for j in range(ones.shape[0]):
        hits[j] = rng.binomial(ones[j], keep) + rng.binomial(n - ones[j], flip)


@kernel
def round_sums(sums: IntArray, steps: IntArray, rng: np.random.Generator, ones: IntArray) -> None:
    """Whole numbers of mean sums / steps: the fraction is rounded up as often as it is large.

    One uniform for every cell that is not whole already.
    """
    for j in range(sums.shape[0]):
        whole = sums[j]
        if steps[j] > 1:
            whole = sums[j] // steps[j]
            rest = sums[j] - whole * steps[j]
            if rest > 0 and rng.random() * steps[j] < rest:
                whole += 1
        ones[j] = whole


@kernel
def respond(
    ones: IntArray,
    trials: IntArray,
    keep: float,
    flip: float,
    rng: np.random.Generator,
    hits: IntArray,
) -> None:
    """How many of the trials[j] bits of a cell are reported as one when ones[j] of them are.

    Two binomials, by counting uniforms: a cell has at most as many bits as an episode has steps.
    """
    for j in range(ones.shape[0]):
        own = min(max(ones[j], 0), trials[j])
        count = 0
        for i in range(trials[j]):
            count += 1 if rng.random() < (keep if i < own else flip) else 0
        hits[j] = count


@kernel
def debias(
    hits: IntArray, trials: IntArray, users: int, keep: float, flip: float, out: Array
) -> None:
    """Unbiased counts (hits - users trials q) / (p - q), cell by cell."""
    for j in range(hits.shape[0]):
        out[j] = (hits[j] - users * trials[j] * flip) / (keep - flip)
