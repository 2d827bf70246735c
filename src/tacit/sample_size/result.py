"""What a plan says: the answers at every epsilon, the verdict, the method, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit._version import __version__
from tacit.sample_size.answer import Answer
from tacit.sample_size.settings import Setting
from tacit.sample_size.ways import Ways
from tacit.util.durations import in_words


@dataclass(frozen=True, eq=False)
class Plan:
    """What quick simulations say about the number of users and the epsilon.

    Attributes:
        setting: what was simulated.
        agent: name of the agent.
        share: of the gap between the baseline and the best policy that is to be closed.
        users: the population that was asked about; None if none was.
        answers: one per epsilon, the largest first.
        seed: root of all random streams.
        seconds: wall-clock time.
        interrupted: True if it was stopped by Ctrl-C; what was measured before is kept.
        ways: ways to count people who come back, compared; None where nobody does.
    """

    setting: Setting
    agent: str
    share: float
    users: int | None
    answers: tuple[Answer, ...]
    seed: int
    seconds: float
    interrupted: bool
    ways: Ways | None = None

    @property
    def smallest_epsilon(self) -> float | None:
        """The least epsilon tried that closes the share with ``users`` users, with confidence."""
        found = [
            answer.epsilon
            for answer in self.answers
            if answer.epsilon is not None
            and answer.enough is not None
            and answer.enough <= (self.users or 0)
        ]
        return min(found, default=None)

    @property
    def method(self) -> str:
        """How it is known, and what epsilon is over, in a few sentences."""
        top = "the best policy (100%), computed exactly"
        if self.setting.problems[0].family == "episodic":
            top = "the largest declared return (100%), by playing"
        period = self.setting.rule.period
        per = f" Epsilon is per period of {in_words(period)}." if period else ""
        return (
            f"Simulated: {self.setting.name}.{per} Closed is what the last tenth of the "
            f"{'users' if self.setting.who == 'users' else 'participations'} got, from "
            f"the {self.setting.baseline} (0%) to {top}; means "
            f"over {self.setting.varied}, each bound with 95% confidence at its number of users."
        )

    @property
    def verdict(self) -> str:
        """What it means for the population that was asked about; empty if none was."""
        return " ".join(_verdict(self)) if self.users is not None else ""

    @property
    def warning(self) -> str:
        """The verdict if no epsilon that was tried was shown to be enough; else empty."""
        served = any(a.enough is not None and a.enough <= (self.users or 0) for a in self.answers)
        return "" if self.users is None or served else self.verdict

    def to_json(self) -> dict[str, Any]:
        """The object ``tacit plan --json`` prints."""
        return {
            "tacit": __version__,
            "simulated": self.setting.name,
            "agent": self.agent,
            "share": self.share,
            "users": self.users,
            "answers": [answer.to_json() for answer in self.answers],
            "smallest_epsilon": self.smallest_epsilon,
            "verdict": self.verdict,
            "method": self.method,
            "ways": None if self.ways is None else self.ways.to_json(),
            "interrupted": self.interrupted,
            "seed": self.seed,
            "runs": len(self.setting.problems),
            "timing": {"seconds": self.seconds},
        }

    def plot(self, path: str | Path) -> Path:
        """Draw users against epsilon into a file."""
        from tacit.sample_size.plot import plot_plan

        return plot_plan(self, path)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The answers as a table, what goes with them, the verdict and the method."""
        who = self.setting.who
        yield f"{self.agent}: {who} until {self.share:.0%} of the gap is closed"
        rows = [("epsilon", who, "closed", "with"), *(_row(a, who) for a in self.answers)]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        for row in rows:
            yield "  " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)).rstrip()
        for answer in self.answers:
            if answer.note():
                yield f"epsilon {_level(answer)}: {answer.note()}."
        if self.verdict:
            yield self.verdict
        if self.ways is not None:
            yield from self.ways.lines()
        yield self.method


def _level(answer: Answer) -> str:
    return "none" if answer.epsilon is None else f"{answer.epsilon:g}"


def _row(answer: Answer, who: str) -> tuple[str, str, str, str]:
    """Epsilon, users, and the share at the number of users that decides."""
    at = answer.enough or answer.last
    shown = next((size.words() for size in answer.measured if size.users == at), "")
    return _level(answer), answer.words(), shown, f"{at:,} {who}" if at else ""


def _verdict(plan: Plan) -> Iterator[str]:
    """Which epsilons are enough for the population, which are not, and which nobody knows of."""
    users = plan.users or 0
    found: dict[str, list[Answer]] = {}
    for answer in plan.answers:
        found.setdefault(_status(answer, users), []).append(answer)
    yield f"To close {plan.share:.0%} of the gap with {users:,} {plan.setting.who}:"
    said = []
    for status, answers in found.items():
        if answers[0].epsilon is None:
            said.append(f"{plan.agent} is {status}")
        else:
            levels = ", ".join(_level(answer) for answer in answers)
            verb = "are" if len(answers) > 1 else "is"
            said.append(f"epsilon {levels} {verb} {status}")
    yield f"{'; '.join(said)}."


def _status(answer: Answer, users: int) -> str:
    if answer.enough is not None and answer.enough <= users:
        return "enough"
    if answer.never or answer.not_below >= users:
        return "not enough"
    return "not decided" if answer.last >= users else "not simulated so far"
