"""Audits of whole lives: two lives at the same moments, a memory in each world, periods."""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest

import tacit
from corpus.agents import LessNoiseAgent
from tacit import Participation
from tacit.agents import Agent
from tacit.auditing import agent as audits
from tacit.auditing.agent import AgentAudit
from tacit.auditing.lifetimes import (
    LifeTarget,
    LifetimePair,
    RecordedLifetime,
    batches_of,
    distance,
    items,
    worst_lives,
)
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.base import Streams
from tacit.privacy import SimulatedNoise

PROBLEM = tacit.problem("random-mdp", seed=1)
LIVES = Participation(3, "lifetime")
MONTHS = Participation(None, "lifetime", period="30d")


def joint(epsilon: float = 8.0) -> Agent:
    """With one plan per release, so that a trial is quick."""
    return tacit.agent("tacit-joint", epsilon=epsilon, delta=1e-5, least=4)


def case(rule: Participation = LIVES, periods: int = 1) -> tuple[BoundAgent, LifetimePair]:
    return _case(rule, periods)


@functools.cache
def _case(rule: Participation, periods: int) -> tuple[BoundAgent, LifetimePair]:
    bound = audits._with_steps(PROBLEM, joint(), rule, periods)
    rng = np.random.default_rng(0)
    return bound, worst_lives(bound, audits._first_publication(bound, rng), rng, periods)


def audit(agent: Agent, rule: Any = LIVES, **more: Any) -> AgentAudit:
    options = {"trials": 1000, "secure": False, "seconds": 1e6, **more}
    return tacit.audit(PROBLEM, agent, participations=rule, **options)


# ---- what the auditor can see ----


def test_most_of_the_claim_is_seen_and_it_is_not_refuted() -> None:
    """At 95% confidence, so a false alarm has a probability of at most 0.05; the seed is fixed."""
    (report,) = audit(joint()).reports
    assert report.verdict == "consistent" and report.confidence == pytest.approx(0.95)
    assert 0.8 * 8.0 <= report.lower_bound <= report.claimed_epsilon == pytest.approx(8.0)
    assert "3 of them one person's, at different steps" in report.target


def test_most_of_the_claim_is_seen_where_norms_are_bounded() -> None:
    """Of tacit-linear too, through a counter of prefixes; its last batch is not released."""
    (report,) = audit(tacit.agent("tacit-linear", epsilon=8.0, delta=1e-5)).reports
    assert report.verdict == "consistent" and (report.distance or 0.0) > 0.999
    assert 0.8 * 8.0 <= report.lower_bound <= report.claimed_epsilon == pytest.approx(8.0)


def test_lives_whose_batches_a_planner_chooses_are_refused() -> None:
    control = tacit.agent("tacit-control", epsilon=1.0)
    with pytest.raises(InvalidInput, match="audit one participation"):
        tacit.audit("lq-scalar", control, participations=LIVES)


def test_less_noise_is_refuted() -> None:
    """The same audit, with half the noise, and with four fifths (false alarms: below 0.001)."""
    for factor in (0.5, 0.8):
        found = audit(LessNoiseAgent(joint(), factor), confidence=0.999)
        assert found.verdict == "violated"


@pytest.mark.slow
def test_two_periods_are_audited_against_their_sum() -> None:
    one, both = audit(joint(), MONTHS, trials=1000).reports
    assert one.verdict != "violated" and both.verdict != "violated"
    assert both.claimed_epsilon > 1.4 * one.claimed_epsilon
    assert both.lower_bound > one.claimed_epsilon  # one period does not pay for two
    assert "in each of 2 periods" in both.target and "4 of them" in one.target


# ---- the two lives ----


def test_two_lives_come_at_the_same_moments_and_teach_at_different_ones() -> None:
    bound, found = case()
    assert found.distance > 0.95 and found.at == tuple(batches_of(bound)[:3])
    taught = [np.abs(items(bound, found, life)).sum(axis=1) > 0 for life in found.lives]
    assert not np.array_equal(*taught)
    assert all(flags.sum() > 1 for flags in taught)  # in several steps
    assert any(len(trip.rewards) == 0 for life in found.lives for trip in life)
    assert {len(life) for life in (*found.lives, *found.otherwise)} == {3}


def test_the_distance_is_that_of_the_proof() -> None:
    """Rows of the counter's matrix, by hand."""
    bound, found = case()
    first, second = (items(bound, found, life) for life in found.lives)
    counter = bound.privatizer.strategy  # type: ignore[attr-defined]
    moved = counter.factors()[1] @ ((second - first) * bound.statistic.layout.units)
    shift = np.linalg.norm(moved) / bound.privatizer.noise_std  # type: ignore[attr-defined]
    assert found.distance == pytest.approx(shift / bound.guarantee.mu, rel=1e-6)


def test_both_go_on_by_what_was_released_and_are_as_far_apart() -> None:
    bound, found = case()
    other = dataclasses.replace(found, lives=found.otherwise)
    assert found.otherwise[0][0] is found.lives[0][0]
    told = [items(bound, found, life) for life in (*found.lives, *found.otherwise)]
    assert not np.array_equal(told[0], told[2]) and not np.array_equal(told[1], told[3])
    assert distance(bound, other) == pytest.approx(found.distance, abs=1e-9)


# ---- a run that is watched ----


def watched(
    world: int, seed: int, rule: Participation = LIVES, periods: int = 1
) -> RecordedLifetime:
    bound, found = case(rule, periods)
    rng = np.random.default_rng(seed)
    target = LifeTarget(PROBLEM, bound, found, "simulated")
    run = target._watched(SimulatedNoise(rng), [world])
    assert isinstance(run, RecordedLifetime)
    while run.served < bound.task.users:
        for _ in range(run.due()):
            run.take_part(PROBLEM, rng)
        run.publish(Streams(ties=rng, posterior=rng))
    return run


@pytest.mark.parametrize("world", [0, 1])
def test_each_world_has_a_memory_of_its_own(world: int) -> None:
    """What is recorded of both lives is what each of them teaches when it is lived alone."""
    bound, found = case()
    for seed in range(6):
        run = watched(world, seed)
        chosen = run._plan
        assert chosen is not None and (chosen is found.lives or chosen is found.otherwise)
        first, second = (np.array(part) for part in run._worlds_of(0))
        steps = len(batches_of(bound))
        alone = [items(bound, found, life) for life in chosen]
        assert np.array_equal((second - first)[:steps], alone[1] - alone[0])
        assert run.memory is not None
        assert run.memory.taught[0].sum() == (np.abs(alone[world]).sum() > 0) * 5  # pairs, start


def test_some_runs_react_and_some_do_not() -> None:
    _, found = case()
    plans = {watched(0, seed)._plan is found.lives for seed in range(12)}
    assert plans == {True, False}


def test_a_renewal_blanks_both_memories_and_cuts_the_record() -> None:
    bound, found = case(MONTHS, 2)
    run = watched(0, 1, MONTHS, 2)
    assert len(found.renewals) == 1 and len(found.at) == 2 * found.visits
    assert run._begins == [0, batches_of(bound).index(found.renewals[0])]
    assert math.isfinite(run.log_ratios()[0])


def test_log_ratios_are_gaussian_of_the_stated_distance() -> None:
    """Mean plus or minus half the variance: within 5 standard errors of 150 runs."""
    bound, found = case()
    mu = found.distance * (bound.guarantee.mu or 0.0)
    for world, sign in ((0, -1.0), (1, 1.0)):
        ratios = np.array([watched(world, seed).log_ratios()[0] for seed in range(150)])
        assert abs(ratios.mean() - sign * mu**2 / 2) < 5 * mu / math.sqrt(150)
        assert 0.7 * mu < ratios.std() < 1.35 * mu


# ---- what is said ----


def test_a_device_that_reports_once_is_audited_for_one_report() -> None:
    for rule, said in (
        (Participation(3), "the one report of a person as sent"),
        (Participation(None, "first", period="30d"), "the one report of a person in a period as"),
    ):
        found = audit(tacit.agent("tacit-local", epsilon=4.0), rule)
        assert found.verdict != "violated" and found.exact_epsilon == pytest.approx(4.0)
        assert all(said in report.target for report in found.reports[:-1])


def test_lives_through_a_service_are_refused() -> None:
    with pytest.raises(InvalidInput, match="its people take part once"):
        audit(joint(), service=True)
