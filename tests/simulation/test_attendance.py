"""Populations that come back: every law keeps to the rule; attendance may be private."""

import dataclasses

import numpy as np
import pytest

import tacit
from contracts.replay import ReplayNoise
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.learner import Learner
from tacit.policies.linear import LinearPolicy
from tacit.policies.tabular import uniform_policy
from tacit.privacy import Query, SimulatedNoise
from tacit.privacy.counters.fading import Fading
from tacit.privacy.joint.counted import CountedSums
from tacit.publication import Publication
from tacit.simulation.attendance import LAWS, AttendanceTrace, attend
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.dispatch import compiled_run
from tacit.statistics.base import Relation
from tacit.statistics.first_visits import FirstVisits
from tacit.streams import planner_streams
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.trajectory import Trajectory, together
from tacit.util.durations import DAY

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
    found = tacit.Experiment(
        problem=PROBLEM,
        agent=AGENT,
        episodes=4000,
        participation=rule,
        attendance=tacit.Attendance(people=500, law="bursts"),
    ).run()
    said = found.guarantee.statement()
    assert "close by a public clock" in said and "come at the same moments" not in said
    late = found.regret_per_episode(3600, 4000).mean()
    assert late < 0.5 * found.gap, "it learns all the same"


def test_batches_by_count_are_refused_where_attendance_is_private() -> None:
    rule = Participation(3, "lifetime", attendance="private")
    with pytest.raises(InvalidInput, match="closes them by the clock"):
        tacit.Experiment(
            problem=PROBLEM, agent=AGENT, episodes=300, compiled=False, participation=rule
        ).run()
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
        came = AttendanceTrace("rounds", 400, who, when, days, flags, clock=True, renews=3.0)
        grid = checkpoints(len(when))
        run = compiled_run(PROBLEM, bound, 0, 0, grid, came)
        assert run is not None
        run.advance(len(when))
        learner = run.learner
        assert learner is not None and learner.release is not None
        assert learner.publication is not None
        numbers = learner.served, learner.release.users, learner.publication.version
        seen.append((*numbers, renewed))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0] == 1000 and len(seen[0][3]) == 3


def test_a_batch_by_the_clock_may_hold_everybody() -> None:
    """A crowd fills the total of a pair but not its gains. If what is beyond a planned batch were
    cut off, totals could not pay for gains, and two lives would be 4% farther apart than paid."""
    rule, S, steps = Participation("any", "lifetime", attendance="private"), 12, 60
    known = {"initial": np.eye(S)[0]}
    task = Task("tabular", 1, {"states": S, "actions": 1}, True, 480, known=known, rule=rule)
    visits = FirstVisits(task, 1, 1)
    counter = Fading(steps, 0.95, 1.0, visits.groups, visits.totals)
    asked = {"requested": (1.0, 1e-5)}
    mechanism = CountedSums(visits, task, counter, batch=8, **asked)
    entry = Publication(0, uniform_policy(1, S, 1), {"wanted": np.full(S, 2)})

    def trip(after: int, reward: float) -> Trajectory:
        return Trajectory(np.array([0, after]), np.zeros(1, dtype=np.int64), np.array([reward]))

    def rows(at: int, own: Trajectory) -> np.ndarray:
        size, found = visits.layout.size, []
        quiet = ReplayNoise([np.zeros(size, dtype=np.int64)] * steps)
        secret, memory = mechanism.init(), visits.memory(41)
        for t in range(steps):
            crowd = [trip(1 + k % (S - 2), float(k % 2)) for k in range(40)] if t == 1 else []
            lived = [*enumerate(crowd, 1), *([(0, own)] if t == at else [])]
            total = np.zeros(size, dtype=np.int64)
            for person, one in lived:
                who = np.array([person])
                visits.add_people(together([one]), entry, who, memory.of(who), total)
            mechanism.absorb_sums(secret, total, 8, entry, quiet)
            mechanism.release(secret, Query(t + 1), quiet)
            found.append(secret.counter.public["row"] * visits.layout.units)
        return np.array(found)

    moved = np.linalg.norm(rows(0, trip(S - 1, 1.0)) - rows(1, trip(0, 0.0)))
    paid = counter.column_norm() * visits.sensitivity("l2", Relation.REPLACE_ONE)
    assert 0.95 * paid < moved <= paid + mechanism.rounding


def test_who_acts_by_their_place_in_the_order_is_not_hidden() -> None:
    """Pushes of tacit-control follow from the number of those before: if it is one less, the sums
    of 2,000 people move by more than the life of one person may move them."""
    rule = Participation("any", "lifetime", attendance="private")
    problem = tacit.problem("lq-double-integrator")
    control = tacit.agent("tacit-control", epsilon=1.0)
    with pytest.raises(InvalidInput, match="place in the order of all who come"):
        tacit.guarantee(problem, control, 1000, participation=rule)
    public = dataclasses.replace(rule, attendance="public")
    statistic = bind(problem, control, 2000, (), public).statistic
    learner = Learner(bind(problem, control, 2000, (), public), SimulatedNoise(_rng(0)))
    entry = learner.publish(planner_streams(0, 0))
    entry = dataclasses.replace(entry, policy=LinearPolicy(entry.policy.gains, amplitude=0.2))
    sums = np.zeros((2, statistic.layout.size), dtype=np.int64)
    for fewer, out in enumerate(sums):
        for k in range(2000):
            life = problem.rollout(entry.for_user(k - fewer).policy, _rng([1, k]))
            statistic.add_many(together([life]), entry, np.array([k - fewer]), out)
    moved = np.linalg.norm((sums[1] - sums[0]) * statistic.layout.units)
    assert moved > 1.2 * statistic.sensitivity("l2", Relation.REPLACE_ONE)


def _rng(seed: object) -> np.random.Generator:
    return np.random.default_rng(seed)
