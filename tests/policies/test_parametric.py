"""Policies that score features: what the features are, and what is refused."""

import json

import numpy as np
import pytest

from tacit.errors import InvalidInput
from tacit.kernels.public.scores import features_of, search_directions
from tacit.policies.parametric import TILINGS, ParametricPolicy, parameters, scoring, scoring_of
from tacit.wire import documents

SIZES = {"states": 2, "actions": 3}


def phi(form, o) -> np.ndarray:
    out = np.empty(form.size)
    features_of(form, np.asarray(o, dtype=float), np.empty(len(o)), out)
    return out


def test_a_projection_is_the_matrix_times_the_scaled_observation() -> None:
    matrix = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    arrays = scoring_of([2.0, 4.0], shift=[1.0, 0.0], features="projection", table=matrix)
    form = scoring(SIZES, arrays)
    assert phi(form, [3.0, 2.0]) == pytest.approx(matrix @ [1.0, 0.5])
    assert parameters(form) == 2 * 3


def test_centres_of_a_transformer_stand_in_place_of_a_grid() -> None:
    centres = np.array([[0.0, 0.0], [0.5, 0.5]])
    form = scoring(SIZES, scoring_of([1.0, 1.0], features="rbf", table=centres, width=0.5))
    found = np.exp(-0.5 * (((np.array([0.2, 0.1]) - centres) / 0.5) ** 2).sum(axis=1))
    assert phi(form, [0.2, 0.1]) == pytest.approx(found / found.sum())


def test_one_tile_of_every_tiling_and_neighbours_share_most() -> None:
    form = scoring(SIZES, scoring_of([1.0, 1.0], features="tiles", order=5))
    assert form.size == TILINGS * 25
    rng = np.random.default_rng(1)
    for o in [*rng.uniform(-1.5, 1.5, (200, 2)), [1.0, 1.0], [-1.0, -1.0]]:
        found = phi(form, o)
        assert (found.reshape(TILINGS, 25).sum(axis=1) == 1.0).all()
        assert set(found.tolist()) == {0.0, 1.0}
    inside = rng.uniform(-0.9, 0.9, (500, 2))
    near = [phi(form, o) @ phi(form, o + 0.02) for o in inside]
    far = [phi(form, o) @ phi(form, -np.sign(o) * 0.95) for o in inside]
    assert np.mean(near) > 0.8 * TILINGS and max(far) < TILINGS
    tiles = {tuple(np.flatnonzero(phi(form, o))) for o in inside}
    assert len(tiles) > 25, "shifted grids tell more apart than one of them"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"features": "projection"}, "needs a table"),
        ({"features": "identity", "table": [[1.0, 1.0]]}, "goes with the features"),
        ({"features": "tiles", "order": 1}, "order"),
        ({"features": "rbf", "table": [[0.0, 0.0]], "width": 0.0}, "width"),
        ({"features": "waves"}, "waves"),
        ({"scale": [0.0, 1.0]}, "one positive number for each"),
        ({"scale": []}, "one positive number for each"),
        ({"hidden": -1}, "hidden = -1"),
        ({"shift": [0.0]}, "shift has 1 numbers, but scale has 2"),
        ({"features": "projection", "table": [[1.0, 2.0, 3.0]]}, "table has shape"),
        ({"box": [[1.0], [0.0]], "head": "tanh"}, "the least and the largest action"),
    ],
)
def test_what_does_not_go_together_is_refused(given, problem) -> None:
    with pytest.raises(InvalidInput, match=problem):
        scoring_of(**{"scale": [1.0, 1.0], **given})


def test_tables_that_do_not_fit_are_refused() -> None:
    arrays = scoring_of([1.0, 1.0, 1.0], features="projection", table=[[1.0, 2.0, 3.0]])
    with pytest.raises(InvalidInput, match="scale has shape .3., but it must be .2."):
        scoring(SIZES, arrays)
    tiles = scoring_of([1.0, 1.0], features="tiles", order=3)
    with pytest.raises(InvalidInput, match="less than one tile"):
        scoring(SIZES, {**tiles, "table": tiles["table"] + 1.0})


@pytest.mark.parametrize("features", ["identity", "quadratic", "fourier", "rbf", "tiles"])
def test_a_policy_travels_whole(features: str) -> None:
    form = scoring(SIZES, scoring_of([1.0, 2.0], features=features, order=2))
    theta = np.random.default_rng(0).normal(size=parameters(form))
    policy = ParametricPolicy(form, theta, 7, sigma=0.5, key=11, shared=4)
    said = json.loads(json.dumps(documents._policy_to_json(policy)))
    again = documents._policy_from_json(said, 7, SIZES)
    assert again == policy and hash(again) == hash(policy)
    assert again.act([0.3, -0.2], 0) == policy.act([0.3, -0.2], 0)
    assert ParametricPolicy(form, theta, 7, sigma=0.5, key=11) != policy


@pytest.mark.parametrize("shared", [0, 6])
def test_directions_do_not_depend_on_who_else_is_asked_for(shared: int) -> None:
    form = scoring({"states": 3, "actions": 2}, scoring_of([1.0, 1.0, 1.0]))
    policy = ParametricPolicy(form, np.ones(3), 7, sigma=0.5, key=11, shared=shared)
    people = np.arange(20)
    z = np.empty((20, 3), dtype=np.int64)
    search_directions(11, people % shared if shared else people, z)
    assert (policy.directions(people) == z).all()
    for k in (0, 13, 5, 12, 19, 1):  # blocks of six, back and forth
        assert (policy.directions(people[k : k + 1]) == z[k]).all()
        assert policy.for_user(k).theta == pytest.approx(1.0 + 0.5 * z[k] / 2**24)


@pytest.mark.parametrize("hidden", [0, 2])
def test_of_one_hot_features_the_one_that_is_seen_counts(hidden: int) -> None:
    form = scoring({"states": 5, "actions": 3}, scoring_of((), features="one-hot", hidden=hidden))
    theta = np.random.default_rng(1).normal(size=parameters(form))
    policy = ParametricPolicy(form, theta, 7)
    first, *last = policy.layers()
    for state in range(5):
        v = last[0] @ np.tanh(first[:, state]) if last else first[:, state]
        assert policy.act(state, 0) == int((form.corners @ v).argmax())
