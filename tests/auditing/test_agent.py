"""Audits of agents as they are shipped, of wrong ones, and what is said about them."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

import tacit
from auditing.small import (
    DELTA,
    ONE_STEP,
    PROBLEMS,
    bound_to,
    device,
    made,
    private_agents,
    smallest,
)
from corpus.agents import LessNoiseAgent, problem_for
from tacit.auditing import AuditReport, MethodBound, audit_target
from tacit.auditing.agent import AgentAudit
from tacit.auditing.findings import NOTHING
from tacit.errors import InvalidInput
from tacit.problems.classic_control import cart_pole

PROBLEM = PROBLEMS["random-mdp"]
LINEAR = PROBLEMS["low-rank"]
KEYS = {"claimed_epsilon", "delta", "lower_bound", "confidence", "trials", "verdict", "meaning"}
AGENTS = private_agents()


def audit(agent: Any, problem: Any = PROBLEM, **more: Any) -> AgentAudit:
    """Few trials, whatever the speed; every false alarm has a probability below 0.001."""
    options = {"trials": 1000, "confidence": 0.999, "secure": False, "seconds": 1e6, **more}
    return tacit.audit(problem, agent, **options)


# ---- right agents ----


@pytest.mark.parametrize("name", AGENTS)
def test_no_private_agent_is_refuted(name: str) -> None:
    """Of Gaussian noise, which is met in both worlds, few trials show most."""
    bound = bound_to(made(name), smallest(name))
    found = audit(made(name), smallest(name), trials=1000 if bound.guarantee.mu is None else 200)
    assert found.verdict != "violated"
    assert all(report.distance > 0.9 for report in found.reports)
    published = getattr(made(name), "published", False)  # whose noise may be more than is needed
    least = 0.0 if published else 0.99
    assert all(report.claimed_epsilon > least for report in found.reports)


GAUSSIAN_TREELESS = {"delta": DELTA, "counter": "toeplitz", "calibration": "tight"}
VARIANTS = {
    "ldp-obi, gaussian": ("ldp-obi", {"randomizer": "gaussian", "delta": DELTA}, PROBLEM),
    "ldp-obi, bounded": ("ldp-obi", {"randomizer": "bounded", "delta": 0.1}, PROBLEM),
    "ldp-obi, bits": ("ldp-obi", {"randomizer": "randomized-response"}, PROBLEM),
    "shuffle-obi, assigned": (
        "shuffle-obi",
        {"steps": "assigned", "batch": 20, "calibration": "tight"},
        PROBLEM,
    ),
    "tacit-linear, answered": ("tacit-linear", {"sums": "answered"}, LINEAR),
    "private-linopt-vi, local": ("private-linopt-vi", {"model": "local"}, PROBLEM),
    "private-linopt-vi, honaker": (
        "private-linopt-vi",
        {"counter": "honaker", "calibration": "tight"},
        PROBLEM,
    ),
    "pucb, gaussian": ("pucb", GAUSSIAN_TREELESS, PROBLEM),
    "tacit-joint, blt": ("tacit-joint", {"counter": "blt"}, PROBLEM),
    "ldp-ucrl-vtr, index": (
        "ldp-ucrl-vtr",
        {"statistic": "index", "calibration": "tight"},
        PROBLEM,
    ),
    "tacit-search, local": ("tacit-search", {"model": "local"}, cart_pole()),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_agents_are_not_refuted_and_show_something(variant: str) -> None:
    """At epsilon 4, of which 1000 trials show a good part."""
    name, parameters, problem = VARIANTS[variant]
    found = audit(tacit.agent(name, epsilon=4.0, **parameters), problem)
    assert found.verdict != "violated"
    best = max(report.lower_bound / report.claimed_epsilon for report in found.reports)
    assert 0.25 < best <= 1.0


@pytest.mark.parametrize("name", ["ldp-obi", "tacit-local", "tacit-joint"])
def test_secure_noise_is_audited_too(name: str) -> None:
    found = audit(made(name, 4.0), secure=True)
    assert found.verdict != "violated"
    sources = [report.source for report in found.reports]
    expected = {
        "ldp-obi": ["simulated", "secure", "simulated"],
        "tacit-local": [*["simulated", "secure"] * 3, "simulated"],
        "tacit-joint": ["simulated", "secure"],
    }
    assert sources == expected[name]
    for report in found.reports:
        if report.source == "secure":
            assert report.lower_bound > 0.3 * report.claimed_epsilon


@pytest.mark.parametrize("name", ["ldp-obi", "tacit-joint", "tacit-local"])
def test_people_who_come_back_are_audited_as_one(name: str) -> None:
    """Counted in full; ``test_lifetimes.py`` has other rules."""
    found = audit(made(name, 4.0), participations=tacit.Participation(3, "every"))
    assert found.verdict != "violated"
    said = [report.target for report in found.reports]
    assert any("3 reports of one person" in target or "3 times" in target for target in said)


def test_a_large_first_batch_is_filled_before_anything_is_judged() -> None:
    """With 3 users nothing would be released, and nothing could be told."""
    agent = tacit.agent("tacit-joint", epsilon=4.0, delta=DELTA, least=20)
    staged = tacit.problem("river-swim", states=3, horizon=2, inhomogeneous=True)
    found = audit(agent, staged, secure=False)
    assert found.verdict == "consistent" and found.reports[0].lower_bound > 1.0
    assert "all but the last release of a learner with 22 users" in found.reports[0].target


def test_a_counter_whose_last_item_is_the_last_users_is_seen_to_its_end() -> None:
    agent = tacit.agent("tacit-joint", epsilon=4.0, delta=DELTA)
    found = audit(agent, secure=False)
    assert found.verdict == "consistent" and found.reports[0].lower_bound > 1.0
    assert "every release of a learner" in found.reports[0].target


# ---- wrong agents; tests/corpus has all of them with half the noise ----


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_a_fifth_less_noise_is_refuted(name: str) -> None:
    """With many trials, at epsilon 1."""
    found = audit(LessNoiseAgent(made(name), 0.8), problem_for(name), trials=200_000)
    assert found.verdict == "violated"


def test_half_of_bounded_noise_is_refuted() -> None:
    agent = tacit.agent("ldp-obi", epsilon=2.0, delta=0.1, randomizer="bounded")
    assert audit(LessNoiseAgent(agent), trials=6000).verdict == "violated"


def test_bits_that_flip_too_seldom_are_refuted() -> None:
    agent = tacit.agent(
        "ldp-obi", epsilon=4.0, randomizer="randomized-response", calibration="tight"
    )
    found = audit(LessNoiseAgent(agent), ONE_STEP, trials=2000)
    assert found.verdict == "violated" and found.exact_epsilon == pytest.approx(4.0)


# ---- what is said ----


def test_the_report_of_a_right_agent() -> None:
    found = audit(made("ldp-obi", 2.0), trials=8000)
    assert found.verdict == "consistent"
    report = found.to_json()
    assert set(report) >= KEYS and json.loads(json.dumps(report, allow_nan=False)) == report
    assert 1.0 < report["lower_bound"] <= 2.0 and report["confidence"] == 0.999
    assert len(report["also"]) == 1
    assert report["lower_bound"] >= report["also"][0]["lower_bound"]


def test_gaussian_reports_get_the_gaussian_method() -> None:
    agent = tacit.agent("ldp-obi", epsilon=4.0, delta=DELTA, randomizer="gaussian")
    found = audit(agent)
    assert {bound.method for bound in found.reports[0].bounds} == {"gaussian", "guesses"}
    assert found.reports[0].best.method == "gaussian"


def test_the_claim_is_the_true_guarantee_not_the_request() -> None:
    """Published noise that gives 51.7 where 20 was asked for is audited against 51.7."""
    agent = tacit.agent(
        "ldp-obi", epsilon=20.0, delta=0.1, randomizer="gaussian", calibration="paper"
    )
    found = audit(agent)
    assert found.verdict == "consistent"
    assert found.to_json()["claimed_epsilon"] == pytest.approx(51.73, abs=0.01)
    assert found.to_json()["lower_bound"] > 20.0


@pytest.mark.parametrize("name", ["ldp-obi", "tacit-local"])
def test_finite_reports_get_their_exact_epsilon(name: str) -> None:
    how = {"randomizer": "randomized-response", "calibration": "tight"}
    how = how if name == "ldp-obi" else {}
    found = audit(tacit.agent(name, epsilon=4.0, **how))
    assert found.to_json()["exact_epsilon"] == pytest.approx(4.0, rel=1e-9)
    worse = dataclasses.replace(found, exact_epsilon=4.1)
    assert worse.verdict == "violated" and worse.to_json()["verdict"] == "violated"


def test_bounded_noise_is_audited_without_a_secure_path() -> None:
    agent = tacit.agent("ldp-obi", epsilon=4.0, delta=0.1, randomizer="bounded")
    found = audit(agent, secure=True)
    assert {report.source for report in found.reports} == {"simulated"}
    assert "no secure path" in found.to_json()["remarks"][0]
    assert found.to_json()["exact_epsilon"] is None


def test_without_privacy_there_is_no_claim() -> None:
    found = audit(tacit.agent("psrl"), secure=True)
    assert found.verdict == "no claim" and found.to_json()["claimed_epsilon"] is None
    assert found.to_json()["lower_bound"] > 3.0
    assert [report.source for report in found.reports] == ["simulated"]


def test_the_worst_verdict_counts() -> None:
    def report(bound: float, distance: float = 1.0) -> AuditReport:
        found = (MethodBound("guesses", bound, NOTHING, "", ""),)
        return AuditReport("x", "simulated", 1.0, 0.0, 0.9, 1000, distance, found)

    good, weak, bad = report(0.9), report(0.1), report(1.1)
    for reports, verdict in (
        ((good,), "consistent"),
        ((good, weak), "no evidence"),
        ((weak, bad, good), "violated"),
        ((good, report(0.9, distance=0.0)), "no evidence"),
    ):
        assert AgentAudit(reports, 0.9).verdict == verdict
    assert AgentAudit((weak, bad), 0.9).to_json()["lower_bound"] == 1.1


def test_confidence_is_shared_out_over_all_paths() -> None:
    found = audit(made("tacit-local", 4.0), confidence=0.9)
    assert found.confidence == 0.9 and len(found.reports) == 4
    assert all(report.confidence == pytest.approx(1 - 0.1 / 4) for report in found.reports)


def test_progress_names_every_path() -> None:
    told: list[str] = []
    found = audit(made("ldp-obi", 4.0), progress=told.append)
    for report in found.reports:
        about = f"{report.target}, {report.source} noise"
        assert about in told and f"{about}: {report.trials:,} trials, epsilon is" in "\n".join(told)


def test_audits_are_reproducible_apart_from_secure_noise() -> None:
    def found(seed: int) -> str:
        text = json.dumps(audit(made("tacit-local", 2.0), seed=seed).to_json(), default=str)
        return "".join(c for part in text.split('"seconds": ') for c in part.partition(",")[2:])

    assert found(3) == found(3) != found(4)


def test_one_path_alone() -> None:
    """What ``audit`` puts together can be run piece by piece."""
    bound = made("ldp-obi", 2.0).bind(PROBLEM.task(users=3))
    rng = np.random.default_rng(0)
    report = audit_target(device(bound, "secure"), 2.0, 0.0, 4000, confidence=0.999, rng=rng)
    assert report.verdict != "violated" and report.source == "secure"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 10}, "trials = 10"),
        ({"confidence": 1.0}, "confidence = 1"),
        ({"confidence": math.nan}, "confidence = nan"),
        ({"participations": 0}, "participations = 0"),
        ({"seconds": 0.0}, "seconds = 0"),
    ],
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        audit(made("ldp-obi"), **options)


def test_collecting_nothing_cannot_be_audited() -> None:
    with pytest.raises(InvalidInput, match="nothing to audit"):
        audit(tacit.agent("uniform"))
