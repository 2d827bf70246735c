"""What ``tacit.learn`` returns: returns with bands, the guarantee and the policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.simulation.result import FACTS, Result
from tacit.util.intervals import Interval, half_width, mean_interval
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

BEHIND = 0.5
"""A run has failed that gained less than this share of what the best run did.

A convention: where runs are further apart than that, their mean describes none of them.
"""

WHO = {"uniform": "uniform actions", "constant": "a constant action", "policy": "learned policies"}
"""Whose test episodes they are."""


@dataclass(frozen=True, eq=False)
class LearnResult(Result):
    """Returns of several runs of one agent on what nobody knows the truth of.

    ``regret`` is NaN throughout; ``reward`` is in the units of what was played.

    Attributes:
        tests: how the policies did on episodes that nobody learned from, and uniform actions and
            the best constant one on the same; ``runs`` has a row for every run, ``outside`` how
            many episodes returned what the declared range cuts.
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
        beside = ", ".join(f"{name} {mean:.4g}" for _, name, mean in self._fixed())
        if not self.policies:
            return f"{beside} per episode; there is no learned policy, the runs were interrupted"
        runs, gain = len(self.seeds), self.tests["difference"]
        here = "{:.3g} to {:.3g}".format(*gain["ci95"])
        found = self._over_runs(gain, "uniform")
        if runs == 1:
            interval = f"{here} over test episodes, of this policy only: one run tells of no other"
        else:
            interval = (
                f"{found.low:.3g} to {found.high:.3g} over runs (over test episodes, of these "
                f"{runs} policies only: {here})"
            )
        return (
            f"learned polic{'ies' if runs > 1 else 'y'} {self.tests['policy']['mean']:.4g} per "
            f"episode, {beside}; gain over uniform actions {found.value:.3g}, 95% interval "
            f"{interval}"
        )

    def per_run(self) -> list[str]:
        """A line for every run: what its policy returned on fresh episodes, and whether it failed.

        A run has failed if its policy is not shown to be better than uniform actions, or is shown
        to be worse than the best constant action, or to have gained less than half of what the best
        run did; each by 95% intervals over its test episodes (``tests["runs"]``).
        """
        if "runs" not in self.tests:  # interrupted, or of an earlier version
            means = self._means("policy") if "policy" in self.tests else ()
            return [f"run {k}: {mean:.4g}" for k, mean in enumerate(means)]
        lines, failed = [], self.failed
        for seed, run in zip(self.seeds, self.tests["runs"], strict=True):
            mean, (low, high) = run["return"]["mean"], run["return"]["ci95"]
            why = f"; failed: {failed[seed]}" if seed in failed else ""
            said = f" (95% interval {low:.4g} to {high:.4g} over test episodes)"
            if low == high:  # what never differed has no interval
                said = f" in each of {self.tests['episodes']} test episodes"
            lines.append(f"run {seed}: {mean:.4g}{said}{why}")
        return lines

    @property
    def failed(self) -> dict[int, str]:
        """The runs that failed, and how; by the rule of :meth:`per_run`."""
        runs = [] if self.reference else list(self.tests.get("runs", ()))
        most = max((run["over_uniform"]["ci95"][0] for run in runs), default=0.0)
        found = {}
        for seed, run in zip(self.seeds, runs, strict=False):
            low, high = run["over_uniform"]["ci95"]
            if low <= 0.0:
                found[seed] = "not shown to be better than uniform actions"
            elif run["over_constant"]["ci95"][1] < 0.0:
                found[seed] = f"worse than {self.tests['constant']['name']} alone"
            elif high < BEHIND * most:
                found[seed] = "it gained less than half of what the best run did"
        return found

    def _fixed(self) -> list[tuple[str, str, float]]:
        """What does not learn: its key, what it is called, and its mean return."""
        found = [("uniform", "uniform actions", self.tests["uniform"]["mean"])]
        if "constant" in self.tests:  # not if interrupted, nor in results of earlier versions
            constant = self.tests["constant"]
            found.append(("constant", f"{constant['name']} alone", constant["mean"]))
        return found

    def _means(self, who: str) -> Array:
        return np.array(self.tests[who]["per_seed"])

    def _over_runs(self, gain: Mapping[str, Any], fixed: str, confidence: float = 0.95) -> Interval:
        """Mean gain of a run over what does not learn, with its interval over runs.

        Never narrower than that of the policies at hand: runs that happen to agree do not know more
        than was tried. Of a single run it is that.
        """
        low, high = gain["ci95"]
        if len(self.seeds) > 1:
            runs = mean_interval(self._means("policy") - self._means(fixed), confidence)
            low, high = min(low, runs.low), max(high, runs.high)
        return Interval(gain["mean"], low, high)

    def _gain(self) -> dict[str, Any]:
        """Over uniform actions, as plain values; ``ci95`` is over runs: one run has none."""
        gain, several = self.tests["difference"], len(self.seeds) > 1
        found = self._over_runs(gain, "uniform")
        ends = [found.low, found.high] if several else [None, None]
        return {"mean": found.value, "ci95": ends, "ci95_of_these_policies": gain["ci95"]}

    @property
    def note(self) -> str:
        """What the returns are, who was not simulated, and what was cut."""
        back = self.guarantee.rule is not None or self.guarantee.participations != 1
        cut = {who: n for who, n in self.tests.get("outside", {}).items() if n}
        said = [NOTE, *([ONCE] if back else [])]
        if cut:
            low, high = self._possible()
            each = self.tests["episodes"] * max(1, len(self.policies))
            words = ", ".join(f"{n} of {each} of {WHO[who]}" for who, n in cut.items())
            said.append(
                f"An agent sees returns cut at {low:g} and {high:g}. Of test episodes these were "
                f"outside: {words}."
            )
        return " ".join(said)

    @property
    def warning(self) -> str:
        """Whether the policies did no better than what does not learn, and which runs failed.

        Better is shown by a one-sided t test over runs at 5%, and by the test episodes. Empty if
        there is nothing to warn of.
        """
        if self.reference or not self.policies:
            return ""
        gains = {"uniform": self.tests["difference"]}
        gains |= {"constant": self.tests["constant"]["gain"]} if "constant" in self.tests else {}
        level = [
            f"{called} ({mean:.4g})"
            for key, called, mean in self._fixed()
            if self._over_runs(gains[key], key, 0.9).low <= 0.0
        ]
        said, failed, means = [], self.failed, self._means("policy")
        if level:
            said.append(
                f"Not shown to be better than {' or '.join(level)}: what was learned returned "
                f"{means.mean():.4g}."
            )
        if failed and len(self.seeds) > 1:
            which = "; ".join(
                f"run {seed} ({means[self.seeds.index(seed)]:.4g}), {why}"
                for seed, why in failed.items()
            )
            said.append(f"{len(failed)} of {len(self.seeds)} runs failed: {which}.")
        return " ".join(said)

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
            **({"gain": self._gain()} if "difference" in self.tests else {}),
            "failed": [{"run": seed, "why": why} for seed, why in self.failed.items()],
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
        rows = {"return": self.earned(), "tested": self.tested()}
        rows |= {"runs": "; ".join(self.per_run()), "note": self.note}
        return rows | ({"warning": self.warning} if self.warning else {})

    def earned(self) -> str:
        """The return of the last users, with its interval."""
        runs, (mean, low, high) = len(self.seeds), self._interval(self.late())
        over = "one run" if runs == 1 else f"the same in each of {runs} runs"
        if runs > 1 and low < high:
            over = f"mean of {runs} runs, 95% interval over runs {low:.4g} to {high:.4g}"
        return f"{mean:.4g} per user in the last tenth of {self.completed:,} ({over})"


def compared(played: Mapping[str, Array], constant: str) -> dict[str, Any]:
    """Returns on test episodes [runs, episodes] of learned policies and of what does not learn.

    All on the same episodes, so that differences are independent samples. Intervals here are over
    test episodes: they say how good *these* policies are, not how good the next run's will be.

    Args:
        played: by "uniform" and, where there are policies, "constant" and "policy".
        constant: what the constant policy does.
    """
    found: dict[str, Any] = {"episodes": played["uniform"].shape[1]}
    for who, returns in played.items():
        found[who] = {"mean": float(returns.mean()), "per_seed": returns.mean(axis=1).tolist()}
    if "policy" in played:
        learned, found["constant"]["name"] = played["policy"], constant
        over = {who: learned - played[who] for who in ("uniform", "constant")}
        found["difference"] = _interval(over["uniform"].ravel())
        found["constant"]["gain"] = _interval(over["constant"].ravel())
        found["runs"] = [
            {
                "return": _interval(own),
                "over_uniform": _interval(uniform),
                "over_constant": _interval(fixed),
            }
            for own, uniform, fixed in zip(learned, *over.values(), strict=True)
        ]
    return found


def _interval(samples: Array) -> dict[str, Any]:
    """Their mean and its 95% interval, as plain values."""
    found = mean_interval(samples)
    return {"mean": found.value, "ci95": [found.low, found.high]}
