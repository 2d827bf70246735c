"""From guesses and scores to lower bounds on privacy parameters.

In every trial a fair coin picks one of two neighbouring inputs ("world" 0 or 1). Whoever looks at
the output guesses the world, or does not guess. Differential privacy limits how often the guesses
can be right (Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", 2015;
Dong, Roth and Su, "Gaussian differential privacy", 2022), so guesses that are right more often
bound epsilon from below. Trials are independent, so the number of right ones is binomial, and its
bound is exact at every sample size. Where noise is Gaussian, how far apart the scores of the two
worlds lie says more than guesses do, and bounds mu: from trials that are run in both worlds, if
they may meet the same noise in either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, gammaincinv, stdtrit

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.validate import integer, number

Counts = int | IntArray

LARGEST_MU = 40.0
"""Nothing above it is told apart: the worlds do not overlap at all."""

RATE_SHARE = 0.1
"""Of the error probability, for how often a guess is made at all; that matters times delta only."""


def clopper_pearson_lower(count: Counts, trials: Counts, beta: float) -> Array:
    """Lower bound on a probability, from how often it happened; wrong at most ``beta`` of the time.

    Clopper and Pearson (1934), one-sided: the smallest p under which at least ``count`` of
    ``trials`` independent trials happen with probability ``beta``. Exact for every p and every
    sample size.

    >>> round(float(clopper_pearson_lower(100, 100, 0.05)), 4)
    0.9705
    """
    beta = number(beta, "beta", low=0.0, high=1.0, low_open=True, high_open=True)
    k, n = np.asarray(count), np.asarray(trials)
    if k.dtype.kind not in "iu" or n.dtype.kind not in "iu" or (k < 0).any() or (k > n).any():
        raise InvalidInput(
            f"count = {count!r} of {trials!r}, but both must be whole numbers, and 0 <= count <= "
            "trials"
        )
    at_least = np.maximum(k, 1)  # at k = 0 the quantile does not exist; the bound is 0
    return np.where(k == 0, 0.0, betaincinv(at_least, n - at_least + 1.0, beta))


def epsilon_from_guesses(
    correct: Counts, made: Counts, trials: int, delta: float, beta: float
) -> Array:
    """The least epsilon at which guesses may be right so often; wrong at most ``beta`` of the time.

    Under (epsilon, delta)-DP the probabilities of a right and of a wrong guess satisfy
    right <= e^eps wrong + delta: the definition for "world 1 is guessed" and for "world 0 is
    guessed", added up. With q the share of right ones among the guesses and r the share of trials
    with a guess, e^eps >= (q - delta / r) / (1 - q). Negative where nothing is shown, so that weak
    rules can be ranked. Arrays are taken element by element.

    >>> round(float(epsilon_from_guesses(9000, 10_000, 100_000, 0.0, 0.05)), 3)  # log 9, nearly
    2.142
    """
    trials = integer(trials, "trials", low=1)
    delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
    if delta == 0.0:
        q, off = clopper_pearson_lower(correct, made, beta), np.zeros(())
    else:
        q = clopper_pearson_lower(correct, made, beta * (1 - RATE_SHARE))
        r = clopper_pearson_lower(made, trials, beta * RATE_SHARE)
        off = delta / np.maximum(r, 1e-300)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(q - off, 0.0)) - np.log1p(-q))


@dataclass
class ScoreMoments:
    """Scores, summed up: how many, their mean, and their squares about it."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, scores: Array) -> None:
        """Take further scores in (Chan, Golub and LeVeque, 1983)."""
        if not len(scores):
            return
        mean, total = float(scores.mean()), self.count + len(scores)
        apart = mean - self.mean
        self.squares += float(((scores - mean) ** 2).sum())
        self.squares += apart**2 * self.count * len(scores) / total
        self.mean += apart * len(scores) / total
        self.count = total


def mu_from_pairs(
    world0: ScoreMoments, world1: ScoreMoments, apart: ScoreMoments, beta: float
) -> float:
    """The least mu at which Gaussian scores of two worlds may lie so far apart.

    Every trial is run in both worlds: ``apart`` are the differences of its two scores. Half of
    ``beta`` bounds their mean from below (Student's t), half the spread of a world's scores from
    above (chi square), and mu is their ratio. Nothing is asked of how the two scores of a trial
    depend on each other, so both may meet the same draws of noise: their difference then hardly
    varies, and far fewer trials are enough. Wrong at most ``beta`` of the time; 0 where nothing is
    shown, and at most ``LARGEST_MU``.
    """
    beta = number(beta, "beta", low=0.0, high=1.0, low_open=True, high_open=True)
    degrees = apart.count - 1
    if degrees < 1:
        return 0.0
    error = math.sqrt(apart.squares / degrees / apart.count)
    least = apart.mean + float(stdtrit(degrees, beta / 2)) * error
    wider = max(world0.squares, world1.squares)
    widest = math.sqrt(wider / (2 * float(gammaincinv(degrees / 2, beta / 2))))
    if least <= 0.0:
        return 0.0
    return LARGEST_MU if least >= LARGEST_MU * widest else least / widest


def shares_of_looks(looks: int) -> list[float]:
    """How an error probability is shared out over looks at growing numbers of trials.

    The last look, with most trials, gets three quarters of it, the one before three quarters of
    the rest, and so on: looking early costs little.

    >>> shares_of_looks(3)
    [0.0625, 0.1875, 0.75]
    """
    looks = integer(looks, "looks", low=1)
    rest = [0.25 ** (looks - 1 - look) for look in range(looks)]
    return [rest[0], *(0.75 * share for share in rest[1:])]
