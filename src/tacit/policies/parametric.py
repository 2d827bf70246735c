"""Policies that score public features of an observation: what a private search improves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Arrays, IntArray, frozen
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.public import scores
from tacit.kernels.public.scores import Scoring, features_of, scored_action, search_directions
from tacit.policies.base import ComparedPolicy, Names, frame, require_generator
from tacit.validate import choice, finite_array, integer, number, table_fits

if TYPE_CHECKING:
    import pandas as pd

FEATURES = ("identity", "affine", "quadratic", "fourier", "rbf", "one-hot", "tiles", "projection")
HEADS = ("argmax", "softmax", "tanh", "clipped", "uniform")
"""Both by their numbers in ``kernels.public.scores``."""

ARRAYS = ("form", "shift", "scale", "table", "width", "box")
"""By which names a task declares, and a policy says, how it scores."""

WIDEST = 1024
"""Units of a hidden layer."""

PLACED = (scores.FOURIER, scores.RBF, scores.PROJECTION)
"""Kinds of features with a row of the table for each."""

TILINGS = 4
"""Shifted grids of tile coding."""


def simplex(actions: int) -> Array:
    """Corners of a regular simplex around 0 in R^(A - 1), one row per action; -1 and 1 for two."""
    if actions == 2:
        return np.array([[-1.0], [1.0]])
    corners = np.zeros((actions, actions - 1))
    for k in range(1, actions):
        corners[:k, k - 1] = 1.0 / math.sqrt(k * (k + 1))
        corners[k, k - 1] = -k / math.sqrt(k * (k + 1))
    return corners


def scoring_of(
    scale: npt.ArrayLike,
    *,
    shift: npt.ArrayLike | None = None,
    features: str = "identity",
    order: int = 2,
    table: npt.ArrayLike | None = None,
    width: float | None = None,
    head: str = "argmax",
    hidden: int = 0,
    box: npt.ArrayLike | None = None,
) -> Arrays:
    """How a task declares that observations are scored: plain arrays, chosen without people's data.

    Args:
        scale: what counts as large in each number of an observation.
        shift: what counts as its middle; 0 by default.
        features: "identity", "affine" (and 1), "quadratic" (and all products of two), "fourier"
            (cosines of orders up to ``order`` in every number), "rbf" (bumps around a grid with
            ``order`` centres a side), "one-hot" (one for each of finitely many observations),
            "tiles" (four shifted grids with ``order`` tiles a side, one tile of each), "projection"
            (the matrix ``table`` times the scaled observation).
        order: see there.
        table: arrays of a transformer that was fitted on public data, in place of a grid:
            frequencies, centres or the rows of a matrix [size, numbers of an observation]. That
            the data were public is assumed, and part of what people are told.
        width: of the bumps around such centres, in units of the scaled observation.
        head: "argmax" or "softmax" of the scores of actions; "tanh" or "clipped" for a box.
        hidden: units of one hidden tanh layer; 0 for none.
        box: least and largest action [2, inputs], where actions are points of a box.
    """
    kind = FEATURES.index(choice(features, "features", FEATURES))
    scales = np.atleast_1d(finite_array(scale, "scale"))
    if kind == scores.ONE_HOT:
        scales = np.zeros(0)
    elif scales.ndim != 1 or not scales.size or (scales <= 0.0).any():
        raise InvalidInput(
            f"scale = {scales.tolist()}, but it must be one positive number for each number of an "
            "observation"
        )
    n, rows, wide = len(scales), np.zeros((0, 0)), 1.0
    if table is not None:
        if kind not in PLACED:
            raise InvalidInput("a table goes with the features fourier, rbf or projection")
        rows = finite_array(table, "table")
        if rows.ndim != 2 or rows.shape[1] != n:
            raise InvalidInput(
                f"table has shape {list(rows.shape)}, but scale has {n} numbers: it must be "
                f"[rows, {n}]"
            )
        wide = 1.0 if width is None else number(width, "width", low=0.0, low_open=True)
    elif kind == scores.PROJECTION:
        raise InvalidInput("projection needs a table: the matrix that observations are mapped by")
    elif kind in PLACED:
        side = integer(order, "order", low=2 if kind == scores.RBF else 0, high=WIDEST)
        points = np.arange(side + 1.0) if kind == scores.FOURIER else np.linspace(-1, 1, side)
        table_fits("the table of features", *[len(points)] * n)
        rows = np.array(list(itertools.product(points, repeat=n)))
        wide = 1.0 if kind == scores.FOURIER else float(points[1] - points[0])
    elif kind == scores.TILES:
        wide = float(integer(order, "order", low=2, high=WIDEST))
        table_fits("the table of features", TILINGS, *[int(wide)] * n)
        odd = 2.0 * np.arange(n) + 1.0  # shifts that differ from number to number
        rows = (np.arange(TILINGS)[:, None] * odd / TILINGS) % 1.0
    units = integer(hidden, "hidden", low=0, high=WIDEST)
    middle = np.zeros(n) if shift is None else np.atleast_1d(finite_array(shift, "shift"))
    if middle.shape != (n,):
        raise InvalidInput(f"shift has {middle.size} numbers, but scale has {n}: give as many")
    sides = np.zeros((2, 0)) if box is None else finite_array(box, "box")
    if sides.ndim != 2 or len(sides) != 2 or (sides[0] >= sides[1]).any():
        raise InvalidInput(
            f"box = {sides.tolist()}, but it must be the least and the largest action, as in "
            "[[-1, -1], [1, 1]]"
        )
    form = kind, HEADS.index(choice(head, "head", HEADS)), units
    return _declared(form, middle, scales, rows, wide, sides)


def _declared(
    form: tuple[int, int, int], shift: Array, scale: Array, table: Array, width: float, box: Array
) -> Arrays:
    parts = np.array(form, dtype=np.int64), shift, scale, table, np.array(width), box
    return dict(zip(ARRAYS, parts, strict=True))


def scoring(sizes: Mapping[str, int], arrays: Mapping[str, npt.NDArray[Any]]) -> Scoring:
    """What kernels take, from a task's sizes and arrays, refused unless they fit together."""
    for name in ARRAYS:
        if name not in arrays:
            raise InvalidInput(f"nothing says how observations are scored: {name!r} is missing")
    form = np.asarray(arrays["form"])
    if form.shape != (3,) or form.dtype.kind != "i":
        raise InvalidInput("the form is three whole numbers: features, head and hidden units")
    kind = integer(form[0], "features", low=0, high=len(FEATURES) - 1)
    head = integer(form[1], "head", low=0, high=len(HEADS) - 1)
    hidden = integer(form[2], "hidden", low=0, high=WIDEST)
    n = 0 if kind == scores.ONE_HOT else sizes["states"]
    scale, shift = _shaped(arrays, "scale", (n,)), _shaped(arrays, "shift", (n,))
    if (scale <= 0.0).any():
        raise InvalidInput("every scale of an observation must be positive")
    size = {
        scores.IDENTITY: n,
        scores.AFFINE: n + 1,
        scores.QUADRATIC: n + n * (n + 1) // 2,
        scores.ONE_HOT: sizes["states"],
    }.get(kind, len(arrays["table"]))
    tiled = kind == scores.TILES
    table = _shaped(arrays, "table", (size, n) if kind in PLACED or tiled else (0, 0))
    width = number(float(_shaped(arrays, "width", ())), "width", low=0.0, low_open=True)
    if tiled:
        side = integer(width, "tiles of a side", low=2, high=WIDEST)
        if (table < 0.0).any() or (table >= 1.0).any():
            raise InvalidInput("tilings are shifted by less than one tile")
        table_fits("the table of features", size, *[side] * n)
        size *= side**n
    if size < 1:
        raise InvalidInput("there are no features to score")
    if "actions" in sizes:
        outputs, corners = sizes["actions"] - 1, simplex(sizes["actions"])
        box, fitting = _shaped(arrays, "box", (2, 0)), ("argmax", "softmax", "uniform")
    else:
        outputs, corners = sizes["inputs"], np.zeros((0, 0))
        box, fitting = _shaped(arrays, "box", (2, outputs)), ("tanh", "clipped", "uniform")
        if (box[0] >= box[1]).any():
            raise InvalidInput("every side of the box of actions must have a length")
    if HEADS[head] not in fitting or outputs < 1:
        raise InvalidInput(f"these actions need a head among {', '.join(fitting)}, and a choice")
    return Scoring(kind, shift, scale, table, width, size, head, outputs, hidden, corners, box)


def _shaped(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, shape: tuple[int, ...]
) -> npt.NDArray[Any]:
    array = finite_array(arrays[name], name)
    if array.shape != shape:
        raise InvalidInput(f"{name} has shape {list(array.shape)}, but it must be {list(shape)}")
    return frozen(array)


def parameters(form: Scoring) -> int:
    """Number d of parameters."""
    if form.hidden:
        return form.hidden * (form.size + form.outputs)
    return form.outputs * form.size


def scale_free(form: Scoring) -> bool:
    """Whether parameters and twice the parameters act alike."""
    return form.head == scores.ARGMAX and form.hidden == 0


class ParametricPolicy(ComparedPolicy):
    """Acts by scores of features; user k of a search plays theta + sigma z_k.

    The direction z_k is public: a keyed function of ``key`` and of the user's number
    (:meth:`for_user`), about sqrt(d) long.

    Args:
        form: how observations become scores, and scores actions.
        theta: parameters [d].
        horizon: number of steps that it covers.
        sigma: size of what is tried out; 0 in a policy that is only to be used.
        key: public key of the directions.
        shared: how many directions there are, which users take in turn; 0 if everybody has an own
            one.
    """

    __slots__ = ("_block", "form", "horizon", "key", "shared", "sigma", "theta")

    def __init__(
        self,
        form: Scoring,
        theta: Array,
        horizon: int,
        *,
        sigma: float = 0.0,
        key: int = 0,
        shared: int = 0,
    ) -> None:
        self.form = form
        self.theta: Array = frozen(finite_array(theta, "theta"))
        if self.theta.shape != (parameters(form),):
            raise InvalidInput(
                f"theta has shape {list(self.theta.shape)}, but this form has {parameters(form)} "
                "parameters"
            )
        self.horizon = integer(horizon, "horizon", low=1)
        self.sigma = number(sigma, "sigma", low=0.0)
        self.key = integer(key, "key", low=0, high=2**62 - 1)
        self.shared = integer(shared, "shared", low=0)
        self._block: tuple[int, IntArray] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of an observation (or observations), and of actions or inputs."""
        form = self.form
        states = form.size if form.kind == scores.ONE_HOT else len(form.scale)
        if form.box.size:
            return {"states": states, "inputs": form.outputs}
        return {"states": states, "actions": form.outputs + 1}

    @property
    def kind(self) -> str:
        """Head and features by name."""
        return f"{HEADS[self.form.head]} of {FEATURES[self.form.kind]} features"

    def act(self, observation: Any, step: int, rng: np.random.Generator | None = None) -> Any:
        """The number of an action, or a point of the box, without what the search tries out."""
        uniforms: Array = np.empty(0)
        if self.draws:
            uniforms = require_generator(rng).random(self.form.outputs)
        return self.decide(observation, step, uniforms)

    @property
    def draws(self) -> int:
        """How many uniform numbers an action takes: none, one of a choice, or one for each side."""
        if self.form.head not in (scores.SOFTMAX, scores.UNIFORM):
            return 0
        return self.form.outputs if self.form.box.size else 1

    def decide(self, observation: Any, step: int, uniforms: npt.ArrayLike) -> Any:
        """The action, given the numbers in [0, 1) that it takes."""
        integer(step, "step", low=0, high=self.horizon - 1)
        form, n = self.form, self.sizes["states"]
        if form.kind == scores.ONE_HOT:
            seen = np.array([float(integer(observation, "observation", low=0, high=n - 1))])
        else:
            seen = np.ravel(finite_array(observation, "observation"))
            if seen.shape != (n,):
                raise InvalidInput(f"observation has {len(seen)} numbers, but it must have {n}")
        drawn = np.zeros(form.outputs)
        drawn[: self.draws] = np.asarray(uniforms)[: self.draws]
        phi, units = np.empty(form.size), np.empty(max(form.hidden, 1))
        features_of(form, seen, np.empty(len(seen)), phi)
        action = np.zeros(form.outputs)
        scored_action(form, self.theta, seen, phi, drawn, units, np.empty(form.outputs), action)
        if not form.box.size:
            return int(action[0])
        low, high = form.box
        return np.asarray(low + (high - low) * (action + 1.0) / 2.0)

    def layers(self) -> list[Array]:
        """Weights [outputs, features], after those of the hidden units where there are some."""
        form = self.form
        split = form.hidden * form.size
        last = self.theta[split:].reshape(form.outputs, form.hidden or form.size)
        return [self.theta[:split].reshape(form.hidden, form.size), last] if split else [last]

    def to_frame(self, states: Names = None, actions: Names = None) -> pd.DataFrame:
        """Columns layer, output, feature and weight."""
        rows = [(k, *at) for k, layer in enumerate(self.layers()) for at in np.ndindex(layer.shape)]
        columns = dict(zip(("layer", "output", "feature"), np.transpose(rows), strict=True))
        return frame({**columns, "weight": self.theta})

    def directions(self, users: IntArray) -> IntArray:
        """The public directions z [n, d] of these users, in steps of the grid.

        A block of 2 d directions is made all at once, so that of the last one is kept for users who
        come one by one, or share it.
        """
        people, d = users % self.shared if self.shared else users, len(self.theta)
        blocks = people // (2 * d)
        if len(people) == 0 or blocks.min() < blocks.max():
            z = np.empty((len(people), d), dtype=np.int64)
            search_directions(self.key, people, z)
            return z
        block, known = int(blocks[0]), self._block
        if known is None or known[0] != block:
            known = block, np.empty((2 * d, d), dtype=np.int64)
            search_directions(self.key, 2 * d * block + np.arange(2 * d), known[1])
            self._block = known
        return np.asarray(known[1][people - 2 * d * block])

    def for_user(self, user: int) -> ParametricPolicy:
        """The policy as this user plays it: parameters moved along the user's direction."""
        if self.sigma == 0.0:
            return self
        z = self.directions(np.array([user], dtype=np.int64))
        return ParametricPolicy(self.form, self.theta + self.sigma * z[0] / STEPS, self.horizon)

    def arrays(self) -> Arrays:
        """How it scores, as a task declares it."""
        form = self.form
        kinds = form.kind, form.head, form.hidden
        return _declared(kinds, form.shift, form.scale, form.table, form.width, form.box)

    def _parts(self) -> tuple[Any, ...]:
        tried = self.horizon, self.sigma, self.key, self.shared
        return (*self.arrays().values(), *self.sizes.values(), self.theta, *tried)

    def __repr__(self) -> str:
        return f"ParametricPolicy({self.kind}, parameters={len(self.theta)}, sigma={self.sigma:g})"
