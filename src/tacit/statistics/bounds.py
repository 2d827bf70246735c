"""Is a trajectory within the declared bounds? For development and tests.

Statistics clip whatever they are given, and that is what the guarantee rests on. These functions
look at raw data: their answers may not leave the device, be logged or decide whether a report is
sent, since a refusal that depends on content is itself a disclosure.
"""

from __future__ import annotations

from tacit.errors import InvalidInput
from tacit.task import Task
from tacit.trajectory import Trajectory


def entries_outside(trajectory: Trajectory, task: Task) -> int:
    """How many entries of a tabular trajectory clipping would change."""
    states, actions, rewards = trajectory.states, trajectory.actions, trajectory.rewards
    outside = (states < 0) | (states >= task.sizes["states"])
    unknown = (actions < 0) | (actions >= task.sizes["actions"])
    unpaid = ~((rewards >= 0.0) & (rewards <= 1.0))
    beyond = max(len(actions) - task.horizon, 0)
    return int(outside.sum() + unknown.sum() + unpaid.sum() + beyond)


def require_within(trajectory: Trajectory, task: Task) -> None:
    """Refuse a trajectory that clipping would change, where a caller asks for refusal."""
    count = entries_outside(trajectory, task)
    if count:
        raise InvalidInput(
            f"{count} entries of the trajectory lie outside the task: states 0 to "
            f"{task.sizes['states'] - 1}, actions 0 to {task.sizes['actions'] - 1}, rewards in "
            f"[0, 1], at most {task.horizon} steps"
        )
