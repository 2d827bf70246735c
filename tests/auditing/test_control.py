"""Audits of control agents: consistent as shipped, violated when noise is taken away."""

from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.auditing import audit_target
from tacit.auditing.targets import LearnerTarget
from tacit.privacy.joint import BatchSums

SHORT = tacit.LQSystem(
    A=[[0.6]], B=[[0.3]], Q=[[1.0]], R=[[0.1]], horizon=3, noise=0.1, start=[0.9]
)


@pytest.mark.parametrize("name", ["private-ofu-rl", "tacit-control"])
def test_shipped_agents_are_consistent(name: str) -> None:
    agent = tacit.agent(name, epsilon=3.0)
    found = tacit.audit(agent, SHORT, trials=10_000, confidence=0.999, secure=False)
    assert found.verdict == "consistent"
    assert 0.3 < found.to_json()["lower_bound"] <= 3.0


def test_a_tenth_of_the_noise_is_caught() -> None:
    bound = tacit.agent("tacit-control", epsilon=3.0).bind(SHORT.task(3, ["start"]))
    thin = BatchSums(
        bound.statistic,
        bound.task,
        bound.privatizer.noise_std / 10.0,
        requested_epsilon=3.0,
        requested_delta=1e-5,
    )
    target = LearnerTarget(SHORT, replace(bound, privatizer=thin))
    rng = np.random.default_rng(0)
    report = audit_target(target, 3.0, 1e-5, 600, confidence=0.999, rng=rng)
    assert report.verdict == "violated"
