"""Error at equal privacy and speed of the continual counters.

Run: python benchmarks/counters.py [--json FILE], or with --table to print the shipped coefficients
of the buffered counters anew (half a minute).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from tacit.privacy.counters import KINDS, strategy
from tacit.privacy.counters.base import Strategy
from tacit.privacy.counters.blt import GAPS, blt, residues

LENGTHS = (2**7, 2**10, 2**12, 2**14)
DIMENSION, STEPS, FEW_STEPS = 72, 10_000, 300
SIGMA = 2.0**20


def variances(counter: Strategy, length: int) -> dict[str, float]:
    """Worst and mean prefix variance times the squared column norm: unit sensitivity and mu."""
    squares = np.array([counter.error_std(t) ** 2 for t in range(1, length + 1)])
    squares *= counter.column_norm() ** 2
    return {"worst": round(squares.max(), 2), "mean": round(squares.mean(), 2)}


def errors() -> list[dict[str, object]]:
    rows = []
    for length in LENGTHS:
        counters: dict[str, Strategy] = {kind: strategy(kind, length) for kind in KINDS}
        counters |= {f"blt, {buffers} buffers": blt(length, buffers) for buffers in (2, 3)}
        for name, counter in counters.items():
            rows.append({"length": length, "counter": name, **variances(counter, length)})
    return rows


def seconds(kind: str, steps: int, simulated: bool) -> float:
    """A stream of packed 72 x 72 matrices; noise from a generator, or none to time the counter."""
    counter, size = strategy(kind, steps), DIMENSION * (DIMENSION + 1) // 2
    rng = np.random.default_rng(0)
    item = rng.integers(-(2**20), 2**20, size)
    silence = np.zeros(size, dtype=np.int64)

    def draw(node: int) -> np.ndarray:
        if not simulated:
            return silence
        return np.rint(SIGMA * rng.standard_normal(size)).astype(np.int64)

    warm = strategy(kind, 2)
    warm.step(warm.init(size, 2**20), item, draw)
    state = counter.init(size, 2**20)
    began = time.perf_counter()
    for _ in range(steps):
        counter.step(state, item, draw)
    return round(time.perf_counter() - began, 2)


def speed() -> list[dict[str, object]]:
    rows = []
    for kind in KINDS:
        steps = FEW_STEPS if kind in ("toeplitz", "normalised") else STEPS
        bare, full = seconds(kind, steps, False), seconds(kind, steps, True)
        row = {"counter": kind, "steps": steps, "seconds": bare, "with Gaussian noise": full}
        rows.append({**row, "steps per second": round(steps / full)})
    return rows


# How the shipped table of the buffered counters was made. A counter with d buffers is C(x) =
# prod_j (1 - a_j x) / (1 - t_j x). At equal privacy the worst error of a prefix is |c| |b|, the
# norms of the first n coefficients of C(x) and of B(x) = 1 / ((1 - x) C(x)). Both are sums of d or
# d + 1 geometric series, so the product has a closed form whose cost does not grow with n.

_SPANS = ((0.2, 2.0), (1.0, 1.0), (1.0, 6.0), (3.0, 2.0))
"""Where searches start: least gap times n, largest odds of a gap."""


def fit(length: int, buffers: int) -> np.ndarray:
    """Gaps (1 - t_1, 1 - a_1, 1 - t_2, ...), increasing, of the least worst error found.

    A local search from a few fixed starts, hence deterministic; seconds for four buffers.
    """

    def objective(steps: np.ndarray) -> float:
        return float(np.log(worst_error(_gaps(steps), length)))

    results = []
    for least, largest in _SPANS:
        odds = np.geomspace(least / length, largest, 2 * buffers)
        results.append(
            minimize(
                objective,
                np.log(np.diff(odds, prepend=0.0)),
                method="L-BFGS-B",
                bounds=[(-25.0, 6.0)] * (2 * buffers),
                options={"maxiter": 3000, "maxfun": 10**6, "ftol": 1e-14, "gtol": 1e-9},
            )
        )
    return _gaps(min(results, key=lambda result: float(result.fun)).x)


def worst_error(gaps: np.ndarray, length: int) -> float:
    """Sensitivity times worst error std at unit noise and unit change: |c| |b|, in closed form."""
    decays, zeros = gaps[0::2], gaps[1::2]
    poles = np.concatenate([[0.0], zeros])
    # Differences of numbers near 1 are taken between their gaps, where they are exact.
    scales, weights = residues(-decays, -zeros), residues(-poles, -decays)
    c_squared = 1.0 + scales @ _geometric(decays, length - 1) @ scales
    b_squared = weights @ _geometric(poles, length) @ weights
    return float(np.sqrt(c_squared * b_squared))


def _gaps(steps: np.ndarray) -> np.ndarray:
    """Increasing numbers in (0, 1) from unconstrained ones: odds are cumulative sums."""
    odds = np.cumsum(np.exp(steps))
    return odds / (1.0 + odds)


def _geometric(gaps: np.ndarray, count: int) -> np.ndarray:
    """Matrix of sum_{k < count} (p_i p_j)^k."""
    logs = np.log1p(-gaps)
    together = logs[:, None] + logs[None, :]
    endless = together == 0.0
    safe = np.where(endless, -1.0, together)
    return np.where(endless, float(count), np.expm1(count * safe) / np.expm1(safe))


def table() -> None:
    """The content of ``GAPS``."""
    for buffers, entries in GAPS.items():
        print(f"    {buffers}: {{")
        for length in entries:
            gaps = ", ".join(f"{gap:.4g}" for gap in fit(length, buffers))
            print(f"        {length}: ({gaps}),")
        print("    },")


def main() -> None:
    """Measure, print, and on request write the numbers as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--table", action="store_true", help="fit the coefficients again")
    options.add_argument("--json", type=Path, help="write the numbers here")
    chosen = options.parse_args()
    if chosen.table:
        table()
        return
    report = {
        "prefix variance x sensitivity^2": errors(),
        "packed 72 x 72 stream": speed(),
    }
    for title, rows in report.items():
        print(f"\n{title}")
        for row in rows:
            print("  " + "  ".join(f"{key}: {value}" for key, value in row.items()))
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
