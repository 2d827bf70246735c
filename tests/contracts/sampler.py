"""Draws of a noise source against the exact discrete law, with the power stated."""

import numpy as np
from scipy import stats

from tacit.privacy import GridLaw, Noise

SCALES = {"laplace": (0.8, 3.0, 65536.0), "gaussian": (0.9, 4.0, 65536.0)}
EACH = 15_000


def exact_cdf(kind: str, scale: float, edges: np.ndarray) -> np.ndarray:
    """P(X <= edge) of the discrete law, summed term by term (nothing beyond 60 scales)."""
    reach = int(60 * scale) + 1
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-np.abs(x) / scale if kind == "laplace" else -((x / scale) ** 2) / 2)
    return np.cumsum(mass / mass.sum())[(edges + reach).astype(int)]


def bins(kind: str, scale: float, law_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Upper edges of some twenty bins, and their masses where the scale is ``law_scale``."""
    reach = 4 if kind == "laplace" else 2.8
    edges = np.unique(np.floor(np.linspace(-reach, reach, 20) * scale))
    cdf = exact_cdf(kind, law_scale, edges)
    return edges, np.diff(np.concatenate([[0.0], cdf, [1.0]]))


def misfits(noise: Noise, kind: str) -> bool:
    """Whether draws of three scales in one law, cells in no order, do not have their exact law.

    Chi-square at 1e-7 for each scale. A scale a tenth short or long is found with probability above
    0.999, by the noncentral law of the same statistic.
    """
    rng = np.random.default_rng(5)
    scales = rng.permutation(np.repeat(SCALES[kind], EACH))
    out = np.zeros(len(scales), dtype=np.int64)
    noise.fill(GridLaw(kind, scales), out)
    wrong = False
    for scale in SCALES[kind]:
        edges, masses = bins(kind, scale, scale)
        found = np.bincount(np.searchsorted(edges, out[scales == scale]), minlength=len(masses))
        assert (EACH * masses).min() > 5
        critical = stats.chi2.isf(1e-7, len(masses) - 1)
        wrong |= bool(((found - EACH * masses) ** 2 / (EACH * masses)).sum() >= critical)
        for factor in (0.9, 1.1):
            _, others = bins(kind, scale, factor * scale)
            away = EACH * ((others - masses) ** 2 / masses).sum()
            assert stats.ncx2.sf(critical, len(masses) - 1, away) > 0.999
    return wrong
