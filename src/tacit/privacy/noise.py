"""Where noise comes from: one interface, several sources.

Noise is drawn as whole steps of a declared grid. Secure noise comes from OpenDP's exact samplers on
operating-system entropy and takes no seed; simulated noise comes from a seeded generator, is fast,
protects nobody, and says so in every artefact it ends up in.
"""

from __future__ import annotations

import secrets
from typing import Any, Literal, NoReturn, Protocol

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput, need
from tacit.kernels.raw.noise import fill_bounded, fill_gaussian, fill_laplace
from tacit.validate import finite_array

Source = Literal["secure", "simulated", "replay", "none"]
SOURCES: tuple[Source, ...] = ("simulated", "replay", "secure", "none")
"""From the weakest on."""
Kind = Literal["laplace", "gaussian", "bounded"]
KINDS = ("laplace", "gaussian", "bounded")


LARGEST_SCALE = 2.0**53
"""In steps: a draw beyond 2^63, a thousand scales out, has probability below e^-700."""


class GridLaw:
    """The law of one draw: independent discrete noise in every cell, in whole grid steps.

    Args:
        kind: "laplace" (scale b: variance close to 2 b^2), "gaussian" (standard deviation) or
            "bounded" (radius; simulated only, there is no exact sampler).
        scales: one positive scale per cell, in steps.
    """

    def __init__(self, kind: Kind, scales: Array) -> None:
        if kind not in KINDS:
            raise InvalidInput(f"kind = {kind!r}, but it must be one of {', '.join(KINDS)}")
        self.kind: Kind = kind
        self.scales: Array = frozen(finite_array(scales, "scales"))
        if self.scales.ndim != 1 or (self.scales <= 0).any():
            raise InvalidInput("scales must be one positive number per cell")
        if self.scales.max() > LARGEST_SCALE:
            raise InvalidInput(
                f"noise of {self.scales.max():.3g} grid steps would leave the 64-bit integers, "
                "where a draw cut off at the end hides nothing; choose a larger epsilon"
            )


def weakest(*sources: str) -> Source:
    """The label of something made with several sources: one simulated draw makes it simulated.

    >>> weakest("secure", "simulated", "none")
    'simulated'
    """
    return next(source for source in SOURCES if source in sources)


class FiniteRandomizer(Protocol):
    """Something with finitely many outputs that randomizes a value by itself, exactly."""

    def encode(self, value: Any, rng: np.random.Generator) -> IntArray:
        """A simulated report."""

    def encode_secure(self, value: Any) -> IntArray:
        """A report for a real person."""


class Noise(Protocol):
    """Fills a buffer with draws of a law; what draws them is named by ``source``."""

    @property
    def source(self) -> Source:
        """Named in every artefact the draws end up in."""

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """Overwrite ``out`` with independent draws, in grid steps."""

    def randomize(self, randomizer: FiniteRandomizer, value: Any) -> IntArray:
        """A report on ``value`` by a randomizer with finitely many outputs."""

    def happens(self, chance: int, of: int) -> bool:
        """True with probability chance / of."""


class ZeroNoise:
    """No noise at all, for agents that are declared not private; asking it for any is an error."""

    source: Source = "none"

    def fill(self, law: GridLaw, out: IntArray) -> NoReturn:
        """Refuse: silently adding nothing would fake a guarantee."""
        self._refuse(f"asked for {law.kind} noise")

    def randomize(self, randomizer: FiniteRandomizer, value: Any) -> NoReturn:
        """Refuse likewise."""
        self._refuse("randomizes")

    def happens(self, chance: int, of: int) -> NoReturn:
        """Refuse likewise."""
        self._refuse("draws a coin")

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidInput(
            f"this run was set up without noise, but its privatizer {what}; pass a noise source"
        )


class SimulatedNoise:
    """Seeded noise for simulation: a continuous draw rounded to the grid.

    Rounding is post-processing: a contribution on the grid plus a rounded draw is the rounded sum,
    so the guarantee of the continuous mechanism carries over exactly.
    """

    source: Source = "simulated"

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """Draw from the generator."""
        _FILL[law.kind](law.scales, self._rng, out)

    def randomize(self, randomizer: FiniteRandomizer, value: Any) -> IntArray:
        """Draw from the generator."""
        return randomizer.encode(value, self._rng)

    def happens(self, chance: int, of: int) -> bool:
        """Draw from the generator; one uniform, whatever the chance."""
        return self._rng.random() * of < chance


_FILL = {"laplace": fill_laplace, "gaussian": fill_gaussian, "bounded": fill_bounded}


class SecureNoise:
    """Exact discrete noise on operating-system entropy. Takes no seed.

    Laplace and Gaussian noise comes from OpenDP; randomizers with finitely many outputs and coins
    need nothing but the operating system.
    """

    source: Source = "secure"

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """Draw cell groups of equal scale, each in one vector call."""
        if law.kind == "bounded":
            raise InvalidInput(
                "there is no exact sampler for bounded noise, so it cannot protect anybody: use it "
                "in simulation, or choose another randomizer"
            )
        for scale in np.unique(law.scales):
            cells = np.flatnonzero(law.scales == scale)
            out[cells] = self._draw(law.kind, float(scale), len(cells))

    def _draw(self, kind: Kind, scale: float, count: int) -> list[int]:
        dp = _opendp()
        domain = dp.vector_domain(dp.atom_domain(T="i64"))
        if kind == "laplace":
            measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale)
        else:
            measurement = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale)
        drawn: list[int] = measurement([0] * count)
        return drawn

    def randomize(self, randomizer: FiniteRandomizer, value: Any) -> IntArray:
        """The randomizer's own exact sampler on operating-system entropy."""
        return randomizer.encode_secure(value)

    def happens(self, chance: int, of: int) -> bool:
        """An exact coin."""
        return secrets.randbelow(of) < chance


def _opendp() -> Any:
    need("secure Laplace or Gaussian noise", "secure")
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp
