"""The buffered linear Toeplitz counter: nearly the square-root counter's error in d + 1 vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.privacy.counters.base import RoundedRows
from tacit.privacy.counters.state import Buffers
from tacit.privacy.counters.toeplitz import ROUNDOFF, lower_toeplitz
from tacit.validate import integer, number

GAPS: dict[int, dict[int, tuple[float, ...]]] = {
    2: {
        16: (0.04562, 0.1939, 0.4683, 0.8182),
        64: (0.01577, 0.08097, 0.2729, 0.6886),
        256: (0.005417, 0.03372, 0.1553, 0.5662),
        1024: (0.001888, 0.01476, 0.09118, 0.4642),
        4096: (0.0006341, 0.006378, 0.05298, 0.3744),
        16384: (0.0002065, 0.002694, 0.03017, 0.2961),
        65536: (6.654e-05, 0.001129, 0.01702, 0.2309),
        262144: (2.147e-05, 0.000475, 0.009601, 0.1785),
        1048576: (6.963e-06, 0.0002013, 0.005431, 0.1373),
    },
    3: {
        16: (0.02912, 0.117, 0.2649, 0.4699, 0.7084, 0.9155),
        64: (0.01057, 0.0467, 0.1246, 0.2761, 0.5325, 0.8441),
        256: (0.003359, 0.01638, 0.05259, 0.149, 0.3772, 0.7611),
        1024: (0.001027, 0.00555, 0.02144, 0.07739, 0.2567, 0.6726),
        4096: (0.000318, 0.001933, 0.008997, 0.04076, 0.1736, 0.5883),
        16384: (0.0001005, 0.0007056, 0.003965, 0.02218, 0.1186, 0.5124),
        65536: (3.161e-05, 0.0002622, 0.001789, 0.01225, 0.08122, 0.4436),
        262144: (9.719e-06, 9.631e-05, 0.0008028, 0.00673, 0.05513, 0.3803),
        1048576: (2.938e-06, 3.492e-05, 0.0003568, 0.003668, 0.03709, 0.323),
    },
    4: {
        16: (0.02503, 0.09884, 0.2151, 0.354, 0.4853, 0.6171, 0.7786, 0.9342),
        64: (0.007596, 0.03176, 0.07735, 0.1545, 0.2786, 0.4625, 0.6945, 0.9093),
        256: (0.002524, 0.01117, 0.03009, 0.06941, 0.1499, 0.3047, 0.5589, 0.8556),
        1024: (0.0007707, 0.003644, 0.0111, 0.0301, 0.07816, 0.1942, 0.4372, 0.7961),
        4096: (0.0002252, 0.001141, 0.00395, 0.01265, 0.03948, 0.1195, 0.3316, 0.7308),
        16384: (6.543e-05, 0.0003578, 0.001416, 0.005358, 0.01997, 0.07291, 0.2476, 0.6646),
        65536: (1.922e-05, 0.0001147, 0.0005213, 0.002324, 0.01027, 0.04477, 0.184, 0.6004),
        262144: (5.738e-06, 3.801e-05, 0.0001991, 0.001041, 0.005409, 0.02787, 0.137, 0.5403),
        1048576: (1.723e-06, 1.289e-05, 7.823e-05, 0.0004774, 0.002903, 0.01755, 0.1023, 0.4846),
    },
}
"""Shipped coefficients per number of buffers and length: 1 - t_1, 1 - a_1, 1 - t_2, ...

Four digits of what a local search for the least worst error |c| |b| found (``python
benchmarks/counters.py --table``). Privacy never rests on these numbers: the sensitivity is computed
from the ones in use.
"""


@dataclass(frozen=True)
class BufferedToeplitz(RoundedRows):
    """C(x) = prod_j (1 - a_j x) / (1 - t_j x), 1 > t_1 > a_1 > t_2 > ... > 0, in partial fractions.

    C(x) = 1 + sum_j s_j x / (1 - t_j x) and B(x) = 1 / ((1 - x) C(x)) = sum_j w_j / (1 - p_j x)
    with poles p = (1, a_1, ..., a_d), so one vector per pole carries everything from step to step.
    Interlacing makes all s_j and w_j positive: no cancellation
    (docs/papers/mixture_jdp.md#counter-recipes).

    Attributes:
        length: number of steps.
        gaps: 1 - t_1, 1 - a_1, 1 - t_2, 1 - a_2, ..., increasing. :func:`blt` has good ones.
    """

    name: ClassVar[str] = "blt"
    gaps: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        gaps = tuple(
            number(gap, f"gaps[{i}]", low=0.0, high=1.0, low_open=True, high_open=True)
            for i, gap in enumerate(self.gaps)
        )
        decreasing = (np.diff(1.0 - np.array((0.0, *gaps))) < 0.0).all()
        if not gaps or len(gaps) % 2 or not decreasing:
            raise InvalidInput(
                f"gaps = {gaps}, but they must be an even number of increasing numbers, of which "
                "float64 can tell 1 minus each from its neighbours and from 1"
            )
        object.__setattr__(self, "gaps", gaps)

    @cached_property
    def decays(self) -> Array:
        """t_1, ..., t_d."""
        return 1.0 - np.array(self.gaps[0::2])

    @cached_property
    def poles(self) -> Array:
        """1, a_1, ..., a_d."""
        return 1.0 - np.array((0.0, *self.gaps[1::2]))

    @cached_property
    def scales(self) -> Array:
        """s_j = prod_i (t_j - a_i) / prod_{i != j} (t_j - t_i)."""
        return residues(self.decays, self.poles[1:])

    @cached_property
    def weights(self) -> Array:
        """w_j = prod_i (p_j - t_i) / prod_{i != j} (p_j - p_i)."""
        return residues(self.poles, self.decays)

    @cached_property
    def _c(self) -> Array:
        lags = np.arange(self.length - 1)
        return np.concatenate([[1.0], _powers(self.scales, self.decays, lags)])

    @cached_property
    def _errors(self) -> Array:
        b = _powers(self.weights, self.poles, np.arange(self.length))
        errors: Array = np.sqrt(np.cumsum(b**2))
        return errors

    def column_norm(self) -> float:
        """Norm of the first n coefficients of C(x), from the s_j and t_j that ``encode`` uses."""
        return float(np.linalg.norm(self._c))

    def error_std(self, t: int) -> float:
        """Norm of the first t coefficients of B(x)."""
        return float(self._errors[self._position(t) - 1])

    def unit_error(self) -> float:
        """Every step adds two roundings to a buffer, which then decay with it."""
        d = len(self.decays)
        reach = np.minimum(self.length, 1.0 / (1.0 - self.decays))
        return ROUNDOFF * float(self.scales @ (reach * (2.0 * reach + d + 1)) + d + 1)

    def buffers(self, size: int) -> tuple[Buffers, Buffers]:
        """One vector per decay and one per pole."""
        d = len(self.decays)
        return {"carried": np.zeros((d, size))}, {"carried": np.zeros((d + 1, size))}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """(C x)_t, rounded: the item and what the buffers carry from earlier ones."""
        carried = secret["carried"]
        row = item.astype(np.float64)
        for scale, buffer in zip(self.scales, carried, strict=True):
            row += scale * buffer
        _decay_and_add(carried, self.decays, item)
        return np.rint(row).astype(np.int64)[None]

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """(B y)_t from the buffers of the poles."""
        carried = public["carried"]
        _decay_and_add(carried, self.poles, published[0])
        prefix = np.zeros(carried.shape[1])
        for weight, buffer in zip(self.weights, carried, strict=True):
            prefix += weight * buffer
        return prefix

    def _factors(self) -> tuple[Array, Array]:
        b = _powers(self.weights, self.poles, np.arange(self.length))
        return lower_toeplitz(b), lower_toeplitz(self._c)


def blt(length: int, buffers: int = 4) -> BufferedToeplitz:
    """The buffered counter with shipped coefficients, interpolated to this length.

    Logarithms of the gaps are interpolated in the logarithm of the length, which loses less than
    1e-4 of the error against a fit of its own.
    """
    buffers = integer(buffers, "buffers", low=min(GAPS), high=max(GAPS))
    table = GAPS[buffers]
    length = integer(length, "length", low=1, high=max(table))
    lengths, gaps = np.log(list(table)), np.log(list(table.values()))
    logs = [np.interp(np.log(length), lengths, column) for column in gaps.T]
    # Six digits, so that another machine's logarithm gives the same counter and can resume it.
    return BufferedToeplitz(length, tuple(float(f"{np.exp(value):.6g}") for value in logs))


def residues(at: Array, other: Array) -> Array:
    """prod_i (at_j - other_i) / prod_{i != j} (at_j - at_i), for every j."""
    own = at[:, None] - at[None, :]
    np.fill_diagonal(own, 1.0)
    products: Array = np.prod(at[:, None] - other[None, :], axis=1) / np.prod(own, axis=1)
    return products


def _powers(factors: Array, bases: Array, exponents: IntArray) -> Array:
    """sum_j factors_j bases_j^k for every k."""
    total = np.zeros(len(exponents))
    for factor, base in zip(factors, bases, strict=True):
        total += factor * base**exponents
    return total


def _decay_and_add(carried: Array, decays: Array, item: IntArray) -> None:
    carried *= decays[:, None]
    carried += item
