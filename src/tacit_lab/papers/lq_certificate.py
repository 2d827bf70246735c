"""The optimistic step on random scalar instances: solver, grid and dual bound.

See docs/papers/lq_jdp.md#certificate and #x5.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public.lq import optimal_cost_gradient
from tacit.kernels.public.lq_optimism import Ellipsoid
from tacit.planners.lq_model import LinearTask, linear_task
from tacit.planners.ofu import certificate, optimistic
from tacit.problems.lq import lq_scalar
from tacit_lab.figures import draw
from tacit_lab.figures.figure import Claim, Evidence, Figure, Measurement, Size
from tacit_lab.figures.judge import judged

GAP = 0.02
ROUNDING = 1e-9


def solve(instances: int, points: int, seed: int) -> Mapping[str, Array]:
    """Optimistic values of random confidence sets of the scalar system.

    Args:
        instances: how many sets that meet the unit ball.
        points: of the grid on [-1, 1], in each direction.
        seed: of the sets.

    Returns:
        "solver", "grid" and "bound" [instances].
    """
    facts = linear_task(lq_scalar().task(1, ["start"]))
    rng = np.random.default_rng(seed)
    rows: list[tuple[float, float, float]] = []
    while len(rows) < instances:
        Z = rng.normal(size=(int(rng.integers(5, 200)), 2)) * rng.uniform(0.05, 0.5, 2)
        lam, U = np.linalg.eigh(Z.T @ Z + 0.1 * np.eye(2))
        region = Ellipsoid(rng.uniform(-0.8, 0.8, (2, 1)), lam, U, float(rng.uniform(0.05, 1.0)))
        solved = optimistic(facts, region, None, rng)
        if solved.met:
            rows.append((solved.value, grid(facts, region, points), certificate(facts, region)))
    solver, brute, bound = np.array(rows).T
    return {"solver": solver, "grid": brute, "bound": bound}


def grid(facts: LinearTask, region: Ellipsoid, points: int) -> float:
    """The least value on a grid; inf where no point is feasible."""
    gains, P = np.empty((facts.H, 1, 1)), np.empty((facts.H + 1, 1, 1))
    gradient, best = np.empty((2, 1)), float("inf")
    for a in np.linspace(-1.0, 1.0, points):
        for b in np.linspace(-1.0, 1.0, points):
            theta = np.array([[a], [b]])
            if a * a + b * b <= 1.0 and region.holds(theta):
                best = min(best, optimal_cost_gradient(theta, facts.setting, gains, P, gradient))
    return best


def parts(size: Size) -> list[Measurement]:
    """One measurement."""
    points = 401 if size.runs >= FULL.runs else 101
    parameters = {"instances": size.runs, "points": points, "seed": 7}
    return [Measurement("solve", "optimistic solves", solve, parameters)]


def picture(evidence: Evidence) -> draw.Picture:
    """Values of every instance."""
    arrays = evidence.arrays("solve")
    drawing, (axes,) = draw.canvas(1, "optimistic value of random scalar instances")
    order = np.argsort(arrays["solver"])
    for name, mark in (("grid", "s"), ("solver", "o"), ("bound", "_")):
        axes.plot(arrays[name][order], mark, label=name, fillstyle="none")
    draw.label(axes, "", "instance", "cost", legend=False)
    axes.legend()
    return drawing


def below_the_grid(evidence: Evidence) -> Claim:
    """The solver finds nothing worse than brute force."""
    arrays = evidence.arrays("solve")
    excess = float((arrays["solver"] - arrays["grid"]).max())
    return judged(
        "the solver is never above a brute-force grid",
        "largest difference at most 1e-9",
        {"largest solver - grid": excess},
        excess <= ROUNDING,
        "a better model was on the grid",
    )


def certified(evidence: Evidence) -> Claim:
    """The dual bound is close below."""
    arrays = evidence.arrays("solve")
    gaps = (arrays["solver"] - arrays["bound"]) / arrays["solver"]
    return judged(
        "the dual bound certifies every solve to 2%",
        "relative gap between 0 and 0.02",
        {"largest gap": float(gaps.max()), "smallest gap": float(gaps.min())},
        float(gaps.max()) <= GAP and float(gaps.min()) >= -ROUNDING,
        "the relaxation is not tight enough on some instance",
    )


FULL = Size(episodes=1, instances=1, runs=40)

CERTIFICATE = Figure(
    id="lq-jdp/certificate",
    title="the optimistic step: solver, brute-force grid and dual bound on scalar instances",
    full=FULL.taking("73 s of processor time (measured)"),
    quick=Size(1, 1, 10, "10 s of processor time, estimated from the full size"),
    parts=parts,
    draw=picture,
    claims=(below_the_grid, certified),
)
