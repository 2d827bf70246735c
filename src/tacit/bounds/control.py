"""Linear control: Theorems 1 and 3 of Chowdhury, Zhou and Shroff (docs/papers/lq_jdp.md)."""

from __future__ import annotations

import math

import numpy as np

from tacit.bounds.result import Statement
from tacit.learner import BoundAgent
from tacit.planners.lq_model import LinearTask, linear_task
from tacit.planners.ofu import OfuPlanner, Regulariser, paper_ridge

_PAGE = "docs/papers/lq_jdp.md"


def largest_cost(facts: LinearTask) -> float:
    """C: the larger of |Q| and |R|."""
    return float(max(np.linalg.norm(facts.Q, 2), np.linalg.norm(facts.R, 2)))


def theorem_1(facts: LinearTask, users: int, ridge: Regulariser, beta: float) -> float:
    """Lemmas 6 to 8 put together, with their constants; Theorem 3 at the private regulariser.

    4 D^2 (1+gamma)^2 H sqrt K beta_K sqrt(psi) + (H (1+gamma^2) C + 2D) sqrt(2 K H ln(2/alpha)),
    psi = (n+d) ln(1 + H K (1+gamma)^2 / ((n+d) lambda_min)). The constant D of Lemma 3 is not
    given; D = C H holds, because without input nothing grows, and Lemma 7 needs 2D for 2C
    (docs/papers/lq_jdp.md#e10). Claim 2 has 4H for 8H, and D for sqrt D
    (docs/papers/lq_jdp.md#regret).
    """
    H, C, gain = facts.H, largest_cost(facts), facts.gain
    D, wide = C * H, (1 + gain) ** 2
    psi = facts.D * math.log1p(H * users * wide / (facts.D * ridge.least))
    radius = facts.C_w * math.sqrt(2 * math.log(2 / beta) + facts.n * psi)
    radius += math.sqrt(ridge.most) + ridge.target
    martingales = (H * (1 + gain**2) * C + 2 * D) * math.sqrt(2 * users * H * math.log(2 / beta))
    return 4 * D**2 * wide * H * math.sqrt(users) * radius * math.sqrt(psi) + martingales


def control_bound(bound: BoundAgent, users: int) -> Statement:
    """OFU-RL and Private-OFU-RL, at the regulariser of the noise that is added."""
    planner, facts = bound.planner, linear_task(bound.task)
    assert isinstance(planner, OfuPlanner)
    ridge = _for_users(planner, facts, bound.task.users, users)
    upper = theorem_1(facts, users, ridge, planner.beta)
    erratum = f"its constant D is of order C H, which hides two powers of H ({_PAGE}#e10)"
    return Statement(upper, planner.beta, None, erratum)


def _for_users(planner: OfuPlanner, facts: LinearTask, before: int, users: int) -> Regulariser:
    """The regulariser for more users than it was made for: noise grows as the root of levels."""
    ridge, sizes, beta = planner.ridge, (facts.D, facts.n), planner.beta
    if ridge.target == 0.0 or users == before:
        return ridge
    old, new = (max((count - 1).bit_length(), 1) for count in (before, users))
    unit = paper_ridge(1.0, 1.0, old, sizes, before, beta)
    moment = ridge.least / unit.least
    target = ridge.target / unit.target * math.sqrt(moment)
    growth = math.sqrt(new / old)
    return paper_ridge(moment * growth, target * growth, new, sizes, users, beta)
