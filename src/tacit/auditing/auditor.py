"""The auditor: run a mechanism on two neighbouring inputs and bound its epsilon from below.

In every trial a fair coin picks the input, and somebody who sees the output guesses which. The rule
of guessing is fixed before the trials it is judged on: scores are fitted on a first part of the
trials, beside the log-likelihood ratio under the noise that is claimed, where that is known, and
the best rule is picked on a second part. Where noise is Gaussian the log-likelihood ratio itself
says more, and nothing has to be prepared: every trial is run in both worlds, on the same noise.
Bounds are looked at while trials go on, at public numbers of them; the error probability is shared
out over methods and looks, so that all of them hold at once and an audit may stop as soon as it has
seen enough.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.auditing import bounds
from tacit.auditing import scores as scoring
from tacit.auditing.findings import GAUSSIAN, NOTHING, AuditReport, MethodBound
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_epsilon
from tacit.validate import integer, number

MIN_TRIALS = 100

PROBE = 12
"""Trials that are only timed, where time is short."""

FIT, PICK = 4096, 32768
"""Trials on which scores are fitted and rules are picked, at most; never over a quarter of all."""

FIRST_LOOK = 4000
"""Trials at the first look; every further look is at twice as many."""

PREPARED = FIRST_LOOK // 4
"""Trials of either kind where noise is Gaussian: so many show nearly all that there is to see."""

ENOUGH = 0.93
"""An audit stops when its bound has reached this share of what the audited pair can show, and the
claim this share of its estimate: one that is about to refute the claim goes on."""

MIDDLE = 0.5
"""Error probability at which a bound is an estimate."""

KNOWN_SHARE = 0.8
"""Of the error probability, for the likelihood under the claimed noise, where it is known."""

DIGITS = 9
"""Of a log-likelihood ratio: outputs of one ratio must not come apart by rounding errors."""

ENTRIES = 1 << 22
"""Numbers held in memory at once; longer audits are measured in batches."""


class Target(Protocol):
    """A mechanism on one fixed pair of worst-case neighbouring inputs, world 0 and world 1.

    A target whose noise is Gaussian says so with an attribute ``family = "gaussian"``; one that
    knows how far its pair is apart, over what the guarantee pays for, says ``distance``; one whose
    trials are independent only if its noise is Gaussian says ``separate = False``. One that can run
    a trial in both worlds on the same draws of noise has a method ``sample_both(worlds, rng)``:
    outputs as of ``sample``, and those of the same trials in the other worlds. Each of the two
    must have the mechanism's own law; how they depend on each other is free.
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


class _Trials(NamedTuple):
    """Worlds drawn by fair coins, what came out, and what came out of the other worlds."""

    worlds: IntArray
    outputs: Array
    others: Array | None


class _Sampling:
    """Trials of a target, as many at once as memory holds, and the time that they take.

    Args:
        target: what is run.
        rng: picks worlds.
        both: whether every trial is run in both worlds.
        outputs: numbers of one trial.
        seconds: how long all may take, roughly.
    """

    def __init__(
        self, target: Target, rng: np.random.Generator, both: bool, outputs: int, seconds: float
    ) -> None:
        self._target, self._rng, self._both = target, rng, both
        self._most, self._seconds = max(1, ENTRIES // outputs), seconds
        self._started, self.done = time.perf_counter(), 0

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._started

    def run(self, trials: int) -> _Trials:
        """Trials that count: so many, or those that memory holds."""
        seen = self._trials(min(trials, self._most))
        self.done += len(seen.worlds)
        return seen

    def affordable(self, trials: int) -> int:
        """Trials that fit into the time, at the speed so far; no outcome matters for that."""
        if math.isinf(self._seconds):
            return trials
        if not self.done:
            self._trials(PROBE)
        timed = PROBE + self.done
        return min(trials, max(MIN_TRIALS, int(timed * self._seconds / self.elapsed)))

    def _trials(self, count: int) -> _Trials:
        """Worlds drawn by fair coins, and what came out; of the other worlds too, if asked for."""
        target, rng, worlds = self._target, self._rng, self._rng.integers(2, size=count)
        together = getattr(target, "sample_both", None)
        if not self._both:
            return _Trials(worlds, _draw(target, worlds, rng), None)
        if together is None:  # their noise is then independent
            return _Trials(worlds, _draw(target, worlds, rng), _draw(target, 1 - worlds, rng))
        outputs, others = (_usable(target, drawn, count) for drawn in together(worlds, rng))
        return _Trials(worlds, outputs, others)


class _Guesses:
    """A rule of guessing with what it has shown so far."""

    def __init__(self, name: str, rule: scoring.GuessingRule, delta: float, beta: float) -> None:
        self._rule, self._delta, self._beta = rule, delta, beta
        self._correct = self._made = self._trials = 0
        self.estimate = 0.0
        self.bound = MethodBound(name, 0.0, NOTHING, str(rule), "no guess was made")

    def see(self, trials: _Trials) -> None:
        correct, made = self._rule.count(trials.outputs, trials.worlds)
        self._correct, self._made = self._correct + correct, self._made + made
        self._trials += len(trials.worlds)

    def update(self, share: float) -> None:
        """Work the bound out; what earlier looks have shown stays shown."""
        if self._made == 0:
            return
        counts = self._correct, self._made, self._trials
        self.estimate = float(bounds.epsilon_from_guesses(*counts, self._delta, MIDDLE))
        lower = float(bounds.epsilon_from_guesses(*counts, self._delta, share * self._beta))
        if lower >= self.bound.lower_bound:
            seen = f"{self._correct:,} of {self._made:,} guesses right"
            self.bound = dataclasses.replace(self.bound, lower_bound=lower, seen=seen)


class _Gaussian:
    """The log-likelihood ratios of both worlds and their differences, as far as they were seen."""

    def __init__(self, score: scoring.AuditScore, delta: float, beta: float) -> None:
        self._score, self._delta, self._beta = score, delta, beta
        self._worlds = bounds.ScoreMoments(), bounds.ScoreMoments()
        self._apart = bounds.ScoreMoments()
        self.estimate = 0.0
        self.bound = MethodBound("gaussian", 0.0, GAUSSIAN, score.name, "nothing")

    def see(self, trials: _Trials) -> None:
        assert trials.others is not None
        own, other = self._score.of(trials.outputs), self._score.of(trials.others)
        first = np.where(trials.worlds == 0, own, other)
        second = np.where(trials.worlds == 0, other, own)
        self._worlds[0].add(first)
        self._worlds[1].add(second)
        self._apart.add(second - first)

    def update(self, share: float) -> None:
        """Work the bound out; what earlier looks have shown stays shown."""
        seen = *self._worlds, self._apart
        self.estimate = gaussian_epsilon(bounds.mu_from_pairs(*seen, MIDDLE), self._delta)
        mu = bounds.mu_from_pairs(*seen, share * self._beta)
        lower = gaussian_epsilon(mu, self._delta)
        if lower >= self.bound.lower_bound:
            words = f"mu is at least {mu:.4g}"
            self.bound = dataclasses.replace(self.bound, lower_bound=lower, seen=words)


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
        guesses: the share of right guesses, made only where a score is decisive, turns into
            epsilon by the definition of differential privacy. Assumes nothing about the mechanism.
        likelihood: the same by the log-likelihood ratio alone, where it is known and the noise is
            not Gaussian.
        gaussian: how far apart the log-likelihood ratios of the two worlds lie, over their spread,
            is mu of Gaussian DP, and mu turns into epsilon at delta. Used if ``target.family ==
            "gaussian"``, the ratio is known, and delta > 0 (at delta = 0 Gaussian noise has no
            finite epsilon to find). Every trial is then run in both worlds.
            Valid only if the noise is Gaussian, of whatever size and correlation: epsilon at a
            small delta is read off the shape of the noise, not off events that rare.

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
            the speed of the first ones, but not below ``MIN_TRIALS``.
        progress: told at every look how far the audit has come.

    Returns:
        The report; "consistent" in it is not a proof of privacy.
    """
    claim = claimed_epsilon
    if claim != math.inf:
        claim = number(claim, "claimed_epsilon", low=0.0)
    delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
    trials = integer(trials, "trials", low=MIN_TRIALS)
    confidence = number(confidence, "confidence", low=0.0, high=1.0, low_open=True, high_open=True)
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng = {rng!r}, but it must be a numpy.random.Generator")
    beta, distance = 1.0 - confidence, getattr(target, "distance", None)
    shape = _draw(target, np.zeros(1, dtype=np.int64), rng)
    known = target.score(shape) is not None
    gaussian = getattr(target, "family", None) == "gaussian" and delta > 0.0 and known
    sampling = _Sampling(target, rng, gaussian, shape.shape[1], seconds)
    methods, trials = _prepare(target, sampling, known, gaussian, trials, delta, beta)

    looks = _looks(sampling.done, max(sampling.done, trials))
    for until, share in zip(looks, bounds.shares_of_looks(len(looks)), strict=True):
        while sampling.done < until:
            seen = sampling.run(until - sampling.done)
            for method in methods:
                method.see(seen)
        for method in methods:
            method.update(share)
        best = max(method.bound.lower_bound for method in methods)
        if progress is not None:
            progress(f"{sampling.done:,} trials, epsilon is at least {best:.3g}")
        likely = max(method.estimate for method in methods)
        # nearly what the pair can show if the claim is right: epsilon grows with distance
        most = claim if distance is None else claim * min(distance, 1.0)
        if best > claim or (best >= ENOUGH * most and ENOUGH * likely <= claim):
            break
    return AuditReport(
        target=target.name,
        source=target.source,
        claimed_epsilon=claim,
        delta=delta,
        confidence=confidence,
        trials=sampling.done,
        distance=distance,
        bounds=tuple(method.bound for method in methods),
        seconds=sampling.elapsed,
    )


def _prepare(
    target: Target,
    sampling: _Sampling,
    known: bool,
    gaussian: bool,
    trials: int,
    delta: float,
    beta: float,
) -> tuple[list[_Gaussian | _Guesses], int]:
    """Fit scores and pick rules on first trials; the methods, and how many trials there will be."""
    methods: list[_Gaussian | _Guesses] = []
    if gaussian:
        methods.append(_Gaussian(_likelihood(target), delta, KNOWN_SHARE * beta))
    fit, pick = (PREPARED, PREPARED) if gaussian else (FIT, PICK)
    seen = sampling.run(min(sampling.affordable(trials) // 8, fit))
    trials = sampling.affordable(trials)
    for method in methods:  # whose rules were fixed before
        method.see(seen)
    if not getattr(target, "separate", True):
        return methods, trials
    scores = [_likelihood(target)] if known else []
    both = seen.outputs[seen.worlds == 0], seen.outputs[seen.worlds == 1]
    scores += scoring.learned_scores(*both) if all(map(len, both)) else []
    seen = sampling.run(min(trials // 4, pick))
    for method in methods:
        method.see(seen)
    share = 1.0 - KNOWN_SHARE if known else 1.0
    if known and not gaussian:
        left = max(trials - sampling.done, 1)
        rule = scoring.likeliest_rule(
            _likelihood(target), seen.outputs, left, delta, KNOWN_SHARE * beta
        )
        methods.append(_Guesses("likelihood", rule, delta, KNOWN_SHARE * beta))
    rule = scoring.strongest_rule(scores, seen.outputs, seen.worlds, delta, share * beta)
    methods.append(_Guesses("guesses", rule, delta, share * beta))
    return methods, trials


def _looks(done: int, trials: int) -> list[int]:
    """Numbers of trials at which bounds are worked out: doubling, the last one is all."""
    looks, next_look = [], max(FIRST_LOOK, done + done // 8)
    while next_look < trials:
        looks.append(next_look)
        next_look *= 2
    return [*looks, trials]


def _draw(target: Target, worlds: IntArray, rng: np.random.Generator) -> Array:
    return _usable(target, target.sample(worlds, rng), len(worlds))


def _usable(target: Target, drawn: npt.NDArray[Any], trials: int) -> Array:
    """What a target gave, checked."""
    outputs = np.asarray(drawn, dtype=np.float64)
    if outputs.ndim != 2 or outputs.shape[0] != trials or outputs.shape[1] == 0:
        raise InvalidInput(
            f"{target.name} gave outputs of shape {outputs.shape}, but {trials} trials must "
            f"give shape ({trials}, outputs) with outputs >= 1"
        )
    if not np.isfinite(outputs).all():
        bad = outputs[~np.isfinite(outputs)][0]
        raise InvalidInput(f"{target.name} gave {bad}, but outputs must be finite")
    return outputs


def _likelihood(target: Target) -> scoring.AuditScore:
    """The log-likelihood ratio under the claimed noise, checked on every use."""

    def of(outputs: Array) -> Array:
        values: Array = np.asarray(target.score(outputs), dtype=np.float64).round(DIGITS)
        if values.shape != outputs.shape[:1] or np.isnan(values).any():
            raise InvalidInput(
                f"{target.name} gave scores of shape {values.shape} for {len(outputs)} outputs, "
                "but there must be one per output, none of them NaN"
            )
        return values

    return scoring.AuditScore("log-likelihood ratio", of)
