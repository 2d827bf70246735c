"""The auditor: run a mechanism on two neighbouring inputs and bound its epsilon from below.

The runs are split in three. On the first part scores are fitted; on the second the most promising
event (score, direction, threshold) is picked for each method; on the third, which nothing so far
has looked at, the errors of just those events are counted. So scores, directions and thresholds
cost no correction. What is corrected for is one look per method, and within it two error rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.auditing.bounds import (
    delta_from_rates,
    epsilon_from_rates,
    error_rates_upper,
    mu_from_rates,
    per_look,
)
from tacit.auditing.scores import Score, learned_scores, strongest_events
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_epsilon
from tacit.validate import integer, number

Verdict = Literal["violated", "consistent", "no claim"]

MIN_TRIALS = 100
PREPARATION = 8
"""One run in so many fits scores, and as many pick events; the rest is measured."""

ENTRIES = 1 << 22
"""Numbers held in memory at once, per world; longer audits are measured in batches."""

NOTHING = "nothing about the mechanism"
GAUSSIAN = "Gaussian noise: valid only for Gaussian noise, post-processed or not"

_MEANING: dict[Verdict, str] = {
    "violated": "the claim is refuted at this confidence",
    "consistent": "no violation was found; that is no guarantee, only a failure to refute",
    "no claim": "epsilon is claimed to be infinite, so there is nothing to refute",
}


class Target(Protocol):
    """A mechanism on one fixed pair of worst-case neighbouring inputs, world 0 and world 1.

    A target whose noise is Gaussian may say so with an attribute ``family = "gaussian"``.
    """

    @property
    def name(self) -> str:
        """What is audited."""

    @property
    def source(self) -> str:
        """Where its noise comes from: "secure" or "simulated"."""

    def sample(self, world: int, trials: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Outputs [trials, outputs] of independent runs; secure targets ignore ``rng``."""

    def score(self, outputs: Array) -> Array | None:
        """A statistic [trials] by which to tell the worlds apart; None if unknown."""


@dataclass(frozen=True)
class MethodBound:
    """What one method found.

    Attributes:
        method: "threshold" or "gaussian".
        lower_bound: on epsilon at the audited delta.
        assumption: what must hold for the bound to be one, besides independent runs.
        event: the outputs on which the test said "world 1".
        fpr: upper bound on the probability of the event in world 0.
        fnr: upper bound on the probability of its complement in world 1.
        delta_at_claim: lower bound on delta at the claimed epsilon (None without a claim).
    """

    method: str
    lower_bound: float
    assumption: str
    event: str
    fpr: float
    fnr: float
    delta_at_claim: float | None

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
        trials: runs of the mechanism in each world, all parts together.
        bounds: one per method.
    """

    target: str
    source: str
    claimed_epsilon: float
    delta: float
    confidence: float
    trials: int
    bounds: tuple[MethodBound, ...]

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
        """Whether the lower bound exceeds the claim."""
        if math.isinf(self.claimed_epsilon):
            return "no claim"
        return "violated" if self.lower_bound > self.claimed_epsilon else "consistent"

    @property
    def meaning(self) -> str:
        """What the verdict says, and under which assumption."""
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
            "method": self.best.method,
            "bounds": [bound.to_json() for bound in self.bounds],
            "target": self.target,
            "source": self.source,
        }

    def statement(self) -> str:
        """The finding in plain words."""
        lines = [
            f"{self.target}: {self.verdict}: {self.meaning}.",
            f"epsilon >= {self.lower_bound:.4g} at delta {self.delta:g} with confidence "
            f"{self.confidence:g}, claimed {self.claimed_epsilon:.4g}; {self.trials} runs in each "
            f"world, noise {self.source}.",
        ]
        lines += [
            f"  {b.method}: epsilon >= {b.lower_bound:.4g} by the event {b.event}; "
            f"assumes {b.assumption}."
            for b in self.bounds
        ]
        return "\n".join(lines)

    __str__ = statement


@dataclass(frozen=True)
class _Method:
    """How error rates (FPR, FNR) become a bound: first a strength, by which events are ranked."""

    name: str
    assumption: str
    strength: Callable[[Array, Array], Array]
    epsilon: Callable[[float], float]


def audit_target(
    target: Target,
    claimed_epsilon: float,
    delta: float,
    trials: int,
    confidence: float = 0.95,
    *,
    rng: np.random.Generator,
) -> AuditReport:
    """Bound epsilon at ``delta`` from below and compare it with the claim.

    Methods:
        threshold: Clopper-Pearson bounds on both error rates of one event turn into epsilon by the
            definition of differential privacy. Assumes nothing about the mechanism.
        gaussian: the same error rates turn into mu of Gaussian DP, and mu into epsilon at delta, as
            in Nasr et al., "Tight auditing of differentially private machine learning" (2023). Used
            if ``target.family == "gaussian"`` and delta > 0 (at delta = 0 Gaussian noise has no
            finite epsilon to find). Valid only for Gaussian noise, post-processed or not: epsilon
            at a small delta is read off the shape of the noise, not off events that rare.

    Confidence: all bounds of the report hold together with probability at least ``confidence``, for
    any mechanism with independent runs (that satisfies the method's assumption). The failure
    probability is split evenly over the methods and, within each, over its two error rates; the
    events were fixed on other runs. Audits repeated until one says "violated" are further looks,
    which only the caller can correct for, with a higher ``confidence``.

    Args:
        target: the mechanism on a fixed pair of neighbouring inputs.
        claimed_epsilon: what the mechanism says; infinity for no claim.
        delta: in [0, 1).
        trials: runs in each world, besides a first one that shows how many numbers come out. An
            infinite ratio shows as about log(trials / 5) at the default confidence.
        confidence: in (0, 1).
        rng: randomness of simulated targets.

    Returns:
        The report; "consistent" in it is not a proof of privacy.
    """
    claim = _claim(claimed_epsilon)
    delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
    trials = integer(trials, "trials", low=MIN_TRIALS)
    confidence = number(confidence, "confidence", low=0.0, high=1.0, low_open=True, high_open=True)
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng = {rng!r}, but it must be a numpy.random.Generator")

    methods = _methods(target, delta)
    beta = per_look(1.0 - confidence, len(methods))
    rows = max(1, ENTRIES // _draw(target, 0, 1, rng).shape[1])
    prepare = min(trials // PREPARATION, rows)
    fit0, fit1 = (_draw(target, world, prepare, rng) for world in (0, 1))
    scores = [*_own_score(target, fit0), *learned_scores(fit0, fit1)]
    pick0, pick1 = (_draw(target, world, prepare, rng) for world in (0, 1))
    events = strongest_events(scores, pick0, pick1, [m.strength for m in methods], beta)

    measured = trials - 2 * prepare
    positives = np.zeros((2, len(events)), dtype=np.int64)
    for world in (0, 1):
        for size in _batches(measured, rows):
            outputs = _draw(target, world, size, rng)
            positives[world] += [event.count(outputs) for event in events]
    bounds = []
    for method, event, (false, true) in zip(methods, events, positives.T.tolist(), strict=True):
        fpr, fnr = error_rates_upper(false, measured - true, measured, beta)
        found = method.epsilon(max(0.0, float(method.strength(fpr, fnr))))
        at_claim = None
        if math.isfinite(claim):
            at_claim = max(0.0, float(delta_from_rates(fpr, fnr, claim)))
        bounds.append(
            MethodBound(
                method=method.name,
                lower_bound=found,
                assumption=method.assumption,
                event=str(event),
                fpr=float(fpr),
                fnr=float(fnr),
                delta_at_claim=at_claim,
            )
        )
    return AuditReport(target.name, target.source, claim, delta, confidence, trials, tuple(bounds))


def _claim(epsilon: float) -> float:
    if isinstance(epsilon, float) and epsilon == math.inf:
        return epsilon
    return number(epsilon, "claimed_epsilon", low=0.0)


def _methods(target: Target, delta: float) -> list[_Method]:
    methods = [
        _Method(
            "threshold",
            NOTHING,
            lambda fpr, fnr: epsilon_from_rates(fpr, fnr, delta),
            lambda epsilon: epsilon,
        )
    ]
    if getattr(target, "family", None) == "gaussian" and delta > 0.0:
        methods.append(
            _Method(
                "gaussian",
                GAUSSIAN,
                mu_from_rates,
                lambda mu: gaussian_epsilon(mu, delta),
            )
        )
    return methods


def _draw(target: Target, world: int, trials: int, rng: np.random.Generator) -> Array:
    outputs = np.asarray(target.sample(world, trials, rng), dtype=np.float64)
    if outputs.ndim != 2 or outputs.shape[0] != trials or outputs.shape[1] == 0:
        raise InvalidInput(
            f"{target.name} gave outputs of shape {outputs.shape}, but {trials} trials must give "
            f"shape ({trials}, outputs) with outputs >= 1"
        )
    if not np.isfinite(outputs).all():
        bad = outputs[~np.isfinite(outputs)][0]
        raise InvalidInput(f"{target.name} gave {bad} in world {world}, but outputs must be finite")
    return outputs


def _own_score(target: Target, outputs: Array) -> list[Score]:
    """The target's score if it has one, checked on every use."""
    if target.score(outputs) is None:
        return []

    def of(outputs: Array) -> Array:
        values = np.asarray(target.score(outputs), dtype=np.float64)
        if values.shape != outputs.shape[:1] or np.isnan(values).any():
            raise InvalidInput(
                f"{target.name} gave scores of shape {values.shape} for {len(outputs)} outputs, "
                "but there must be one per output, none of them NaN"
            )
        return values

    return [Score("the target's score", of)]


def _batches(total: int, size: int) -> Iterator[int]:
    for done in range(0, total, size):
        yield min(size, total - done)
