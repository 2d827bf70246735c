"""LSVI-UCB as one would write it in plain Python and NumPy: regressions on the whole history."""

from __future__ import annotations

import time

import numpy as np

from tacit.problems.tabular import TabularMDP


def microseconds_per_episode(problem: TabularMDP, episodes: int, seed: int = 0) -> float:
    """Mean time of one of the first episodes: regress, roll out, remember, evaluate the policy.

    Features are one-hot in (s, a). After episode k every stage regresses on its k transitions.
    """
    rng = np.random.default_rng(seed)
    H, S, A = problem.horizon, problem.states, problem.actions
    P_true, R_true = problem.P[0], problem.R[0]
    phi = np.eye(S * A).reshape(S, A, S * A)
    gram = np.tile(np.eye(S * A), (H, 1, 1))
    seen = np.zeros((H, episodes, S * A))
    rewards = np.zeros((H, episodes))
    following = np.zeros((H, episodes), dtype=np.int64)
    Q = np.full((H, S, A), float(H))
    bonus = 0.1 * H
    regret, optimum = 0.0, problem.optimal_value()
    began = time.process_time()
    for k in range(episodes):
        V = np.zeros(S)
        for h in reversed(range(H)):
            inverse = np.linalg.inv(gram[h])
            targets = rewards[h, :k] + V[following[h, :k]]
            w = inverse @ (seen[h, :k].T @ targets)
            width = np.sqrt(np.einsum("sai,ij,saj->sa", phi, inverse, phi))
            Q[h] = np.clip(phi @ w + bonus * width, 0.0, H)
            V = Q[h].max(axis=1)
        policy = ((Q >= Q.max(axis=2, keepdims=True)) * rng.random(Q.shape)).argmax(axis=2)
        value = np.zeros(S)
        for h in reversed(range(H)):
            value = (R_true + P_true @ value)[np.arange(S), policy[h]]
        regret += optimum - float(value @ problem.initial)
        s = rng.choice(S, p=problem.initial)
        for h in range(H):
            a = policy[h, s]
            seen[h, k] = phi[s, a]
            gram[h] += np.outer(phi[s, a], phi[s, a])
            rewards[h, k] = R_true[s, a]
            s = following[h, k] = rng.choice(S, p=P_true[s, a])
    return 1e6 * (time.process_time() - began) / episodes
