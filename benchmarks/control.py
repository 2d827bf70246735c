"""Linear control on one core; run: python benchmarks/control.py.

With the word harm: tacit-control beside doing nothing on 50 random systems (random-lq, 3 states,
2 inputs, seeds 100 to 149); of these, caution alone was looked at on seeds 100 to 107.
"""

import os
import sys
import time

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tacit
from tacit.planners.lq_model import linear_task
from tacit.planners.ofu import Ellipsoid, certificate, optimistic

REPEATS = 5


def best(action) -> float:
    """Seconds of the fastest of a few repetitions, after a first one that may compile."""
    action()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)


def episodes() -> None:
    problem = tacit.problem("lq-double-integrator")
    for name in ("do-nothing", "certainty-equivalence"):
        agent = tacit.agent(name)
        took = best(lambda agent=agent: tacit.simulate(problem, agent, 20_000, workers=1))
        print(f"2 states, {name}: {took / 20_000 * 1e6:.2f} us per episode (goal 10)")


def solves() -> None:
    problem, rng = tacit.problem("lq-thermal"), np.random.default_rng(3)
    facts = linear_task(problem.task(10, ["start"]))
    solving, certifying = [], []
    for _ in range(5):
        Z = 0.3 * rng.normal(size=(150, facts.D))
        lam, U = np.linalg.eigh(Z.T @ Z + 0.1 * np.eye(facts.D))
        centre = problem.theta + 0.08 * rng.normal(size=problem.theta.shape)
        region = Ellipsoid(centre, lam, U, 0.6)
        solving.append(best(lambda r=region: optimistic(facts, r, None, np.random.default_rng(0))))
        certifying.append(best(lambda r=region: certificate(facts, r)))
    print(f"n = 4, d = 2: optimistic solve {max(solving) * 1e3:.1f} ms at most (goal 20)")
    print(f"n = 4, d = 2: certificate {max(certifying) * 1e3:.0f} ms at most, on request")


def runs() -> None:
    for system in ("lq-scalar", "lq-double-integrator", "lq-thermal"):
        problem = tacit.problem(system)
        for name in ("private-ofu-rl", "tacit-control"):
            tight = {"calibration": "tight"} if name == "private-ofu-rl" else {}
            agent = tacit.agent(name, epsilon=1.0, **tight)
            took = {
                K: best(lambda p=problem, a=agent, K=K: tacit.simulate(p, a, K, workers=1))
                for K in (10_000, 20_000)
            }
            more = (took[20_000] - took[10_000]) / 10_000
            print(
                f"{system}, {name}: {took[10_000]:.2f} s for 10^4 users (goal 2), "
                f"{more * 1e6:.1f} us for each of the next 10^4"
            )


def harm(users: int = 10_000, epsilon: float = 1.0) -> None:
    """Mean regret of four runs over that of doing nothing, by system."""
    agent, ratios = tacit.agent("tacit-control", epsilon=epsilon), []
    for seed in range(100, 150):
        problem = tacit.problem("random-lq", states=3, inputs=2, seed=seed)
        idle = problem.optimal_value() - problem.baseline()[1]
        regret = tacit.simulate(problem, agent, users, 4, seed=1, workers=1).regret[:, -1]
        ratios.append(regret.mean() / users / idle)
        print(f"seed {seed}: doing nothing loses {idle:.4f} per user, ratio {ratios[-1]:.3f}")
    shares = np.array(ratios)
    print(
        f"worst {shares.max():.3f}, above 1.05: {(shares > 1.05).sum()}, mean {shares.mean():.3f}, "
        f"geometric mean {np.exp(np.log(shares).mean()):.3f}"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["harm"]:
        harm()
    else:
        episodes()
        solves()
        runs()
