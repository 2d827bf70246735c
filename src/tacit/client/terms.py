"""The terms of a task as the device reads them, and the guarantee it works out for itself."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tacit import timing, wire
from tacit.agents import agents, make_agent
from tacit.client.errors import Declined
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput, TacitError
from tacit.privacy.guarantee import Guarantee
from tacit.task import Task
from tacit.validate import integer
from tacit.wire import real, text, whole

Model = Literal["local", "joint"]

_SLACK = 1 + 1e-9
"""Two machines may round a logarithm differently."""


@dataclass(frozen=True, eq=False)
class Terms:
    """What a user agrees to by taking part.

    Attributes:
        task_id: hash of everything below that matters; the same for ever.
        name: what the operator calls the task.
        model: "local" (only randomized reports leave the device) or "joint" (raw trajectories do).
        task: the public task.
        bound: the agent, fitted to it on this device.
        guarantee: worked out on this device from the noise that will be added.
        reward_range: what rewards may be; mapped to [0, 1], clipped.
        absorbing_state: where users are who left.
        states: names of the states, if they have some.
        actions: names of the actions.
        delay: most seconds for which a report is held after the episode's duration, at random.
        closes: unix time from which on no report is taken; None if there is none.
        assigned: whether the ids of reports follow from the device's token.
        document: the terms as JSON, for the record.
        description: all that was fetched, so that it need not be fetched again.
    """

    task_id: str
    name: str
    model: Model
    task: Task
    bound: BoundAgent
    guarantee: Guarantee
    reward_range: tuple[float, float]
    absorbing_state: int
    states: tuple[str, ...] | None
    actions: tuple[str, ...] | None
    delay: float
    closes: float | None
    assigned: bool
    document: bytes
    description: Mapping[str, Any]

    @property
    def sending(self) -> str:
        """What the time of a report tells about its user, in a sentence for the consent screen."""
        return timing.when_sent(self.task.duration, self.delay)

    def unit_reward(self, reward: float) -> float:
        """A reward in [0, 1]: the declared range, clipped; NaN counts as its low end."""
        low, high = self.reward_range
        share = (float(reward) - low) / (high - low)
        return min(max(share, 0.0), 1.0) if share == share else 0.0

    def state(self, value: int | str) -> int:
        """Number of a state given by number or name."""
        if isinstance(value, str):
            if self.states is None or value not in self.states:
                raise InvalidInput(f"there is no state called {value!r} in this task")
            return self.states.index(value)
        return integer(value, "state", low=0, high=self.task.sizes["states"] - 1)


def read_terms(answer: object, versions: Sequence[int] = (wire.VERSION,)) -> Terms:
    """Judge a collector's description of its task; decline what does not add up.

    ``versions`` of the protocol are understood: those of a stored description may be older.
    """
    if not isinstance(answer, Mapping):
        raise Declined("the collector did not describe its task")
    if answer.get("wire") not in versions:
        raise Declined(
            f"the collector speaks version {answer.get('wire')!r} of the protocol, this device "
            f"version {wire.VERSION}; update the older one"
        )
    try:
        return _read(answer)
    except (InvalidInput, KeyError) as error:
        raise Declined(f"the collector's description of its task is wrong: {error}") from None


def _read(answer: Mapping[str, Any]) -> Terms:
    identity = wire.task_id(answer)
    if answer["task_id"] != identity:
        raise InvalidInput("its id is not the hash of its terms")
    low, high = (real(end, "reward_range") for end in _list(answer["reward_range"], 2))
    if not low < high:
        raise InvalidInput(f"the range of rewards [{low}, {high}] is empty")
    unit = answer["unit"]
    if unit not in ("user", "participation"):
        raise InvalidInput("the unit must be user or participation")
    ids = answer.get("ids", "chosen")
    if ids not in ("token", "chosen"):
        raise InvalidInput("ids must be token or chosen")
    document = wire.canonical({name: answer[name] for name in wire.TERMS})
    bound = _bind(wire.canonical([answer["task"], answer["agent"]]))
    S, A = bound.task.sizes["states"], bound.task.sizes["actions"]
    guarantee = dataclasses.replace(bound.guarantee, unit=unit)
    labels = answer.get("labels") or {}
    terms = Terms(
        task_id=identity,
        name=text(answer["name"], "name"),
        model=_model(guarantee, answer),
        task=bound.task,
        bound=bound,
        guarantee=guarantee,
        reward_range=(low, high),
        absorbing_state=whole(answer["absorbing_state"], "absorbing_state", 0, S - 1),
        states=_names(labels.get("states"), S),
        actions=_names(labels.get("actions"), A),
        delay=_delay(answer, bound.task.duration),
        closes=_moment(answer.get("closes")),
        assigned=ids == "token",
        document=document,
        description=answer,
    )
    if terms.model == "local":
        wire.local_privatizer(bound)
    return terms


@functools.lru_cache(maxsize=16)
def _bind(document: bytes) -> BoundAgent:
    """Fit the agent; its name must be one of ours, so nothing foreign is ever run."""
    task, agent = json.loads(document)
    name, parameters = text(agent.get("name"), "the agent's name"), agent.get("parameters")
    if not isinstance(parameters, dict):
        raise InvalidInput("the agent's parameters must be an object")
    if agents.entry(name).package:
        raise InvalidInput(f"the agent {name} is not one of tacit's own, and devices run no other")
    try:
        bound = make_agent(name, **parameters).bind(wire.task_from_json(task))
    except TypeError:
        raise InvalidInput(f"the parameters of {name} are of the wrong types") from None
    if not {"states", "actions"} <= set(bound.task.sizes):
        raise InvalidInput("devices take part in tasks with states and actions only")
    return bound


def _model(guarantee: Guarantee, answer: Mapping[str, Any]) -> Model:
    """The privacy model that the agent has, which must be the one that was stated."""
    if guarantee.model not in ("local", "joint"):
        raise Declined(
            f"the task's agent has the privacy model {guarantee.model!r}, which asks users to "
            "trust more than a device can check"
        )
    if answer["model"] != guarantee.model:
        raise Declined(
            f"the collector states the model {answer['model']!r}, but its agent is "
            f"{guarantee.model}"
        )
    try:
        stated = Guarantee.from_json(answer["guarantee"])
    except (TacitError, KeyError, TypeError, ValueError):
        raise InvalidInput("its guarantee cannot be read") from None
    mu = math.inf if guarantee.mu is None else guarantee.mu
    if stated.mu is not None and mu > stated.mu * _SLACK:
        raise Declined(
            f"the collector states Gaussian noise of mu {stated.mu:g}, which its terms do not give"
        )
    if guarantee.epsilon > stated.epsilon * _SLACK or guarantee.delta > stated.delta * _SLACK:
        raise Declined(
            f"the collector states epsilon {stated.epsilon:g}, delta {stated.delta:g}, but its "
            f"terms give epsilon {guarantee.epsilon:.6g}, delta {guarantee.delta:g}"
        )
    return guarantee.model


def _delay(answer: Mapping[str, Any], duration: float) -> float:
    """The longest delay; one above the duration would hold reports for as long as one likes."""
    delay = real(answer.get("delay", 0.0), "delay")
    if not 0.0 <= delay <= duration:
        raise InvalidInput(f"the delay of {delay:g} s is not between 0 and the duration")
    return delay


def _moment(value: object) -> float | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(text(value, "closes")).timestamp()
    except ValueError:
        raise InvalidInput("closes must be a time, or nothing") from None


def _list(value: object, size: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != size:
        raise InvalidInput(f"a list of {size} was expected")
    return value


def _names(value: object, size: int) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(text(name, "a label") for name in _list(value, size))
