"""UCB-VI as one would write it in plain Python and NumPy: the yardstick for the compiled loop."""

from __future__ import annotations

import math
import time

import numpy as np

from tacit.problems.tabular import TabularMDP


def microseconds_per_episode(problem: TabularMDP, episodes: int, seed: int = 0) -> float:
    """Time of one episode of UCB-VI: plan, roll out, count, evaluate the policy."""
    rng = np.random.default_rng(seed)
    H, S, A = problem.horizon, problem.states, problem.actions
    P_true, R_true = problem.P[0], problem.R[0]
    visits, transitions = np.zeros((S, A)), np.zeros((S, A, S))
    rewards = np.zeros((S, A))
    width = 7 * H * math.log(5 * S * A * episodes * H / 0.1)
    Q = np.full((H, S, A), float(H))
    regret, optimum = 0.0, problem.optimal_value()
    began = time.process_time()
    for _ in range(episodes):
        seen = transitions.sum(axis=2)
        P = transitions / np.maximum(seen, 1)[:, :, None]
        early = rewards / np.maximum(visits, 1) + width / np.sqrt(np.maximum(seen, 1e-12))
        late = rewards / np.maximum(visits, 1) + width / np.sqrt(np.maximum(visits, 1e-12))
        V = np.zeros(S)
        for h in reversed(range(H)):
            Q[h] = np.minimum(Q[h], late if h == H - 1 else early + P @ V)
            V = Q[h].max(axis=1)
        ties = Q >= Q.max(axis=2, keepdims=True)
        policy = (ties * rng.random(Q.shape)).argmax(axis=2)
        value = np.zeros(S)
        for h in reversed(range(H)):
            value = (R_true + P_true @ value)[np.arange(S), policy[h]]
        regret += optimum - float(value @ problem.initial)
        s = rng.choice(S, p=problem.initial)
        for h in range(H):
            a = policy[h, s]
            following = rng.choice(S, p=P_true[s, a])
            visits[s, a] += 1
            rewards[s, a] += R_true[s, a]
            if h < H - 1:
                transitions[s, a, following] += 1
            s = following
    return 1e6 * (time.process_time() - began) / episodes
