"""Tables under local privacy: Theorems 5 and 2 of Garcelon et al. (docs/papers/tabular_ldp.md)."""

from __future__ import annotations

import math
from typing import Any

from tacit.bounds.result import Statement
from tacit.kernels.public.obi import TIGHT, WIDTHS, Precision, obi_precision
from tacit.learner import BoundAgent
from tacit.planners.obi import ObiPlanner, cell_noise
from tacit.task.task import table_sizes

_PAGE = "docs/papers/tabular_ldp.md"


def theorem_5(shape: tuple[int, int, int], users: int, precision: Precision, beta: float) -> float:
    """The last display of Appendix D, as printed (docs/papers/tabular_ldp.md#regret).

    Args:
        shape: H, S, A.
        users: K.
        precision: c_1 to c_4 at k = K, for the failure probability 3 beta / (2 pi^2 K^2), and
            alpha.
        beta: failure probability.
    """
    return _bonuses(shape, users, precision, beta) + _martingale(shape, users, beta)


def theorem_5_mended(
    shape: tuple[int, int, int], users: int, precision: Precision, beta: float
) -> float:
    """The same with the bonuses twice, as in (45) (docs/papers/tabular_ldp.md#e18)."""
    return 2 * _bonuses(shape, users, precision, beta) + _martingale(shape, users, beta)


def _bonuses(shape: tuple[int, int, int], K: int, c: Precision, beta: float) -> float:
    H, S, A = shape
    T = K * H
    log, visits = math.log(14 * S * A * T / beta), math.log(2 * T * S * A) + H
    roots = math.sqrt(2 * S * A * T) + H * S * A
    sampling = (H * math.sqrt(46 * S * log) + math.sqrt(6 * log)) * roots
    moves = 2 * S * A * H * ((c.alpha + 1) * c.c3 + S * c.c4) * visits
    return sampling + moves + 2 * ((c.alpha + 1) * c.c2 + c.c1) * S * A * visits


def _martingale(shape: tuple[int, int, int], K: int, beta: float) -> float:
    return 2 * shape[0] * math.sqrt(K * shape[0] * math.log(2 / beta))


def theorem_2(shape: tuple[int, int, int], users: int, epsilon: float) -> float | None:
    """(H-d) sqrt(K L A) / (64 sqrt 2 min(e^eps - 1, 1/2)), where the theorem says something.

    For some problem with H, S, A and every purely epsilon-private learner; infinite epsilon: for
    every learner. The printed constant lacks the sqrt 2 (docs/papers/tabular_ldp.md#e10). The tree
    of the proof has d levels on S - 2 states and at least L = A^(d-1) leaves if it is full, else
    (S - 2) / 2.
    """
    H, S, A = shape
    if epsilon <= 0 or S < 3 or A < 2 or H < 2 * math.log(S - 2, A) + 2:
        return None
    depth, nodes = 1, 1
    while nodes < S - 2:
        nodes, depth = nodes + A**depth, depth + 1
    leaves = A ** (depth - 1) if nodes == S - 2 else (S - 2) / 2
    cost = min(math.expm1(min(epsilon, 1.0)), 0.5)
    if leaves * A < 2 or users < leaves * A / (8 * cost) ** 2:
        return None
    return (H - depth) * math.sqrt(users * leaves * A) / (64 * math.sqrt(2) * cost)


def obi_bound(bound: BoundAgent, users: int) -> Statement:
    """For the noise that is added and the widths that are used; tight ones have no theorem."""
    planner, task = bound.planner, bound.task
    assert isinstance(planner, ObiPlanner)
    width, alpha, beta = planner.rule
    if width == TIGHT:
        return Statement(None, erratum="the theorem is about the paper's widths, not the tight")
    shape, K = table_sizes(task), users
    noise = cell_noise(bound.privatizer.law(1))
    sizes = (shape[1], shape[2], shape[0])
    paper = width == WIDTHS["paper"]
    before: Any = K - 1.0  # theorems speak of more users than an integer of a kernel holds
    precision = obi_precision(noise, before, sizes, alpha, beta, paper)
    mended = theorem_5_mended(shape, K, precision, beta)
    slip = (
        f"its last display forgets a factor 2 of (45), with which it is {mended:.3g} ({_PAGE}#e18)"
    )
    last = f"; a bonus for the step after the last, where regret may be linear ({_PAGE}#e8)"
    upper = theorem_5(shape, K, precision, beta)
    return Statement(upper, failure=beta, erratum=slip + (last if paper else ""))
