"""``tacit audit``: try to refute a guarantee."""

from __future__ import annotations

import json

from rich.console import Console

from tacit.auditing.agent import audit
from tacit.auditing.findings import AuditReport
from tacit.cli.case import Case
from tacit.cli.values import real, whole


def audit_and_print(case: Case, trials: str, confidence: str, seed: str, *, as_json: bool) -> bool:
    """Audit and print; returns False if the claim was refuted."""
    problem, agent = case.problem(), case.agent()
    waiting = Console(stderr=True)
    with waiting.status("preparing") as status:
        found = audit(
            agent,
            problem,
            trials=whole(trials, "--trials"),
            confidence=real(confidence, "--confidence"),
            seed=whole(seed, "--seed"),
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
            f"  exact: the probabilities of one report give epsilon {found.exact_epsilon:.9g}",
            soft_wrap=True,
        )
    for remark in found.remarks:
        console.print(f"  not audited: {remark}", markup=False, soft_wrap=True)
    console.print(
        f"  verdict: [bold]{found.verdict}[/bold] (all bounds hold together with confidence "
        f"{found.confidence:g})",
        soft_wrap=True,
    )
    if found.verdict == "consistent":
        console.print("  No violation found is not a proof: the proof is in proofs/.")
    return found.verdict != "violated"


def _line(report: AuditReport) -> str:
    return (
        f"{report.target}, {report.source} noise, {report.trials:,} trials: epsilon is at least "
        f"{report.lower_bound:.4g} at delta {report.delta:.3g} ({report.best.method} method), "
        f"claimed {report.claimed_epsilon:.6g}: {report.verdict}"
    )
