"""A release about a log and a running one, merged pair by pair: both are public, so is the sum.

Of a pair whose law is p the one shows m p with noise s, the other m' p with noise s'. They are best
added with weights m / s and m' / s' after each is divided by its noise, which the pair's totals
tell, as in ``privacy.counters.fading``. Given the weights the sum has exactly the noise that is
stated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.privacy.joint.batched import GaussianLaw
from tacit.privacy.noise import weakest
from tacit.release import Release


@dataclass(frozen=True, eq=False)
class MergedRelease:
    """Adds what was released about a log to releases of sums over first visits.

    What comes out has the smaller noise of the two in every cell, so that no pair looks as if it
    had been seen more often than it was.

    Attributes:
        blocks: of the log's release, under the names of the online ones.
        own: standard deviation of its noise.
        online: of the noise in online releases.
        people: of the log, as users who came before.
        source: where the log's noise came from.
    """

    blocks: Mapping[str, Array]
    own: float
    online: float
    people: float
    source: str

    @property
    def std(self) -> float:
        """Noise of what comes out."""
        return min(self.own, self.online)

    def users(self, online: int) -> int:
        """All that are in it, each counted by what they show over the noise."""
        return max(1, round(self.std * (self.people / self.own + online / self.online)))

    def __call__(self, release: Release) -> Release:
        """Both, or the log's alone before the first online release."""
        begun = release.law.scale("totals") > 0.0
        added = {
            name: self.std * self._added(name, release.blocks, begun) for name in release.blocks
        }
        source = weakest(self.source, release.source) if begun else self.source
        return Release(self.users(release.users), added, GaussianLaw(self.std), source)

    def _added(self, name: str, online: Mapping[str, Array], begun: bool) -> Array:
        """One block of both together, at noise 1."""
        before, now = self.blocks[name] / self.own, online[name] / self.online
        if not begun:
            return before
        if name == "starts":
            a, b = _shows(before.sum()), _shows(now.sum())
        else:
            a, b = _shows(self.blocks["totals"] / self.own), _shows(online["totals"] / self.online)
        a = np.where((a == 0.0) & (b == 0.0), 1.0, a)
        length = np.hypot(a, b)
        first, second = (np.expand_dims(w / length, tuple(range(w.ndim, now.ndim))) for w in (a, b))
        return first * before + second * now


def _shows(level: Array) -> Array:
    """How much a row shows beyond its own noise, which is 1."""
    return np.maximum(np.asarray(level) - 1.0, 0.0)
