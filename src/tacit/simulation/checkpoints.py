"""At which episodes the curves are recorded."""

from __future__ import annotations

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.validate import integer

MOST_POINTS = 1_000_000


def checkpoints(episodes: int, every: int | str | tuple[int, ...] = "log") -> IntArray:
    """Episodes to record, ending with the last.

    Args:
        episodes: length K of the run.
        every: "log" for round numbers in every decade (1 to 9, then 10, 15, 20, ..., 95 and so on)
            together with the tenths of K; or a number n for every n-th episode; or the episodes.

    >>> checkpoints(20).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20]
    >>> checkpoints(25, every=10).tolist()
    [10, 20, 25]
    """
    if every == "log":
        points = set(range(1, min(9, episodes) + 1))
        decade = 10
        while decade <= episodes:
            points.update(range(decade, min(10 * decade, episodes + 1), decade // 2))
            decade *= 10
        points.update(-(-episodes * tenth // 10) for tenth in range(1, 11))
    elif isinstance(every, tuple):
        points = {integer(point, "checkpoints", low=1, high=episodes) for point in every}
        points.add(episodes)
    elif isinstance(every, str):
        raise InvalidInput(f'checkpoints = {every!r}, but it must be "log" or a whole number')
    else:
        step = integer(every, "checkpoints", low=1)
        if episodes // step > MOST_POINTS:
            raise InvalidInput(
                f"checkpoints = {step} would record {episodes // step:,} points, but at most "
                f"{MOST_POINTS:,} are kept; record fewer of them"
            )
        points = set(range(step, episodes + 1, step)) | {episodes}
    return np.array(sorted(points), dtype=np.int64)
