"""What an agent is: a recipe that, given a task, plugs a pipeline together.

Annotations are objects here, not texts: the fields of a dataclass that is inherited from keep
theirs in a module that does not know the names in them.
"""

import dataclasses
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.base import Planner
from tacit.privacy import Exact
from tacit.schedules import Schedule, every_user
from tacit.statistics.base import Statistic
from tacit.task.participation import Teaches
from tacit.task.task import Task
from tacit.validate import choice, flag, integer, number

Ranges = Mapping[str, Mapping[str, Any]]
"""By parameter, the bounds that ``validate.number`` and ``validate.integer`` take."""

RANGES: Ranges = {
    "epsilon": {"low": 0.0, "low_open": True},
    "delta": {"low": 0.0, "high": 1.0, "low_open": True, "high_open": True},
    "beta": {"low": 1e-100, "high": 1.0, "high_open": True},
    "bonus_scale": {"low": 0.0, "high": 1e9},
    "ridge": {"low": 1e-9, "high": 1e9},
    "every": {"low": 1},
}
"""What the parameters that many agents have may be."""


class Agent(ABC):
    """Subclass it (as a dataclass: its fields are its parameters) to add an algorithm."""

    name: ClassVar[str]
    """The name results and listings show."""

    source: ClassVar[Literal["people", "log"]] = "people"
    """What it learns from: people who take part, or a log that is there already."""

    families: ClassVar[tuple[str, ...]] = ("tabular",)
    """Kinds of problems whose structure it uses: tabular, linear, mixture, control."""

    models: ClassVar[tuple[str, ...]] = ("none",)
    """Privacy models it can give: local, joint, shuffle, none; empty if it collects nothing."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Facts of the problem that must be revealed to it; every result lists them."""

    uses: ClassVar[frozenset[str] | None] = None
    """Further facts it can use if they are revealed; None for any."""

    masks: ClassVar[bool] = False
    """Whether it plays allowed actions only, and plans with nothing else: it must say so before it
    is given a task that forbids some."""

    batch_parameter: ClassVar[str | None] = None
    """The parameter that takes the least batch, where noise is calibrated for a fixed schedule: the
    service sets it."""

    later: ClassVar[frozenset[str]] = frozenset()
    """Parameters that the first agents of this name did not have."""

    @abstractmethod
    def bind(self, task: Task) -> BoundAgent:
        """Fit the agent to a task, or say why it does not fit."""

    def parameters(self) -> dict[str, Any]:
        """Parameters by name, as results report them."""
        agent: Any = self
        if not dataclasses.is_dataclass(agent):
            return {}
        values = {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent)}
        return {name: v.item() if isinstance(v, np.generic) else v for name, v in values.items()}

    def terms(self) -> dict[str, Any]:
        """Parameters as devices agree to them: later ones where they are not the default.

        So tasks that began before there were these keep their ids.
        """
        agent: Any = self
        defaults = {f.name: f.default for f in dataclasses.fields(agent) if f.name in self.later}
        parameters = self.parameters().items()
        return {name: x for name, x in parameters if name not in defaults or x != defaults[name]}

    def notes(self, task: Task) -> tuple[str, ...]:
        """What a reader of the result should know about this agent on this task."""
        return ()

    def teaches(self, task: Task) -> Teaches:
        """Which participations of a person teach, where a task's rule leaves it to the agent.

        Where devices add the noise one report at full epsilon teaches more than many that share
        it; all others count every participation, and pay for a group.
        """
        model = getattr(self, "model", self.models[0] if self.models else "none")
        return "first" if model == "local" else "every"

    def users_needed(self, task: Task) -> int | None:
        """About how many users it takes until it learns anything, by a rule; None without one."""
        return None

    def require_family(self, task: Task, family: str) -> None:
        """Refuse tasks of another family."""
        if task.family != family:
            raise InvalidInput(
                f"{self.name} learns {family} problems, but this problem is {task.family}; "
                "`tacit list agents` shows which agent learns which family"
            )
        if family == "tabular" and task.masked and not self.masks:
            raise InvalidInput(
                f"{self.name} does not know which actions are allowed where, and this problem "
                "forbids some; choose an agent for tables, such as psrl, tacit-joint or "
                "tacit-local"
            )

    def require_homogeneous(self, task: Task) -> None:
        """Refuse tasks whose stages may differ: this agent adds them up."""
        if not task.homogeneous:
            raise InvalidInput(
                f"{self.name} adds up the stages, so it needs a problem declared homogeneous"
            )


class CheckedAgent(Agent):
    """An agent whose parameters are checked, by the fields of its dataclass, when it is made.

    Words must be among those of their ``Literal``; numbers within the ``ranges`` of the class or,
    where many agents have the same parameter, within ``RANGES``.
    """

    ranges: ClassVar[Ranges] = {}

    def __post_init__(self) -> None:
        hints, ranges = typing.get_type_hints(type(self)), {**RANGES, **self.ranges}
        for field in dataclasses.fields(typing.cast(Any, self)):
            name, value, hint = field.name, getattr(self, field.name), hints[field.name]
            words = typing.get_origin(hint) is Literal
            kind, *others = (hint,) if words else typing.get_args(hint) or (hint,)
            if value is None and NoneType in others:
                continue
            if typing.get_origin(kind) is Literal:
                choice(value, name, typing.get_args(kind))
            elif kind is bool:
                flag(value, name)
            elif kind is int:
                integer(value, name, **ranges.get(name, {}))
            else:
                number(value, name, **ranges.get(name, {}))


class FamilyAgent(CheckedAgent):
    """One that is fitted to tasks of one family, and uses no facts unless it says so."""

    family: ClassVar[str] = "tabular"
    """Of the tasks that it is fitted to."""

    uses: ClassVar[frozenset[str] | None] = frozenset()

    def bind(self, task: Task) -> BoundAgent:
        """Fit the agent to a task, or say why it does not fit."""
        self.require_family(task, self.family)
        return self.fitted(task)

    @abstractmethod
    def fitted(self, task: Task) -> BoundAgent:
        """The parts of its pipeline, for a task of its family."""


class TableAgent(FamilyAgent):
    """One for tables, that plays allowed actions only."""

    masks: ClassVar[bool] = True


class LinearAgent(FamilyAgent):
    """One for linear MDPs, and for tables as such."""

    families: ClassVar[tuple[str, ...]] = ("tabular", "linear")


class MixtureAgent(FamilyAgent):
    """One for linear mixtures, and for tables as such."""

    families: ClassVar[tuple[str, ...]] = ("tabular", "mixture")


class ControlAgent(FamilyAgent):
    """One for linear control, which is told where people begin."""

    family: ClassVar[str] = "lq"
    families: ClassVar[tuple[str, ...]] = ("control",)
    needs: ClassVar[frozenset[str]] = frozenset({"start"})
    uses: ClassVar[frozenset[str] | None] = frozenset({"noise"})


class SearchAgent(FamilyAgent):
    """One for whatever can be played, episode by episode."""

    family: ClassVar[str] = "episodic"
    families: ClassVar[tuple[str, ...]] = ("episodic",)


@dataclass(frozen=True)
class PrivateAgent(CheckedAgent):
    """One with noise, of the joint model unless it says so.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
    """

    models: ClassVar[tuple[str, ...]] = ("joint",)
    epsilon: float
    delta: float = 1e-5

    def requested(self) -> tuple[float, float]:
        """Epsilon and delta asked for, for the privatizers whose guarantee says them."""
        return float(self.epsilon), float(self.delta)


def not_private(
    task: Task, statistic: Statistic, planner: Planner, schedule: Schedule = every_user
) -> BoundAgent:
    """A pipeline whose sums are exact."""
    return BoundAgent(task, statistic, Exact(statistic, task), planner, schedule)
