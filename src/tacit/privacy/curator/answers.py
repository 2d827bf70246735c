"""The answers a curator may be asked for: declared before the first user, with range and noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.privacy.local.additive import FINE, GRID
from tacit.validate import finite_array, flag, integer


def require_coarse(what: str, std: float) -> None:
    """Refuse noise that the grid cannot carry: its price would not be that of Gaussian noise."""
    least = FINE["gaussian"] * GRID
    if std < least:
        raise InvalidInput(
            f"{what} of {std:.3g} is too fine for the grid of 2^-24, where it must be at least "
            f"{least:.3g}; choose a smaller epsilon"
        )


@dataclass(frozen=True, eq=False)
class Answers:
    """Which questions may be asked, how often, and the noise of each answer.

    Attributes:
        ranges: by target, R_h [H]: the target is clipped into [0, R_h]; 0 where it is never asked.
        stds: by target, standard deviation [H] of the noise in each coordinate of an answer.
        rounds: how often each (target, stage) may be asked: a hard cap.
        rewards: by target, whether r is part of it.
        centred: whether R_h / 2 is subtracted, which halves the sensitivity
            (docs/papers/linear_jdp.md#b5).
    """

    ranges: Mapping[str, Array]
    stds: Mapping[str, Array]
    rounds: int
    rewards: Mapping[str, bool]
    centred: bool = True

    def __post_init__(self) -> None:
        integer(self.rounds, "rounds", low=0)
        flag(self.centred, "centred")
        if not self.ranges.keys() == self.stds.keys() == self.rewards.keys():
            raise InvalidInput("ranges, stds and rewards must name the same targets")
        for name in ("ranges", "stds"):
            arrays = {t: frozen(finite_array(a, name)) for t, a in getattr(self, name).items()}
            object.__setattr__(self, name, arrays)
        for target in self.ranges:
            self._check(target)

    def _check(self, target: str) -> None:
        ranges, stds = self.ranges[target], self.stds[target]
        asked = ranges > 0
        if ranges.shape != stds.shape or (ranges < 0).any() or (stds[asked] <= 0).any():
            raise InvalidInput(f"{target}: every stage that is asked needs a positive noise std")
        if self.rewards[target] and (ranges[asked] < 1.0).any():
            raise InvalidInput(f"{target}: a target with the reward in it has a range of 1 or more")
        require_coarse(f"{target}: answer noise", float(stds[asked].min(initial=np.inf)))

    @property
    def questions(self) -> list[tuple[str, int]]:
        """What one round may ask: every target at every stage with a range, last stage first."""
        stages = max((len(ranges) for ranges in self.ranges.values()), default=0)
        return [
            (target, h)
            for h in reversed(range(stages))
            for target, ranges in self.ranges.items()
            if ranges[h] > 0
        ]

    @property
    def least_range(self) -> float:
        """The smallest range that is asked, 1 if nothing is."""
        positive = [ranges[ranges > 0] for ranges in self.ranges.values()]
        return float(np.concatenate([np.ones(1), *positive]).min())

    def bounds(self, target: str, stage: int) -> tuple[int, float, float, bool]:
        """The stage, the top of V so that r + V <= R, what is taken off, whether r is in it."""
        reach, rewarded = float(self.ranges[target][stage]), bool(self.rewards[target])
        top = max(reach - (1.0 if rewarded else 0.0), 0.0)
        return stage, top, reach / 2 if self.centred else 0.0, rewarded

    def load(self) -> Array:
        """Sum over targets of (R_h / std_h)^2 [H]: what one round puts on each stage."""
        total = None
        for target, ranges in self.ranges.items():
            stds = self.stds[target]
            share = np.where(ranges > 0, ranges / np.where(ranges > 0, stds, 1.0), 0.0) ** 2
            total = share if total is None else total + share
        assert total is not None
        return total
