"""The running service under audit."""

import numpy as np
import pytest

import tacit
from tacit.auditing import audit_target
from tacit.auditing.agent import _service_plans
from tacit.errors import InvalidInput
from tacit.forecast import bind
from tacit.privacy import SecureNoise
from tacit_service.audit import BATCHES, ServiceTarget

PROBLEM = tacit.problem("river-swim", states=6, horizon=2)
EPSILON, DELTA, TRIALS = 8.0, 1e-5, 100


def served(problem=PROBLEM, name: str = "tacit-joint", participations: int = 1) -> ServiceTarget:
    agent = tacit.agent(name, epsilon=EPSILON, delta=DELTA)
    bound = bind(problem, agent, 3, participations=participations)
    ((target, claim),) = _service_plans(problem, agent, bound, np.random.default_rng(0))
    assert claim.epsilon == target.guarantee.epsilon <= EPSILON
    return target


@pytest.fixture(scope="module")
def target() -> ServiceTarget:
    return served()


def test_people_do_not_disturb_each_other_and_are_nearly_as_bad_as_can_be(target) -> None:
    assert len(target.people) == 3 and not target.separate
    assert target.distance == pytest.approx(1.0, abs=1e-3)
    assert target._deployment.task.users == BATCHES * 3


def test_both_worlds_differ_by_nearly_all_that_is_paid_for(target) -> None:
    """In every run alike, as the same draws are met; the last release is not looked at."""
    worlds = np.array([0, 1, 1, 0, 0, 1])
    outputs, others = target.sample_both(worlds, np.random.default_rng(0))
    apart = (others - outputs)[:, 0] * (1 - 2 * worlds)
    assert apart == pytest.approx(np.full(6, apart[0]), rel=1e-6)
    assert 0.9 < apart[0] / target.guarantee.mu**2 < 1.0


def test_what_is_published_is_consistent(target) -> None:
    """False alarms have probability below 0.001, and so has a bound below half of the claim."""
    rng = np.random.default_rng(1)
    found = audit_target(target, target.guarantee.epsilon, DELTA, TRIALS, confidence=0.999, rng=rng)
    assert found.source == "secure" and found.trials == TRIALS
    assert found.verdict == "consistent"
    assert [bound.method for bound in found.bounds] == ["gaussian"]


def test_a_sampler_with_a_third_of_the_noise_is_refuted(target, monkeypatch) -> None:
    """Misses have probability below 0.001: mu is 5.4 where 1.8 is claimed."""
    fill = SecureNoise.fill

    def short(self, law, out) -> None:
        fill(self, law, out)
        out //= 3

    monkeypatch.setattr(SecureNoise, "fill", short)
    rng = np.random.default_rng(2)
    found = audit_target(target, target.guarantee.epsilon, DELTA, TRIALS, confidence=0.999, rng=rng)
    assert found.verdict == "violated" and found.lower_bound > 2 * EPSILON


@pytest.mark.parametrize(
    ("problem", "name", "participations", "message"),
    [
        (PROBLEM, "private-linopt-vi", 1, "numbers that the service itself publishes"),
        (PROBLEM, "dp-lsvi-batch", 1, "no curator of the service runs it"),
        (PROBLEM, "tacit-joint", 2, "its people take part once"),
        (tacit.problem("remap-walk"), "tacit-joint", 1, "it was told features"),
    ],
)
def test_what_cannot_be_audited_in_service_says_why(problem, name, participations, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        served(problem, name, participations)


def test_the_service_path_is_one_of_the_reports() -> None:
    agent = tacit.agent("tacit-joint", epsilon=EPSILON, delta=DELTA)
    found = tacit.audit(
        PROBLEM, agent, trials=100, secure=False, service=True, confidence=0.999, seconds=1e6
    )
    assert [report.source for report in found.reports] == ["simulated", "secure"]
    assert "running service" in found.reports[1].target
