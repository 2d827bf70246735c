"""The terms of a task as the device reads them, and the guarantee it works out for itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tacit.client import encoders
from tacit.client.errors import Declined
from tacit.errors import InvalidInput, TacitError
from tacit.privacy.guarantee import Guarantee
from tacit.task.task import Task
from tacit.util import durations
from tacit.validate import integer
from tacit.wire import documents
from tacit.wire.report_rules import read_rules, rules_hash, rules_of, rules_sizes
from tacit.wire.strict_json import canonical, real, text, whole

try:
    from tacit.client import fitted_encoder
except ImportError:  # the distribution tacit-client, which makes reports by the rules alone
    fitted_encoder = None  # type: ignore[assignment]

Model = Literal["local", "joint"]


@dataclass(frozen=True, eq=False)
class Terms:
    """What a user agrees to by taking part.

    Attributes:
        task_id: hash of everything below that matters; the same for ever.
        name: what the operator calls the task.
        model: "local" (only randomized reports leave the device) or "joint" (raw trajectories do).
        task: the public task.
        reports: how they are made here.
        rules: hash of the rules by which they are; None of a task that was joined before there were
            such hashes.
        guarantee: worked out on this device from the noise that will be added.
        reward_range: what rewards may be; mapped to [0, 1], clipped. Of a search: what the return
            of an episode may be, clipped.
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
    reports: encoders.ReportEncoder
    rules: str | None
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
    def ticketed(self) -> bool:
        """Whether a participation is counted when it begins, as those of a search are."""
        return self.task.family == "episodic"

    @property
    def sending(self) -> str:
        """What the time of a report tells about its user, in a sentence for the consent screen."""
        return durations.when_sent(self.task.duration, self.delay)

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


def read_terms(answer: object, versions: Sequence[int] = (documents.VERSION,)) -> Terms:
    """Judge a collector's description of its task; decline what does not add up.

    ``versions`` of the protocol are understood: those of a stored description may be older.
    """
    if not isinstance(answer, Mapping):
        raise Declined("the collector did not describe its task")
    if answer.get("wire") not in versions:
        raise Declined(
            f"the collector speaks version {answer.get('wire')!r} of the protocol, this device "
            f"version {documents.VERSION}; update the older one"
        )
    try:
        return _read(answer)
    except (InvalidInput, KeyError) as error:
        raise Declined(f"the collector's description of its task is wrong: {error}") from None


def _read(answer: Mapping[str, Any]) -> Terms:
    identity = answer["task_id"]
    if identity not in [documents.task_id(answer, form) for form in documents.terms_forms(answer)]:
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
    task = documents.task_from_json(answer["task"])
    if task.lifetime and ids == "token":
        raise InvalidInput("reports that are bounded together have ids that devices draw")
    if task.family != "episodic" and not {"states", "actions"} <= set(task.sizes):
        raise InvalidInput("devices take part in tasks with states and actions only")
    S, A = task.sizes["states"], task.sizes.get("actions", 0)
    rules = read_rules(answer["rules"]) if "rules" in answer else None
    guarantee, reports = _judge(answer, task, rules)
    labels = answer.get("labels") or {}
    return Terms(
        task_id=identity,
        name=text(answer["name"], "name"),
        model="joint" if guarantee.model == "joint" else "local",
        task=task,
        reports=reports,
        rules=None if rules is None else rules_hash(rules),
        guarantee=dataclasses.replace(guarantee, unit=unit),
        reward_range=(low, high),
        absorbing_state=whole(answer["absorbing_state"], "absorbing_state", 0, S - 1),
        states=_names(labels.get("states"), S),
        actions=_names(labels.get("actions"), A) if A else None,
        delay=_delay(answer, task.duration),
        closes=_moment(answer.get("closes")),
        assigned=ids == "token",
        document=canonical({name: answer[name] for name in documents.TERMS}),
        description=answer,
    )


def _judge(
    answer: Mapping[str, Any], task: Task, rules: Mapping[str, Any] | None
) -> tuple[Guarantee, encoders.ReportEncoder]:
    """What is guaranteed, and how reports are made; declined if more is stated than is given.

    The agent is fitted where the whole package is installed. Chances of cells are those of the
    rules: they are what is drawn with, and their epsilon is worked out from them.
    """
    try:
        stated = Guarantee.from_json(answer["guarantee"])
    except (TacitError, KeyError, TypeError, ValueError):
        raise InvalidInput("its guarantee cannot be read") from None
    if stated.rule != task.rule:
        raise InvalidInput("its guarantee is about another rule of participations than its task's")
    bound = None if fitted_encoder is None else fitted_encoder.fit(answer)
    # without the package nobody here computes with mu; epsilon and delta say less, and are enough
    own = dataclasses.replace(stated, mu=None) if bound is None else bound.guarantee
    if own.model not in ("local", "joint"):
        raise Declined(
            f"the task's agent has the privacy model {own.model!r}, which asks users to trust "
            "more than a device can check"
        )
    if answer["model"] != own.model:
        raise Declined(
            f"the collector states the model {answer['model']!r}, but its agent is {own.model}"
        )
    if bound is not None:
        assert fitted_encoder is not None
        own = fitted_encoder.check(bound, stated)
        rules = rules_of(bound) if rules is None else rules
    if rules is None:
        raise InvalidInput("it does not say by which rules reports are made")
    sizes = rules_sizes(task)
    if {name: rules.get(name) for name in sizes} != sizes:
        raise InvalidInput("its rules are those of a task of other sizes")
    kind = rules["report"]
    if (kind in ("trajectory", "return")) != (own.model == "joint"):
        raise InvalidInput(f"its rules ask for a report of {kind!r} in the {own.model} model")
    if kind == "trajectory":
        return own, encoders.TrajectoryEncoder(task)
    if kind == "return":
        return own, encoders.ReturnEncoder()
    if kind in ("cells", "number"):
        exact = encoders.CellEncoder if kind == "cells" else encoders.NumberEncoder
        reports = exact(task, rules)
        if stated.mu is not None or reports.epsilon > stated.epsilon * (1 + 1e-9):
            raise Declined(
                f"the collector states epsilon {stated.epsilon:g}, but the thresholds of its rules "
                f"give epsilon {reports.epsilon:.6g}"
            )
        return dataclasses.replace(own, epsilon=reports.epsilon), reports
    if kind == "numbers" and bound is not None:
        assert fitted_encoder is not None
        return own, fitted_encoder.VectorEncoder(bound)
    raise Declined(
        f"the task asks for a report of {str(kind)[:40]!r}, which this device cannot make; noisy "
        "numbers need the whole package: pip install 'tacit[client,secure]'"
    )


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
