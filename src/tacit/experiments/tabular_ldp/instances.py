"""The random MDPs of the tabular paper, screened before anything is run.

The paper does not say whether its 20 runs share one MDP. Every curve is averaged over several
seeds, and seeds on which no policy can lose much are reported instead of run
(docs/papers/tabular_ldp.md#environments).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from tacit.experiments.figure import Named, Size
from tacit.problems import TabularMDP
from tacit.problems.benchmarks import random_mdp

LEAST_SPREAD = 0.1
"""A seed is flat if the best and the worst policy differ by less than this at the start."""


@dataclass(frozen=True)
class Instance:
    """One seed of random-mdp with S = A = H = 2, and what the worst policy loses per episode."""

    seed: int
    spread: float

    @property
    def flat(self) -> bool:
        """Whether there is next to nothing to learn."""
        return self.spread < LEAST_SPREAD

    @property
    def problem(self) -> Named:
        """The problem of this seed."""
        return Named("random-mdp", {"seed": self.seed})


def _spread(problem: TabularMDP) -> float:
    """V* minus the value of the worst policy, which is the best one for the rewards 1 - r."""
    opposite = TabularMDP(problem.P[0], 1.0 - problem.R[0], problem.horizon, problem.initial)
    return problem.optimal_value() - (problem.horizon - opposite.optimal_value())


def _all() -> Iterator[Instance]:
    for seed in count():
        yield Instance(seed, _spread(random_mdp(seed=seed)))


def screened(wanted: int) -> tuple[list[Instance], list[Instance]]:
    """The first seeds that are not flat, and the flat ones met on the way."""
    kept: list[Instance] = []
    flat: list[Instance] = []
    for instance in _all():
        (flat if instance.flat else kept).append(instance)
        if len(kept) == wanted:
            break
    return kept, flat


def problems(wanted: int) -> tuple[Named, ...]:
    """The problems a curve is averaged over."""
    return tuple(instance.problem for instance in screened(wanted)[0])


def notes(size: Size) -> list[str]:
    """Which seeds were used, which were flat, and the settings the paper leaves open."""
    kept, flat = screened(size.instances)
    told = ["random-mdp seeds " + ", ".join(str(i.seed) for i in kept)]
    if flat:
        listed = ", ".join(f"{i.seed} ({i.spread:.3g})" for i in flat)
        told.append(
            f"flat seeds, not run (no policy loses more per episode than the number): {listed}"
        )
    told.append(
        "start state 0, alpha = 2 and failure probability 0.1 are ours: the paper gives none "
        "(docs/papers/tabular_ldp.md#e15, the page of all E numbers)"
    )
    return told
