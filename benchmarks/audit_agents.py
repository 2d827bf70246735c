"""Every private agent audited on a small problem of its family: docs/results/audits.md has them.

Run: python benchmarks/audit_agents.py [--runs 3] [--write] [AGENT ...]

Claim over audited lower bound, at epsilon 1 (and delta 1e-5 where the noise is Gaussian). How many
trials a path may take is fixed here and not by the clock, so a busy machine makes no row worse. A
row shows the best bound of all paths and every path's share of its claim, in the median of the
runs; the distance is that of the best path's pair over what is paid for.

``--write`` puts each row into the page when it is measured, with the newest commit that changed
``src``, and goes on where it was stopped: rows of that commit are not measured again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import tacit
from tacit.agents import make_agent

HERE = Path(__file__).resolve().parents[1]
PAGE = HERE / "docs" / "results" / "audits.md"
BOTH, SLOW, RENEWED, GUESSED = 1000, 500, 1500, 165_888
"""Trials of each path at most: in both worlds, where noise is Gaussian, quick or slow, or where two
periods are audited together; in one."""

START, END = "<!-- made by benchmarks/audit_agents.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Case:
    """An agent, its parameters, and a small problem of its family."""

    agent: str
    problem: str = "random-mdp"
    sizes: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    trials: int = GUESSED
    service: bool = False
    rule: tacit.Participation = field(default_factory=tacit.Participation)

    @property
    def label(self) -> str:
        """Its name, with the parameters that are not the default."""
        said = ", ".join(
            f"{name} {value}"
            for name, value in self.options.items()
            if name not in ("delta", "calibration")
        )
        if self.service:
            said += f"{', ' if said else ''}service too"
        if self.rule != tacit.Participation():
            said += f"{', ' if said else ''}{self.rule.in_words()}, teaches {self.rule.teaches}"
        return f"`{self.agent}`" + (f" ({said})" if said else "")

    @property
    def place(self) -> str:
        """Its problem, with the sizes that are not the default."""
        sizes = ", ".join(f"{name} {value}" for name, value in self.sizes.items())
        return self.problem + (f" ({sizes})" if sizes else "")


GAUSSIAN = {"delta": 1e-5}
TIGHT = {"calibration": "tight"}
"""As measured; the test of all agents audits them as they are by default."""
ONE_STEP = {"horizon": 1}
"""Where few cells move: all of their pure noise must fall far out at once to be decisive."""

LIVES, MONTHS = (
    tacit.Participation(3, "lifetime"),
    tacit.Participation(None, "lifetime", period="30d"),
)


def gaussian(agent: str, problem: str = "random-mdp", **more: Any) -> Case:
    """With Gaussian noise, which few trials are enough for."""
    options = {**more.pop("options", {}), **GAUSSIAN}
    return Case(agent, problem, options=options, **{"trials": BOTH, **more})


CASES = (
    Case("tacit-local"),
    Case("tacit-local", rule=tacit.Participation(None, "first")),
    Case("ldp-obi", sizes=ONE_STEP),
    gaussian("ldp-obi", options={"randomizer": "gaussian"}),
    Case("ldp-obi", sizes=ONE_STEP, options={"randomizer": "randomized-response"}),
    Case("ldp-psrl", sizes=ONE_STEP, trials=2 * GUESSED),
    gaussian("ldp-ucrl-vtr"),
    gaussian("ldp-bandit", "linear-bandit", sizes={"dimension": 2, "arms": 3, "contexts": 2}),
    gaussian("private-linopt-vi", options={"model": "local"}),
    Case("shuffle-obi", options={**GAUSSIAN, **TIGHT}, trials=20_000),
    Case("pucb", options=TIGHT, trials=40_000),
    Case("pucb", sizes=ONE_STEP, options=TIGHT, trials=80_000),
    Case("pucb", sizes=ONE_STEP, options={"every": 3, **TIGHT}, trials=80_000),
    gaussian("private-ucb-vi", options=TIGHT),
    gaussian("private-ucb-po", options=TIGHT),
    gaussian("dp-ucbvi", options=TIGHT),
    gaussian("tacit-joint"),
    gaussian(
        "tacit-joint", "river-swim", sizes={"states": 6, "horizon": 2}, trials=SLOW, service=True
    ),
    gaussian("tacit-joint", options={"least": 40}, rule=LIVES, trials=SLOW),
    gaussian("tacit-joint", options={"least": 4}, rule=MONTHS, trials=RENEWED),
    gaussian("private-linopt-vi"),
    gaussian("private-linopt-po"),
    gaussian("dp-lsvi-batch"),
    gaussian("dp-lsvi-adaptive"),
    gaussian("dp-lsvi-ucb++"),
    gaussian("tacit-linear"),
    gaussian("tacit-linear", rule=MONTHS, trials=RENEWED),
    gaussian("private-ofu-rl", "lq-scalar", options=TIGHT),
    gaussian("tacit-control", "lq-scalar", trials=SLOW),
    gaussian("tacit-search", "cart-pole", trials=SLOW),
    Case("tacit-search", "cart-pole", options={"model": "local"}),
)


def row(case: Case, runs: int, commit: str) -> str:
    problem = tacit.problem(case.problem, **case.sizes)
    agent = make_agent(case.agent, epsilon=1.0, **case.options)
    audits = [
        tacit.audit(
            problem,
            agent,
            trials=case.trials,
            participations=case.rule,
            seed=seed,
            seconds=1e9,
            service=case.service,
        )
        for seed in range(runs)
    ]
    paths = list(zip(*(audit.reports for audit in audits), strict=True))
    shares = [median(r.lower_bound / r.claimed_epsilon for r in path) for path in paths]
    best = paths[shares.index(max(shares))]
    bound = median(report.lower_bound for report in best)
    trials = ", ".join(f"{median(r.trials for r in path):,.0f}" for path in paths)
    verdicts = sorted({audit.verdict for audit in audits})
    return (
        f"{key(case)} {best[0].claimed_epsilon:.4g} | {best[0].distance:.3f} | {bound:.3f} | "
        f"{', '.join(f'{share:.2f}' for share in shares)} | {trials} | {commit} | "
        f"{' / '.join(verdicts)} |"
    )


def key(case: Case) -> str:
    """How its row begins."""
    return f"| {case.label} | {case.place} |"


HEAD = (
    "| agent | problem | claimed epsilon | distance / sensitivity | lower bound "
    "| bound / claim by path | trials by path | commit | verdict |\n" + "|---" * 9 + "|"
)


def commit_of_source() -> str:
    """The newest commit that changed the source; refused while something in it is not committed."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(HERE), *words, "--", "src"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    if git("status", "--porcelain"):
        sys.exit("src differs from its newest commit: commit it, so that rows can name it")
    return git("log", "-1", "--format=%h")


def written() -> dict[str, str]:
    """The rows of the page by how they begin."""
    table = PAGE.read_text().partition(START)[2].partition(END)[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    return {"|".join(line.split("|")[:3]) + "|": line for line in rows}


def write(rows: dict[str, str]) -> None:
    """Put the rows of all cases that have one into the page."""
    table = "\n".join([START, HEAD, *(rows[key(c)] for c in CASES if key(c) in rows), END])
    PAGE.write_text(re.sub(f"{START}.*{END}", lambda _: table, PAGE.read_text(), flags=re.S))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("agents", nargs="*", help="only these")
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.name}")
    chosen = options.parse_args()
    commit, rows = commit_of_source(), written() if chosen.write else {}
    print(HEAD)
    for case in CASES:
        old = rows.get(key(case), "")
        if (chosen.agents and case.agent not in chosen.agents) or f"| {commit} |" in old:
            continue
        rows[key(case)] = row(case, chosen.runs, commit)
        print(rows[key(case)], flush=True)
        if chosen.write:
            write(rows)


if __name__ == "__main__":
    main()
