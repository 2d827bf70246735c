"""Which two lives to audit: as far apart as the mechanism can be made to show.

A statistic knows a bad pair of its own. Here it is improved by trying changes, step by step, of
both lives and of the published numbers that the statistic reads, as an operator with bad intent
could. How far apart a pair is, over what the guarantee pays for, is printed with every audit: an
audit of a pair that is close together shows little, whatever the noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.publication import Publication
from tacit.statistics.base import ReadsPublication, contribution_of
from tacit.trajectory import Trajectory, VectorTrajectory

TRIES = 2000
"""Changes that are tried on a pair, each kept if the pair does not come closer together."""

PATIENCE = 300
"""Changes in a row that bring nothing, after which the search is over."""

CANARY_TRIES = 500
"""Relabellings tried in search of orthogonal pairs."""

NEARLY = 0.98
"""A further pair is as good as the first if it is this share as far apart."""

FREE = ("V",)
"""Published arrays whose entries may be rearranged within a row: any values are allowed there."""


Lives = tuple[Trajectory, Trajectory]


class Apart(Protocol):
    """A pair that lies so far apart, over what the guarantee pays for."""

    @property
    def distance(self) -> float:
        """How far."""


P = TypeVar("P", bound=Apart)


@dataclass(frozen=True, eq=False)
class NeighbourPair:
    """Two lives, and the publication under which they are audited.

    Attributes:
        name: which kind of report it brings out; empty where there is only one.
        lives: the two trajectories, world 0 and world 1.
        publication: what the person acts on, ``context`` included.
        context: what takes the place of published numbers, for this person.
        distance: how far apart the lives are, over what the guarantee pays for.
    """

    name: str
    lives: Lives
    publication: Publication
    context: Mapping[str, npt.NDArray[Any]]
    distance: float


def contribution(
    bound: BoundAgent, life: Trajectory, publication: Publication, coin: int
) -> IntArray:
    """What a life contributes."""
    return contribution_of(bound.statistic, life, publication, coin)


def worst_cases(
    bound: BoundAgent, publication: Publication, rng: np.random.Generator
) -> list[NeighbourPair]:
    """A bad pair for every kind of report that is ever made, improved by search."""
    cases = []
    for name, context in worst_contexts(bound).items():
        aimed, lives = aimed_at(publication, context), bound.statistic.worst_pair()
        try:
            distance = _distance(bound, lives, aimed)
        except InvalidInput:  # the privatizer refuses to be asked that, so it is never sent
            continue
        start = NeighbourPair(name, lives, aimed, context, distance)
        cases.append(farthest(start, partial(_changed, bound, rng=rng)))
    return cases


def worst_contexts(bound: BoundAgent) -> Mapping[str, Any]:
    """By kind of report, published numbers that bring out most of a person."""
    statistic: Any = bound.statistic
    return statistic.worst_contexts() if isinstance(statistic, ReadsPublication) else {"": {}}


def canaries(
    bound: BoundAgent, case: NeighbourPair, most: int, rng: np.random.Generator
) -> list[NeighbourPair]:
    """Several pairs, nearly as far apart, that move the sums in orthogonal directions.

    Independent Gaussian noise in orthogonal directions is independent, so one run shows as much as
    that many runs with one pair each.
    """
    cases, moves = [case], [_move(bound, case.lives, case.publication)]
    for _ in range(CANARY_TRIES):
        if len(cases) >= most:
            break
        lives = _relabelled(bound, case.lives, rng)
        distance = _distance(bound, lives, case.publication)
        move = _move(bound, lives, case.publication)
        if distance > NEARLY * case.distance and all(
            abs(move @ other) <= 1e-9 * np.linalg.norm(move) * np.linalg.norm(other)
            for other in moves
        ):
            cases.append(dataclasses.replace(case, lives=lives, distance=distance))
            moves.append(move)
    return cases


def _move(bound: BoundAgent, lives: Lives, publication: Publication) -> Array:
    """How the pair moves the sums, in natural units."""
    first, second = (contribution(bound, life, publication, 0) for life in lives)
    moved: Array = (second - first) * bound.statistic.layout.units
    return moved


def _relabelled(bound: BoundAgent, lives: Lives, rng: np.random.Generator) -> Lives:
    """The same lives with states and actions by other names, or turned around their axes."""
    if isinstance(lives[0], VectorTrajectory):
        turn = rng.permutation(lives[0].states.shape[1])
        signs = rng.choice([-1.0, 1.0], size=len(turn))
        one, two = (
            VectorTrajectory(life.states[:, turn] * signs, life.actions, life.rewards)
            for life in lives
        )
        return one, two
    sizes = bound.task.sizes
    s, a = rng.permutation(sizes["states"]), rng.permutation(sizes["actions"])
    first, second = (Trajectory(s[life.states], a[life.actions], life.rewards) for life in lives)
    return first, second


def aimed_at(publication: Publication, context: Any) -> Publication:
    """A publication with some of its numbers replaced."""
    return dataclasses.replace(publication, context={**publication.context, **context})


def _distance(bound: BoundAgent, lives: Lives, publication: Publication) -> float:
    first, second = (contribution(bound, life, publication, 0) for life in lives)
    return bound.privatizer.relative_shift(first, second, publication)


def farthest(pair: P, change: Callable[[P], P]) -> P:
    """Climb: changes, each kept if the pair does not come closer together."""
    in_vain = 0
    for _ in range(TRIES):
        if pair.distance > 1.0 - 1e-6 or in_vain > PATIENCE:
            break
        other = change(pair)
        in_vain = 0 if other.distance > pair.distance + 1e-9 else in_vain + 1
        pair = other if other.distance >= pair.distance else pair
    return pair


def _changed(bound: BoundAgent, case: NeighbourPair, rng: np.random.Generator) -> NeighbourPair:
    """The same case but for one step, or one published number."""
    free = [name for name in FREE if name in case.context]
    if free and rng.random() < 0.2:
        values = np.array(case.context[free[0]])
        row = rng.integers(len(values))
        values[row, rng.integers(values.shape[1])] = values[row, rng.integers(values.shape[1])]
        context = {**case.context, free[0]: values}
        aimed = aimed_at(case.publication, context)
        distance = _distance(bound, case.lives, aimed)
        return dataclasses.replace(case, context=context, publication=aimed, distance=distance)
    which = int(rng.integers(2))
    one, two = case.lives[which], case.lives[1 - which]
    one = other_step(bound, one, rng)
    if rng.random() < 0.3:  # some improvements need both lives to change at once
        two = other_step(bound, two, rng)
    lives = (two, one) if which else (one, two)
    distance = _distance(bound, lives, case.publication)
    return dataclasses.replace(case, lives=lives, distance=distance)


def other_step(bound: BoundAgent, life: Trajectory, rng: np.random.Generator) -> Trajectory:
    """The same life but for one step, or for one stretch of equal steps."""
    states, actions, rewards = map(np.array, (life.states, life.actions, life.rewards))
    steps = slice(None) if rng.random() < 0.3 else slice(h := int(rng.integers(len(states))), h + 1)
    kind = rng.integers(3)
    if isinstance(life, VectorTrajectory):
        if kind == 0:
            states[steps] = rng.choice([-1.0, 0.0, 1.0], size=states.shape[1]) * rng.random()
        elif kind == 1:
            states[steps] *= rng.choice([-1.0, 0.5, 2.0])
        else:
            actions[steps] = rng.normal(size=actions.shape[1])
        return VectorTrajectory(states, actions, rewards)
    sizes = bound.task.sizes
    if kind == 0:
        states[steps] = rng.integers(sizes["states"])
    elif kind == 1:
        actions[steps] = rng.integers(sizes["actions"])
    else:
        rewards[steps] = float(rng.integers(2))
    return Trajectory(states, actions, rewards)
