"""The answer to one question about one step: what a device randomizes, and how it is drawn.

The mechanism of the simulator and of the service (``privacy/local/one_cell.py``) and the device's
own half use these same lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import IntArray
from tacit.grid import STEPS
from tacit.kernels.public.questions import KINDS
from tacit.kernels.raw.cells import cell_index
from tacit.privacy.finite.oracle import Oracle
from tacit.statistics.base import BoundedSum
from tacit.task.pairs import Places

if TYPE_CHECKING:
    from tacit.privacy.noise import Noise


def domains(places: Places) -> tuple[int, int, int]:
    """Cells to answer with, for each kind of question.

    Of a place that goes on as many as there are answers; the end, if there is one, is one cell.
    """
    N, L = len(places.state), places.live
    over = N - L
    return 2 * L * N + over, max(L * N + over, 2), 2 * L + over


def marked(statistic: BoundedSum, contribution: IntArray) -> tuple[int, int, IntArray]:
    """Step and kind of the question that a contribution answers, and the mass [N, 2, N]."""
    views = statistic.layout.views(contribution)
    h, kind = divmod(int(np.argmax(views["question"])), KINDS)
    return h, kind, views["cell"]


def answer(mass: IntArray, kind: int, oracle: Oracle, noise: Noise) -> IntArray:
    """Round the reward, randomize the cell: the oracle's row of zeros and ones."""
    N = mass.shape[0]
    s, following = np.unravel_index(np.argmax(mass.sum(axis=1)), (N, N))
    reward = int(mass[s, 1, following])
    # the coin is tossed always; where there is no reward, as at the end, its cell may not exist
    rho = int(noise.happens(reward, STEPS) and reward > 0)
    return noise.randomize(oracle, cell_index(kind, int(s), rho, int(following), N))
