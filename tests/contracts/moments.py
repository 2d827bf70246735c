"""Means and covariances of samples against their exact values."""

import math

import numpy as np


def moments_fit(sums: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> tuple[float, float]:
    """Largest deviation of sample mean and of sample covariance, in standard errors.

    Sums of many reports are close to normal: a sample covariance has variance
    (c_ii c_jj + c_ij^2) / (N - 1). Beyond 6 by chance: below 2e-9 per entry, 1e-7 per test.
    """
    N = len(sums)
    spread = np.sqrt(np.diag(covariance))
    means = np.abs(sums.mean(axis=0) - mean) / (spread / math.sqrt(N))
    error = np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / (N - 1))
    return means.max(), (np.abs(np.cov(sums.T) - covariance) / error).max()
