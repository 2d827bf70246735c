"""What ``tacit.learn`` returns: returns with bands, the guarantee and the policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array
from tacit.intervals import half_width, mean_interval
from tacit.policy import Policy
from tacit.simulation.result import Result

if TYPE_CHECKING:
    import pandas as pd

NOTE = (
    "Returns are outcomes of this simulation, not released values: the agent never sees them, and "
    "the guarantee does not cover them."
)


@dataclass(frozen=True, eq=False)
class LearnResult(Result):
    """Returns of several runs of one agent on what nobody knows the truth of.

    ``regret`` is NaN throughout; ``reward`` is in the units of what was played.

    Attributes:
        policies: the last policy of each run.
        tests: how these did, and uniform actions beside them, on episodes that nobody learned from.
    """

    policies: tuple[Policy, ...]
    tests: Mapping[str, Any]

    @property
    def returns(self) -> Array:
        """Mean return of the users since the checkpoint before [seeds, checkpoints]."""
        mean: Array = np.diff(self.reward, axis=1, prepend=0.0) / np.diff(self.episodes, prepend=0)
        return mean

    def band(self) -> tuple[Array, Array, Array]:
        """Mean of ``returns`` over runs and the ends of its pointwise 95% Student t interval.

        With a single run the interval is not defined, and both ends are NaN.
        """
        mean = self.returns.mean(axis=0)
        several = len(self.seeds) > 1
        half = half_width(self.returns) if several else np.full_like(mean, np.nan)
        return mean, mean - half, mean + half

    def late(self) -> Array:
        """Mean return of the last users of every run: a tenth of them, or the least more."""
        grid = np.concatenate([[0], self.episodes])
        curve = np.concatenate([np.zeros((len(self.seeds), 1)), self.reward], axis=1)
        i = int(np.searchsorted(grid, 0.9 * self.completed, side="right")) - 1
        mean: Array = (curve[:, -1] - curve[:, i]) / (grid[-1] - grid[i])
        return mean

    def verdict(self) -> str:
        """What was learned, in one sentence that says so where it is nothing."""
        gain, (low, high) = self.tests["difference"]["mean"], self.tests["difference"]["ci95"]
        numbers = (
            f"{self.tests['policy']['mean']:.4g} per episode against "
            f"{self.tests['uniform']['mean']:.4g} (difference {gain:.3g}, 95% interval {low:.3g} "
            f"to {high:.3g})"
        )
        if low > 0.0:
            return f"The learned policy is better than uniform actions: {numbers}."
        return f"The learned policy is NOT shown to be better than uniform actions: {numbers}."

    def frame(self) -> pd.DataFrame:
        """Tidy frame with columns seed, episode, returns (since the row before) and reward."""
        found = super().frame().drop(columns="regret")
        found.insert(2, "returns", self.returns.ravel())
        return found

    def to_json(self) -> dict[str, Any]:
        """The object ``tacit learn --json`` prints."""
        found = super().to_json()
        late = self.late() if self.completed else np.zeros(0)
        spread = mean_interval(late) if len(late) > 1 else None
        del found["regret"]
        return {
            **found,
            "returns": {
                "late": float(late.mean()) if self.completed else None,
                "ci95": [None, None] if spread is None else [spread.low, spread.high],
                "per_seed": late.tolist(),
            },
            "tests": dict(self.tests),
            "verdict": self.verdict(),
            "note": NOTE,
        }

    def plot(self, path: str | Path, *, log: bool = True, baseline: bool = True) -> Path:
        """Draw returns with their band; see :func:`tacit.simulation.plot.plot_returns`."""
        from tacit.simulation.plot import plot_returns

        return plot_returns(self, path, log=log, baseline=baseline)

    def _outcome(self) -> dict[str, str]:
        """Returns in place of regret, and what they are."""
        return {"return": self.earned(), "learned": self.verdict(), "note": NOTE}

    def earned(self) -> str:
        """The return of the last users, with its interval."""
        runs, spread = len(self.seeds), mean_interval(self.late())
        interval = f", 95% interval {spread.low:.4g} to {spread.high:.4g}" if runs > 1 else ""
        return (
            f"{spread.value:.4g} per user in the last tenth of {self.completed:,} (mean of {runs} "
            f"run{'s' if runs > 1 else ''}{interval})"
        )


def tests_of(policies: Array, uniform: Array) -> dict[str, Any]:
    """Returns of the policies of all runs and of uniform actions [seeds, episodes], compared.

    The same episodes for both, so their differences are independent samples: they say how good
    *these* policies are, not how good the next run's will be.
    """
    gain = mean_interval((policies - uniform).ravel())
    return {
        "episodes": policies.shape[1],
        "policy": {"mean": float(policies.mean()), "per_seed": policies.mean(axis=1).tolist()},
        "uniform": {"mean": float(uniform.mean()), "per_seed": uniform.mean(axis=1).tolist()},
        "difference": {"mean": gain.value, "ci95": [gain.low, gain.high]},
    }
