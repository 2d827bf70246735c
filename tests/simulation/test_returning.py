"""Simulated people who come back: who comes when, what is learned from them, and what is kept."""

import threading
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.simulation import resume
from tacit.simulation.api import bind_to, new_run
from tacit.simulation.attendance import LAWS, attend
from tacit.simulation.checkpoints import checkpoints
from tacit.task.participation import Participation

LOCAL = tacit.agent("tacit-local", epsilon=4.0)
JOINT = tacit.agent("tacit-joint", epsilon=4.0)
SMALL = tacit.problem("random-mdp", seed=1)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "rule", [Participation(4), Participation(2, period="3d", apart="5h"), Participation(None)]
)
def test_every_law_keeps_to_the_rule(law: str, rule: Participation) -> None:
    people = 50
    came = attend(rule, 150, people, law, np.random.default_rng(3))
    assert len(came.who) == 150 and (np.diff(came.when) >= 0).all()
    assert set(came.who.tolist()) <= set(range(people))
    for person in range(people):
        mine = came.who == person
        times, periods = came.when[mine], came.period[mine]
        assert (np.diff(times) * 86400 >= rule.apart * (1 - 1e-9)).all()
        _, counts = np.unique(periods, return_counts=True)
        assert counts.sum() == 0 or rule.times is None or counts.max() <= rule.times
        assert came.first[mine].sum() == len(counts)


@pytest.mark.parametrize(("agent", "times"), [(LOCAL, 5), (JOINT, 5), ("psrl", 5)])
def test_a_result_says_who_came_and_is_kept(agent, times: int, tmp_path: Path) -> None:
    result = tacit.simulate(SMALL, agent, 500, 2, participations=times)
    assert result.returning is not None and result.returning.people == 100
    assert result.requested_episodes == result.completed == 500
    frame = result.frame()
    assert frame["day"].is_monotonic_increasing or len(result.seeds) > 1
    assert frame["day"].iloc[-1] == pytest.approx(times, abs=1.0)
    assert np.allclose(result.regret_per_person(), result.regret[:, -1] / 100)
    loaded = tacit.Result.load(result.save(tmp_path / "kept"))
    assert loaded.returning == result.returning and loaded.to_json() == result.to_json()
    assert np.array_equal(loaded.frame(), frame)
    assert "regret per person" in result._repr_html_()


def test_curves_are_drawn_over_calendar_time(tmp_path: Path) -> None:
    result = tacit.simulate(SMALL, LOCAL, 200, participations=4, attendance="bursts")
    assert result.plot(tmp_path / "days.svg", by="day").stat().st_size > 1000
    with pytest.raises(InvalidInput, match="by = 'week'"):
        result.plot(tmp_path / "x.svg", by="week")
    once = tacit.simulate(SMALL, LOCAL, 200)
    assert "day" not in once.frame() and once.returning is None
    with pytest.raises(InvalidInput, match="only where people come back is a day known"):
        once.plot(tmp_path / "x.svg", by="day")


def test_free_riders_teach_nothing_and_have_the_policies_of_those_who_do() -> None:
    """All 200 people come in the first round; after it nothing is learned any more."""
    back = tacit.simulate(SMALL, LOCAL, 2_000, 2, participations=10)
    once = tacit.simulate(SMALL, LOCAL, 200, 2)
    at = np.searchsorted(back.episodes, 200)
    assert np.array_equal(back.regret[:, at], once.regret[:, -1])
    assert [p.publication.policy for p in back.policies] == [
        p.publication.policy for p in once.policies
    ]
    lost = SMALL.optimal_value() - SMALL.value(back.policies[0].publication.policy)
    rest = back.regret_per_episode(int(back.episodes[at]), 2_000)[0]
    assert rest == pytest.approx(lost)


@pytest.mark.parametrize("agent", [LOCAL, JOINT])
def test_a_run_goes_on_as_if_it_had_never_stopped(agent, tmp_path: Path) -> None:
    rule, grid = Participation(None, period="3d"), checkpoints(400, 1)
    came = attend(rule, 400, 40, "anytime", np.random.default_rng(5))
    bound = bind_to(SMALL, agent, came, 400, (), rule)
    whole, run = (new_run(SMALL, bound, 7, 0, grid, threading.Event(), came=came) for _ in "ab")
    kept, done = resume.Progress(tmp_path, {}), 0
    for upto in (0, 1, 130, 131, 250):
        run.advance(upto - done)
        done = upto
        kept.save(0, resume.state(run))
        run = new_run(SMALL, bound, 7, 0, grid, threading.Event(), came=came)
        resume.restore(run, kept.load(0))
    for each, left in ((whole, 400), (run, 400 - done)):
        each.advance(left)
        each.conclude()
    assert np.array_equal(run.score.regret, whole.score.regret)
    assert np.array_equal(run.score.reward, whole.score.reward)
    assert run.final[0].policy == whole.final[0].policy


def test_another_population_is_refused_where_one_has_begun(tmp_path: Path) -> None:
    how = {"participations": 4, "resume": tmp_path}
    tacit.simulate(SMALL, LOCAL, 200, **how)
    for other in ({"attendance": "bursts"}, {"people": 100}, {"participations": 5, "people": 50}):
        with pytest.raises(InvalidInput, match="holds the progress of a run with"):
            tacit.simulate(SMALL, LOCAL, 200, **how | other)


def test_people_without_a_rule_are_refused() -> None:
    for given in ({"people": 3}, {"attendance": "rounds"}):
        with pytest.raises(InvalidInput, match="are about people who come back"):
            tacit.simulate(SMALL, LOCAL, 10, **given)
