"""``tacit audit``: try to refute a guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from tacit.cli import options
from tacit.cli.display import Line, Told, tell

if TYPE_CHECKING:
    from tacit.auditing.agent import AgentAudit
    from tacit.auditing.findings import AuditReport

_TRIALS = "Of each path, at most; fewer if a bound is violated or nearly reached before."
_SERVICE = "Audit a running service too (tacit-joint on tables)."
_ADVICE = {
    "consistent": "No violation found is not a proof: the proof is in proofs/.",
    "no evidence": "At least one path shows nothing either way: its bound is below half of the "
    "claim, or its two inputs are alike. Give it more --trials and --seconds, or a smaller "
    "problem; where a claim rests on a small delta and its noise is not Gaussian, no number of "
    "trials may be enough.",
}
_LEARNED = (
    "Guesses alone are learned from trials where no likelihood is known: such a path finds what a "
    "classifier finds, may be blind to the rest, and half the noise may have passed it."
)
_BESIDE = (
    "A path with no evidence shows nothing either way. What it publishes follows from what is "
    "audited above it, so the verdict does not count it."
)


@dataclass(frozen=True, kw_only=True)
class AuditOptions(options.Subject):
    """What ``tacit audit`` takes."""

    trials: int = options.count(_TRIALS, "Size", 1_000_000)
    seconds: float = options.number("How long all of it may take, roughly.", "Size", 180)
    confidence: float = options.number("That no bound is too high.", "Size", 0.95)
    seed: options.Seed = 0
    service: bool = options.switch("--service", _SERVICE)
    as_json: options.Json = False


@options.command(AuditOptions)
def audit(request: AuditOptions) -> None:
    """Try to refute a guarantee, on worst-case neighbours.

    Each path bounds epsilon from below. All that one person does is audited together; where budgets
    are renewed, two periods too. Exits with status 1 if the claim is refuted, and says so where
    nothing could be concluded.

    Example: tacit audit random-mdp ldp-obi --epsilon 1
    """
    from rich.console import Console

    from tacit.auditing.agent import audit as audit_agent

    problem, agent, rule = request.chosen()
    with Console(stderr=True).status("preparing") as status:
        result = audit_agent(
            problem,
            agent,
            participations=rule,
            trials=request.trials,
            seconds=request.seconds,
            confidence=request.confidence,
            seed=request.seed,
            service=request.service,
            progress=status.update,
        )
    title = f"Audit of {agent.name} on {problem.name}"
    tell(Told(result.to_json(), _lines(title, result)), as_json=request.as_json)
    if result.verdict == "violated":
        raise typer.Exit(1)


def _lines(title: str, result: AgentAudit) -> Iterator[str | Line]:
    yield Line(title, style="bold")
    for report in result.reports:
        yield f"  {_line(report)}"
    if result.exact_epsilon is not None:
        exact = "the probabilities of what one person sends give epsilon"
        yield f"  exact: {exact} {result.exact_epsilon:.9g}"
    for remark in result.remarks:
        yield f"  not audited: {remark}"
    sure = f"all bounds hold together with confidence {result.confidence:g}"
    yield f"  verdict: {result.verdict} ({sure})"
    if result.verdict in _ADVICE:  # what it does not say, above all where little was seen
        yield f"  {_ADVICE[result.verdict]}"
    if any(report.learned for report in result.reports):
        yield f"  {_LEARNED}"
    if result.verdict != "no evidence" and any(r.verdict == "no evidence" for r in result.beside):
        yield f"  {_BESIDE}"


def _line(report: AuditReport) -> str:
    apart = ""
    if report.distance is not None:
        apart = f", pair at {report.distance:.3g} of the declared sensitivity"
    return (
        f"{report.target}, {report.source} noise, {report.trials:,} trials{apart}: "
        f"epsilon is at least {report.lower_bound:.4g} at delta {report.delta:.3g} "
        f"({report.best.method}), claimed {report.claimed_epsilon:.6g}: {report.verdict}"
    )
