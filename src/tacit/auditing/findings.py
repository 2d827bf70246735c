"""What an audit says: lower bounds beside the claim, and what may be concluded from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["violated", "consistent", "no evidence", "no claim"]

NOTHING = "nothing about the mechanism"
GAUSSIAN = "that the noise is Gaussian, of whatever size and correlation"

STRONG = 0.5
"""A bound below this share of the claim is no evidence: twice as much leakage might have passed."""

LEARNED = (
    "; what tells the inputs apart was learned from trials, so less noise than is claimed may have "
    "passed"
)

_MEANING: dict[Verdict, str] = {
    "violated": "the claim is refuted at this confidence",
    "consistent": "no violation was found; that is no guarantee, only a failure to refute",
    "no evidence": "this audit shows nothing either way: its bound is so far below the claim that "
    "a mechanism with half the noise might have passed; more trials may help",
    "no claim": "epsilon is claimed to be infinite, so there is nothing to refute",
}


@dataclass(frozen=True)
class MethodBound:
    """What one method found.

    Attributes:
        method: "guesses", "likelihood" or "gaussian".
        lower_bound: on epsilon at the audited delta.
        assumption: what must hold for the bound to be one, besides independent trials.
        rule: by what the worlds were told apart.
        seen: what was counted or measured.
    """

    method: str
    lower_bound: float
    assumption: str
    rule: str
    seen: str

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class AuditReport:
    """A lower bound on epsilon beside the claim.

    Attributes:
        target: what was audited.
        source: where its noise came from.
        claimed_epsilon: infinite for no claim.
        delta: at which epsilon is claimed and bounded.
        confidence: the probability that all ``bounds`` are right, whatever the mechanism.
        trials: how often a world was drawn and an output looked at.
        distance: of the audited pair, over what the guarantee pays for; None where unknown.
        bounds: one per method, the best of all looks.
        seconds: what it took.
    """

    target: str
    source: str
    claimed_epsilon: float
    delta: float
    confidence: float
    trials: int
    distance: float | None
    bounds: tuple[MethodBound, ...]
    seconds: float = 0.0

    @property
    def best(self) -> MethodBound:
        """The method with the largest bound."""
        return max(self.bounds, key=lambda bound: bound.lower_bound)

    @property
    def lower_bound(self) -> float:
        """The largest of the methods' bounds."""
        return self.best.lower_bound

    @property
    def verdict(self) -> Verdict:
        """Whether the lower bound exceeds the claim, or comes near enough to say anything."""
        if math.isinf(self.claimed_epsilon):
            return "no claim"
        if self.lower_bound > self.claimed_epsilon:
            return "violated"
        strong = self.lower_bound >= STRONG * self.claimed_epsilon
        return "consistent" if strong and self.distance != 0.0 else "no evidence"

    @property
    def learned(self) -> bool:
        """Whether guesses that were learned from trials are all there is, and refute nothing."""
        methods = {bound.method for bound in self.bounds}
        return self.verdict in ("consistent", "no evidence") and methods == {"guesses"}

    @property
    def meaning(self) -> str:
        """What the verdict says, and under which assumption."""
        if self.verdict == "no evidence" and self.distance == 0.0:
            return "the two audited inputs contribute the same, so nothing can be concluded"
        if self.learned:
            return _MEANING[self.verdict] + LEARNED
        beyond = [b.assumption for b in self.bounds if b.lower_bound > self.claimed_epsilon]
        conditional = self.verdict == "violated" and NOTHING not in beyond
        return _MEANING[self.verdict] + (f", assuming {beyond[0]}" if conditional else "")

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite claim is null."""
        return {
            "claimed_epsilon": None if self.verdict == "no claim" else self.claimed_epsilon,
            "delta": self.delta,
            "lower_bound": self.lower_bound,
            "confidence": self.confidence,
            "trials": self.trials,
            "verdict": self.verdict,
            "meaning": self.meaning,
            "distance": self.distance,
            "method": self.best.method,
            "bounds": [bound.to_json() for bound in self.bounds],
            "target": self.target,
            "source": self.source,
            "seconds": self.seconds,
        }
