"""From counted guesses to lower bounds on privacy parameters.

In every trial a fair coin picks one of two neighbouring inputs ("world" 0 or 1). Whoever looks at
the output guesses the world, or does not guess. Differential privacy limits how often the guesses
can be right (Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", 2015;
Dong, Roth and Su, "Gaussian differential privacy", 2022), so guesses that are right more often
bound epsilon and mu from below. Trials are independent, so the number of right ones is binomial,
and its bound is exact at every sample size.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, ndtri

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.validate import integer, number

Counts = int | IntArray

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
    2.144
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


def mu_from_guesses(correct: int, trials: int, beta: float) -> float:
    """The least mu of Gaussian DP at which guesses in all trials may be right so often.

    No test tells N(0, 1) from N(mu, 1) with more than probability Phi(mu / 2), so
    mu >= 2 Phi^-1(share of right guesses); 0 where that is below a half.

    >>> round(mu_from_guesses(69_146, 100_000, 0.05), 2)  # Phi(1/2) = .69146
    0.99
    """
    share = float(clopper_pearson_lower(correct, integer(trials, "trials", low=1), beta))
    return max(0.0, 2.0 * float(ndtri(share))) if share > 0.0 else 0.0


def shares_of_looks(looks: int) -> list[float]:
    """How an error probability is shared out over looks at growing numbers of trials.

    The last look, with most trials, gets half of it, the one before half of the rest, and so on:
    looking early costs little.

    >>> shares_of_looks(3)
    [0.25, 0.25, 0.5]
    """
    shares = [0.5 ** (integer(looks, "looks", low=1) - look) for look in range(looks)]
    return [2 * shares[0], *shares[1:]]
