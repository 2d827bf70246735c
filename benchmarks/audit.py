"""How tight the audit is, how many trials it needs, and what it catches.

Run: python benchmarks/audit.py

Ratio is lower bound over true epsilon, in the median of a few audits and in the worst of them;
seconds are per audit on one core, drawing the noise included. The bound of a mechanism without a
finite epsilon is limited by the trials alone, so it has no ratio. Right noise may be called
violated in one audit of twenty; the last table counts how often it is.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from tacit.auditing import AuditReport, audit_target
from tacit.privacy.accounting import gaussian_epsilon, gaussian_mu

DELTA = 1e-5
MANY = 2000
Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A mechanism beside its claim and its true epsilon; audited as a target."""

    name: str
    draw: Draw
    claim: float
    true: float
    delta: float = 0.0
    family: str = "unknown"
    source: str = "simulated"

    def sample(self, worlds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The outputs of these worlds."""
        return self.draw(worlds, rng)

    def score(self, outputs: np.ndarray) -> np.ndarray | None:
        """The only coordinate of Gaussian noise; else unknown, so that it has to be learned."""
        return outputs[:, 0] if self.family == "gaussian" else None


def laplace(epsilon: float, factor: float = 1.0) -> Case:
    scale = factor / epsilon

    def draw(worlds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(worlds, scale)[:, None]

    return Case(f"laplace, noise x {factor:g}", draw, epsilon, 1 / scale)


def gaussian(epsilon: float, factor: float = 1.0) -> Case:
    mu = gaussian_mu(epsilon, DELTA) / factor

    def draw(worlds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(worlds * mu, 1.0)[:, None]

    true = epsilon if factor == 1.0 else gaussian_epsilon(mu, DELTA)
    return Case(f"gaussian, noise x {factor:g}", draw, epsilon, true, DELTA, "gaussian")


def shared(cells: int) -> Case:
    def draw(worlds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        outputs = np.zeros((len(worlds), cells)) + rng.laplace(0.0, 1.0, (len(worlds), 1))
        outputs[:, 0] += worlds
        return outputs

    return Case(f"laplace, one draw for {cells} cells", draw, 1.0, math.inf)


def side_field(cells: int) -> Case:
    def draw(worlds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        outputs = rng.laplace(0.0, 1.0, (len(worlds), cells))
        outputs[:, -1] = worlds
        return outputs

    return Case("laplace, side field without noise", draw, 1.0, math.inf)


def audits(case: Case, trials: int, repeats: int) -> list[AuditReport]:
    streams = (np.random.default_rng([trials, i]) for i in range(repeats))
    return [audit_target(case, case.claim, case.delta, trials, rng=rng) for rng in streams]


def row(case: Case, trials: int, repeats: int) -> dict[str, object]:
    """A few audits of one case."""
    began = time.perf_counter()
    reports = audits(case, trials, repeats)
    seconds = (time.perf_counter() - began) / repeats
    bounds = [report.lower_bound for report in reports]
    finite = math.isfinite(case.true)
    return {
        "mechanism": case.name,
        "claimed": case.claim,
        "true": round(case.true, 3) if finite else None,
        "delta": case.delta,
        "trials": trials,
        "bound": round(median(bounds), 3),
        "ratio": round(median(bounds) / case.true, 3) if finite else None,
        "worst": round(min(bounds) / case.true, 3) if finite else None,
        "seconds": round(seconds, 3),
        "method": reports[0].best.method,
        "violated": f"{violations(reports)} of {repeats}",
    }


def violations(reports: list[AuditReport]) -> int:
    return sum(report.verdict == "violated" for report in reports)


def enough(case: Case, repeats: int, ratio: float = 0.8) -> int:
    """The least of 1000, 2000, 4000, ... trials whose median bound reaches the ratio."""
    trials = 1000
    while median(r.lower_bound for r in audits(case, trials, repeats)) < ratio * case.true:
        trials *= 2
    return trials


def show(rows: list[dict[str, object]]) -> None:
    cells = [list(rows[0]), *(["-" if v is None else str(v) for v in r.values()] for r in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for line in cells:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))


def main() -> None:
    """Measure, print, and on request write the numbers as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=9, help="audits per row (default 9)")
    options.add_argument("--json", type=Path, help="write the numbers here")
    chosen = options.parse_args()
    gaussian_mu(1.0, DELTA)  # dp-accounting is imported on first use; not to be timed
    honest = [laplace(1.0), laplace(4.0), gaussian(1.0), gaussian(4.0)]
    broken = [laplace(1.0, 0.5), laplace(4.0, 0.5), gaussian(1.0, 0.5), gaussian(4.0, 0.5)]
    leaks = [shared(12), side_field(12)]
    sizes = (1_000, 10_000, 100_000, 1_000_000)
    tables = {
        "right noise": [row(c, n, chosen.repeats) for c in honest for n in sizes],
        "halved noise": [row(c, n, chosen.repeats) for c in broken for n in sizes[:3]],
        "infinite ratio": [row(c, n, chosen.repeats) for c in leaks for n in sizes[:3]],
        "trials for a ratio of 0.8": [
            {"mechanism": c.name, "claimed": c.claim, "trials": enough(c, chosen.repeats)}
            for c in honest
        ],
        "right noise called violated (allowed: 1 in 20)": [
            {
                "mechanism": c.name,
                "claimed": c.claim,
                "trials": n,
                "audits": MANY,
                "violated": violations(audits(c, n, MANY)),
            }
            for c in honest
            for n in sizes[:2]
        ],
    }
    for title, rows in tables.items():
        print(f"\n{title}")
        show(rows)
    if chosen.json:
        chosen.json.write_text(json.dumps(tables, indent=2) + "\n")


if __name__ == "__main__":
    main()
