"""The auditor: run a mechanism on two neighbouring inputs and bound its epsilon from below.

In every trial a fair coin picks the input, and somebody who sees the output guesses which. A rule
of guessing is fixed before the trials it is judged on: either it is known in advance (the sign of
the log-likelihood ratio under the noise that is claimed), or scores are fitted on a first part of
the trials and the best rule is picked on a second. Bounds are looked at while trials go on, at
public numbers of them; the error probability is shared out over methods and looks, so that all of
them hold at once and an audit may stop as soon as it has seen enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.auditing.bounds import epsilon_from_guesses, mu_from_guesses, shares_of_looks
from tacit.auditing.findings import GAUSSIAN, NOTHING, AuditReport, MethodBound
from tacit.auditing.scores import Rule, Score, learned_scores, strongest_rule
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_epsilon
from tacit.validate import integer, number

MIN_TRIALS = 100

FIT, PICK = 4096, 32768
"""Trials on which scores are fitted and rules are picked, at most; never over a quarter of all."""

FIRST_LOOK = 4000
"""Trials at the first look; every further look is at twice as many."""

ENOUGH = 0.93
"""An audit stops when its bound has reached this share of what the audited pair can show."""

SEARCH_SHARE = 0.2
"""Of the error probability, for learned rules where a Gaussian likelihood is known."""

ENTRIES = 1 << 22
"""Numbers held in memory at once; longer audits are measured in batches."""


class Target(Protocol):
    """A mechanism on one fixed pair of worst-case neighbouring inputs, world 0 and world 1.

    A target whose noise is Gaussian says so with an attribute ``family = "gaussian"``; one that
    knows how far its pair is apart, over what the guarantee pays for, says ``distance``; one whose
    trials are independent only if its noise is Gaussian says ``separate = False``.
    """

    @property
    def name(self) -> str:
        """What is audited."""

    @property
    def source(self) -> str:
        """Where its noise comes from: "secure" or "simulated"."""

    def sample(self, worlds: IntArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Outputs [trials, outputs], row i from world ``worlds[i]``; secure targets ignore rng."""

    def score(self, outputs: Array) -> Array | None:
        """The log-likelihood ratio [trials] under the claimed noise; None if it is not known."""


@dataclass
class _Method:
    """A rule with what it has shown so far."""

    name: str
    assumption: str
    beta: float
    epsilon: Callable[[int, int, int, float], float]
    rule: Rule
    correct: int = 0
    made: int = 0
    trials: int = 0
    bound: MethodBound = field(init=False)

    def __post_init__(self) -> None:
        self.bound = MethodBound(self.name, 0.0, self.assumption, str(self.rule), 0, 0)

    def see(self, outputs: Array, worlds: IntArray) -> None:
        correct, made = self.rule.count(outputs, worlds)
        self.correct, self.made = self.correct + correct, self.made + made
        self.trials += len(worlds)

    def look(self, share: float) -> None:
        """Work the bound out; what earlier looks have shown stays shown."""
        if self.trials == 0 or self.made == 0:
            return
        found = self.epsilon(self.correct, self.made, self.trials, share * self.beta)
        if found >= self.bound.lower_bound:
            self.bound = MethodBound(
                self.name, found, self.assumption, str(self.rule), self.correct, self.made
            )


def audit_target(
    target: Target,
    claimed_epsilon: float,
    delta: float,
    trials: int,
    confidence: float = 0.95,
    *,
    rng: np.random.Generator,
    seconds: float = math.inf,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Bound epsilon at ``delta`` from below and compare it with the claim.

    Methods:
        guesses: the share of right guesses, made only where the score is decisive, turns into
            epsilon by the definition of differential privacy. Assumes nothing about the mechanism.
        gaussian: the sign of the log-likelihood ratio is a guess in every trial; the share of right
            ones turns into mu of Gaussian DP, and mu into epsilon at delta. Used if
            ``target.family == "gaussian"`` and delta > 0 (at delta = 0 Gaussian noise has no
            finite epsilon to find). Valid only for Gaussian noise, post-processed or not: epsilon
            at a small delta is read off the shape of the noise, not off events that rare.

    Confidence: all bounds at all looks hold together with probability at least ``confidence``, for
    any mechanism with independent trials (that satisfies the method's assumption). Audits repeated
    until one says "violated" are further looks, which only the caller can correct for, with a
    higher ``confidence``.

    Args:
        target: the mechanism on a fixed pair of neighbouring inputs.
        claimed_epsilon: what the mechanism says; infinity for no claim.
        delta: in [0, 1).
        trials: at most so many; fewer if the claim is refuted, or nearly reached, before.
        confidence: in (0, 1).
        rng: picks worlds, and is the randomness of simulated targets.
        seconds: how long it may take, roughly; the number of trials is cut to what fits, judged by
            the speed of the first ones.
        progress: told at every look how far the audit has come.

    Returns:
        The report; "consistent" in it is not a proof of privacy.
    """
    claim = _claim(claimed_epsilon)
    delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
    trials = integer(trials, "trials", low=MIN_TRIALS)
    confidence = number(confidence, "confidence", low=0.0, high=1.0, low_open=True, high_open=True)
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng = {rng!r}, but it must be a numpy.random.Generator")
    started = time.perf_counter()
    beta, distance = 1.0 - confidence, getattr(target, "distance", None)
    rows = max(1, ENTRIES // _draw(target, np.zeros(1, dtype=np.int64), rng).shape[1])
    methods: list[_Method] = []
    if getattr(target, "family", None) == "gaussian" and delta > 0.0:
        share = 1.0 - SEARCH_SHARE
        methods.append(
            _Method("gaussian", GAUSSIAN, share * beta, _by_mu(delta), _likelier(target))
        )

    worlds, outputs = _trial(target, min(trials // 8, rows, FIT), rng)
    done = len(worlds)
    trials = _affordable(trials, done, time.perf_counter() - started, seconds)
    for method in methods:  # whose rules were fixed before
        method.see(outputs, worlds)
    if getattr(target, "separate", True):
        share = SEARCH_SHARE if methods else 1.0
        scores = [*_own_score(target, outputs), *_learned(worlds, outputs)]
        worlds, outputs = _trial(target, min(trials // 4, rows, PICK), rng)
        done += len(worlds)
        for method in methods:
            method.see(outputs, worlds)
        rule = strongest_rule(scores, outputs, worlds, delta, share * beta)
        methods.append(_Method("guesses", NOTHING, share * beta, _by_definition(delta), rule))

    looks = _looks(done, max(done, trials))
    for until, share in zip(looks, shares_of_looks(len(looks)), strict=True):
        for size in _batches(until - done, rows):
            worlds, outputs = _trial(target, size, rng)
            for method in methods:
                method.see(outputs, worlds)
        done = until
        for method in methods:
            method.look(share)
        best = max(method.bound.lower_bound for method in methods)
        if progress is not None:
            progress(f"{done:,} trials, epsilon is at least {best:.3g}")
        if best > claim or best >= ENOUGH * _most(claim, distance):
            break
    return AuditReport(
        target=target.name,
        source=target.source,
        claimed_epsilon=claim,
        delta=delta,
        confidence=confidence,
        trials=done,
        distance=distance,
        bounds=tuple(method.bound for method in methods),
        seconds=time.perf_counter() - started,
    )


def _claim(epsilon: float) -> float:
    if isinstance(epsilon, float) and epsilon == math.inf:
        return epsilon
    return number(epsilon, "claimed_epsilon", low=0.0)


def _most(claim: float, distance: float | None) -> float:
    """What the audited pair can show if the claim is right, nearly: epsilon grows with distance."""
    return claim if distance is None else claim * min(distance, 1.0)


def _by_definition(delta: float) -> Callable[[int, int, int, float], float]:
    def epsilon(correct: int, made: int, trials: int, beta: float) -> float:
        return max(0.0, float(epsilon_from_guesses(correct, made, trials, delta, beta)))

    return epsilon


def _by_mu(delta: float) -> Callable[[int, int, int, float], float]:
    def epsilon(correct: int, made: int, trials: int, beta: float) -> float:
        return gaussian_epsilon(mu_from_guesses(correct, trials, beta), delta)

    return epsilon


def _likelier(target: Target) -> Rule:
    """Guess the likelier world, always."""
    return Rule(Score("log-likelihood ratio", _checked(target)), 0.0, 0.0)


def _looks(done: int, trials: int) -> list[int]:
    """Numbers of trials at which bounds are worked out: doubling, the last one is all."""
    looks, next_look = [], max(FIRST_LOOK, done + done // 8)
    while next_look < trials:
        looks.append(next_look)
        next_look *= 2
    return [*looks, trials]


def _affordable(trials: int, done: int, elapsed: float, seconds: float) -> int:
    """Trials that fit into the time, at the speed so far; that says nothing about their outcome."""
    return trials if math.isinf(seconds) else min(trials, int(done * seconds / elapsed))


def _trial(target: Target, trials: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
    """Worlds drawn by fair coins, and what came out."""
    worlds = rng.integers(2, size=trials)
    return worlds, _draw(target, worlds, rng)


def _draw(target: Target, worlds: IntArray, rng: np.random.Generator) -> Array:
    outputs = np.asarray(target.sample(worlds, rng), dtype=np.float64)
    if outputs.ndim != 2 or outputs.shape[0] != len(worlds) or outputs.shape[1] == 0:
        raise InvalidInput(
            f"{target.name} gave outputs of shape {outputs.shape}, but {len(worlds)} trials must "
            f"give shape ({len(worlds)}, outputs) with outputs >= 1"
        )
    if not np.isfinite(outputs).all():
        bad = outputs[~np.isfinite(outputs)][0]
        raise InvalidInput(f"{target.name} gave {bad}, but outputs must be finite")
    return outputs


def _learned(worlds: IntArray, outputs: Array) -> list[Score]:
    both = outputs[worlds == 0], outputs[worlds == 1]
    return learned_scores(*both) if all(len(world) for world in both) else []


def _own_score(target: Target, outputs: Array) -> list[Score]:
    """The target's score if it has one."""
    if target.score(outputs) is None:
        return []
    return [Score("log-likelihood ratio", _checked(target))]


def _checked(target: Target) -> Callable[[Array], Array]:
    """The target's score, checked on every use."""

    def of(outputs: Array) -> Array:
        values = np.asarray(target.score(outputs), dtype=np.float64)
        if values.shape != outputs.shape[:1] or np.isnan(values).any():
            raise InvalidInput(
                f"{target.name} gave scores of shape {values.shape} for {len(outputs)} outputs, "
                "but there must be one per output, none of them NaN"
            )
        return values

    return of


def _batches(total: int, size: int) -> Iterator[int]:
    for done in range(0, total, size):
        yield min(size, total - done)
