"""Sensitivities of control statistics: never exceeded, and (nearly) attained."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.privatizer import streams
from tacit.agents import make_agent
from tacit.policies.linear import LinearPolicy
from tacit.problems import LQSystem, make_problem
from tacit.publication import Publication
from tacit.release import NoNoise, Release
from tacit.statistics import Relation
from tacit.statistics.lq import ControlMoments, InstrumentedResponses
from tacit.trajectory import Trajectory, VectorTrajectory

DOUBLE = make_problem("lq-double-integrator")
TASK = DOUBLE.task(100, ["start"])
NOWHERE = Publication(0, LinearPolicy(np.zeros((20, 1, 2))))


def contribution(statistic, trajectory, publication=NOWHERE, coin=0):
    out = np.full(statistic.layout.size, 7, dtype=np.int64)
    statistic.contribute(trajectory, publication, coin, out)
    return out * statistic.layout.units


def wild(rng, scale):
    return VectorTrajectory(
        scale * rng.normal(size=(21, 2)), scale * rng.normal(size=(20, 1)), np.zeros(20)
    )


def test_moments_are_the_plain_sums_where_nothing_is_clipped() -> None:
    rng = np.random.default_rng(0)
    user = VectorTrajectory(0.1 * rng.normal(size=(21, 2)), 0.1 * rng.normal(size=(20, 1)), None)
    z = np.hstack([user.states[:-1], user.actions])
    M, N = z.T @ z, z.T @ user.states[1:]
    got = contribution(ControlMoments(TASK, weight=1.6), user)
    upper = M[np.triu_indices(3)] * np.where(np.eye(3)[np.triu_indices(3)], 1, math.sqrt(2))
    assert np.allclose(got[:6], upper, atol=1e-7)
    assert np.allclose(got[6:].reshape(3, 2), 1.6 * N, atol=1e-7)
    plain = contribution(ControlMoments(TASK, isometric=False), user)
    assert np.allclose(plain[:6], M[np.triu_indices(3)], atol=1e-7)


def gram_distance(z, y, z2, y2, b):
    M, N = z.T @ z - z2.T @ z2, z.T @ y - z2.T @ y2
    return math.sqrt((M**2).sum() + b**2 * (N**2).sum())


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 4.0))
def test_free_pairs_never_pass_the_formula(seed: int, b: float) -> None:
    """The formula bounds any regressors and targets of bounded energy, not only trajectories."""
    rng = np.random.default_rng(seed)
    statistic = ControlMoments(TASK, weight=b)
    most, next_most = 20 * (1 + 0.6**2), 20.0

    def one():
        z, y = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
        if rng.random() < 0.5:
            z, y = z[:1], y[:1]
        return z * math.sqrt(most / (z**2).sum()), y * math.sqrt(next_most / (y**2).sum())

    limit = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert gram_distance(*one(), *one(), b) <= limit
    z, y = one()
    assert gram_distance(z, y, z, -y, b) <= limit


@pytest.mark.parametrize("b", [0.5, 1.0, 1.6, 3.0])
def test_the_formula_is_attained_by_orthogonal_pairs(b: float) -> None:
    """Targets flipped, regressors at the angle that makes both Gram matrices orthogonal."""
    limit = ControlMoments(TASK, weight=b).sensitivity("l2", Relation.REPLACE_ONE)
    cosine = min(b**2 / (2 * 1.36), 1.0)
    turned = cosine * np.eye(1, 3) + math.sqrt(1 - cosine**2) * np.eye(1, 3, 1)
    z, y = math.sqrt(20 * 1.36) * np.eye(1, 3), math.sqrt(20) * np.eye(1, 2)
    found = gram_distance(z, y, math.sqrt(20 * 1.36) * turned, -y, b)
    assert found == pytest.approx(limit, rel=1e-6)


def test_golden_sensitivities() -> None:
    """docs/papers/lq_jdp.md#sensitivities: 2.630437 for H = 1, r^2 = 1.36, b = 1; flipping y."""
    task = LQSystem(DOUBLE.A, DOUBLE.B, DOUBLE.Q, DOUBLE.R, 1, 0.07, [0.8, 0.6], gain=0.6).task(10)
    one = ControlMoments(task).sensitivity("l2", Relation.REPLACE_ONE)
    assert one == pytest.approx(2.630437, abs=1e-6)
    far = ControlMoments(task, weight=3.0).sensitivity("l2", Relation.REPLACE_ONE)
    assert far == pytest.approx(2 * 3 * math.sqrt(1.36), abs=2e-6)
    less = ControlMoments(TASK, energy=2.0).sensitivity("l2", Relation.REPLACE_ONE)
    assert less == pytest.approx(math.sqrt(2) * (2 * 1.36 + 1), abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 100.0, 1e150]), st.booleans())
def test_no_pair_of_users_moves_the_moments_further(seed, scale, isometric) -> None:
    rng = np.random.default_rng(seed)
    for energy in (None, 2.0):
        statistic = ControlMoments(TASK, weight=1.6, isometric=isometric, energy=energy)
        one, two = (contribution(statistic, wild(rng, scale)) for _ in range(2))
        limit = statistic.sensitivity("l2", Relation.REPLACE_ONE)
        assert np.linalg.norm(one - two) <= limit
        alone = statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)
        assert np.linalg.norm(one) <= alone
        assert np.abs(one).sum() <= statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE)


@pytest.mark.parametrize("name", ["lq-scalar", "lq-double-integrator", "lq-thermal"])
def test_the_worst_pair_of_moments_comes_close(name: str) -> None:
    statistic = ControlMoments(make_problem(name).task(10))
    one, two = (contribution(statistic, user) for user in statistic.worst_pair())
    limit = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert 0.75 * limit < np.linalg.norm(one - two) <= limit


def first_publication(reveal=("start",)):
    bound = make_agent("tacit-control", epsilon=1.0).bind(DOUBLE.task(1000, reveal))
    blocks = bound.statistic.layout.views(np.zeros(bound.statistic.layout.size))
    nothing = Release(0, blocks, NoNoise(), "none")
    return bound.planner.plan(bound.task, nothing, None, None, streams())


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 1e3, 1e200]), st.floats(1e-6, 1e9))
def test_responses_have_norm_at_most_one_whatever_is_published(seed, scale, weight) -> None:
    rng = np.random.default_rng(seed)
    n = 2
    context = {
        "reference": rng.normal(size=(3, n)),
        "path": rng.normal(size=(20, n)),
        "whitener": rng.normal(size=(n, n)),
        "instruments": rng.normal(size=(20, n)),
        "usual": rng.normal(size=(n, n)),
        "weights": weight * rng.random(4),
    }
    policy = LinearPolicy(np.zeros((20, 1, n)), amplitude=0.1, key=seed)
    statistic = InstrumentedResponses(TASK)
    one, two = (
        contribution(statistic, wild(rng, scale), Publication(0, policy, context), 3)
        for _ in range(2)
    )
    assert np.linalg.norm(one) <= statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE) == 1.0
    assert np.linalg.norm(one - two) <= statistic.sensitivity("l2", Relation.REPLACE_ONE) == 2.0
    assert np.abs(one).sum() <= statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE)


@pytest.mark.parametrize(("reveal", "share"), [(("start",), 0.85), (("start", "noise"), 0.9999)])
def test_the_worst_pair_of_responses_comes_close(reveal, share) -> None:
    publication = first_publication(reveal)
    statistic = InstrumentedResponses(DOUBLE.task(1000, reveal))
    pair = [contribution(statistic, user, publication) for user in statistic.worst_pair()]
    assert 2.0 * share < np.linalg.norm(pair[0] - pair[1]) <= 2.0


def test_responses_are_residuals_times_instruments() -> None:
    rng, publication = np.random.default_rng(2), first_publication()
    user = VectorTrajectory(0.01 * rng.normal(size=(21, 2)), 0.01 * rng.normal(size=(20, 1)), None)
    context = publication.context
    z = np.hstack([user.states[:-1], user.actions])
    e = user.states[1:] - z @ context["reference"]
    got = InstrumentedResponses(TASK).layout.views(
        contribution(InstrumentedResponses(TASK), user, publication)
    )
    weights = context["weights"]
    assert np.allclose(got["response"], weights[0] * context["instruments"].T @ e, atol=1e-6)
    crossed = context["whitener"] @ (user.states[:-1] - context["path"]).T @ e
    assert np.allclose(got["cross"], weights[1] * crossed, atol=1e-6)
    off = weights[3] * (e.T @ e - context["usual"])
    assert np.allclose(got["residual"], [off[0, 0], math.sqrt(2) * off[0, 1], off[1, 1]], atol=1e-6)


@pytest.mark.parametrize("make", [ControlMoments, InstrumentedResponses])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_anything_unusable_counts_as_zeros(make, bad) -> None:
    statistic, publication = make(TASK), first_publication()
    states = np.zeros((21, 2))
    states[3, 1] = bad
    users = [
        VectorTrajectory(states, np.zeros((20, 1)), np.zeros(20)),
        VectorTrajectory(np.zeros((21, 2)), np.full((20, 1), bad), np.zeros(20)),
        VectorTrajectory(np.ones((5, 2)), np.ones((4, 1)), np.zeros(4)),
        VectorTrajectory(np.ones((21, 3)), np.ones((20, 1)), np.zeros(20)),
        Trajectory(np.ones(21), np.ones(20), np.zeros(20)),
    ]
    for user in users:
        assert not contribution(statistic, user, publication).any()
    assert "21" not in repr(users[0]) and "content hidden" in repr(users[0])


@pytest.mark.parametrize("b", [0.5, 3.0])
@pytest.mark.parametrize("relation", list(Relation))
def test_a_weight_of_all_blocks_is_one_of_the_sensitivity(b: float, relation: Relation) -> None:
    statistic = ControlMoments(TASK, weight=b)
    for norm in ("l1", "l2"):
        once = statistic.sensitivity(norm, relation)
        thrice = statistic.sensitivity(norm, relation, {"moment": 3.0, "target": 3.0})
        assert thrice == pytest.approx(3.0 * once, rel=1e-12)
