"""Audits of control agents: what a batch or stream publishes, on the worst pair of users."""

from dataclasses import replace

import numpy as np
import pytest

import tacit
from contracts.privatizer import no_questions, streams
from tacit.auditing import audit_target
from tacit.auditing.targets import LearnerTarget
from tacit.driver import BoundAgent
from tacit.privacy import Query, SimulatedNoise

SHORT = tacit.LQSystem(
    A=[[0.6]], B=[[0.3]], Q=[[1.0]], R=[[0.1]], horizon=3, noise=0.1, start=[0.9]
)


class FirstRelease:
    """The first noisy sum, of one user who is one of the worst pair."""

    source, family = "simulated", "gaussian"

    def __init__(self, bound: BoundAgent, factor: float = 1.0) -> None:
        self.name = bound.guarantee.mechanism
        self.bound, self.factor = bound, factor
        privatizer, noise = bound.privatizer, SimulatedNoise(np.random.default_rng(0))
        nobody = privatizer.release(privatizer.init(), Query(0), noise)
        self.publication = bound.planner.plan(bound.task, nobody, no_questions, None, streams())
        self.worlds = [self.exact(user) for user in bound.statistic.worst_pair()]

    def exact(self, user) -> np.ndarray:
        out = np.zeros(self.bound.statistic.layout.size, dtype=np.int64)
        self.bound.statistic.contribute(user, self.publication, 0, out)
        return out

    def sample(self, world: int, trials: int, rng: np.random.Generator) -> np.ndarray:
        privatizer, noise = self.bound.privatizer, SimulatedNoise(rng)
        found = []
        for _ in range(trials):
            secret = privatizer.init()
            report = privatizer.encode(self.worlds[world], self.publication, noise)
            privatizer.absorb(secret, report, 0)
            release = privatizer.release(secret, Query(1), noise)
            found.append(np.concatenate([b.ravel() for b in release.blocks.values()]))
        mean = self.worlds[world] * self.bound.statistic.layout.units
        return mean + self.factor * (np.array(found) - mean)

    def score(self, outputs: np.ndarray) -> np.ndarray:
        return outputs @ (self.worlds[1] - self.worlds[0])


def audited(name: str, factor: float):
    bound = tacit.agent(name, epsilon=3.0).bind(SHORT.task(100, ["start", "noise"]))
    target = FirstRelease(bound, factor)
    rng = np.random.default_rng(1)
    return audit_target(target, bound.guarantee.epsilon, 1e-5, 4000, confidence=0.999, rng=rng)


@pytest.mark.parametrize("name", ["private-ofu-rl", "tacit-control"])
def test_shipped_agents_are_consistent_and_halved_noise_is_caught(name: str) -> None:
    """The stream's first release costs a part of the stream's epsilon, a batch all of it."""
    assert audited(name, 1.0).verdict == "consistent"
    thin = audited(name, 0.25)
    assert thin.verdict == "violated" and thin.lower_bound > 3.0


def test_the_whole_learner_can_be_audited() -> None:
    """Releases, gains and everything between them; a hundredth of the noise is caught."""
    bound = tacit.agent("tacit-control", epsilon=0.5).bind(SHORT.task(3, ["start", "noise"]))
    thin = type(bound.privatizer)(
        bound.statistic,
        bound.task,
        bound.privatizer.noise_std / 100.0,
        requested_epsilon=0.5,
        requested_delta=1e-5,
    )
    rng, reports = np.random.default_rng(2), []
    for agent in (bound, replace(bound, privatizer=thin)):
        target = LearnerTarget(SHORT, agent)
        reports.append(audit_target(target, 0.5, 1e-5, 100, confidence=0.99, rng=rng))
    assert [report.verdict for report in reports] == ["consistent", "violated"]
