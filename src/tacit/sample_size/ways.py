"""Which way of counting people who come back costs how much, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.sample_size.answer import about
from tacit.sample_size.measure import Measured
from tacit.sample_size.settings import Setting
from tacit.task.participation import Teaches
from tacit.util.durations import in_words

Simulate = Callable[[Setting, Agent, int], Measured | None]
"""Runs an agent with so many people; None if it was stopped."""

_SAID = {
    "first": "the first one is counted, at the whole budget",
    "lifetime": "all are counted, and bounded together as if they were one",
    "every": "each is counted in full, at its share of the budget",
}


@dataclass(frozen=True, eq=False)
class Way:
    """One way of counting the participations of a person.

    Attributes:
        teaches: which of them teach.
        measured: what simulated people got, each coming as often as they may; None if the time was
            over before.
        information: where devices add the noise, what all reports of one person say about an
            average, over what the one report of "first" says, by the variances of the noise; None
            elsewhere: what a curator's noise hides depends on how many people there are.
        more: times as many people as "first" takes, by the agent's own rule of users needed, or
            where it has none one over the information; None where that is.
    """

    teaches: Teaches
    measured: Measured | None
    information: float | None = None
    more: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        measured = None if self.measured is None else self.measured.to_json()
        return {**vars(self), "measured": measured}


@dataclass(frozen=True, eq=False)
class Ways:
    """All ways that an agent knows, with the same people at the same epsilon.

    Attributes:
        times: how often each person took part.
        people: how many there were.
        epsilon: per person, in a period where there is one; None for agents without.
        enough: whether so many people were shown to be enough for the first of the ways.
        ways: the one that the rest of the plan is about, then the others.
        period: seconds after which budgets are renewed; 0 for never.
    """

    times: int
    people: int
    epsilon: float | None
    enough: bool
    ways: tuple[Way, ...]
    period: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        own = {"times": self.times, "people": self.people, "epsilon": self.epsilon}
        return own | {"ways": [way.to_json() for way in self.ways], "words": self.words()}

    def lines(self) -> Iterator[str]:
        """A table and a sentence."""
        level = "" if self.epsilon is None else f", epsilon {self.epsilon:g} per person"
        if level and self.period:
            level += f" and period of {in_words(self.period)}"
        yield f"Ways to count {self.people:,} people who come {self.times:,} times each{level}:"
        rows = [("counted", "closed", "information"), *map(_row, self.ways)]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        for row in rows:
            yield "  " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)).rstrip()
        yield self.words()

    def words(self) -> str:
        """What follows, in a sentence."""
        chosen, *others = self.ways
        said = f"{chosen.teaches}: {_SAID[chosen.teaches]}."
        for way in others:
            said += f" {way.teaches}: {_SAID[way.teaches]}"
            if way.more is not None and chosen.more is not None:
                said += f", and that {self._takes(way.more / chosen.more)}"
            said += "."
        return said

    def _takes(self, more: float) -> str:
        """How many people another way needs, by the rule that noise decides."""
        if 0.99 < more < 1.01:
            return "carries as much information"
        count = f" ({about(int(more * self.people))})" if self.enough and more > 1.0 else ""
        return f"takes about {more:,.2g} times as many people{count}, as a rule"


def _row(way: Way) -> tuple[str, str, str]:
    closed = "not simulated in time" if way.measured is None else way.measured.words()
    return way.teaches, closed, "" if way.information is None else f"{way.information:.3g}"


def compare(
    setting: Setting, agent: Agent, known: Measured, enough: bool, simulate: Simulate
) -> Ways | None:
    """Every way of counting that the agent knows, beside the one that a setting has.

    Args:
        setting: with a rule by which everybody comes back.
        agent: who learns, at the epsilon that is compared at.
        known: what was measured of the setting's own way; the others meet as many people.
        enough: whether those were enough.
        simulate: measures another way.
    """
    times = setting.rule.times
    if times is None or times == 1:
        return None
    own = setting.decided(agent).teaches or "every"
    bound = {}
    for teaches in get_args(Teaches):
        tried = replace(setting, rule=replace(setting.rule, teaches=teaches))
        try:
            bound[teaches] = tried, tried.bind(0, agent, known.users)
        except InvalidInput:  # it cannot count like this
            continue
    if own not in bound:
        return None
    ways = []
    for teaches in sorted(bound, key=lambda name: name != own):
        tried, fitted = bound[teaches]
        measured = known if teaches == own else simulate(tried, agent, known.users)
        against = _against(fitted, bound["first"][1], agent) if _local(fitted) else {}
        ways.append(Way(teaches, measured, **against))
    epsilon = agent.parameters().get("epsilon")
    return Ways(times, known.users, epsilon, enough, tuple(ways), setting.rule.period)


def _local(bound: BoundAgent) -> bool:
    return bound.guarantee.model == "local"


def _against(bound: BoundAgent, first: BoundAgent, agent: Agent) -> dict[str, float]:
    """What the reports of one person say beside the one report of "first", in the best block."""
    reports = bound.task.participations
    many, one = (fitted.privatizer.law(1) for fitted in (bound, first))
    noise = {
        block.name: float(one.variance(block.name).max())
        for block in first.privatizer.layout.blocks
    }
    information = max(
        reports * variance / float(many.variance(block).max())
        for block, variance in noise.items()
        if variance > 0.0
    )
    tabular = first.task.family == "tabular"
    needed = [agent.users_needed(b.task) if tabular else None for b in (bound, first)]
    more = 1.0 / information
    if needed[0] and needed[1]:
        more = needed[0] / reports / needed[1]
    return {"information": information, "more": more}
