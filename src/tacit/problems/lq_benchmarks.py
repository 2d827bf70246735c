"""The three named linear systems (docs/papers/lq_jdp.md#systems), and random ones."""

from __future__ import annotations

import numpy as np

from tacit.problems.lq import LQSystem
from tacit.validate import integer


def lq_scalar() -> LQSystem:
    """LQ1: one state, one input."""
    return LQSystem(
        A=[[0.7]],
        B=[[0.3]],
        Q=[[1.0]],
        R=[[0.5]],
        horizon=10,
        noise=0.12,
        start=[1.0],
        gain=0.6,
        state_bound=0.7,
        input_bound=0.3,
        name="lq-scalar",
    )


def lq_double_integrator() -> LQSystem:
    """LQ2: a damped double integrator."""
    return LQSystem(
        A=[[0.6, 0.3], [0.0, 0.6]],
        B=[[0.05], [0.25]],
        Q=np.eye(2),
        R=[[0.5]],
        horizon=20,
        noise=0.07,
        start=[0.8, 0.6],
        gain=0.6,
        state_bound=0.77,
        input_bound=0.26,
        name="lq-double-integrator",
    )


def lq_thermal() -> LQSystem:
    """LQ4: two zones of air and wall, heated separately."""
    A = [
        [0.42, 0.10, 0.06, 0.00],
        [0.08, 0.45, 0.00, 0.00],
        [0.06, 0.00, 0.42, 0.10],
        [0.00, 0.00, 0.08, 0.45],
    ]
    return LQSystem(
        A=A,
        B=[[0.25, 0.0], [0.0, 0.0], [0.0, 0.25], [0.0, 0.0]],
        Q=np.eye(4),
        R=0.1 * np.eye(2),
        horizon=24,
        noise=0.12,
        start=[0.5, 0.5, 0.5, 0.5],
        gain=1.0,
        state_bound=0.56,
        input_bound=0.25,
        name="lq-thermal",
    )


def random_lq(states: int = 2, inputs: int = 1, horizon: int = 15, seed: int = 0) -> LQSystem:
    """A random stable system that satisfies Assumption 1; one fixed instance per seed.

    Entries of A and B are normal, scaled to |A| uniform in [0.4, 0.75] and |B| uniform in
    [0.15, 0.3], both shrunk together where |Theta|_F would exceed 0.98; R = r I with log r uniform
    in [log 0.05, log 0.5]; noise radius uniform in [0.05, 0.12]; the start is uniform on the unit
    sphere. Declared bounds are 1.02 |A| and 1.02 |B|, the gain is the largest allowed.
    """
    n = integer(states, "states", low=1, high=20)
    d = integer(inputs, "inputs", low=1, high=20)
    rng = np.random.default_rng(integer(seed, "seed", low=0))
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, d))
    A *= rng.uniform(0.4, 0.75) / np.linalg.norm(A, 2)
    B *= rng.uniform(0.15, 0.3) / np.linalg.norm(B, 2)
    shrink = min(1.0, 0.98 / float(np.sqrt((A**2).sum() + (B**2).sum())))
    A, B = A * shrink, B * shrink
    cost = float(np.exp(rng.uniform(np.log(0.05), np.log(0.5))))
    noise, start = rng.uniform(0.05, 0.12), rng.normal(size=n)
    return LQSystem(
        A=A,
        B=B,
        Q=np.eye(n),
        R=cost * np.eye(d),
        horizon=horizon,
        noise=noise,
        start=start / np.linalg.norm(start),
        state_bound=1.02 * float(np.linalg.norm(A, 2)),
        input_bound=1.02 * float(np.linalg.norm(B, 2)),
        name="random-lq",
        parameters={"states": n, "inputs": d, "horizon": horizon, "seed": seed},
    )
