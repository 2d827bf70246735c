"""People of whom only the first participation of a period is counted, and who come back.

Whoever was counted acts on the newest policy like everybody else; nothing is learned from them and
nothing is paid. So learning is a run over the counted participations alone, and the others are
scored by the policies of that run.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, Arrays, IntArray
from tacit.errors import InvalidInput
from tacit.learner import Learner
from tacit.simulation.attendance import AttendanceTrace
from tacit.simulation.runs.base import Run
from tacit.simulation.score import CHANGING, new_score


class UncountedRun(Run):
    """A run of counted participations, spread over all of them.

    Regret of a participation is that of the policy which the newest counted one acted on; after the
    last counted one, that of the policy planned from all of them. Rewards of participations that
    are not counted are put down as their expectation.

    Args:
        inner: the run of the counted ones, with a checkpoint after each of them.
        people: who takes part when.
        checkpoints: in participations.
    """

    def __init__(self, inner: Run, people: AttendanceTrace, checkpoints: IntArray) -> None:
        self.inner, self.people = inner, people
        self.problem, self.agent, self.period = inner.problem, inner.agent, inner.period
        self.score = new_score(inner.problem, checkpoints)
        self._counted = np.concatenate([[0], np.cumsum(people.first)])
        self._last = 0.0
        """Regret of the policy that is left when everybody was counted."""

    @property
    def learner(self) -> Learner | None:  # type: ignore[override]
        """Of the counted ones."""
        return self.inner.learner

    def advance(self, episodes: int) -> None:
        """That many more participations."""
        begin, all_of = int(self.score.at[0]), int(self._counted[-1])
        end = begin + episodes
        before, after = int(self._counted[begin]), int(self._counted[end])
        self.inner.advance(after - before)
        done = int(self.inner.score.at[0])
        if done < after:  # stopped between two users
            end = begin + int(np.searchsorted(self._counted[begin:], done, side="right")) - 1
        if done == all_of and self.inner.final is None:
            self._last = self._conclude()
        self._record(begin, end, all_of)

    def _conclude(self) -> float:
        """Regret of the policy that is planned from everybody who is counted."""
        self.inner.conclude()
        final = self.inner.final
        assert final is not None
        return float(self.score.optimum - self.problem.value(final[0].policy))

    def _record(self, begin: int, end: int, all_of: int) -> None:
        """Score the participations from ``begin`` on."""
        steps = self._counted[begin : end + 1]
        regret, reward = (self._each(curve, steps) for curve in self.inner.score[4:])
        free = np.diff(steps) == 0
        over = free & (steps[1:] == all_of)
        regret[over] = self._last
        reward[free] = self.score.optimum - regret[free]
        _, now, at, checkpoints, regret_curve, reward_curve = self.score
        now[0] = regret[-1] if len(regret) else now[0]
        sums = [  # one after the other, so that chunks make no difference in the last bit
            np.cumsum(np.concatenate([[so_far], each]))[1:]
            for so_far, each in ((now[1], regret), (now[2], reward))
        ]
        passed = np.flatnonzero((checkpoints > begin) & (checkpoints <= end))
        for curve, total in zip((regret_curve, reward_curve), sums, strict=True):
            curve[passed] = total[checkpoints[passed] - begin - 1]
        if end > begin:
            now[1], now[2] = sums[0][-1], sums[1][-1]
        at[0], at[1] = end, np.searchsorted(checkpoints, end, side="right")

    @staticmethod
    def _each(curve: Array, steps: IntArray) -> Array:
        """What the newest counted participation added to a curve, for each participation."""
        newest = np.maximum(steps[1:], 1) - 1
        return np.asarray(curve[newest] - np.where(newest > 0, curve[newest - 1], 0.0))

    def conclude(self) -> None:
        """The policy planned from all who were counted."""
        self.final = self.inner.final

    def kept(self) -> Arrays:
        """What the inner run carries on, and its score; the rest takes no time, so is not kept."""
        if self.inner.final is not None:
            raise InvalidInput("everybody was counted")
        own = {f"inner.{name}": getattr(self.inner.score, name) for name in CHANGING}
        return {**self.inner.kept(), **own}

    @property
    def generators(self) -> dict[str, np.random.Generator]:
        """Those of the inner run."""
        return self.inner.generators

    def recall(self, arrays: Arrays) -> None:
        """Go on with them."""
        self.inner.recall(arrays)
        for name in CHANGING:
            getattr(self.inner.score, name)[...] = arrays[f"inner.{name}"]
