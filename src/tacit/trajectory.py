"""The raw types: what one user lived through, and what many did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import RawDataLeak


class Trajectory:
    """States s_1..s_{H+1}, actions a_1..a_H and rewards r_1..r_H of one user. Private.

    It exists on the user's side of the wall (or, under joint privacy, inside the curator) and ends
    in ``Statistic.contribute``. Printing shows shapes only, and it refuses to be pickled, so that
    it cannot slip into a log, a checkpoint or another process.
    """

    __slots__ = ("states", "actions", "rewards")
    states: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    rewards: Array

    def __init__(self, states: IntArray, actions: IntArray, rewards: Array) -> None:
        self.states = np.asarray(states, dtype=np.int64)
        self.actions = np.asarray(actions, dtype=np.int64)
        self.rewards = np.asarray(rewards, dtype=np.float64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(steps={len(self.actions)}, content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak("a Trajectory is raw user data and cannot be pickled or copied")

    def __getstate__(self) -> Any:
        raise RawDataLeak("a Trajectory is raw user data and has no state to hand out")


class VectorTrajectory(Trajectory):
    """The same for real vectors: states [H+1, n], inputs [H, d] as actions, rewards (minus costs).

    Just as private: hidden when printed, never pickled.
    """

    __slots__ = ()

    def __init__(self, states: Array, actions: Array, rewards: Array) -> None:
        self.states = np.asarray(states, dtype=np.float64)
        self.actions = np.asarray(actions, dtype=np.float64)
        self.rewards = np.asarray(rewards, dtype=np.float64)


class Lives(NamedTuple):
    """States, actions and rewards of many users, one per row: as private as each of them."""

    states: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    rewards: Array

    def __repr__(self) -> str:
        return f"Lives(users={len(self.rewards)}, content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak("Lives are raw user data and cannot be pickled or copied")


class Attendees(NamedTuple):
    """Who lived through some participations, with their memory: as private as they are."""

    rows: IntArray  # by participation, the person's row in the memory
    taught: npt.NDArray[np.uint8]
    spent: IntArray
    forget: bool  # every row is a person of their own, and the memory is blank again after it

    def __repr__(self) -> str:
        return f"Attendees(participations={len(self.rows)}, content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak("Attendees hold what people did and cannot be pickled or copied")


class Log(NamedTuple):
    """Everything in a log, one row per step, people after one another: as private as each of them.

    The rows of person p are begin[p] <= i < begin[p + 1], episode by episode and step by step
    (``kernels.raw.log_rows.arrange``).
    """

    begin: IntArray  # [people + 1]
    opens: npt.NDArray[Any]  # 1 where an episode begins
    step: npt.NDArray[Any]
    state: npt.NDArray[Any]
    action: npt.NDArray[Any]
    reward: npt.NDArray[Any]
    after: npt.NDArray[Any]  # the next state, -1 where it was not recorded
    chance: npt.NDArray[Any]  # with which the action was taken, 0 where it was not recorded

    @property
    def people(self) -> int:
        """How many people are in it."""
        return len(self.begin) - 1

    def __repr__(self) -> str:
        return "Log(content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak("a Log is raw user data and cannot be pickled or copied")


def together(trajectories: Sequence[Trajectory]) -> Lives:
    """Trajectories of one length, one per row."""
    return Lives(
        np.stack([trajectory.states for trajectory in trajectories]),
        np.stack([trajectory.actions for trajectory in trajectories]),
        np.stack([trajectory.rewards for trajectory in trajectories]),
    )
