"""Pinned arithmetic: on which machines the recorded digits come out again, and what sees to it.

Last digits depend on the processor, for most libraries that round choose their code by it. So
digests are recorded and checked in a process of its own (``record.py`` starts it) in which every
library takes the code for the oldest processor that NumPy itself runs on (x86-64-v2, 2009):

- numba compiles for a generic processor, without Intel's vector library, and with few
  optimizations (it compiles sooner); compiled kernels allow no reordering and no fused operations,
  so their digits need no pin. All other tests compile so, too (``compiled.py``), and share it;
- the C library takes its functions without AVX and FMA, whose ``exp``, ``log``, ``pow``, ``sin``,
  ``cos``, ``tan``, ``atan``, ``log1p``, ``expm1``, ``tanh`` are other code (under the names of
  glibc 2.26 to 2.32, too);
- NumPy takes none of the code it chooses at run time, only its baseline;
- OpenBLAS, NumPy's and SciPy's, takes the kernels for Nehalem, in one thread;
- floats are added up from left to right by ``sum``, which compensates from Python 3.12 on.

The record's header holds versions, and digests of arithmetic done without tacit (``ARITHMETIC``).
These must come out, too: one that does not names the library that is not held, or one whose other
version rounds otherwise. What is not held is thus other versions than those of ``constraints.txt``,
another C library than glibc, and a NumPy or SciPy built on another BLAS. Other processors than
x86-64 and other systems than Linux are not asked.
"""

import builtins
import functools
import math
import operator
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from compiled import COMPILED
from golden.digests import array_bytes, digest

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "dp-accounting")
ARITHMETIC = "arithmetic of "

_WITHOUT = ("AVX512F", "AVX2", "AVX", "FMA4", "FMA")
_SIMD = np.show_config(mode="dicts")["SIMD Extensions"]
PINNED = {
    **COMPILED,
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps="
    + ",".join(f"-{name}{older}" for name in _WITHOUT for older in ("", "_Usable")),
    "NPY_DISABLE_CPU_FEATURES": " ".join(
        sorted({*_SIMD.get("found", ()), *_SIMD.get("not found", ())})
    ),
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_NUM_THREADS": "1",
}
"""What a process must be started with, for libraries read it when they are loaded."""


def reason_to_skip() -> str | None:
    """Why the recorded digits are not asked of this machine, if they are not."""
    here = f"{platform.system()} {platform.machine()}"
    return None if here == "Linux x86_64" else f"recorded for Linux x86_64, this is {here}"


def is_pinned() -> bool:
    """Whether this process was started with all of it."""
    return all(os.environ.get(name) == value for name, value in PINNED.items())


def pinned_environment() -> dict[str, str]:
    """The variables to start a process with."""
    return {**os.environ, **PINNED}


def from_left_to_right(items: Iterable[Any], /, start: Any = 0) -> Any:
    """The sum as Python had it before 3.12."""
    return functools.reduce(operator.add, items, start)


def add_plainly() -> None:
    """Let ``sum`` of this process be that one."""
    if sys.version_info >= (3, 12):
        builtins.sum = from_left_to_right  # type: ignore[assignment]


@functools.cache
def header() -> dict[str, str]:
    """What the digests depend on besides our code."""
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "C library": " ".join(platform.libc_ver()),
        **{name: metadata.version(name) for name in LIBRARIES},
        **{f"{ARITHMETIC}{name}": digest(parts) for name, parts in _arithmetic().items()},
    }


def differences(recorded: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """What is not as it was when the digests were recorded."""
    return [
        f"{name}: recorded {recorded.get(name)}, here {here.get(name)}"
        for name in sorted(recorded.keys() | here.keys())
        if recorded.get(name) != here.get(name)
    ]


def _arithmetic() -> dict[str, list[bytes]]:
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.random(20_000) * 10.0 ** rng.integers(-6, 3, 20_000), np.linspace(0.1, 9, 99)]
    )
    matrices = [rng.standard_normal((n, n)) for n in (2, 3, 4, 5, 8, 12, 17, 30, 70)]
    grams = [m @ m.T + np.eye(len(m)) for m in matrices]
    libm = (math.exp, math.log, math.sqrt, math.sin, math.cos, math.tan, math.atan, math.tanh)
    more = (math.log1p, math.expm1, math.erf, math.log2, math.log10, math.lgamma)
    functions = (np.exp, np.log, np.sqrt, np.sin, np.cos, np.log1p, np.expm1, np.tanh)
    with np.errstate(over="ignore"):
        return {
            "the C library": [
                *(array_bytes([f(v % 50 + 1e-9) for v in x]) for f in (*libm, *more)),
                array_bytes([math.exp(-v) for v in x]),
                array_bytes([math.pow(v, 0.37) for v in x]),
            ],
            "NumPy": [
                *(array_bytes(f(x % 50)) for f in functions),
                *(array_bytes(f) for f in (x.sum(), np.mean(x), np.var(x), x**0.37)),
                *(array_bytes(getattr(rng, law)(size=9999)) for law in ("normal", "exponential")),
                *(array_bytes(f(2.5, size=9999)) for f in (rng.standard_gamma, rng.poisson)),
                array_bytes(rng.binomial(40, 0.3, size=9999)),
            ],
            "BLAS": [
                *(array_bytes(m @ m) for m in matrices),
                *(array_bytes(m @ m[0]) for m in matrices),
                *(array_bytes(np.einsum("ij,j->i", m, m[0])) for m in matrices),
                *(array_bytes(scipy.linalg.blas.ddot(m[0], m[1])) for m in matrices),
                *(array_bytes(scipy.linalg.blas.dgemm(1.0, m, m)) for m in matrices),
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
