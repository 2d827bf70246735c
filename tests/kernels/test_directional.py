"""Optimism with one width per pair, against plain numpy.

The formulas are those of docs/papers/tabular_ldp.md#b3.
"""

import math

import numpy as np
import pytest

from dense import dense
from tacit.kernels.public.posterior import NoisyCounts
from tacit.kernels.public.tacit_local import UNKNOWN, directional_z

S, A = 3, 2
CASES = [(4, 1, 1), (3, 2, 3), (2, 1, 2), (2, 1, 1), (1, 1, 1)]
"""(H, G, G')."""


def tables(seed, G, E):
    """Noisy counts. One pair was never reported about, one has no moves, one no rewards."""
    rng = np.random.default_rng(seed)
    moves, rewards = (G, S, A), (E, S, A)
    counts = NoisyCounts(
        moves=rng.normal(20, 15, size=(*moves, S)),
        rewards=rng.normal(40, 15, size=(*rewards, 2)),
        moves_variance=50 * rng.random(moves),
        rewards_variance=50 * rng.random(rewards),
        moves_unit=rng.uniform(0.1, 1, size=moves),
        rewards_unit=rng.uniform(0.1, 1, size=rewards),
    )
    counts.moves[0, 0, 0] = counts.rewards[0, 0, 0] = 0.0
    counts.moves_variance[0, 0, 0] = counts.rewards_variance[0, 0, 0] = 0.0
    counts.moves[0, 1, 1] -= 100
    counts.rewards[0, 2, 0] -= 200
    return counts


def nearest(y, total):
    down = np.sort(y)[::-1]
    shifts = (np.cumsum(down) - total) / np.arange(1, len(y) + 1)
    return np.maximum(y - shifts[np.flatnonzero(down > shifts)[-1]], 0.0)


def modelled(counts, function=dense.mean_model):
    P, R = np.full_like(counts.moves, np.nan), np.full_like(counts.rewards_unit, np.nan)
    function(counts, P, R)
    return P, R


def plain_model(counts):
    P, R = np.full_like(counts.moves, 1 / S), np.full_like(counts.rewards_unit, 0.5)
    for index in np.ndindex(*P.shape[:3]):
        y = counts.moves[index]
        if y.sum() > 1e-9:
            P[index] = nearest(y, y.sum()) / y.sum()
    N = counts.rewards.sum(axis=-1)
    R[N > 1e-9] = np.clip(counts.rewards[N > 1e-9][:, 1] / N[N > 1e-9], 0, 1)
    return P, R


def induced(counts, z, model, H, function=dense.directional_induction):
    Q, V = np.full((H, S, A), np.nan), np.full((H + 1, S), np.nan)
    function(counts, z, *model, Q, V)
    return Q, V


def plain_induction(counts, z, model, H):
    (P, R), Q, V = model, np.zeros((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        g, e = min(h, len(P) - 1), min(h, len(R) - 1)
        for s, a in np.ndindex(S, A):
            r, n = R[e, s, a], counts.rewards[e, s, a].sum()
            value = UNKNOWN
            if n > 1e-9:
                spread = ((1 - r) ** 2 + r**2) * counts.rewards_variance[e, s, a]
                spread += counts.rewards_unit[e, s, a] * n * r * (1 - r)
                value = r + z * math.sqrt(spread / n**2)
            if h < H - 1:
                n, p = counts.moves[g, s, a].sum(), P[g, s, a]
                off = (V[h + 1] - p @ V[h + 1]) ** 2
                if n > 1e-9:
                    spread = counts.moves_variance[g, s, a] * off.sum()
                    spread += counts.moves_unit[g, s, a] * n * (p @ off)
                    value += p @ V[h + 1] + z * math.sqrt(spread / n**2)
                else:
                    value = UNKNOWN
            Q[h, s, a] = value
        V[h] = np.minimum(Q[h].max(axis=1), H - h)
    return Q, V


@pytest.mark.parametrize(("H", "G", "E"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_model_and_values_are_the_specified_ones(seed, H, G, E):
    counts = tables(seed, G, E)
    model = modelled(counts)
    for found, expected in zip(model, plain_model(counts), strict=True):
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-12)
    Q, V = induced(counts, 0.3, model, H)
    expected_Q, expected_V = plain_induction(counts, 0.3, model, H)
    assert np.allclose(Q, expected_Q, rtol=1e-9) and np.allclose(V, expected_V, rtol=1e-9)
    assert V[:-1].max() <= H and (Q >= UNKNOWN).any()
    assert (Q < UNKNOWN).any()


@pytest.mark.parametrize(("H", "G", "E"), CASES)
def test_compiled_and_plain_python_agree(H, G, E):
    counts = tables(7, G, E)
    model = modelled(counts)
    for one, other in zip(model, modelled(counts, dense.mean_model.py_func), strict=True):
        assert np.array_equal(one, other)
    plain = induced(counts, 0.3, model, H, dense.directional_induction.py_func)
    for one, other in zip(induced(counts, 0.3, model, H), plain, strict=True):
        assert np.array_equal(one, other)


def test_without_widths_it_is_planning_in_the_mean_model():
    """V = R + P V, no bonus; at the last step V is the reward itself."""
    counts = tables(0, 1, 1)
    counts.moves[:], counts.rewards[:] = 20.0, 30.0
    counts.rewards[0, 1, 0, 1] = 90.0
    Q, V = induced(counts, 0.0, modelled(counts), 2)
    assert Q[1] == pytest.approx(np.array([[0.5, 0.5], [0.75, 0.5], [0.5, 0.5]]))
    assert Q[0] == pytest.approx(Q[1] + (0.5 + 0.75 + 0.5) / 3)


@pytest.mark.parametrize("e", [1, 2, 50])
def test_z_is_the_specified_one(e):
    expected = 0.2 * math.sqrt(2 * math.log(4 * 3 * 2 * 5 * e * (e + 1) / 0.1))
    for function in (directional_z, directional_z.py_func):
        assert function(0.2, 0.1, (5, 3, 2), e) == pytest.approx(expected, rel=1e-12)
