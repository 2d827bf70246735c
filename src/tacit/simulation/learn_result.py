"""What ``tacit.learn`` returns: returns with bands, the guarantee and the policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.intervals import half_width, mean_interval
from tacit.simulation.result import FACTS, Result
from tacit.validate import choice

if TYPE_CHECKING:
    import pandas as pd

NOTE = (
    "Returns are outcomes of this simulation, not released values: the agent never sees them, and "
    "the guarantee does not cover them."
)


ONCE = (
    "Everybody simulated here took part once. The guarantee also covers people who come back as "
    "the rule allows; what they would add or gain is not simulated."
)


@dataclass(frozen=True, eq=False)
class LearnResult(Result):
    """Returns of several runs of one agent on what nobody knows the truth of.

    ``regret`` is NaN throughout; ``reward`` is in the units of what was played.

    Attributes:
        tests: how the policies did, and uniform actions, on episodes that nobody learned from.
    """

    facts: ClassVar[tuple[str, ...]] = (*FACTS, "tests")

    tests: Mapping[str, Any] = field(default_factory=dict)

    @property
    def returns(self) -> Array:
        """Mean return of the users since the checkpoint before [seeds, checkpoints]."""
        mean: Array = np.diff(self.reward, axis=1, prepend=0.0) / np.diff(self.episodes, prepend=0)
        return mean

    def band(self) -> tuple[Array, Array, Array]:
        """Mean of ``returns`` over runs and the ends of its pointwise 95% Student t interval.

        Cut off at what an episode can return. With a single run the interval is not defined, and
        both ends are NaN.
        """
        return self._interval(self.returns)

    def _interval(self, returns: Array) -> tuple[Array, Array, Array]:
        """Mean over runs and the ends of its interval, within what is possible."""
        mean = returns.mean(axis=0)
        half = half_width(returns) if len(returns) > 1 else np.full_like(mean, np.nan)
        least, most = self._possible()
        if returns.min() < least or returns.max() > most:  # rewards outside the declared range
            return mean, mean - half, mean + half
        return mean, np.maximum(mean - half, least), np.minimum(mean + half, most)

    def _possible(self) -> tuple[float, float]:
        """Least and largest return of an episode, as declared."""
        if "returns" in self.problem:
            low, high = self.problem["returns"]
            return low, high
        offset, scale = self.problem["rescaling"]["offset"], self.problem["rescaling"]["scale"]
        return self.problem["horizon"] * offset, self.problem["horizon"] * (offset + scale)

    def late(self) -> Array:
        """Mean return of the last users of every run: a tenth of them, or the least more."""
        grid = np.concatenate([[0], self.episodes])
        curve = np.concatenate([np.zeros((len(self.seeds), 1)), self.reward], axis=1)
        i = int(np.searchsorted(grid, 0.9 * self.completed, side="right")) - 1
        mean: Array = (curve[:, -1] - curve[:, i]) / (grid[-1] - grid[i])
        return mean

    def tested(self) -> str:
        """How the learned policies did on fresh episodes, in words."""
        uniform = f"uniform actions {self.tests['uniform']['mean']:.4g}"
        if not self.policies:
            return f"{uniform} per episode; there is no learned policy, the runs were interrupted"
        gain, (low, high) = self.tests["difference"]["mean"], self.tests["difference"]["ci95"]
        return (
            f"learned policies {self.tests['policy']['mean']:.4g} per episode, {uniform} "
            f"(difference {gain:.3g}, 95% interval {low:.3g} to {high:.3g})"
        )

    @property
    def note(self) -> str:
        """What the returns are, and who was not simulated."""
        back = self.guarantee.rule is not None or self.guarantee.participations != 1
        return f"{NOTE} {ONCE}" if back else NOTE

    @property
    def warning(self) -> str:
        """One sentence if the policies did not do better than uniform actions; else empty."""
        if self.reference or not self.policies or self.tests["difference"]["ci95"][0] > 0.0:
            return ""
        return f"Not shown to be better than uniform actions: {self.tested()}."

    def frame(self) -> pd.DataFrame:
        """Tidy frame with columns seed, episode, returns (since the row before) and reward."""
        found = super().frame().drop(columns="regret")
        found.insert(2, "returns", self.returns.ravel())
        return found

    def to_json(self) -> dict[str, Any]:
        """The object ``tacit learn --json`` prints."""
        found = super().to_json()
        del found["regret"]
        late = self.late() if self.completed else np.zeros(0)
        ends = [float(end) for end in self._interval(late)] if self.completed else [np.nan] * 3
        mean, low, high = (None if np.isnan(end) else end for end in ends)
        return {
            **found,
            "returns": {"late": mean, "ci95": [low, high], "per_seed": late.tolist()},
            "tests": dict(self.tests),
            "note": self.note,
        }

    @classmethod
    def from_json(
        cls, facts: Mapping[str, Any], curves: Mapping[str, Any] | pd.DataFrame
    ) -> LearnResult:
        """A result from plain values as in a manifest, and its curves."""
        if "tests" not in facts:
            raise InvalidInput("this is a result of tacit.simulate: tacit.Result reads it")
        known = {name: np.asarray(curves[name]) for name in ("episode", "reward")}
        found = super().from_json(facts, known | {"regret": np.full(len(known["reward"]), np.nan)})
        assert isinstance(found, LearnResult)
        return replace(found, tests=facts["tests"])

    def plot(
        self, path: str | Path, *, log: bool = True, baseline: bool = True, by: str = "episode"
    ) -> Path:
        """Draw returns with their band; see :func:`tacit.simulation.plot.plot_returns`."""
        from tacit.simulation.plot import plot_returns

        choice(by, "by", ("episode",))  # nobody comes back here
        return plot_returns(self, path, log=log, baseline=baseline)

    def _outcome(self) -> dict[str, str]:
        """Returns in place of regret, and what they are."""
        rows = {"return": self.earned(), "tested": self.tested(), "note": self.note}
        return rows | ({"warning": self.warning} if self.warning else {})

    def earned(self) -> str:
        """The return of the last users, with its interval."""
        runs, (mean, low, high) = len(self.seeds), self._interval(self.late())
        interval = f", 95% interval {low:.4g} to {high:.4g}" if runs > 1 else ""
        return (
            f"{mean:.4g} per user in the last tenth of {self.completed:,} (mean of {runs} "
            f"run{'s' if runs > 1 else ''}{interval})"
        )


def compared(learned: Array, uniform: Array) -> dict[str, Any]:
    """Returns of the policies of all runs and of uniform actions [seeds, episodes], compared.

    The same episodes for both, so their differences are independent samples: they say how good
    *these* policies are, not how good the next run's will be. Without policies, of uniform ones.
    """
    found: dict[str, Any] = {"episodes": uniform.shape[1], "uniform": _means(uniform)}
    if learned.size:
        gain = mean_interval((learned - uniform).ravel())
        found["policy"] = _means(learned)
        found["difference"] = {"mean": gain.value, "ci95": [gain.low, gain.high]}
    return found


def _means(returns: Array) -> dict[str, Any]:
    return {"mean": float(returns.mean()), "per_seed": returns.mean(axis=1).tolist()}
