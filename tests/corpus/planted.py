"""Mistakes that were planted in the privacy layer to see which check finds them."""

import dataclasses
import math
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from tacit.kernels.public.questions import MOVE
from tacit.privacy import SecureNoise, accounting
from tacit.privacy.charges import Charge, GaussianCharge
from tacit.privacy.curator.curator import Curator
from tacit.privacy.events import GaussianEvent
from tacit.privacy.finite import packing
from tacit.privacy.finite.subset import SubsetSelection
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.local.weighted import LocalWeighted
from tacit_service.config.deployment import Deployment
from tacit_service.storage.witness import Mark, Seen, Witness


class AnsweredAgain(OneCell):
    """The device answers a question about moves again if its own cell is missing."""

    def randomize(self, contribution, publication, noise) -> np.ndarray:
        _, kind, mass = self._asked(contribution, noise)
        row = self._answer(mass, kind, noise)
        if kind == MOVE and not row[int(np.argmax(mass.sum(axis=1)))]:
            row = self._answer(mass, kind, noise)
        return packing.pack(row)


def _paid_once(kind: type) -> type:
    """A mechanism that does not notice that people come back."""

    class Once(kind):
        def __init__(self, statistic: Any, task: Any, *rest: Any, **options: Any) -> None:
            super().__init__(statistic, replace(task, participations=1), *rest, **options)

    return Once


OncePaidBatch = _paid_once(BatchSums)
OncePaidCurator = _paid_once(Curator)
OncePaidReport = _paid_once(LocalWeighted)


class RootPaidBatch(BatchSums):
    """Squares are added up although all contributions may meet under one draw."""

    def __init__(self, statistic: Any, task: Any, *rest: Any, **options: Any) -> None:
        super().__init__(statistic, task, *rest, **options)
        self.event = GaussianEvent(self.event.mu / math.sqrt(task.participations))
        stated = self.guarantee
        self.guarantee = dataclasses.replace(
            stated, mu=self.event.mu, epsilon=self.event.epsilon(stated.delta)
        )


class ShortLaplace(SecureNoise):
    """The sampler is asked for a scale that is a tenth short."""

    def _draw(self, kind, scale: float, count: int) -> list[int]:
        return super()._draw(kind, 0.9 * scale if kind == "laplace" else scale, count)


class RaisedChance(SubsetSelection):
    """The own cell is named a little more often than declared: one in a million times."""

    def encode_secure(self, cell: int) -> np.ndarray:
        return SubsetSelection(self.domain, self.size, self.own + 2**44).encode_secure(cell)


class SilentCell(BatchSums):
    """The last cell of every release has no noise."""

    def draw(self, secret, noise) -> np.ndarray:
        drawn = super().draw(secret, noise)
        drawn[0, -1] = 0
        return drawn


class HalvedCell(BatchSums):
    """The first cell of every release has half the noise."""

    def draw(self, secret, noise) -> np.ndarray:
        drawn = super().draw(secret, noise)
        drawn[0, 0] //= 2
        return drawn


class NewestOnly(Witness):
    """What is two releases behind is taken as it is."""

    def check(self, stored: Mark) -> Seen:
        seen = self.read()
        return super().check(stored) if stored.releases + 1 >= seen.mark.releases else seen


class SoftCap(Curator):
    """Rounds are not counted: the budget alone decides, and it has room for rounding."""

    def _pay(self, secret, rounds: int) -> None:
        due = self._cost(rounds)
        if due > secret.cost:
            charge = GaussianCharge(due - secret.cost)
            secret.filter.commit(secret.filter.reserve(charge))
            secret.cost = due


def charged_by_epsilon(deployment: Deployment) -> Charge:
    """The charge is worked out from the stated epsilon, which calibration keeps a hair below."""
    stated = deployment.guarantee
    return GaussianCharge(accounting.gaussian_mu(stated.epsilon, stated.delta) ** 2)


def cancelling_mu(epsilon: float, delta: float) -> float:
    """Calibrated with a difference of logarithms that has no digits left."""
    with mock.patch.object(accounting, "_CANCELS", 0.0):
        return accounting.gaussian_mu(epsilon, delta)
