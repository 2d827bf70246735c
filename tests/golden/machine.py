"""On which machines the recorded digits must come out again, and why not on others.

Last digits depend on the libraries that round (``LIBRARIES``; from Python 3.12 on ``sum`` rounds
otherwise, too) and on the processor, for the C library, NumPy and BLAS choose their code by it. So
beside versions the header holds digests of such arithmetic done without tacit: where one of them
differs, recorded digits mean nothing. Compiled kernels allow no reordering and no fused operations,
so they add no dependence of their own.
"""

import math
import platform
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from golden.digests import array_bytes, digest

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "dp-accounting")


@cache
def header() -> dict[str, Any]:
    """What the digests depend on besides our code."""
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: metadata.version(name) for name in LIBRARIES},
        "machine": f"{platform.system()} {platform.machine()}",
        "processor features": " ".join(np.show_config(mode="dicts")["SIMD Extensions"]["found"]),
        **{f"arithmetic of {name}": digest(parts) for name, parts in _arithmetic().items()},
    }


def obstacles(recorded: dict[str, Any]) -> list[str]:
    """Why the digits need not come out here; the list of features alone is no reason."""
    here = header()
    return [
        f"{name}: recorded {recorded.get(name)}, here {value}"
        for name, value in here.items()
        if name != "processor features" and recorded.get(name) != value
    ]


def _arithmetic() -> dict[str, list[bytes]]:
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.random(500) * 10.0 ** rng.integers(-6, 3, 500), np.linspace(0.1, 9, 99)]
    )
    matrices = [rng.standard_normal((n, n)) for n in (2, 3, 4, 5, 8, 12, 17, 30)]
    grams = [m @ m.T + np.eye(len(m)) for m in matrices]
    libm = (math.exp, math.log, math.sqrt, math.sin, math.cos, math.log1p, math.expm1, math.erf)
    functions = (np.exp, np.log, np.sqrt, np.sin, np.cos, np.log1p, np.expm1, np.tanh)
    with np.errstate(over="ignore"):
        return {
            "the C library": [
                *(array_bytes([f(-v) if f is math.exp else f(v % 50) for v in x]) for f in libm),
                array_bytes([math.pow(v, 0.37) for v in x]),
            ],
            "NumPy": [
                *(array_bytes(f(x % 50)) for f in functions),
                *(array_bytes(f) for f in (x.sum(), np.mean(x), np.var(x), x**0.37)),
                *(array_bytes(getattr(rng, law)(size=99)) for law in ("normal", "exponential")),
                *(array_bytes(f(2.5, size=99)) for f in (rng.standard_gamma, rng.poisson)),
                array_bytes(rng.binomial(40, 0.3, size=99)),
            ],
            "BLAS": [
                *(array_bytes(m @ m) for m in matrices),
                *(array_bytes(m @ m[0]) for m in matrices),
                *(array_bytes(np.einsum("ij,j->i", m, m[0])) for m in matrices),
                *(array_bytes(scipy.linalg.blas.ddot(m[0], m[1])) for m in matrices),
            ],
            "LAPACK": [
                *(array_bytes(np.linalg.cholesky(g)) for g in grams),
                *(array_bytes(np.linalg.solve(g, g[0] + 1.0)) for g in grams),
                *(array_bytes(np.linalg.inv(g)) for g in grams),
                *(array_bytes(np.linalg.eigh(g)[1]) for g in grams),
                *(array_bytes(np.linalg.slogdet(g)[1]) for g in grams),
                *(
                    array_bytes(scipy.linalg.cho_solve(scipy.linalg.cho_factor(g), g))
                    for g in grams
                ),
            ],
            "SciPy": [
                array_bytes(scipy.special.ndtr(x - 5)),
                array_bytes(scipy.special.log_ndtr(-x)),
                array_bytes(scipy.special.gammaln(x + 0.5)),
                array_bytes(scipy.special.ndtri(x % 1.0 * 0.98 + 0.01)),
            ],
        }
