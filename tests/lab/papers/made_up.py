"""Finished curves with regrets of one's own choice."""

from collections.abc import Sequence

import numpy as np

from tacit.privacy.guarantee import Guarantee
from tacit.simulation.result import Result
from tacit_lab.figures.figure import Curve, Evidence, Named, Runs, Size

SIZE = Size(episodes=1000, instances=4, runs=2)
EPISODES = np.array([1, 10, 100, 1000])


def guarantee(delta_at: float = 0.0, asked_delta: float = 0.0, asked: float = 2.0) -> Guarantee:
    return Guarantee(
        model="local",
        epsilon=asked,
        delta=asked_delta,
        mechanism="made up",
        accountant="none",
        requested_epsilon=asked,
        requested_delta=asked_delta,
        delta_at_requested_epsilon=delta_at,
    )


def runs(
    key: str,
    final: Sequence[float],
    power: float = 1.0,
    spread: float = 0.0,
    said: Guarantee | None = None,
) -> Runs:
    """Two runs per problem that grow like k^power and end around the given regrets."""
    shape = (EPISODES / EPISODES[-1]) ** power
    results = tuple(
        Result(
            problem={"name": "made-up", "parameters": {"seed": i}, "optimal_value": 1.0},
            agent={"name": "made-up", "parameters": {}, "notes": []},
            guarantee=said or guarantee(),
            seed=i,
            seeds=(0, 1),
            requested_episodes=1000,
            episodes=EPISODES,
            regret=np.array([(1 - spread) * end * shape, (1 + spread) * end * shape]),
            reward=np.zeros((2, 4)),
            interrupted=False,
            seconds=0.0,
            episodes_per_second=1.0,
        )
        for i, end in enumerate(final)
    )
    problems = tuple(Named("made-up", {"seed": i}) for i in range(len(final)))
    return Runs(Curve(key, key, Named("made-up"), problems, SIZE), results)


def evidence(*curves: Runs) -> Evidence:
    return Evidence(SIZE, {one.curve.key: one for one in curves}, {})
