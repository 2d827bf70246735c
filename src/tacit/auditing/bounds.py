"""From counted errors of a test to lower bounds on privacy parameters.

A test looks at one output and says which of two neighbouring inputs ("world" 0 or 1) it came from.
It errs in world 0 with probability FPR and in world 1 with probability FNR. Differential privacy
limits how small both can be at once (Kairouz, Oh and Viswanath, "The composition theorem for
differential privacy", 2015; Dong, Roth and Su, "Gaussian differential privacy", 2022), so upper
bounds on both error rates are lower bounds on epsilon, on delta and on mu.

The conversions are monotone: larger error rates never give a larger result. That is why upper
confidence bounds may be put in place of the rates. A negative result means that the test shows
nothing (zero is always a lower bound); it is kept so that weak tests can be ranked. Arrays are
taken element by element.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, ndtri

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.validate import integer, number

Counts = int | IntArray
Rates = float | Array


def per_look(beta: float, looks: int) -> float:
    """Bonferroni's share: ``looks`` statements of this failure probability fail at most ``beta``.

    >>> per_look(0.05, 4)
    0.0125
    """
    beta = number(beta, "beta", low=0.0, high=1.0, low_open=True, high_open=True)
    return beta / integer(looks, "looks", low=1)


def clopper_pearson_upper(count: Counts, trials: int, beta: float) -> Array:
    """Upper bound on a probability, from how often it happened; wrong at most ``beta`` of the time.

    Clopper and Pearson (1934), one-sided: the largest p under which at most ``count`` of ``trials``
    independent trials happen with probability ``beta``. Exact for every p and every sample size.
    The lower bound is one minus the upper bound of the complement.

    >>> round(float(clopper_pearson_upper(0, 100, 0.05)), 4)
    0.0295
    """
    trials = integer(trials, "trials", low=1)
    beta = number(beta, "beta", low=0.0, high=1.0, low_open=True, high_open=True)
    k = np.asarray(count)
    if k.dtype.kind not in "iu" or (k.size and (k.min() < 0 or k.max() > trials)):
        raise InvalidInput(f"count = {count!r}, but it must be whole numbers >= 0 and <= {trials}")
    below = np.minimum(k, trials - 1)  # at k = trials the quantile does not exist; the bound is 1
    return np.where(k == trials, 1.0, betainccinv(below + 1, trials - below, beta))


def error_rates_upper(
    false_positives: Counts, false_negatives: Counts, trials: int, beta: float
) -> tuple[Array, Array]:
    """Upper bounds (FPR, FNR) that hold together with probability at least 1 - ``beta``.

    ``trials`` were made in each world; each rate gets half of ``beta``.
    """
    half = per_look(beta, 2)
    fpr = clopper_pearson_upper(false_positives, trials, half)
    fnr = clopper_pearson_upper(false_negatives, trials, half)
    return fpr, fnr


def epsilon_from_rates(fpr: Rates, fnr: Rates, delta: float) -> Array:
    """The least epsilon at which (epsilon, delta)-DP allows a test with these error rates.

    The larger of log((1 - delta - FNR) / FPR) and log((1 - delta - FPR) / FNR). Infinite where one
    rate is zero and the other below 1 - delta; minus infinity where both are at least 1 - delta.

    >>> round(float(epsilon_from_rates(0.1, 0.1, 0.0)), 4)  # log 9
    2.1972
    """
    fp, fn = _rate(fpr, "fpr"), _rate(fnr, "fnr")
    delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0; fmax below drops 0/0
        caught = np.log(np.maximum(1 - delta - fn, 0)) - np.log(fp)
        spared = np.log(np.maximum(1 - delta - fp, 0)) - np.log(fn)
    return _array(np.fmax(caught, spared))


def delta_from_rates(fpr: Rates, fnr: Rates, epsilon: float) -> Array:
    """The least delta at which (epsilon, delta)-DP allows a test with these error rates.

    The hockey-stick divergence at epsilon is at least the larger of 1 - FNR - e^eps FPR and
    1 - FPR - e^eps FNR.

    >>> round(float(delta_from_rates(0.1, 0.1, 1.0)), 4)
    0.6282
    """
    fp, fn = _rate(fpr, "fpr"), _rate(fnr, "fnr")
    epsilon = number(epsilon, "epsilon", low=0.0)
    with np.errstate(divide="ignore"):  # log 0; a product beyond e shows nothing already
        caught = 1 - fn - np.exp(np.minimum(epsilon + np.log(fp), 1.0))
        spared = 1 - fp - np.exp(np.minimum(epsilon + np.log(fn), 1.0))
    return _array(np.maximum(caught, spared))


def mu_from_rates(fpr: Rates, fnr: Rates) -> Array:
    """The least mu at which mu-Gaussian DP allows a test with these error rates.

    -Phi^-1(FPR) - Phi^-1(FNR): how far apart two unit Gaussians must be to be told apart so well.

    >>> round(float(mu_from_rates(0.1586552539, 0.1586552539)), 6)
    2.0
    """
    with np.errstate(invalid="ignore"):  # a test that always says the same: inf - inf
        mu = -ndtri(_rate(fpr, "fpr")) - ndtri(_rate(fnr, "fnr"))
    return np.where(np.isnan(mu), 0.0, mu)


def _rate(value: Rates, name: str) -> Array:
    rate = _array(value)
    if not ((rate >= 0.0) & (rate <= 1.0)).all():
        raise InvalidInput(f"{name} = {value!r}, but it must be >= 0 and <= 1")
    return rate


def _array(value: npt.ArrayLike) -> Array:
    return np.asarray(value, dtype=np.float64)
