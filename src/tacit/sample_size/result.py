"""What it says: answers at every epsilon, the verdict, the method; as text, JSON, picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit._version import __version__
from tacit.errors import InvalidInput
from tacit.experiment import Experiment
from tacit.sample_size.answer import SizeAnswer
from tacit.simulation.plot import canvas, check_target
from tacit.task.participation import Participation
from tacit.util.durations import in_words


@dataclass(frozen=True, eq=False)
class SampleSize:
    """What quick simulations say about the number of users and the epsilon.

    Attributes:
        experiments: what was simulated: one with all its runs, or one for every run.
        share: of the gap between the baseline and the best policy that is to be closed.
        users: the population that was asked about; None if none was.
        answers: one per epsilon, the largest first.
        seconds: wall-clock time.
        interrupted: True if it was stopped by Ctrl-C; what was measured before is kept.
    """

    experiments: tuple[Experiment, ...]
    share: float
    users: int | None
    answers: tuple[SizeAnswer, ...]
    seconds: float
    interrupted: bool

    @property
    def _first(self) -> Experiment:
        return self.experiments[0]

    @property
    def agent(self) -> str:
        """Who learns."""
        return self._first.agent.name

    @property
    def runs(self) -> int:
        """Simulations of each kind."""
        return self._first.runs

    @property
    def random(self) -> bool:
        """Whether every run has a problem of its own."""
        return len(self.experiments) > 1

    @property
    def who(self) -> str:
        """What is counted: users, or people where they come back."""
        return "users" if self._first.participation == Participation() else "people"

    @property
    def simulated(self) -> str:
        """What was simulated, in words."""
        problem, runs = self._first.problem, self.runs
        times = self._first.participation.times
        back = f", everybody comes {times} times" if self.who == "people" else ""
        if not self.random:
            return f"{problem.name}, {runs} run{'s' if runs > 1 else ''}{back}"
        H, S, A = problem.horizon, problem.states, problem.actions  # type: ignore[attr-defined]
        return f"{runs} random problems of {S} states, {A} actions, {H} steps, one run each{back}"

    @property
    def smallest_epsilon(self) -> float | None:
        """The least epsilon tried that closes the share with ``users`` users, with confidence."""
        enough = (answer for answer in self.answers if answer.status(self.users or 0) == "enough")
        return min((a.epsilon for a in enough if a.epsilon is not None), default=None)

    @property
    def method(self) -> str:
        """How it is known, and what epsilon is over, in a few sentences."""
        top = "the best policy (100%), computed exactly"
        if self._first.problem.family == "episodic":
            top = "the largest declared return (100%), by playing"
        period = self._first.participation.period
        per = f" Epsilon is per period of {in_words(period)}." if period else ""
        return (
            f"Simulated: {self.simulated}.{per} Closed is what the last tenth of the "
            f"{'users' if self.who == 'users' else 'participations'} got, from "
            f"the {self._first.problem.baseline()[0]} (0%) to {top}; means over "
            f"{'random problems' if self.random else 'runs'}, each bound with 95% confidence at "
            "its number of users."
        )

    @property
    def verdict(self) -> str:
        """What it means for the population that was asked about; empty if none was."""
        if self.users is None:
            return ""
        by_status: dict[str, list[SizeAnswer]] = {}
        for answer in self.answers:
            by_status.setdefault(answer.status(self.users), []).append(answer)
        parts = []
        for status, answers in by_status.items():
            levels = ", ".join(answer.level for answer in answers)
            verb = "are" if len(answers) > 1 else "is"
            whose = self.agent if answers[0].epsilon is None else f"epsilon {levels}"
            parts.append(f"{whose} {verb} {status}")
        aim = f"To close {self.share:.0%} of the gap with {self.users:,} {self.who}"
        return f"{aim}: {'; '.join(parts)}."

    @property
    def warning(self) -> str:
        """The verdict if no epsilon that was tried was shown to be enough; else empty."""
        served = any(answer.status(self.users or 0) == "enough" for answer in self.answers)
        return "" if served else self.verdict

    def to_json(self) -> dict[str, Any]:
        """The object ``tacit size --json`` prints."""
        return {
            "tacit": __version__,
            "simulated": self.simulated,
            "agent": self.agent,
            "share": self.share,
            "users": self.users,
            "answers": [answer.to_json() for answer in self.answers],
            "smallest_epsilon": self.smallest_epsilon,
            "verdict": self.verdict,
            "method": self.method,
            "interrupted": self.interrupted,
            "seed": self._first.seed,
            "runs": self.runs,
            "timing": {"seconds": self.seconds},
        }

    def plot(self, path: str | Path) -> Path:
        """Draw users against epsilon into a file; the ending chooses the format.

        What was shown to be enough, what was shown not to be, and what is extrapolated.
        """
        target = check_target(path)
        answers = [a for a in self.answers if a.measured]
        levels = np.array([a.epsilon for a in answers], dtype=np.float64)  # None becomes NaN
        if np.isnan(levels).any() or not answers:
            raise InvalidInput("there is nothing to plot: no epsilon was simulated")
        figure, axes = canvas()
        numbers = [
            (a.sufficient, a.insufficient or None, a.extrapolated, a.measured[0].users, a.last)
            for a in answers
        ]
        sufficient, below, guessed, least, last = np.array(numbers, dtype=np.float64).T
        sure = ~np.isnan(sufficient)
        open_ = np.where(sure | ~np.isnan(below), np.nan, last)
        begin = np.where(np.isnan(below), least, below)
        axes.vlines(levels[sure], begin[sure], sufficient[sure], color="C0", lw=4, alpha=0.3)
        series = (
            (sufficient, "o", "C0", "enough, with 95% confidence (bar: not decided below)"),
            (np.where(sure, np.nan, below), "^", "C3", "not below this (simulated)"),
            (open_, "s", "0.5", "not decided up to this"),
            (guessed, "x", "0.5", "extrapolated, not simulated"),
        )
        for values, marker, colour, label in series:
            if not np.isnan(values).all():
                axes.plot(levels, values, marker, color=colour, label=label)
        if self.users is not None:
            axes.axhline(self.users, color="0.4", ls="--", lw=1, label=f"{self.users:,} users")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(levels, [f"{level:g}" for level in levels], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_xlabel("epsilon asked for")
        axes.set_ylabel(f"users until {self.share:.0%} of the gap is closed")
        axes.set_title(f"{self.agent}: {self.simulated}", fontsize="medium")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        figure.savefig(target)
        return target

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The answers as a table, what goes with them, the verdict and the method."""
        who = self.who
        yield f"{self.agent}: {who} until {self.share:.0%} of the gap is closed"
        rows = [("epsilon", who, "closed", "with"), *(_row(a, who) for a in self.answers)]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        for row in rows:
            yield "  " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)).rstrip()
        for answer in self.answers:
            if answer.note():
                yield f"epsilon {answer.level}: {answer.note()}."
        if self.verdict:
            yield self.verdict
        yield self.method


def _row(answer: SizeAnswer, who: str) -> tuple[str, str, str, str]:
    """Epsilon, users, and the share at the number of users that decides."""
    at = answer.sufficient or answer.last
    shown = next((size.words() for size in answer.measured if size.users == at), "")
    return answer.level, answer.words(), shown, f"{at:,} {who}" if at else ""
