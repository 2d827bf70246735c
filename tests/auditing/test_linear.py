"""The linear agents pass their audits; tests/corpus has the errors that would not."""

import numpy as np
import pytest

import tacit
from tacit.auditing import audit_target
from tacit.auditing.targets import LearnerTarget

PROBLEM = tacit.problem("low-rank", states=2, actions=2, dimension=2, horizon=2, seed=1)
TASK = PROBLEM.task(users=3)


@pytest.mark.parametrize(
    ("agent", "parameters"),
    [
        ("tacit-linear", {}),
        ("tacit-linear", {"sums": "answered"}),
        ("dp-lsvi-batch", {}),
        ("dp-lsvi-adaptive", {}),
        ("dp-lsvi-ucb++", {}),
    ],
)
def test_every_private_agent_passes_its_audit(agent: str, parameters: dict) -> None:
    """Everything published, the first of three users replaced, by both sources of noise."""
    bound = tacit.agent(agent, epsilon=1.0, **parameters).bind(TASK)
    for source, trials in (("simulated", 200), ("secure", 100)):
        target, rng = LearnerTarget(PROBLEM, bound, source), np.random.default_rng(5)
        found = audit_target(target, 1.0, 1e-5, trials, confidence=0.999, rng=rng)
        assert found.verdict == "consistent"
