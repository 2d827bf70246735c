"""``tacit audit``: try to refute a guarantee."""

from __future__ import annotations

import json
from typing import NamedTuple

from rich.console import Console

from tacit.auditing.agent import audit
from tacit.auditing.findings import AuditReport
from tacit.cli.case import Case
from tacit.cli.values import real, whole


class AuditOptions(NamedTuple):
    """How to audit, as given on the command line."""

    participations: str
    trials: str
    seconds: str
    confidence: str
    seed: str
    service: bool


def audit_and_print(case: Case, how: AuditOptions, *, as_json: bool) -> bool:
    """Audit and print; returns False if the claim was refuted."""
    problem, agent = case.problem(), case.agent()
    waiting = Console(stderr=True)
    with waiting.status("preparing") as status:
        found = audit(
            agent,
            problem,
            participations=whole(how.participations, "--participations"),
            trials=whole(how.trials, "--trials"),
            seconds=real(how.seconds, "--seconds"),
            confidence=real(how.confidence, "--confidence"),
            seed=whole(how.seed, "--seed"),
            service=how.service,
            progress=status.update,
        )
    if as_json:
        print(json.dumps(found.to_json()))
        return found.verdict != "violated"
    console = Console(highlight=False)
    console.print(f"[bold]Audit of {agent.name} on {problem.name}[/bold]", soft_wrap=True)
    for report in found.reports:
        console.print(f"  {_line(report)}", markup=False, soft_wrap=True)
    if found.exact_epsilon is not None:
        console.print(
            f"  exact: the probabilities of what one person sends give epsilon "
            f"{found.exact_epsilon:.9g}",
            soft_wrap=True,
        )
    for remark in found.remarks:
        console.print(f"  not audited: {remark}", markup=False, soft_wrap=True)
    console.print(
        f"  verdict: [bold]{found.verdict}[/bold] (all bounds hold together with confidence "
        f"{found.confidence:g})",
        soft_wrap=True,
    )
    for line in _advice(found.verdict):
        console.print(f"  {line}", soft_wrap=True)
    return found.verdict != "violated"


def _advice(verdict: str) -> list[str]:
    return {
        "consistent": ["No violation found is not a proof: the proof is in proofs/."],
        "no evidence": [
            "At least one path shows nothing either way: its bound is below half of the claim, or "
            "its two inputs are alike. Give it more --trials and --seconds, or a smaller problem."
        ],
    }.get(verdict, [])


def _line(report: AuditReport) -> str:
    apart = ""
    if report.distance is not None:
        apart = f", pair at {report.distance:.3g} of the declared sensitivity"
    return (
        f"{report.target}, {report.source} noise, {report.trials:,} trials{apart}: "
        f"epsilon is at least {report.lower_bound:.4g} at delta {report.delta:.3g} "
        f"({report.best.method}), claimed {report.claimed_epsilon:.6g}: {report.verdict}"
    )
