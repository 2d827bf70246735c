"""Optimism with one width per pair, against the formulas of its specification in plain numpy."""

import math

import numpy as np
import pytest

from tacit.kernels.directional import (
    UNKNOWN,
    directional_induction,
    directional_z,
    mean_model,
)

S, A = 3, 2
CASES = [(True, 1, 1, 4), (False, 2, 3, 3), (False, 1, 2, 2), (True, 1, 1, 1), (False, 1, 1, 1)]


def tables(seed, G):
    """Noisy counts. One pair was never reported about, one has visits but no transitions."""
    rng = np.random.default_rng(seed)
    transitions = rng.normal(20, 15, size=(G, S, A, 2, S))
    last, v, w = rng.normal(20, 15, size=(S, A, 2)), rng.random((G, S, A)) * 50, rng.random((S, A))
    transitions[0, 0, 0], v[0, 0, 0] = 0.0, 0.0
    last[0, 0], w[0, 0] = 0.0, 0.0
    transitions[0, 1, 1] -= 40
    last[1, 1] += 150
    return transitions, last, v, w * 50


def nearest(y, total):
    down = np.sort(y)[::-1]
    shifts = (np.cumsum(down) - total) / np.arange(1, len(y) + 1)
    return np.maximum(y - shifts[np.flatnonzero(down > shifts)[-1]], 0.0)


def modelled(transitions, last, pooled, stages, function=mean_model):
    P = np.full((*transitions.shape[:3], S), np.nan)
    R, N = np.full((stages, S, A), np.nan), np.full((stages, S, A), np.nan)
    function(transitions, last, pooled, P, R, N)
    return P, R, N


def plain_model(transitions, last, pooled, stages):
    P, R = np.full((*transitions.shape[:3], S), np.nan), np.full((stages, S, A), 0.5)
    moves = transitions if pooled else transitions[: stages - 1]
    for index in np.ndindex(*moves.shape[:3]):
        y = transitions[index].sum(axis=0)
        P[index] = nearest(y, y.sum()) / y.sum() if y.sum() > 1e-9 else 1 / S
    split = moves.sum(axis=4)
    split = split + last if pooled else np.concatenate([split, last[None]])
    N = split.sum(axis=-1)
    R[N > 1e-9] = np.clip(split[N > 1e-9][:, 1] / N[N > 1e-9], 0, 1)
    return P, R, N


def induced(transitions, v, w, pooled, z, model, H, function=directional_induction):
    Q, V = np.full((H, S, A), np.nan), np.full((H + 1, S), np.nan)
    function(transitions, v, w, pooled, z, *model, Q, V)
    return Q, V


def plain_induction(transitions, v, w, pooled, z, model, H):
    P, R, N = model
    Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        g, final = 0 if pooled else h, h == H - 1
        for s, a in np.ndindex(S, A):
            r, n = R[g, s, a], N[g, s, a]
            noise = (w[s, a] if pooled or final else 0) + (
                S * v[g, s, a] if pooled or not final else 0
            )
            value = UNKNOWN
            if n > 1e-9:
                spread = ((1 - r) ** 2 + r**2) * noise + n * r * (1 - r)
                value = r + z * math.sqrt(spread / n**2)
            if not final:
                moves, p = transitions[g, s, a].sum(), P[g, s, a]
                off = (V[h + 1] - p @ V[h + 1]) ** 2
                if moves > 1e-9:
                    spread = 2 * v[g, s, a] * off.sum() + moves * (p @ off)
                    value += p @ V[h + 1] + z * math.sqrt(spread / moves**2)
                else:
                    value = UNKNOWN
            Q[h, s, a] = value
        V[h] = np.minimum(Q[h].max(axis=1), H - h)
    return Q, V


@pytest.mark.parametrize(("pooled", "G", "stages", "H"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_model_and_values_are_the_specified_ones(seed, pooled, G, stages, H):
    transitions, last, v, w = tables(seed, G)
    model = modelled(transitions, last, pooled, stages)
    for found, expected in zip(model, plain_model(transitions, last, pooled, stages), strict=True):
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    arguments = (transitions, v, w, pooled, 0.3, model, H)
    Q, V = induced(*arguments)
    expected_Q, expected_V = plain_induction(*arguments)
    assert np.allclose(Q, expected_Q, rtol=1e-9) and np.allclose(V, expected_V, rtol=1e-9)
    assert V[:-1].max() <= H and (Q >= UNKNOWN).any()


@pytest.mark.parametrize(("pooled", "G", "stages", "H"), CASES)
def test_compiled_and_plain_python_agree(pooled, G, stages, H):
    transitions, last, v, w = tables(7, G)
    model = modelled(transitions, last, pooled, stages)
    for one, other in zip(
        model, modelled(transitions, last, pooled, stages, mean_model.py_func), strict=True
    ):
        assert np.array_equal(one, other, equal_nan=True)
    arguments = (transitions, v, w, pooled, 0.3, model, H)
    for one, other in zip(
        induced(*arguments), induced(*arguments, directional_induction.py_func), strict=True
    ):
        assert np.array_equal(one, other)


def test_without_widths_it_is_planning_in_the_mean_model():
    """V = R + P V, no bonus; at the last step V is the reward itself."""
    transitions = np.full((1, S, A, 2, S), 10.0)
    transitions[0, 1, 0, 1] = 30.0
    given = transitions, np.zeros((S, A, 2)), np.ones((1, S, A)), np.ones((S, A))
    model = modelled(*given[:2], True, 1)
    Q, V = induced(transitions, *given[2:], True, 0.0, model, 2)
    assert Q[1] == pytest.approx(np.array([[0.5, 0.5], [0.75, 0.5], [0.5, 0.5]]))
    assert Q[0] == pytest.approx(Q[1] + (0.5 + 0.75 + 0.5) / 3)


@pytest.mark.parametrize("e", [1, 2, 50])
def test_z_is_the_specified_one(e):
    expected = 0.2 * math.sqrt(2 * math.log(4 * 3 * 2 * 5 * e * (e + 1) / 0.1))
    for function in (directional_z, directional_z.py_func):
        assert function(0.2, 0.1, (5, 3, 2), e) == pytest.approx(expected, rel=1e-12)
