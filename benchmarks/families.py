"""Speed of the mixture and linear agents on one core; run: python benchmarks/families.py.

Microseconds of processor time per episode: a first run compiles, the best of three later ones
counts. ``every`` is the number of users between two plans.
"""

from __future__ import annotations

import time
from typing import Any

import tacit

DELTA = {"epsilon": 1.0, "delta": 1e-5}
TIGHT = {"calibration": "tight"}
SWIM = {"kernel": "vtr"}
CASES: list[tuple[str, dict[str, Any], str, dict[str, Any], int]] = [
    ("river-swim", {"states": 3, "horizon": 6, **SWIM}, "ucrl-vtr", TIGHT, 2000),
    ("river-swim", {"states": 3, "horizon": 6, **SWIM}, "ucrl-vtr", {"every": 20, **TIGHT}, 20_000),
    ("river-swim", {"states": 3, "horizon": 6, **SWIM}, "ldp-ucrl-vtr", {**DELTA, **TIGHT}, 2000),
    ("river-swim", {"states": 5, "horizon": 10, **SWIM}, "ucrl-vtr", TIGHT, 500),
    ("river-swim", {"states": 5, "horizon": 10, **SWIM}, "ucrl-vtr", {"every": 20, **TIGHT}, 5000),
    ("remap-walk", {}, "tacit-joint", DELTA, 10_000),
    ("synthetic-linear", {}, "tacit-linear", DELTA, 50_000),
    ("synthetic-linear", {}, "dp-lsvi-batch", {**DELTA, **TIGHT}, 50_000),
    ("synthetic-linear", {}, "lsvi-ucb++", TIGHT, 5000),
    ("synthetic-linear", {}, "dp-lsvi-adaptive", {**DELTA, **TIGHT}, 5000),
    ("synthetic-linear", {}, "dp-lsvi-ucb++", {**DELTA, **TIGHT}, 5000),
    ("synthetic-linear", {}, "lsvi-ucb", {}, 1000),
]


def main() -> None:
    """One line per case."""
    for name, parameters, who, options, users in CASES:
        problem, agent = tacit.problem(name, **parameters), tacit.agent(who, **options)
        tacit.simulate(problem, agent, 200, workers=1)
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            tacit.simulate(problem, agent, users, workers=1)
            best = min(best, time.process_time() - began)
        how = ", ".join(f"{key}={value}" for key, value in {**parameters, **options}.items())
        print(f"{name} {who} ({how}), {users:,} users: {best / users * 1e6:.1f} us", flush=True)


if __name__ == "__main__":
    main()
