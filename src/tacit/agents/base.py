"""What an agent is: a recipe that, given a task, plugs a pipeline together."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.task import Task


class Agent(ABC):
    """Subclass it (as a dataclass: its fields are its parameters) to add an algorithm."""

    name: ClassVar[str]
    """The name results and listings show."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Facts of the problem that must be revealed to it; every result lists them."""

    uses: ClassVar[frozenset[str] | None] = None
    """Further facts it can use if they are revealed; None for any."""

    batch_parameter: ClassVar[str | None] = None
    """The parameter that takes the least batch, where noise is calibrated for a fixed schedule: the
    service sets it."""

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

    def notes(self, task: Task) -> tuple[str, ...]:
        """What a reader of the result should know about this agent on this task."""
        return ()

    def require_family(self, task: Task, family: str) -> None:
        """Refuse tasks of another family."""
        if task.family != family:
            raise InvalidInput(
                f"{self.name} learns {family} problems, but this problem is {task.family}; "
                "`tacit list agents` shows which agent learns which family"
            )

    def require_homogeneous(self, task: Task) -> None:
        """Refuse tasks whose stages may differ: this agent adds them up."""
        if not task.homogeneous:
            raise InvalidInput(
                f"{self.name} adds up the stages, so it needs a problem declared homogeneous"
            )
