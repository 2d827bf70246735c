"""tacit-local: speed, and regret on problems that were not used for choosing its constants.

Run: python benchmarks/local.py [speed | fresh | river | large | lake]; without a word all of them
(about twenty minutes on two cores).

speed: microseconds of processor time per user, beside the uniforms that a user's episode draws.
fresh: random-mdp S = A = H = 2, seeds from 400 on whose worst policy loses at least 0.1, K = 10^6,
beside ldp-obi (Laplace, as published) and ldp-psrl on the same instances.
river: river-swim S = 6, H = 20, epsilon 1, at 10^6 and 10^7 users.
large: FrozenLake (horizon 30) and random-mdp S = 10, A = 4, H = 10 at epsilon 2: after how many
users regret per user stays below that of uniform actions, and below half of it.
lake: FrozenLake (horizon 100) at epsilon 8 with 10^6 users: what the last tenth loses, run by run.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import tacit
from tacit.forecast import bind
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.dispatch import compiled_run

EPSILONS = (0.2, 2.0, 20.0)


def speed() -> None:
    """Batched users, one core."""
    small, river = tacit.problem("random-mdp", seed=401), tacit.problem("river-swim")
    for problem, epsilon, users in [
        *((small, e, 10**6) for e in EPSILONS),
        (river, 1.0, 200_000),
    ]:
        agent = bind(problem, tacit.agent("tacit-local", epsilon=epsilon), 2 * users)
        rng = np.random.default_rng(0)
        row = np.empty((1000, 1 + 3 * problem.horizon))
        best, plain = np.inf, np.inf
        for _ in range(5):
            run = compiled_run(problem, agent, 0, 0, checkpoints(2 * users))
            assert run is not None
            run.advance(users)
            began = time.thread_time()
            run.advance(users)
            best = min(best, time.thread_time() - began)
            began = time.thread_time()
            for _ in range(100):
                rng.random(out=row)
            plain = min(plain, time.thread_time() - began)
        each, uniforms = best / users * 1e6, plain / 100_000 * 1e6
        print(
            f"{problem.name}, epsilon {epsilon:g}: {each:.3f} us per user, its uniforms "
            f"{uniforms:.3f} us, ratio {each / uniforms:.1f}",
            flush=True,
        )


def fresh_instances(count: int) -> list[tacit.TabularMDP]:
    """The first instances from seed 400 on where a policy can lose 0.1."""
    found: list[tacit.TabularMDP] = []
    seed = 400
    while len(found) < count:
        problem = tacit.problem("random-mdp", seed=seed)
        worst = np.zeros(problem.states)
        for _ in range(problem.horizon):
            worst = (problem.R[0] + problem.P[0] @ worst).min(axis=1)
        if problem.optimal_value() - problem.initial @ worst >= 0.1:
            found.append(problem)
        seed += 1
    return found


def fresh() -> None:
    """Beside the published algorithms."""
    problems = fresh_instances(16)
    for epsilon in EPSILONS:
        means = {}
        for name, how in (
            ("tacit-local", {}),
            ("ldp-obi", {"calibration": "paper"}),
            ("ldp-psrl", {"calibration": "paper"}),
        ):
            agent = tacit.agent(name, epsilon=epsilon, **how)
            runs = 4 if name == "tacit-local" else 2
            final = [tacit.simulate(p, agent, 10**6, runs).regret[:, -1] for p in problems]
            means[name] = float(np.mean(final))
            print(f"epsilon {epsilon:g}, {name}: {means[name]:.4g} (worst run {np.max(final):.4g})")
        ours = means.pop("tacit-local")
        print({name: f"{mean / ours:.0f} times below" for name, mean in means.items()}, flush=True)


def river() -> None:
    """Both explorations."""
    for exploration in ("posterior", "optimistic"):
        agent = tacit.agent("tacit-local", epsilon=1.0, exploration=exploration)
        result = tacit.simulate(tacit.problem("river-swim"), agent, 10**7, 8, seed=77)
        for users in (10**6, 10**7):
            at = result.regret[:, np.searchsorted(result.episodes, users)]
            error = at.std(ddof=1) / np.sqrt(len(at))
            print(f"{exploration}, {users:.0e}: {at.mean():.3g} +- {error:.2g} {at}", flush=True)


def large() -> None:
    """Where does it begin to pay?"""
    problems = [tacit.problem("gym:FrozenLake-v1", horizon=30)]
    problems += [
        tacit.problem("random-mdp", states=10, actions=4, horizon=10, seed=s) for s in (500, 501)
    ]
    for problem in problems:
        optimum, uniform = problem.optimal_value(), problem.baseline()[1]
        for exploration in ("posterior", "optimistic"):
            agent = tacit.agent("tacit-local", epsilon=2.0, exploration=exploration)
            result = tacit.simulate(problem, agent, 5 * 10**6, 2, seed=5)
            ends = np.concatenate([[0], result.episodes])
            curve = np.concatenate([[0.0], result.regret.mean(axis=0)])
            rate = np.diff(curve) / np.diff(ends)
            marks = {}
            for name, limit in (("uniform", optimum - uniform), ("half", (optimum - uniform) / 2)):
                bad = np.flatnonzero(rate >= limit)
                first = 0 if len(bad) == 0 else bad[-1] + 1
                marks[name] = f"{ends[first]:.2g}" if first < len(rate) else "not reached"
            print(
                f"{problem.name}, {exploration}: below uniform for good from {marks['uniform']} "
                f"users, below half the gap from {marks['half']}; at the end "
                f"{rate[-1] / (optimum - uniform):.3f} of the gap",
                flush=True,
            )


def lake() -> None:
    """A table that nobody tuned for."""
    problem = tacit.problem("gym:FrozenLake-v1", horizon=100)
    agent = tacit.agent("tacit-local", epsilon=8.0)
    result = tacit.simulate(problem, agent, 10**6, 16, checkpoints=10)
    late = result.regret_per_episode(900_000, 10**6)
    print(f"late {late.mean():.4f} {late}, regret {result.regret[:, -1]}", flush=True)


if __name__ == "__main__":
    PARTS = {"speed": speed, "fresh": fresh, "river": river, "large": large, "lake": lake}
    for word in sys.argv[1:] or PARTS:
        PARTS[word]()
