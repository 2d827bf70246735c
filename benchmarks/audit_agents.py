"""Every private agent audited on a small problem of its family: the table of docs/audits.md.

Run: python benchmarks/audit_agents.py [--runs 3] [--seconds 180] [--write] [AGENT ...]

Claim over audited lower bound, at epsilon 1 (and delta 1e-5 where the noise is Gaussian). A run of
an agent audits all its paths and may take three minutes; the bound shown is the best of its paths,
in the median of the runs, and the distance is that of the audited pair over what is paid for.
"""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import tacit
from tacit.agents import make_agent

PAGE = Path(__file__).resolve().parents[1] / "docs" / "audits.md"
START, END = "<!-- made by benchmarks/audit_agents.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Case:
    """An agent, its parameters, and a small problem of its family."""

    agent: str
    problem: str = "random-mdp"
    sizes: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    service: bool = False
    rule: tacit.Participation = field(default_factory=tacit.Participation)

    @property
    def label(self) -> str:
        """Its name, with the parameters that are not the default."""
        said = ", ".join(
            f"{name} {value}" for name, value in self.options.items() if name != "delta"
        )
        if self.rule != tacit.Participation():
            said += f"{', ' if said else ''}{self.rule.in_words()}, teaches {self.rule.teaches}"
        return f"`{self.agent}`" + (f" ({said})" if said else "")


GAUSSIAN = {"delta": 1e-5}
CASES = (
    Case("tacit-local"),
    Case("ldp-obi"),
    Case("ldp-obi", options={"randomizer": "gaussian", **GAUSSIAN}),
    Case("ldp-obi", options={"randomizer": "randomized-response"}),
    Case("ldp-psrl"),
    Case("ldp-ucrl-vtr", options=GAUSSIAN),
    Case("ldp-bandit", "linear-bandit", {"dimension": 2, "arms": 3, "contexts": 2}, GAUSSIAN),
    Case("private-linopt-vi", options={"model": "local", **GAUSSIAN}),
    Case("shuffle-obi", options=GAUSSIAN),
    Case("pucb"),
    Case("private-ucb-vi", options=GAUSSIAN),
    Case("private-ucb-po", options=GAUSSIAN),
    Case("dp-ucbvi", options=GAUSSIAN),
    Case("tacit-joint", options=GAUSSIAN),
    Case("tacit-joint", "river-swim", {"states": 6, "horizon": 2}, GAUSSIAN, service=True),
    Case("tacit-local", rule=tacit.Participation(None, "first")),
    Case("tacit-joint", options=GAUSSIAN | {"least": 40}, rule=tacit.Participation(3, "lifetime")),
    Case("private-linopt-vi", options=GAUSSIAN),
    Case("private-linopt-po", options=GAUSSIAN),
    Case("dp-lsvi-batch", options=GAUSSIAN),
    Case("dp-lsvi-adaptive", options=GAUSSIAN),
    Case("dp-lsvi-ucb++", options=GAUSSIAN),
    Case("tacit-linear", options=GAUSSIAN),
    Case("private-ofu-rl", "lq-scalar", options=GAUSSIAN),
    Case("tacit-control", "lq-scalar", options=GAUSSIAN),
    Case("tacit-search", "cart-pole", options=GAUSSIAN),
    Case("tacit-search", "cart-pole", options={"model": "local"}),
)


def row(case: Case, runs: int, seconds: float) -> str:
    problem = tacit.problem(case.problem, **case.sizes)
    agent = make_agent(case.agent, epsilon=1.0, **case.options)
    found, began = [], time.perf_counter()
    for seed in range(runs):
        found.append(
            tacit.audit(
                problem,
                agent,
                participations=case.rule,
                seed=seed,
                seconds=seconds,
                service=case.service,
            )
        )
    spent = (time.perf_counter() - began) / runs
    paths = zip(*(audit.reports for audit in found), strict=True)
    best = max(paths, key=lambda path: median(r.lower_bound / r.claimed_epsilon for r in path))
    bound = median(report.lower_bound for report in best)
    claim = best[0].claimed_epsilon
    verdicts = sorted({audit.verdict for audit in found})
    trials = ", ".join(
        f"{median(r.trials for r in path):,.0f}"
        for path in zip(*(audit.reports for audit in found), strict=True)
    )
    return (
        f"| {case.label} | {case.problem} | {claim:.4g} | {best[0].distance:.3f} | {bound:.3f} | "
        f"{bound / claim:.2f} | {trials} | {spent:.0f} s | {' / '.join(verdicts)} |"
    )


HEAD = (
    "| agent | problem | claimed epsilon | distance / sensitivity | lower bound | bound / claim "
    "| trials by path | time | verdict |\n|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("agents", nargs="*", help="only these")
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--seconds", type=float, default=180.0)
    options.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    chosen = options.parse_args()
    print(HEAD)
    rows = []
    for case in CASES:
        if not chosen.agents or case.agent in chosen.agents:
            rows.append(row(case, chosen.runs, chosen.seconds))
            print(rows[-1], flush=True)
    if chosen.write:
        table = "\n".join([START, HEAD, *rows, END])
        PAGE.write_text(re.sub(f"{START}.*{END}", lambda _: table, PAGE.read_text(), flags=re.S))


if __name__ == "__main__":
    main()
