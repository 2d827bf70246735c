"""Cheap mechanisms with a known epsilon, and how they are audited here."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.auditing import AuditReport, audit_target
from tacit.privacy.accounting import gaussian_mu

DELTA = 1e-5

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


@dataclass
class Mechanism:
    """Outputs drawn by a function of (worlds, rng)."""

    name: str
    draw: Draw
    known: Callable[[np.ndarray], np.ndarray] | None = None
    family: str = "unknown"
    distance: float | None = None
    separate: bool = True
    source: str = "simulated"

    def sample(self, worlds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.draw(worlds, rng)

    def score(self, outputs: np.ndarray) -> np.ndarray | None:
        return None if self.known is None else self.known(outputs)


def laplace(epsilon: float, outputs: int = 1) -> Mechanism:
    """Laplace noise of scale 1 / epsilon; the worlds differ by 1 in the first output."""

    def draw(worlds, rng):
        noise = rng.laplace(0.0, 1 / epsilon, (len(worlds), outputs))
        noise[:, 0] += worlds
        return noise

    return Mechanism("laplace", draw)


def known_laplace(epsilon: float, outputs: int = 1) -> Mechanism:
    """The same with its log-likelihood ratio."""
    return dataclasses.replace(
        laplace(epsilon, outputs),
        known=lambda x: epsilon * (np.abs(x[:, 0]) - np.abs(x[:, 0] - 1.0)),
    )


def gaussian(mu: float, after: Callable = lambda x: x) -> Mechanism:
    """Unit Gaussian noise on two outputs whose means are mu apart, then post-processed."""
    apart = mu * np.array([0.6, 0.8])

    def draw(worlds, rng):
        return after(worlds[:, None] * apart + rng.normal(size=(len(worlds), 2)))

    return Mechanism("gaussian", draw, lambda x: (x - apart / 2) @ apart, family="gaussian")


def response(epsilon: float, delta: float = 0.0) -> Mechanism:
    """Tells the world with probability delta, else answers truthfully with chance e / (1 + e)."""

    def draw(worlds, rng):
        right = rng.random(len(worlds)) < 1 / (1 + math.exp(-epsilon))
        said = np.where(right, worlds, 1 - worlds)
        told = rng.random(len(worlds)) < delta
        return np.where(told, 2 * worlds - 0.5, said)[:, None]  # -0.5, 0, 1 or 1.5

    return Mechanism("response", draw)


def coin(outputs: int = 1) -> Mechanism:
    """Fair coins, whatever the world."""
    return Mechanism("coin", lambda worlds, rng: rng.integers(0, 2, (len(worlds), outputs)))


def audit(
    target, claim: float, delta: float = 0.0, trials: int = 20_000, seed: int = 0, **more
) -> AuditReport:
    return audit_target(target, claim, delta, trials, rng=np.random.default_rng(seed), **more)


MU = gaussian_mu(1.0, DELTA)
