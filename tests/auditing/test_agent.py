import json
import math

import pytest

import tacit
from tacit.errors import InvalidInput

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
