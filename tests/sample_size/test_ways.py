"""Ways to count people who come back: which the agent knows, what they close, and the rule."""

import dataclasses
import math
import threading

import numpy as np
import pytest

import tacit
from patience import PATIENCE
from tacit.errors import InvalidInput
from tacit.sample_size.measure import Measured, measure
from tacit.sample_size.settings import on_problem
from tacit.sample_size.ways import Way, compare
from tacit.task.participation import Participation

SMALL = tacit.problem("random-mdp", seed=1)
KNOWN = Measured(1_000, (0.5, 0.6), 1.0)


def ways_of(agent: tacit.Agent, problem=SMALL, times: int = 30) -> dict[str, Way]:
    setting = on_problem(problem, 2, None, (), Participation(times))
    found = compare(setting, agent, KNOWN, True, lambda *_: KNOWN)
    assert found is not None and found.times == times
    return {way.teaches: way for way in found.ways}


def test_pure_epsilon_is_not_split() -> None:
    """The rule of one number: m (e^(eps/m) - 1)^2 / e^(eps/m) over (e^eps - 1)^2 / e^eps."""
    found = ways_of(tacit.agent("tacit-local", epsilon=1.0))
    assert list(found) == ["first", "every"] and found["first"].information == 1.0

    def says(epsilon: float) -> float:
        return math.expm1(epsilon) ** 2 / math.exp(epsilon)

    assert found["every"].information == pytest.approx(30 * says(1 / 30) / says(1.0), rel=0.1)
    assert 20 < found["every"].more < 40
    laplace = ways_of(tacit.agent("ldp-obi", epsilon=1.0))
    assert laplace["every"].information == pytest.approx(1 / 30)
    assert laplace["every"].more == pytest.approx(30)


def test_local_gaussian_noise_may_be_split() -> None:
    agent = tacit.agent("ldp-obi", epsilon=1.0, delta=1e-5, randomizer="gaussian")
    assert ways_of(agent)["every"].information == pytest.approx(1.0)


def test_a_curator_knows_three_ways_and_others_two() -> None:
    joint = ways_of(tacit.agent("tacit-joint", epsilon=1.0))
    assert list(joint) == ["lifetime", "first", "every"]
    assert all(way.information is None and way.more is None for way in joint.values())
    published = ways_of(
        tacit.agent("ldp-ucrl-vtr", epsilon=1.0), tacit.problem("river-swim", kernel="vtr")
    )
    assert set(published) == {"first", "every"}


def test_the_rule_on_a_simulation() -> None:
    """Split among six, as many more people as the rule says close what one report closes."""
    agent = tacit.agent("tacit-local", epsilon=1.0)
    problem = tacit.problem("river-swim", states=3, horizon=6)
    first = on_problem(problem, 24, None, (), Participation(6, "first"))
    every = dataclasses.replace(first, rule=Participation(6, "every"))
    more = ways_of(agent, problem, times=6)["every"].more
    assert more == pytest.approx(6.7, abs=0.1)

    def closed(setting, people: int) -> float:
        found = measure(setting, agent, people, 0, 2, threading.Event(), None)
        assert found is not None and found.users == people
        return found.interval.value

    whole, split = closed(first, 3_000), closed(every, 3_000)
    assert whole > 0.7 and split < 0.3
    assert closed(every, round(more * 3_000)) == pytest.approx(whole, abs=0.2)


def test_a_plan_counts_people_and_compares() -> None:
    agent = tacit.agent("tacit-local", epsilon=4.0)
    how = {"epsilons": [4.0], "runs": 2, "most": 300, "seconds": PATIENCE}
    found = tacit.plan(SMALL, agent, participations=5, users=300, **how)
    said = str(found)
    assert "tacit-local: people until 50% of the gap is closed" in said
    assert "everybody comes 5 times" in said and "with 300 people" in said
    assert found.ways is not None and found.ways.people <= 300
    assert "Ways to count" in said and "every: each is counted in full" in said
    report = found.to_json()["ways"]
    assert [way["teaches"] for way in report["ways"]] == ["first", "every"]
    assert report["ways"][1]["information"] < 1.0 and "people" in report["words"]
    once = tacit.plan(SMALL, agent, **how)
    assert once.ways is None and once.to_json()["ways"] is None
    with pytest.raises(InvalidInput, match="any number of times will not do"):
        tacit.plan(SMALL, agent, participations="any", **how)


def test_a_task_with_a_rule_is_planned_by_it() -> None:
    task = dataclasses.replace(SMALL.task(users=1), rule=Participation(5, "lifetime"))
    agent = tacit.agent("tacit-joint", epsilon=8.0)
    found = tacit.plan(SMALL, agent, task=task, epsilons=[8.0], runs=2, most=100, seconds=PATIENCE)
    assert found.setting.who == "people" and found.ways is not None
    assert found.ways.ways[0].teaches == "lifetime" and found.answers[0].last == 100
    assert np.isfinite(found.ways.ways[-1].measured.closed).all()
    assert "epsilon 8 per person:" in next(found.ways.lines())
    monthly = dataclasses.replace(found.ways, period=30 * 86400.0)
    assert "epsilon 8 per person and period of 30 days:" in next(monthly.lines())
    rule = dataclasses.replace(found.setting.rule, period=30 * 86400.0)
    renewed = dataclasses.replace(found, setting=dataclasses.replace(found.setting, rule=rule))
    assert " Epsilon is per period of 30 days. Closed" in renewed.method
    assert "Epsilon is" not in found.method
