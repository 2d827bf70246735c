"""One step of a tabular trajectory: the answer to one question, or all to draw one from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels.public import questions as asking
from tacit.kernels.raw.cells import step_reward, step_state
from tacit.publication import Publication
from tacit.statistics.base import Block, BoundedSum, Layout, Norm, counted
from tacit.statistics.counts import staying
from tacit.task.pairs import Places, met_places
from tacit.task.task import Task
from tacit.trajectory import Trajectory

_NOTHING = np.zeros(0)


class OneStep(BoundedSum):
    """What was asked of (s_h, r_h, s_{h+1}), at the step h that was asked about.

    See docs/papers/tabular_ldp.md#b1. The question follows from the report's public id and, where
    the publication has ``questions``, from the shares published there: it is the same whatever the
    user lived through. ``question`` marks it. ``cell`` holds mass 1: r_h in (s, 1, s'), the rest in
    (s, 0, s'), in steps of 2^-24; whoever randomizes the cell draws rho from the two. What was not
    asked for is written as 0. Actions are not read (docs/papers/tabular_ldp.md#b2). States and
    rewards are clipped; a trajectory that ends early goes on in state 0 with reward 0.

    States are told as places (``tacit.task.pairs.Places``): whoever is in a terminal state at that
    step has one and the same answer, the first cell of the end, and nothing of it is told further.
    """

    def __init__(self, task: Task) -> None:
        self.places = met_places(task.pairs)
        self.horizon = task.horizon
        question = Block("question", (self.horizon, asking.KINDS))
        self.layout = Layout([question, counted("cell", *_cells(self.places))])

    def question(self, publication: Publication, coin: int) -> tuple[int, int]:
        """The step a report of that id is about, and the kind of question."""
        asked = self._asked(publication)
        if asked is None:
            number = asking.in_turn(coin, self.horizon)
        else:
            number = asking.pick_question(asked, coin)
        h, kind = divmod(number, asking.KINDS)
        return h, asking.REWARD if h == self.horizon - 1 else kind

    def questions(
        self, publication: Publication, coins: Sequence[int]
    ) -> tuple[IntArray, IntArray]:
        """Steps and kinds of many reports at once."""
        asked = self._asked(publication)
        ids = np.array(coins, dtype=np.int64)
        numbers = np.empty_like(ids)
        asking.pick_questions(_NOTHING if asked is None else asked, self.horizon, ids, numbers)
        h, kind = numbers // asking.KINDS, numbers % asking.KINDS
        return h, np.where(h == self.horizon - 1, asking.REWARD, kind)

    def _asked(self, publication: Publication) -> Array | None:
        """Cumulative shares of the questions, if they were published."""
        asked = publication.context.get("questions")
        return None if asked is None or asked.shape != (self.horizon * asking.KINDS,) else asked

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Overwrite ``out`` with the answer to the report's question."""
        out[:] = 0
        views = self.layout.views(out)
        h, kind = self.question(publication, coin)
        views["question"][h, kind] = 1
        _mark(trajectory, h, kind, self.places, views["cell"])

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Replacing a user moves mass 1 from one cell to another; the question does not move."""
        if replaced:
            return w["cell"] * (2.0 if norm == "l1" else math.sqrt(2.0))
        return w["question"] + w["cell"] if norm == "l1" else math.hypot(w["question"], w["cell"])

    def worst_contexts(self) -> dict[str, dict[str, Array]]:
        """Each kind of question alone, about any step that it can be asked of."""
        contexts = {}
        kinds = {"steps": asking.STEP, "moves": asking.MOVE, "rewards": asking.REWARD}
        for name, kind in kinds.items():
            asked = np.zeros((self.horizon, asking.KINDS))
            asked[: self.horizon if kind == asking.REWARD else self.horizon - 1, kind] = 1.0
            if asked.any():
                contexts[name] = {"questions": np.cumsum(asked) / asked.sum()}
        return contexts

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in the first place with reward 1, against always in the last one without.

        They differ at every step, so in the answer to every question.
        """
        return _worst_pair(self.places, self.horizon)


class EachStep(BoundedSum):
    """(s_h, r_h, s_{h+1}) at every step h, for devices that draw one of them in secret.

    Why: docs/papers/tabular_ldp.md#b8-crowd. ``cell`` holds mass 1 for every step, as in
    :class:`OneStep`. Not all of it may leave the device: whoever randomizes it picks a step with a
    coin of its own and forgets the others.
    """

    def __init__(self, task: Task) -> None:
        self.places = met_places(task.pairs)
        self.horizon = task.horizon
        self.layout = Layout([counted("cell", self.horizon, *_cells(self.places))])

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Overwrite ``out`` with the cells of all steps; the report's id decides nothing."""
        out[:] = 0
        cells = self.layout.views(out)["cell"]
        for h in range(self.horizon):
            kind = asking.REWARD if h == self.horizon - 1 else asking.STEP
            _mark(trajectory, h, kind, self.places, cells[h])

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Replacing a user moves mass 1 from one cell to another at every step."""
        moved = self.horizon * (1 + replaced)
        return w["cell"] * (moved if norm == "l1" else math.sqrt(moved))

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in the first place with reward 1, against always in the last one without."""
        return _worst_pair(self.places, self.horizon)


def _cells(places: Places) -> tuple[int, int, int]:
    """Shape of the cells (s, rho, s')."""
    return len(places.state), 2, len(places.state)


def _worst_pair(places: Places, horizon: int) -> tuple[Trajectory, Trajectory]:
    first, last = int(places.state[0]), int(places.state[-1])
    return staying(horizon, first, 0, 1.0), staying(horizon, last, 0, 0.0)


def _mark(trajectory: Trajectory, h: int, kind: int, places: Places, cell: IntArray) -> None:
    """Mass 1 for a question about step h into ``cell`` [N, 2, N], which is zero on entry."""
    S = len(places.place)
    s = places.place[step_state(trajectory.states, h, S)]
    if s == places.live:  # over: nothing more is told
        cell[s, 0, 0] = STEPS
        return
    following = 0
    if kind != asking.REWARD:
        following = places.place[step_state(trajectory.states, h + 1, S)]
    reward = 0 if kind == asking.MOVE else step_reward(trajectory.rewards, h)
    cell[s, 1, following] = reward
    cell[s, 0, following] = STEPS - reward
