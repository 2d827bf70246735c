import dataclasses
import json
import math

import numpy as np
import pytest

import tacit
from tacit.auditing.auditor import audit_target
from tacit.auditing.targets import ReportTarget
from tacit.errors import InvalidInput
from tacit.policy import uniform_policy
from tacit.privacy.local import LocalAdditive
from tacit.publication import Publication

PROBLEM = tacit.problem("random-mdp", seed=1)
KEYS = {"claimed_epsilon", "delta", "lower_bound", "confidence", "trials", "verdict"}


def test_a_right_agent_is_consistent_by_every_path() -> None:
    agent = tacit.agent("ldp-obi", epsilon=2.0)
    found = tacit.audit(agent, PROBLEM, trials=10_000, confidence=0.999)
    assert found.verdict == "consistent"
    assert [report.source for report in found.reports] == ["simulated", "secure", "simulated"]
    report = found.to_json()
    assert set(report) >= KEYS and json.loads(json.dumps(report, allow_nan=False)) == report
    assert 0.5 < report["lower_bound"] <= 2.0 and report["confidence"] == 0.999
    assert len(report["also"]) == 2


def test_gaussian_reports_get_the_gaussian_method() -> None:
    agent = tacit.agent("ldp-obi", epsilon=4.0, delta=1e-5, randomizer="gaussian")
    found = tacit.audit(agent, PROBLEM, trials=10_000, confidence=0.999, secure=False)
    assert found.verdict == "consistent"
    assert found.to_json()["method"] == "gaussian" and found.to_json()["lower_bound"] > 2.0


def test_the_claim_is_the_true_guarantee_not_the_request() -> None:
    """Published noise that gives 51.7 where 20 was asked for is audited against 51.7."""
    agent = tacit.agent(
        "ldp-obi", epsilon=20.0, delta=0.1, randomizer="gaussian", calibration="paper"
    )
    found = tacit.audit(agent, PROBLEM, trials=5000, confidence=0.999, secure=False)
    assert found.verdict == "consistent"
    assert found.to_json()["claimed_epsilon"] == pytest.approx(51.73, abs=0.01)
    assert found.to_json()["lower_bound"] > 20.0


@pytest.mark.parametrize("name", ["ldp-obi", "tacit-local"])
def test_finite_reports_get_their_exact_epsilon(name: str) -> None:
    how = {"randomizer": "randomized-response"} if name == "ldp-obi" else {}
    agent = tacit.agent(name, epsilon=4.0, **how)
    found = tacit.audit(agent, PROBLEM, trials=4000, confidence=0.999)
    assert found.verdict == "consistent"
    assert [report.source for report in found.reports] == ["simulated", "secure", "simulated"]
    assert found.to_json()["exact_epsilon"] == pytest.approx(4.0, rel=1e-9)
    assert 1.0 < found.to_json()["lower_bound"] <= 4.0
    worse = dataclasses.replace(found, exact_epsilon=4.1)
    assert worse.verdict == "violated"


def test_bounded_noise_is_audited_without_a_secure_path() -> None:
    agent = tacit.agent("ldp-obi", epsilon=4.0, delta=0.1, randomizer="bounded")
    found = tacit.audit(agent, PROBLEM, trials=10_000, confidence=0.999)
    assert found.verdict == "consistent" and found.to_json()["lower_bound"] > 2.0
    assert [report.source for report in found.reports] == ["simulated", "simulated"]
    assert "no secure path" in found.to_json()["remarks"][0]
    assert found.to_json()["exact_epsilon"] is None


def test_halved_bounded_noise_is_caught() -> None:
    """The claim of the tight radius, the noise of half of it."""
    agent = tacit.agent("ldp-obi", epsilon=4.0, delta=0.1, randomizer="bounded")
    bound = agent.bind(PROBLEM.task(users=3))
    tight = bound.privatizer
    halved = LocalAdditive(
        bound.statistic,
        bound.task,
        "bounded",
        {name: radius / 2 for name, radius in tight.scales.items()},
        requested_epsilon=4.0,
        requested_delta=0.1,
    )
    publication = Publication(0, uniform_policy(2, 2, 2))
    for privatizer, verdict in ((tight, "consistent"), (halved, "violated")):
        target = ReportTarget(
            dataclasses.replace(bound, privatizer=privatizer), publication, "simulated"
        )
        rng = np.random.default_rng(0)
        report = audit_target(
            target, tight.guarantee.epsilon, 0.1, 10_000, confidence=0.999, rng=rng
        )
        assert report.verdict == verdict


def test_bits_that_flip_half_as_often_are_caught() -> None:
    """Randomized response claimed at epsilon 4, run at epsilon 8."""
    agent = tacit.agent("ldp-obi", epsilon=8.0, randomizer="randomized-response")
    bound = agent.bind(PROBLEM.task(users=3))
    target = ReportTarget(bound, Publication(0, uniform_policy(2, 2, 2)), "simulated")
    rng = np.random.default_rng(0)
    assert audit_target(target, 8.0, 0.0, 20_000, confidence=0.999, rng=rng).verdict == "consistent"
    assert audit_target(target, 4.0, 0.0, 20_000, confidence=0.999, rng=rng).verdict == "violated"


def test_without_privacy_there_is_no_claim() -> None:
    found = tacit.audit(tacit.agent("psrl"), PROBLEM, trials=1000)
    assert found.verdict == "no claim" and found.to_json()["claimed_epsilon"] is None
    assert found.to_json()["lower_bound"] > 3.0


def test_audits_are_reproducible_apart_from_secure_noise() -> None:
    agent = tacit.agent("ldp-obi", epsilon=2.0)
    one, two = (
        tacit.audit(agent, PROBLEM, trials=2000, secure=False, seed=3).to_json() for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 10}, "trials = 10"),
        ({"confidence": 1.0}, "confidence = 1"),
        ({"confidence": math.nan}, "confidence = nan"),
    ],
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.audit(tacit.agent("ldp-obi", epsilon=1.0), PROBLEM, **options)


def test_collecting_nothing_cannot_be_audited() -> None:
    with pytest.raises(InvalidInput, match="nothing to audit"):
        tacit.audit(tacit.agent("uniform"), PROBLEM)
