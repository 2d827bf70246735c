"""``tacit audit``: try to refute a guarantee."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.display import speaker
from tacit.cli.options import Case, Json, Rule, Seed, count, number, on_case

if TYPE_CHECKING:
    from tacit.auditing.agent import AgentAudit
    from tacit.auditing.findings import AuditReport

_TRIALS = "Of each path, at most; fewer if a bound is violated or nearly reached before."
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


@on_case
def audit(
    case: Case,
    coming: Rule,
    trials: Annotated[int, count(_TRIALS)] = 1_000_000,
    seconds: Annotated[float, number("How long all of it may take, roughly.")] = 180.0,
    confidence: Annotated[float, number("That no bound is too high.")] = 0.95,
    seed: Seed = 0,
    service: Annotated[
        bool, typer.Option("--service", help="Audit a running service too (tacit-joint on tables).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Try to refute the guarantee: run the mechanism on worst-case neighbours and bound epsilon.

    All that one person does is audited together; where budgets are renewed, two periods too.
    Exits with status 1 if the claim is refuted, and says so where nothing could be concluded.
    Example: tacit audit random-mdp ldp-obi --epsilon 1
    """
    from rich.console import Console

    from tacit.auditing.agent import audit as audit_agent

    problem, agent = case.problem(), case.agent()
    with Console(stderr=True).status("preparing") as status:
        found = audit_agent(
            problem,
            agent,
            participations=coming.rule(),
            trials=trials,
            seconds=seconds,
            confidence=confidence,
            seed=seed,
            service=service,
            progress=status.update,
        )
    say = speaker(quiet=as_json)
    say(f"Audit of {agent.name} on {problem.name}", style="bold")
    for report in found.reports:
        say(f"  {_line(report)}")
    if found.exact_epsilon is not None:
        say(
            f"  exact: the probabilities of what one person sends give epsilon "
            f"{found.exact_epsilon:.9g}"
        )
    for remark in found.remarks:
        say(f"  not audited: {remark}")
    say(
        f"  verdict: {found.verdict} (all bounds hold together with confidence "
        f"{found.confidence:g})"
    )
    for advice in _advice(found):
        say(f"  {advice}")
    if as_json:
        print(json.dumps(found.to_json()))
    if found.verdict == "violated":
        raise typer.Exit(1)


def _advice(found: AgentAudit) -> Iterator[str]:
    """What the verdict does not say, above all where an audit could see little."""
    if found.verdict in _ADVICE:
        yield _ADVICE[found.verdict]
    if any(report.learned for report in found.reports):
        yield _LEARNED
    if found.verdict != "no evidence" and any(r.verdict == "no evidence" for r in found.beside):
        yield _BESIDE


def _line(report: AuditReport) -> str:
    apart = ""
    if report.distance is not None:
        apart = f", pair at {report.distance:.3g} of the declared sensitivity"
    return (
        f"{report.target}, {report.source} noise, {report.trials:,} trials{apart}: "
        f"epsilon is at least {report.lower_bound:.4g} at delta {report.delta:.3g} "
        f"({report.best.method}), claimed {report.claimed_epsilon:.6g}: {report.verdict}"
    )
