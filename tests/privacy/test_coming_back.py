"""Runs in which people come back: renewed counters, memories that are kept, and who is scored."""

import threading
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import Participation
from tacit.agents.base import Agent
from tacit.arrays import IntArray
from tacit.auditing.neighbours import aimed_at
from tacit.errors import InvalidInput
from tacit.forecast import bind
from tacit.learner import Learner
from tacit.privacy.noise import GridLaw, SimulatedNoise
from tacit.simulation import resume
from tacit.simulation.api import bind_to, new_run
from tacit.simulation.attendance import LAWS, Attendance, attend
from tacit.simulation.runs.base import Run
from tacit.simulation.runs.uncounted import FreeRiderRun
from tacit.streams import planner_streams
from tacit.trajectory import Trajectory

TABLE = tacit.problem("river-swim", states=4, horizon=6)
USERS, ROOT = 150, 5
RULES = {
    "lifetime": Participation(12, "lifetime"),
    "any": Participation(None, "lifetime"),
    "period": Participation(4, "lifetime", period="3d"),
    "local": Participation(12, "first"),
    "local, period": Participation(4, "first", period="3d"),
}


def agent(rule: Participation) -> Agent:
    return tacit.agent("tacit-local" if rule.teaches == "first" else "tacit-joint", epsilon=20.0)


def came_back(rule: Participation, law: str = "anytime") -> Attendance:
    return attend(rule, USERS, 20, law, np.random.default_rng(3))


def made(rule: Participation, *, fast: bool = True, law: str = "anytime") -> Run:
    came = came_back(rule, law)
    bound = bind_to(TABLE, agent(rule), came, USERS, (), rule)
    grid = np.arange(1, USERS + 1)
    return new_run(TABLE, bound, ROOT, 1, grid, threading.Event(), fast, came)


def equal(one: Run, other: Run) -> bool:
    assert one.final is not None and other.final is not None
    return (
        np.array_equal(one.score.regret, other.score.regret)
        and np.array_equal(one.score.reward, other.score.reward)
        and one.final[0].policy == other.final[0].policy
        and one.final[1] == other.final[1]
    )


def finished(run: Run) -> Run:
    run.advance(USERS)
    run.conclude()
    return run


# ---- a renewal ----


class Quiet(SimulatedNoise):
    """Noise of size 0, so that rows show what is in them."""

    def fill(self, law: GridLaw, out: IntArray) -> None:
        out[:] = 0


def lived(pair: int, task: Any) -> Trajectory:
    """Everything in one pair."""
    s, a = int(task.pairs.state[pair]), int(task.pairs.action[pair])
    H = task.horizon
    return Trajectory(np.full(H + 1, s), np.full(H, a), np.ones(H))


@pytest.mark.parametrize("renewed", [True, False])
def test_rows_after_a_renewal_hold_nothing_of_before(renewed: bool) -> None:
    """Everybody teaches pair 0 in the first batches, and pair 1 afterwards."""
    rule = Participation(None, "lifetime", period="1d")
    bound = bind(TABLE, agent(rule), USERS, participations=rule)
    learner = Learner(bound, Quiet(np.random.default_rng(0)), people=3)
    everything = bound.task.pairs.action
    streams, rows, half = planner_streams(0, 0), [], bound.schedule.times[2]  # type: ignore[attr-defined]
    while learner.served < USERS:
        published = learner.publish(streams)
        if learner.served and not bound.plans_again(learner.served):
            rows.append(learner.secret.counter.public["row"].copy())  # type: ignore[attr-defined]
        if learner.served == half and renewed:
            learner.renew()
        learner.publication = aimed_at(published, {"wanted": np.full(len(everything), 2)})
        life = lived(0 if learner.served < half else 1, bound.task)
        while learner.left:
            learner.serve(lambda _, life=life: life, learner.served % 3)  # type: ignore[misc]
    totals = np.array(rows)[:, bound.statistic.totals] * 2 * bound.statistic.layout.units[0]  # type: ignore[attr-defined]
    assert len(rows) > 4 and totals[1, 0] > 2 and not totals[:2, 1].any() and totals[2, 1] > 1
    assert (totals[2:, 0] == 0).all() if renewed else (totals[2:, 0] > 1e-3).all()


def test_a_batch_is_in_one_period() -> None:
    """A renewal in the middle of one is refused."""
    bound = bind(TABLE, agent(RULES["period"]), USERS, participations=RULES["period"])
    learner = Learner(bound, SimulatedNoise(np.random.default_rng(0)))
    learner.publish(planner_streams(0, 0))
    learner.renew()
    learner.serve(lambda _: lived(0, bound.task))
    with pytest.raises(InvalidInput, match="a batch is in one period"):
        learner.renew()


def renewals(run: Run) -> list[int]:
    """After how many users budgets were renewed."""
    found: list[int] = []
    assert run.learner is not None
    learner, renew = run.learner, run.learner.renew
    learner.renew = lambda: (found.append(learner.served), renew())[1]  # type: ignore[method-assign, assignment, func-returns-value]
    finished(run)
    return found


@pytest.mark.parametrize("law", LAWS)
def test_budgets_are_renewed_once_for_every_period_in_which_a_batch_begins(law: str) -> None:
    """Also where nobody comes in the first periods: the first batch is in its own."""
    rule = RULES["period"]
    came = came_back(rule, law)
    for shift in (0, 7):
        run = made(rule, law=law)
        run.attendance = late = Attendance(
            law, came.people, came.who, came.when, came.period + shift, came.first
        )
        begins = [t for t in run.agent.schedule.times if t < USERS]  # type: ignore[attr-defined]
        seen = late.period[begins]
        assert renewals(run) == [
            t for t, new in zip(begins[1:], np.diff(seen) > 0, strict=True) if new
        ]
        assert run.period[0] == seen[-1] and len(np.unique(seen)) > 1


# ---- what is kept ----


@pytest.mark.parametrize("name", RULES)
def test_a_run_goes_on_as_if_it_had_never_stopped(name: str, tmp_path: Any) -> None:
    whole, run, done = finished(made(RULES[name])), made(RULES[name]), 0
    stops = (0, 1, 9, 18) if name == "local" else (0, 1, 23, 90, 91)  # then all were counted
    for upto in stops:
        run.advance(upto - done)
        kept = resume.Progress(tmp_path, {})
        kept.save(3, resume.state(run))
        done, run, arrays = upto, made(RULES[name]), kept.load(3)
        assert arrays is not None
        resume.restore(run, arrays)
    run.advance(USERS - done)
    run.conclude()
    assert equal(run, whole)


def test_what_is_kept_is_the_memory_to_the_last_bit() -> None:
    one, other = made(RULES["period"]), made(RULES["period"])
    one.advance(90)
    state = {name: np.array(array) for name, array in resume.state(one).items()}
    resume.restore(other, state)
    assert one.learner is not None and other.learner is not None
    assert one.learner.memory is not None and other.learner.memory is not None
    assert one.learner.memory.taught.any() and one.period[0] > 0
    assert np.array_equal(one.learner.memory.taught, other.learner.memory.taught)
    assert np.array_equal(one.learner.memory.spent, other.learner.memory.spent)
    assert one.period[0] == other.period[0]


def test_simulate_goes_on_in_a_folder(tmp_path: Any) -> None:
    stop = threading.Event()

    def run(**more: Any) -> tacit.Result:
        return tacit.simulate(
            TABLE, agent(RULES["period"]), 4000, participations=RULES["period"], people=300,
            attendance="anytime", seed=2, workers=1, **more,
        )  # fmt: skip

    whole = run()
    cut = run(resume=tmp_path, stop=stop, progress=lambda done, _: stop.set())
    again = run(resume=tmp_path)
    assert not again.interrupted and len(cut.episodes) <= len(whole.episodes)
    assert np.array_equal(again.regret, whole.regret) and again.policy == whole.policy


# ---- the same by every run ----


@pytest.mark.parametrize("law", ["rounds", "few-often"])
@pytest.mark.parametrize("name", ["lifetime", "any", "period"])
def test_compiled_runs_are_the_driver_to_the_last_bit(name: str, law: str) -> None:
    fast, slow = (finished(made(RULES[name], fast=fast, law=law)) for fast in (True, False))
    assert equal(fast, slow)
    for run in (fast, slow):
        assert run.learner is not None and run.learner.memory is not None
    one, other = fast.learner.memory, slow.learner.memory  # type: ignore[union-attr]
    assert np.array_equal(one.taught, other.taught)  # type: ignore[union-attr]
    if name != "period":  # else it is blank after the last renewal
        assert one.taught.max() == 1 and (one.spent <= fast.agent.statistic.cap).all()  # type: ignore[union-attr, attr-defined]


# ---- who rides for free ----


@pytest.mark.parametrize("name", ["local", "local, period"])
def test_free_riders_are_scored_by_the_policy_of_the_newest_who_is_counted(name: str) -> None:
    run = made(RULES[name])
    assert isinstance(run, FreeRiderRun)
    finished(run)
    came, inner, final = run.attendance, run.inner, run.final
    assert came is not None and final is not None
    regrets = np.diff(inner.score.regret, prepend=0.0)
    rewards = np.diff(inner.score.reward, prepend=0.0)
    last = TABLE.optimal_value() - TABLE.value(final[0].policy)
    counted, regret, reward = 0, 0.0, 0.0
    for i, first in enumerate(came.first):
        counted += first
        own = last if counted == len(regrets) and not first else regrets[counted - 1]
        regret += own
        reward += rewards[counted - 1] if first else TABLE.optimal_value() - own
        assert run.score.regret[i] == pytest.approx(regret, abs=1e-9)
        assert run.score.reward[i] == pytest.approx(reward, abs=1e-9)
    assert counted == run.agent.task.users == len(regrets) < USERS


def test_only_the_first_participations_are_learned_from() -> None:
    """The run of the counted ones is the run without free riders, to the last bit."""
    rule = RULES["local"]
    riders = finished(made(rule))
    bound = bind(TABLE, agent(rule), 20, participations=rule)
    alone = new_run(TABLE, bound, ROOT, 1, np.arange(1, 21), threading.Event())
    alone.advance(20)
    alone.conclude()
    assert riders.final is not None and alone.final is not None
    assert riders.final[0].policy == alone.final[0].policy
    assert np.array_equal(riders.inner.score.regret, alone.score.regret)  # type: ignore[attr-defined]
