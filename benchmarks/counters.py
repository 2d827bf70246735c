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

from tacit.privacy.counters import KINDS, Counter, Doubling, blt, packed_size, strategy
from tacit.privacy.counters.blt_fit import fit
from tacit.privacy.counters.blt_table import GAPS

LENGTHS = (2**7, 2**10, 2**12, 2**14)
DIMENSION, STEPS, FEW_STEPS = 72, 10_000, 300
SIGMA = 2.0**20


def variances(counter: Counter, length: int) -> dict[str, float]:
    """Worst and mean prefix variance times the squared column norm: unit sensitivity and mu."""
    squares = np.array([counter.error_std(t) ** 2 for t in range(1, length + 1)])
    squares *= counter.column_norm() ** 2
    return {"worst": round(squares.max(), 2), "mean": round(squares.mean(), 2)}


def errors() -> list[dict[str, object]]:
    rows = []
    for length in LENGTHS:
        counters: dict[str, Counter] = {kind: strategy(kind, length) for kind in KINDS}
        counters |= {f"blt, {buffers} buffers": blt(length, buffers) for buffers in (2, 3)}
        counters |= {f"length unknown, growth {g}": Doubling("blt", growth=g) for g in (2, 4)}
        for name, counter in counters.items():
            rows.append({"length": length, "counter": name, **variances(counter, length)})
    return rows


def seconds(kind: str, steps: int, simulated: bool) -> float:
    """A stream of packed 72 x 72 matrices; noise from a generator, or none to time the counter."""
    counter, size = strategy(kind, steps), packed_size(DIMENSION)
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
        steps = FEW_STEPS if kind == "toeplitz" else STEPS
        bare, full = seconds(kind, steps, False), seconds(kind, steps, True)
        row = {"counter": kind, "steps": steps, "seconds": bare, "with Gaussian noise": full}
        rows.append({**row, "steps per second": round(steps / full)})
    return rows


def table() -> None:
    """The content of ``blt_table.py``."""
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
