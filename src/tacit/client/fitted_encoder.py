"""What a device does that has the whole package: fit the task's agent for itself.

So it can check what a curator states, and make reports of noisy numbers. A device without it (the
distribution tacit-client) makes reports by the rules alone.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.agents import agents, make_agent
from tacit.client.encoders import ReportEncoder, dense, sparse
from tacit.client.errors import Declined
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.privacy.guarantee import Guarantee
from tacit.publication import Publication
from tacit.statistics.base import contribution_of
from tacit.trajectory import Trajectory
from tacit.wire import documents, messages, strict_json
from tacit.wire.strict_json import text

if TYPE_CHECKING:
    from tacit.privacy.noise import Noise

_SLACK = 1 + 1e-9
"""Two machines may round a logarithm differently."""


def fit(answer: Mapping[str, Any]) -> BoundAgent:
    """The agent of a task, fitted to it on this device."""
    return _fit(strict_json.canonical([answer["task"], answer["agent"]]))


@functools.lru_cache(maxsize=16)
def _fit(document: bytes) -> BoundAgent:
    """Fit the agent; its name must be one of ours, so nothing foreign is ever run."""
    task, agent = json.loads(document)
    name, parameters = text(agent.get("name"), "the agent's name"), agent.get("parameters")
    if not isinstance(parameters, dict):
        raise InvalidInput("the agent's parameters must be an object")
    if agents.entry(name).package:
        raise InvalidInput(f"the agent {name} is not one of tacit's own, and devices run no other")
    try:
        return make_agent(name, **parameters).bind(documents.task_from_json(task))
    except TypeError:
        raise InvalidInput(f"the parameters of {name} are of the wrong types") from None


def check(bound: BoundAgent, stated: Guarantee) -> Guarantee:
    """The guarantee that the agent's noise gives, if the stated one promises no more."""
    own = bound.guarantee
    mu = math.inf if own.mu is None else own.mu
    if stated.mu is not None and mu > stated.mu * _SLACK:
        raise Declined(
            f"the collector states Gaussian noise of mu {stated.mu:g}, which its terms do not give"
        )
    if own.epsilon > stated.epsilon * _SLACK or own.delta > stated.delta * _SLACK:
        raise Declined(
            f"the collector states epsilon {stated.epsilon:g}, delta {stated.delta:g}, but its "
            f"terms give epsilon {own.epsilon:.6g}, delta {own.delta:g}"
        )
    return own


class VectorEncoder(ReportEncoder):
    """The agent's own statistic and noise: one noisy number for each of its cells."""

    def __init__(self, bound: BoundAgent) -> None:
        messages.local_privatizer(bound)
        self._bound = bound

    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """The clipped contribution."""
        return sparse(contribution_of(self._bound.statistic, lived, publication, coin))

    def message(self, answer: Any, publication: Publication, coin: int, noise: Noise) -> str:
        """The contribution with noise, inspected as the collector will."""
        contribution = dense(answer, self._bound.statistic.layout.size)
        return messages.pack_message(
            messages.device_message(self._bound, contribution, publication, coin, noise)
        )
