"""Somebody's own mechanism says four things, and everything else is there or refuses.

Audits have fixed seeds; a false alarm of any of them has a probability of at most 0.001.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.agents import Agent
from tacit.auditing.agent import audit
from tacit.errors import InvalidInput
from tacit.grid import GRID, whole_steps
from tacit.learner import BoundAgent
from tacit.planners.obi import ObiPlanner
from tacit.planners.references import UniformPlanner
from tacit.policies.tabular import uniform_policy
from tacit.privacy import GridLaw, Privatizer, Query, Report, Secret, SimulatedNoise, accounting
from tacit.privacy.base import TRUSTED, Sent
from tacit.privacy.events import GaussianEvent, PureEvent
from tacit.privacy.joint.batched import NORMS, GaussianLaw
from tacit.privacy.joint.counted import LaplaceLaw
from tacit.privacy.local.additive import LocalAdditive
from tacit.publication import Publication
from tacit.release import Release
from tacit.schedules import Every
from tacit.statistics import Relation
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task
from tacit_service.config.serving import served_model


class Doubled(Privatizer[Secret]):
    """Two draws of Laplace noise on every report, where one would do."""

    def __init__(self, statistic: VisitCounts, task: Task, epsilon: float) -> None:
        self.layout = statistic.layout
        self.scale = statistic.sensitivity("l1", Relation.REPLACE_ONE) / epsilon
        self.grid_law = GridLaw("laplace", np.full(self.layout.size, self.scale / GRID))
        self.event = PureEvent(epsilon)
        self.guarantee = self.event.guarantee(
            task,
            model="local",
            mechanism="two draws",
            accountant="pure",
            requested=(epsilon, 0.0),
        )

    def law(self, users: int) -> GaussianLaw:
        return GaussianLaw(2.0 * self.scale * users**0.5)

    def encode(self, contribution, publication, noise) -> Report:
        draws = np.empty((2, self.layout.size), dtype=np.int64)
        for draw in draws:
            noise.fill(self.grid_law, draw)
        return Report(contribution * whole_steps(self.layout.units) + draws.sum(axis=0))

    def relative_shift(self, first, second, publication) -> float:
        return float(np.abs((second - first) * self.layout.units).sum()) / self.scale

    def release(self, secret: Secret, query: Query, noise) -> Release:
        blocks = self.layout.views(secret.sums * GRID)
        return Release(secret.users, blocks, self.law(secret.users), secret.source)


class Own(Agent):
    name = "own"

    def bind(self, task: Task) -> BoundAgent:
        statistic = VisitCounts(task)
        planner = ObiPlanner(alpha=2.0, beta=0.1, width="tight")
        return BoundAgent(task, statistic, Doubled(statistic, task, 1.0), planner)


PROBLEM = tacit.problem("random-mdp", states=2, actions=2, horizon=2, seed=1)


def test_it_learns_and_is_audited() -> None:
    result = tacit.simulate(PROBLEM, Own(), episodes=20, runs=1)
    assert result.guarantee.epsilon == 1.0 and len(result.regret[0]) > 0
    found = audit(PROBLEM, Own(), trials=1000, seconds=20, secure=False)
    assert found.exact_epsilon is None and found.verdict != "violated"


def test_what_it_does_not_say_is_refused_and_not_guessed() -> None:
    bound = Own().bind(PROBLEM.task(users=5))
    own = bound.privatizer
    secret, noise = own.init(), SimulatedNoise(np.random.default_rng(0))
    assert not own.absorbs_sums and not own.has_likelihood and own.device is None
    for use in (
        lambda: own.absorb_sums(secret, secret.sums, 2, None, noise),
        lambda: own.draw(secret, noise),
        lambda: own.replay(secret, secret.sums),
        lambda: own.log_likelihood_ratio(None),
        lambda: own.worst_query(secret.sums, secret.sums, 0),
    ):
        with pytest.raises(InvalidInput, match="two draws: "):
            use()
    with pytest.raises(InvalidInput, match="own cannot be served"):
        served_model(bound, Own())
    assert own.channels() == () and own.open_queries(secret) == []
    assert own.event.charge().to_json() == {"kind": "pure", "epsilon": 1.0}
    assert np.array_equal(own.restore(own.state(secret)).sums, secret.sums)


# ---- with half the noise that it claims ----


class Noted(LocalAdditive):
    """Keeps the versions that reports were absorbed under."""

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        self.versions = [*getattr(self, "versions", []), (version, report.source)]
        return super().absorb(secret, report, version)


def test_messages_are_folded_in_under_the_publication_they_were_made_under() -> None:
    task = Task("tabular", 2, {"states": 2, "actions": 2}, True, 20)
    own = Noted(VisitCounts(task), task, "laplace", requested=(1.0, 0.0))
    entry, noise = Publication(7, uniform_policy(2, 2, 2)), SimulatedNoise(np.random.default_rng(1))
    nobody = np.zeros(own.layout.size, dtype=np.int64)
    messages = [own.randomize(nobody, entry, noise) for _ in range(2)]
    secret = own.fold(own.init(), Sent(messages, entry, [0, 1], "simulated"))
    assert own.versions == [(7, "simulated")] * 2 and secret.users == 2


@dataclass(frozen=True)
class Unnamed:
    """A law of noise that says nothing but its variance."""

    std: float
    name: str = "own"

    def scale(self, block: str) -> float:
        return self.std

    def variance(self, block: str) -> Any:
        return np.asarray(self.std**2)


class Sloppy(Privatizer[Secret]):
    """Noise on reports, or on the sums of every batch: ``factor`` of what it claims.

    A curator and a device in the style of docs/tutorials/own_mechanism.md, with no word for audits.
    """

    def __init__(self, statistic: VisitCounts, task: Task, own: "SloppyAgent") -> None:
        self.layout, self.own = statistic.layout, own
        self.most = statistic.sensitivity(NORMS[own.kind], Relation.REPLACE_ONE)
        delta = 1e-5 if own.kind == "gaussian" else 0.0
        self.scale = self.most / own.epsilon
        self.event: Any = PureEvent(own.epsilon)
        if own.kind == "gaussian":
            self.scale = self.most / accounting.gaussian_mu(own.epsilon, delta)
            self.event = GaussianEvent.of(self.most, self.scale)
        self.guarantee = self.event.guarantee(
            task,
            model=own.model,
            mechanism="sloppy",
            accountant="own",
            requested=(own.epsilon, delta),
            assumptions=TRUSTED if own.model == "joint" else (),
        )

    def law(self, users: int) -> Any:
        draws = users if self.own.model == "local" else 1
        std = self.scale * (2.0 * draws if self.own.kind == "laplace" else draws) ** 0.5
        if not self.own.declares:
            return Unnamed(std)
        return LaplaceLaw(self.scale, std) if self.own.kind == "laplace" else GaussianLaw(std)

    def _noise(self, noise) -> np.ndarray:
        drawn = np.empty(self.layout.size, dtype=np.int64)
        noise.fill(GridLaw(self.own.kind, np.full(self.layout.size, self.scale / GRID)), drawn)
        return np.rint(self.own.factor * drawn).astype(np.int64)

    def encode(self, contribution, publication, noise) -> Report:
        hidden = self._noise(noise) if self.own.model == "local" else 0
        return Report(contribution * whole_steps(self.layout.units) + hidden)

    def relative_shift(self, first, second, publication) -> float:
        norm = 1 if self.own.kind == "laplace" else 2
        return float(np.linalg.norm((second - first) * self.layout.units, norm)) / self.most

    def release(self, secret: Secret, query: Query, noise) -> Release:
        users, sums = secret.users, secret.sums.copy()
        if self.own.model == "joint":
            sums += self._noise(noise)
            secret.sums[:], secret.users = 0, 0
        return Release(users, self.layout.views(sums * GRID), self.law(max(users, 1)), "simulated")


@dataclass
class SloppyAgent(Agent):
    """Claims epsilon 4; a curator's batches are of five people."""

    name = "sloppy"
    model: str
    kind: str
    declares: bool
    factor: float = 1.0
    epsilon: float = 4.0

    def bind(self, task: Task) -> BoundAgent:
        statistic = VisitCounts(task)
        sloppy, crowd = Sloppy(statistic, task, self), Every(1 if self.model == "local" else 5)
        return BoundAgent(task, statistic, sloppy, UniformPlanner(), crowd)


SMALL = tacit.problem("random-mdp", states=2, actions=2, horizon=1, seed=1)

TRIALS = {("laplace", True): 4000, ("laplace", False): 6000, ("gaussian", True): 300}
"""A known ratio needs few, Gaussian noise that is met in both worlds fewer, a learned one many."""

OWN = [
    (model, kind, declares)
    for model in ("local", "joint")
    for kind in ("laplace", "gaussian")
    for declares in (True, False)
]


@pytest.mark.parametrize(("model", "kind", "declares"), OWN)
def test_half_the_noise_is_refuted_and_the_right_noise_is_not(model, kind, declares) -> None:
    """What is claimed to be Gaussian is scored by its variance, whatever its law is called."""
    trials = TRIALS[kind, declares or kind == "gaussian"]
    for factor in (0.5, 1.0):
        agent = SloppyAgent(model, kind, declares, factor)
        found = audit(SMALL, agent, trials=trials, confidence=0.999, seconds=1e6, secure=False)
        best = max(found.reports, key=lambda report: report.lower_bound)
        assert found.verdict == ("violated" if factor < 1.0 else "consistent")
        assert best.lower_bound > (4.0 if factor < 1.0 else 2.0)
        assert best.best.method == (
            "gaussian" if kind == "gaussian" else "likelihood" if declares else "guesses"
        )
        if model == "local":  # what others add hides nothing of what leaves a device
            assert found.reports[0].target == "one report released alone"
            assert found.beside == found.reports[1:]
