"""Populations that come back: every law keeps to the rule; attendance may be private."""

import threading

import numpy as np
import pytest

import tacit
from tacit.driver import Learner
from tacit.errors import InvalidInput
from tacit.forecast import bind
from tacit.participation import Participation
from tacit.simulation.api import new_run
from tacit.simulation.attendance import LAWS, Attendance, attend
from tacit.simulation.checkpoints import checkpoints
from tacit.timing import DAY

PROBLEM = tacit.problem("river-swim", states=3, horizon=6)
AGENT = tacit.agent("tacit-joint", epsilon=4.0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "rule",
    [
        Participation(5),
        Participation("any"),
        Participation(2, period="4d"),
        Participation("any", apart="36h", period="4d"),
    ],
    ids=str,
)
def test_every_law_keeps_to_the_rule(law: str, rule: Participation) -> None:
    came = attend(rule, 600, 150, law, np.random.default_rng(3))
    assert len(came.who) == 600 and (np.diff(came.when) >= 0.0).all()
    for person in range(150):
        mine = np.flatnonzero(came.who == person)
        assert (np.diff(came.when[mine]) * DAY >= rule.apart * (1 - 1e-6)).all()
        for period in np.unique(came.period[mine]):
            within = mine[came.period[mine] == period]
            assert rule.times is None or len(within) <= rule.times
            assert came.first[within].tolist() == [1] + [0] * (len(within) - 1)
    if rule.period:
        assert (came.period == came.when * DAY // rule.period).all()


def test_too_few_people_are_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="do not come 100 times"):
        attend(Participation(3), 100, 30, "rounds", np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="people must be given"):
        attend(Participation("any"), 100, None, "rounds", np.random.default_rng(0))


def test_the_clock_closes_batches_where_attendance_is_private() -> None:
    """What is released and planned depends on who comes only through what they teach."""
    rule = Participation("any", "lifetime", attendance="private")
    found = tacit.simulate(
        PROBLEM, AGENT, 4000, participations=rule, people=500, attendance="bursts"
    )
    said = found.guarantee.statement()
    assert "close by a public clock" in said and "come at the same moments" not in said
    late = found.regret_per_episode(3600, 4000).mean()
    assert late < 0.5 * found.gap, "it learns all the same"


def test_batches_by_count_are_refused_where_attendance_is_private() -> None:
    rule = Participation(3, "lifetime", attendance="private")
    with pytest.raises(InvalidInput, match="closes them by the clock"):
        tacit.simulate(PROBLEM, AGENT, 300, participations=rule, compiled=False)
    with pytest.raises(InvalidInput, match="closes them by the clock"):
        tacit.audit(PROBLEM, AGENT, participations=rule)


def test_numbers_and_periods_are_planned_ones_where_attendance_is_private(monkeypatch) -> None:
    """Whether more people come at a moment, or nobody for a while, no number shows it."""
    rule = Participation("any", "lifetime", period="3d", attendance="private")
    bound, seen = bind(PROBLEM, AGENT, 1000, (), rule), []
    even = np.linspace(0.0, 10.0, 1000)
    more = np.sort(np.concatenate([even, np.full(7, 3.0)]))
    fewer = even[(even < 2.0) | (even > 4.9)]
    for when in (even, more, fewer):
        renewed: list[int] = []
        monkeypatch.setattr(Learner, "renew", lambda self, at=renewed: at.append(self.served))
        who, flags = np.arange(len(when)) % 400, np.zeros(len(when), dtype=np.int64)
        days = (when // 3.0).astype(np.int64)
        came = Attendance("rounds", 400, who, when, days, flags, clock=True, renews=3.0)
        grid = checkpoints(len(when))
        run = new_run(PROBLEM, bound, 0, 0, grid, threading.Event(), True, came)
        run.advance(len(when))
        learner = run.learner
        assert learner is not None and learner.release is not None
        assert learner.publication is not None
        numbers = learner.served, learner.release.users, learner.publication.version
        seen.append((*numbers, renewed))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0] == 1000 and len(seen[0][3]) == 3
