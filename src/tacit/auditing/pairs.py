"""Which two lives to audit: as far apart as the mechanism can be made to show.

A statistic knows a bad pair of its own. Here it is improved by trying changes, step by step, of
both lives and of the published numbers that the statistic reads, as an operator with bad intent
could. How far apart a pair is, over what the guarantee pays for, is printed with every audit: an
audit of a pair that is close together shows little, whatever the noise.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import IntArray
from tacit.driver import BoundAgent
from tacit.publication import Publication
from tacit.statistics.base import Steered
from tacit.trajectory import Trajectory, VectorTrajectory

TRIES = 2000
"""Changes that are tried on a pair, each kept if the pair does not come closer together."""

FREE = ("V",)
"""Published arrays whose entries may be rearranged within a row: any values are allowed there."""


@dataclass(frozen=True, eq=False)
class Case:
    """Two lives, and the publication under which they are audited.

    Attributes:
        name: which kind of report it brings out; empty where there is only one.
        lives: the two trajectories, world 0 and world 1.
        publication: what the person acts on.
        distance: how far apart the lives are, over what the guarantee pays for.
    """

    name: str
    lives: tuple[Trajectory, Trajectory]
    publication: Publication
    distance: float


def contribution(
    bound: BoundAgent, life: Trajectory, publication: Publication, coin: int
) -> IntArray:
    """What a life contributes."""
    out = np.zeros(bound.statistic.layout.size, dtype=np.int64)
    bound.statistic.contribute(life, publication, coin, out)
    return out


def worst_cases(
    bound: BoundAgent, publication: Publication, rng: np.random.Generator
) -> list[Case]:
    """A bad pair for every kind of report, improved by search."""
    statistic = bound.statistic
    contexts: Any = statistic.worst_contexts() if isinstance(statistic, Steered) else {"": {}}
    cases = []
    for name, context in contexts.items():
        aimed = aimed_at(publication, context)
        lives = statistic.worst_pair()
        start = Case(name, lives, aimed, _distance(bound, lives, aimed))
        cases.append(_improved(bound, start, rng))
    return cases


def aimed_at(publication: Publication, context: Any) -> Publication:
    """A publication with some of its numbers replaced."""
    return dataclasses.replace(publication, context={**publication.context, **context})


def _distance(
    bound: BoundAgent, lives: tuple[Trajectory, Trajectory], publication: Publication
) -> float:
    first, second = (contribution(bound, life, publication, 0) for life in lives)
    return bound.privatizer.moved(first, second, publication)


def _improved(bound: BoundAgent, case: Case, rng: np.random.Generator) -> Case:
    """Climb: changes of one step or of one published number, as long as some remain to be tried."""
    for _ in range(TRIES):
        if case.distance > 1.0 - 1e-6:
            break
        lives, publication = _changed(bound, case, rng)
        distance = _distance(bound, lives, publication)
        if distance >= case.distance:
            case = Case(case.name, lives, publication, distance)
    return case


def _changed(
    bound: BoundAgent, case: Case, rng: np.random.Generator
) -> tuple[tuple[Trajectory, Trajectory], Publication]:
    """The same case but for one thing."""
    free = [name for name in FREE if name in case.publication.context]
    if free and rng.random() < 0.2:
        values = np.array(case.publication.context[free[0]])
        row = rng.integers(len(values))
        values[row, rng.integers(values.shape[1])] = values[row, rng.integers(values.shape[1])]
        return case.lives, aimed_at(case.publication, {free[0]: values})
    which = int(rng.integers(2))
    lives = list(case.lives)
    lives[which] = _other_step(bound, lives[which], rng)
    if rng.random() < 0.3:  # some improvements need both lives to change at once
        lives[1 - which] = _other_step(bound, lives[1 - which], rng)
    return (lives[0], lives[1]), case.publication


def _other_step(bound: BoundAgent, life: Trajectory, rng: np.random.Generator) -> Trajectory:
    """The same life but for one step, or for one stretch of equal steps."""
    states, actions, rewards = (
        np.array(part) for part in (life.states, life.actions, life.rewards)
    )
    steps = slice(None) if rng.random() < 0.3 else slice(h := int(rng.integers(len(states))), h + 1)
    if isinstance(life, VectorTrajectory):
        kind = rng.integers(3)
        if kind == 0:
            states[steps] = rng.choice([-1.0, 0.0, 1.0], size=states.shape[1]) * rng.random()
        elif kind == 1:
            states[steps] *= rng.choice([-1.0, 0.5, 2.0])
        else:
            actions[steps] = rng.normal(size=actions.shape[1])
        return VectorTrajectory(states, actions, rewards)
    sizes = bound.task.sizes
    kind = rng.integers(3)
    if kind == 0:
        states[steps] = rng.integers(sizes["states"])
    elif kind == 1:
        actions[steps] = rng.integers(sizes["actions"])
    else:
        rewards[steps] = float(rng.integers(2))
    return Trajectory(states, actions, rewards)
