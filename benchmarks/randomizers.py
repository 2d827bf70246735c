"""Per-user noise of every local randomizer, side by side. Run: python benchmarks/randomizers.py.

Standard deviation of the privacy noise that one user adds to one transition count N_p(s, a, s'), in
the settings of docs/papers/tabular_ldp.md#noise-scales, where a table of the same shape can be
compared. "paper" is the published calibration, "tight" the least noise for the same guarantee.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from tacit.privacy.accounting import gaussian_delta, gaussian_mu
from tacit.privacy.bounded import (
    VARIANCE,
    calibrate_radius,
    paper_radius,
    tabular_delta,
)
from tacit.privacy.finite.bits import BinaryResponse
from tacit.privacy.finite.subset import SubsetSelection

SETTINGS = [  # epsilon, delta, states, actions, horizon
    (0.2, 0.1, 2, 2, 2),
    (2.0, 0.1, 2, 2, 2),
    (20.0, 0.1, 2, 2, 2),
    (1.0, 1e-5, 6, 2, 20),
]


def laplace(sensitivity: float, epsilon: float) -> float:
    return math.sqrt(2) * sensitivity / epsilon


def response(epsilon: float, horizon: int, differing: int) -> float:
    """H - 1 randomized bits make up a count."""
    bits = BinaryResponse.calibrate(epsilon, differing, differing)
    return math.sqrt((horizon - 1) * bits.variance_outside)


def one_step(epsilon: float, states: int, horizon: int) -> dict[str, float]:
    """One of H steps is reported: cells (s, rho, s'), a transition count is two of them."""
    oracle = SubsetSelection.calibrate(epsilon, 2 * states**2)

    def summed(cells: int) -> float:
        others = (cells - 1) * oracle.covariance_outside
        return cells * (oracle.variance_outside + others)

    return {
        "one-step FO": horizon * math.sqrt(summed(2)),
        "(one s,rho,s' cell)": horizon * math.sqrt(oracle.variance_outside),
        "(visits of s)": horizon * math.sqrt(summed(2 * states)),
        "(omega)": oracle.size,
    }


def row(epsilon: float, delta: float, S: int, A: int, H: int) -> dict[str, float | str]:
    joint = math.sqrt(4 * H**2 + 2 * (H - 1) ** 2)
    folded = math.sqrt(2 * ((H - 1) ** 2 + 1))
    published = math.sqrt(4 * math.log(24 / delta)) * H / epsilon
    mu = gaussian_mu(epsilon, delta)
    return {
        "setting": f"H={H} S={S} A={A} eps={epsilon:g} d0={delta:g}",
        "Lap paper": laplace(6 * H, epsilon),
        "Lap tight": laplace(6 * H - 2, epsilon),
        "Lap folded": math.sqrt(2) * laplace(2 * H, epsilon),
        "RR paper": response(epsilon, H, 6 * H),
        "RR tight": response(epsilon, H, 6 * H - 2),
        "Gauss paper": published,
        "(true delta)": gaussian_delta(joint / published, epsilon),
        "Gauss tight": joint / mu,
        "Gauss folded": math.sqrt(2) * folded / mu,
        **one_step(epsilon, S, H),
    }


def bounded(epsilon: float, delta: float, S: int, A: int, H: int) -> dict[str, float | str]:
    ratio = math.sqrt(S)
    line: dict[str, float | str] = {"setting": f"H={H} S={S} A={A} eps={epsilon:g}"}
    for budget, name in ((epsilon / (3 * H), "eps/(3H)"), (epsilon, "eps")):
        radius = paper_radius(budget, delta, S, A)
        line[f"R1 C=1 eps'={name}"] = radius
        line[f"(true delta, {name})"] = tabular_delta(radius, ratio, H, epsilon)
    for target in sorted({delta, 1e-5}, reverse=True):
        radius = calibrate_radius(epsilon, target, H, ratio)
        line[f"R1 for {target:g}"] = radius
        line[f"(std, {target:g})"] = math.sqrt(VARIANCE) * radius
    return line


def show(title: str, rows: list[dict[str, float | str]]) -> None:
    print(f"\n{title}")
    names = list(dict.fromkeys(name for line in rows for name in line))
    for name in names:
        cells = [line.get(name, "") for line in rows]
        texts = [c if isinstance(c, str) else f"{c:.4g}" for c in cells]
        print(f"  {name:24s}" + "".join(f"{text:>30s}" for text in texts))


def main() -> None:
    """Compute, print, and on request write the numbers as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path, help="write the numbers here")
    chosen = options.parse_args()
    report = {
        "noise std of one user on one Np cell": [row(*setting) for setting in SETTINGS],
        "bounded noise on R and Nr (R2 = sqrt(S) R1)": [bounded(*s) for s in SETTINGS],
    }
    for title, rows in report.items():
        show(title, rows)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
