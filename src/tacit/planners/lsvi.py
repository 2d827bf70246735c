"""Least-squares value iteration with bonuses: LSVI-UCB, LSVI-UCB++ and their private forms.

Sums come from a release that holds the whole table of transitions (no privacy), or are asked for
one by one from a curator. Nothing here knows which data are behind them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public import lsvi
from tacit.planners.base import Ask, Context, QueryPlanner, Streams, greedy_actions, next_version
from tacit.planners.ridge import unit_direction, unpacked
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release, ValueQuery
from tacit.task.task import Task, feature_table, table_sizes

LEAST_EIGENVALUE = 1e-9
"""No eigenvalue is below this."""


Rule = Literal["determinant", "rayleigh"]
SWITCH_GROWTH: dict[Rule, float] = {"determinant": 2.0, "rayleigh": 1.4}
"""Growth that makes a switch due: of a determinant as published, of a direction by trial, of which
no script is kept."""


@dataclass(frozen=True)
class Switching:
    """Plan anew when a matrix has grown by ``rate``, at most ``most`` times.

    The test is made once per publication, on released matrices only; the cap is what the privacy of
    the answers rests on (docs/papers/linear_jdp.md#e6 and #e10), whatever the rule.

    Attributes:
        most: number of switches.
        rule: what has to grow: a determinant, or the matrix in some direction
            (docs/papers/linear_jdp.md#rayleigh).
        rate: how much.
    """

    most: int
    rule: Rule = "determinant"
    rate: float = 2.0

    @classmethod
    def by(cls, rule: Rule, most: int) -> Switching:
        """At the rate of that rule."""
        return cls(most, rule, SWITCH_GROWTH[rule])

    def first(self, H: int, d: int, ridge: float) -> dict[str, Any]:
        """What later matrices are compared with before there are data, for a publication."""
        if self.rule == "rayleigh":
            return {"matrices": np.tile(ridge * np.eye(d), (H, 1, 1)), "switches": 0}
        return {"logdet": np.full(H, d * np.log(ridge)), "switches": 0}

    def mark(self, fit: Regression, previous: Publication) -> dict[str, Any]:
        """The same after a switch to a new fit."""
        used = int(previous.context["switches"]) + 1
        if self.rule == "rayleigh":
            return {"matrices": fit.matrices(), "switches": used}
        return {"logdet": fit.logdet, "switches": used}

    def due(self, fit: Regression, previous: Publication) -> bool:
        """Whether a switch is due and still allowed."""
        if int(previous.context["switches"]) >= self.most:
            return False
        if self.rule == "rayleigh":
            return fit.stretched(previous.context["matrices"], self.rate)
        return bool((fit.logdet - previous.context["logdet"] >= np.log(self.rate)).any())


@dataclass(frozen=True, eq=False)
class Asked:
    """What may be asked of the curator: by target the range R_h [H], and whether R/2 is taken off.

    Empty where the release itself holds everything.
    """

    ranges: Mapping[str, Array] = field(default_factory=dict)
    centred: bool = True

    def put(
        self, version: int, target: str, h: int, values: Array, ask: Ask
    ) -> tuple[Array, float]:
        """The answer to a question, and what was taken off each term."""
        answer: Array = ask(ValueQuery((version, target, h), target, h, values)).blocks["answer"]
        return answer, float(self.ranges[target][h]) / 2 if self.centred else 0.0


class Regression:
    """Ridge regression on the Gram matrices of one release.

    Args:
        task: the public task.
        release: with the block "gram" [H, p].
        ridge: what is added to the diagonal.
        least: eigenvalues are clipped here.
    """

    def __init__(self, task: Task, release: Release, ridge: float, least: float) -> None:
        _, S, A = table_sizes(task)
        self.phi = feature_table(task).reshape(S * A, -1)
        self.task, self.release = task, release
        d = self.phi.shape[1]
        self._packed, self._ridge, self._least = release.blocks["gram"], ridge, least
        self.logdet: Array = np.empty(len(self._packed))
        work = np.empty((d, d))
        self._sound = lsvi.log_determinants(self._packed, ridge, least, work, self.logdet)
        if not self._sound:
            self.logdet = np.linalg.slogdet(self.matrices())[1]

    def matrices(self) -> Array:
        """The regularised Gram matrices, eigenvalues raised where they are too small [H, d, d]."""
        return self._matrices()[1]

    def stretched(self, before: Array, rate: float) -> bool:
        """Whether some direction of some stage has grown by ``rate`` since these matrices."""
        if self._sound:
            work = np.empty_like(before[0])
            return lsvi.stretched(self._packed, self._ridge, before, rate, work)
        return bool(np.linalg.eigvalsh(rate * before - self.matrices()).min() <= 0.0)

    def _matrices(self) -> tuple[Array, Array]:
        """Released Gram matrices, and the regularised ones."""
        d = self.phi.shape[1]
        gram = unpacked(self._packed, d)
        lam = gram + self._ridge * np.eye(d)
        return gram, lam if self._sound else raised(lam, self._least)

    def solve(self, *, asked: bool) -> None:
        """Prepare widths and predictions; those from centred answers need (Lam - G) v too."""
        gram, lam = self._matrices()
        if asked:
            self.excess: Array = (lam - gram) @ unit_direction(self.phi)
        self.factors = np.empty_like(lam)
        lsvi.factorise(lam, max(self._least, LEAST_EIGENVALUE), self.factors)

    @cached_property
    def widths(self) -> Array:
        """|phi|_{Lam^-1} [H, S A]."""
        widths = np.empty((len(self.factors), len(self.phi)))
        lsvi.feature_widths(self.factors, self.phi, widths)
        return widths

    def predict(
        self, version: int, target: str, h: int, values: Array, reward: bool, ask: Ask, asked: Asked
    ) -> Array:
        """Prediction of V(s') (and r where asked for) at every pair (s, a), prior mean 0.

        A centred sum y_m = sum w phi (u - m) gives m + phi^T Lam^-1 (y_m - m (Lam - G) v), <v, phi>
        = 1: the noisy Gram matrix stands in for the exact one
        (docs/papers/linear_jdp.md#b1 with t = 0).
        """
        middle, w = 0.0, np.empty(self.phi.shape[1])
        if asked.ranges:
            y, middle = asked.put(version, target, h, values, ask)
            y = y - middle * self.excess[h]
        else:
            per_pair = self.release.blocks["table"][h] @ values
            if reward:
                per_pair = per_pair + self.release.blocks["reward"][h]
            y = per_pair.ravel() @ self.phi
        lsvi.solve_stage(self.factors, h, y, w)
        prediction: Array = middle + self.phi @ w
        return prediction


def raised(matrices: Array, least: float) -> Array:
    """Symmetric matrices with eigenvalues raised to ``least`` (and above zero)."""
    values, axes = np.linalg.eigh(matrices)
    kept = np.maximum(values, max(least, LEAST_EIGENVALUE))[:, None, :]
    repaired: Array = (axes * kept) @ np.swapaxes(axes, 1, 2)
    return repaired


def value_tops(H: int, stage_ranges: bool) -> Array:
    """Where Q_h is cut [H]: at H - h + 1, which no return exceeds, or at H as in the papers."""
    return np.arange(H, 0, -1.0) if stage_ranges else np.full(H, float(H))


def greedy_in(
    task: Task, Q: Array, streams: Streams, context: Mapping[str, Any]
) -> tuple[Policy, Context]:
    """The greedy policy of Q, ties drawn."""
    policy = TabularPolicy(greedy_actions(Q, task, streams))
    return policy, {name: np.asarray(value) for name, value in context.items()}


@dataclass(frozen=True, eq=False)
class LsviPlanner(QueryPlanner):
    """Q_h = clip(<w_h, phi> + bonus |phi|_{Lam^-1}, 0, top), w_h = Lam^-1 sum phi (r + V_{h+1}).

    LSVI-UCB (docs/papers/linear_jdp.md#lsvi-ucb), Luyo's batches (#luyo) and, with ``switching``,
    Ngo's (#ngo).

    Attributes:
        ridge: what is added to the diagonal of the Gram matrices.
        least: eigenvalues are clipped here.
        bonus: factor of the width.
        asked: what is asked for; empty reads the table of the release.
        switching: None plans anew at every publication.
        stage_ranges: whether Q_h is cut at H - h + 1 rather than at H.
    """

    ridge: float
    least: float
    bonus: float
    asked: Asked = field(default_factory=Asked)
    switching: Switching | None = None
    stage_ranges: bool = True

    def choose(
        self, task: Task, release: Release, ask: Ask, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """Backward regression, or the same policy again."""
        H, S, A = table_sizes(task)
        d = feature_table(task).shape[2]
        tops = value_tops(H, self.stage_ranges)
        if release.users == 0:
            Q = np.broadcast_to(tops[:, None, None], (H, S, A)).copy()
            first = {} if self.switching is None else self.switching.first(H, d, self.ridge)
            return greedy_in(task, Q, streams, first)
        fit = Regression(task, release, self.ridge, self.least)
        marks: Mapping[str, Any] = {}
        if self.switching is not None:
            assert previous is not None
            if not self.switching.due(fit, previous):
                return previous.policy, previous.context
            marks = self.switching.mark(fit, previous)
        fit.solve(asked=bool(self.asked.ranges))
        Q = np.empty((H, S, A))
        if self.asked.ranges:
            self._ask_backward(fit, next_version(previous), tops, ask, Q)
        else:
            table, reward = release.blocks["table"], release.blocks["reward"]
            widths = self._widths(fit)
            lsvi.backward_regression(
                fit.factors, widths, fit.phi, table, reward, self.bonus, tops, Q
            )
        return greedy_in(task, Q, streams, marks)

    def _ask_backward(self, fit: Regression, version: int, tops: Array, ask: Ask, Q: Array) -> None:
        """Q from the last stage, one question per stage."""
        V, widths, w = np.zeros(Q.shape[1]), self._widths(fit), np.empty(fit.phi.shape[1])
        for h in reversed(range(len(Q))):
            answer, middle = self.asked.put(version, "value", h, V, ask)
            V = np.empty(Q.shape[1])
            lsvi.solve_stage(fit.factors, h, answer - middle * fit.excess[h], w)
            terms = middle, widths[h], self.bonus, tops[h]
            lsvi.optimistic_values(fit.phi, w, *terms, Q[h], V)

    def _widths(self, fit: Regression) -> Array:
        """Zeros where there is no bonus to multiply them with."""
        return fit.widths if self.bonus else np.zeros((len(fit.factors), len(fit.phi)))


@dataclass(frozen=True)
class PlusBonus:
    """Factors of the widths (docs/papers/linear_jdp.md#lsvi-ucb-plus-plus).

    Attributes:
        hat: of the optimistic values (beta).
        check: of the pessimistic ones (beta_bar).
        square: of the second moment (beta_tilde).
        theory: whether weights carry the theorem's E, D and floor 2 d^3 H^2 |phi|^(1/2); without,
            they are 1 / max(variance, H).
    """

    hat: float
    check: float
    square: float
    theory: bool

    @classmethod
    def theorem(
        cls, d: int, H: int, ridge: float, noise: float, logs: tuple[float, float]
    ) -> PlusBonus:
        """With a bound on the noise, and two logarithms: of the first factor and of the others."""
        root, (first, log) = math.sqrt(d * ridge), logs
        hat, check = (
            H * noise * root + x for x in (math.sqrt(d) * first, math.sqrt(d**3) * H * log)
        )
        return cls(hat, check, H**2 * noise**2 * root + math.sqrt(d**3) * H**2 * log, True)


@dataclass(frozen=True, eq=False)
class LsviPlusPlanner(QueryPlanner):
    """Three regressions per switch: of V, of the pessimistic V and of V^2.

    The algorithm of docs/papers/linear_jdp.md#lsvi-ucb-plus-plus. As meant there Qhat only falls
    and Qcheck only rises (#e9 says what is printed). With noisy answers the smallest of many Qhat
    is the one with the unluckiest noise, so private planning may leave that out and use the newest
    answers alone. Weights are published as a table from the last switch's answers, before the user
    who reads them arrives (#e11).

    Attributes:
        ridge: what is added to the diagonal of the Gram matrices.
        least: eigenvalues are clipped here.
        bonus: factors of the widths.
        switching: when to plan anew.
        asked: what is asked for; empty reads the table of the release.
        monotone: whether values are combined with those of all earlier switches.
        stage_ranges: whether values are cut at H - h + 1 rather than at H.
    """

    ridge: float
    least: float
    bonus: PlusBonus
    switching: Switching
    asked: Asked = field(default_factory=Asked)
    monotone: bool = True
    stage_ranges: bool = True

    def choose(
        self, task: Task, release: Release, ask: Ask, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """Backward regression at a switch; otherwise the same policy, and perhaps new weights."""
        if release.users == 0:
            return self._first(task, streams)
        assert previous is not None
        fit = Regression(task, release, self.ridge, self.least)
        due = self.switching.due(fit, previous)
        if not due and not self.bonus.theory:
            return previous.policy, previous.context
        fit.solve(asked=bool(self.asked.ranges))
        if due:
            return self._switch(task, fit, ask, previous, streams)
        context = dict(previous.context)
        context["weights"] = self._weights(task, fit, context)
        return previous.policy, context

    def _first(self, task: Task, streams: Streams) -> tuple[Policy, Context]:
        H, S, A = table_sizes(task)
        d = feature_table(task).shape[2]
        tops = np.broadcast_to(value_tops(H, self.stage_ranges)[:, None, None], (H, S, A))
        context: dict[str, Any] = {
            **self.switching.first(H, d, self.ridge),
            "Qhat": tops,
            "Qcheck": np.zeros((H, S, A)),
            **dict.fromkeys(("mean", "low", "square"), np.zeros((H, S * A))),
        }
        if self.bonus.theory:
            width = np.linalg.norm(feature_table(task), axis=2) / np.sqrt(self.ridge)
            context["weights"] = 1.0 / np.broadcast_to(self._floor(task, d, width), (H, S, A))
        else:
            context["weights"] = np.full((H, S, A), 1.0 / H)
        return greedy_in(task, tops.copy(), streams, context)

    def _switch(
        self, task: Task, fit: Regression, ask: Ask, previous: Publication, streams: Streams
    ) -> tuple[Policy, Context]:
        H, S, A = table_sizes(task)
        known, unknown = task.known.get("reward"), "reward" not in task.known
        version = next_version(previous)
        context = {name: array.copy() for name, array in previous.context.items()}
        Qhat, Qcheck = context["Qhat"], context["Qcheck"]
        V, low, tops = np.zeros(S), np.zeros(S), value_tops(H, self.stage_ranges)
        for h in reversed(range(H)):
            reward = 0.0 if known is None else known[h if len(known) > 1 else 0].ravel()
            if h < H - 1 or unknown:
                context["mean"][h] = fit.predict(version, "hat", h, V, unknown, ask, self.asked)
                context["low"][h] = fit.predict(version, "check", h, low, unknown, ask, self.asked)
            if h < H - 1:
                squares = fit.predict(version, "square", h, V**2, False, ask, self.asked)
                context["square"][h] = squares
            up = reward + context["mean"][h] + self.bonus.hat * fit.widths[h]
            down = reward + context["low"][h] - self.bonus.check * fit.widths[h]
            up, down = (np.clip(q, 0.0, tops[h]).reshape(S, A) for q in (up, down))
            Qhat[h] = np.minimum(Qhat[h], up) if self.monotone else up
            Qcheck[h] = np.maximum(Qcheck[h], down) if self.monotone else down
            V, low = Qhat[h].max(axis=1), Qcheck[h].max(axis=1)
        context["weights"] = self._weights(task, fit, context)
        context |= self.switching.mark(fit, previous)
        return greedy_in(task, Qhat, streams, context)

    def _weights(self, task: Task, fit: Regression, context: dict[str, Any]) -> Array:
        """1 / sigma^2 [H, S, A].

        Where the reward is part of the regression, <w, phi> - 1 stands in for the mean of V: the
        variance is then never underestimated because of it.
        """
        H, S, A = table_sizes(task)
        d = fit.phi.shape[1]
        ranges = value_tops(H, self.stage_ranges)[:, None] - float(self.stage_ranges)
        mean, low, width = context["mean"], context["low"], fit.widths
        shift = 1.0 if "reward" not in task.known else 0.0
        centre = np.clip(mean - shift, 0.0, ranges)
        variance = np.maximum(np.clip(context["square"], 0.0, ranges**2) - centre**2, 0.0)
        if not self.bonus.theory:
            weights: Array = 1.0 / np.maximum(variance, H).reshape(H, S, A)
            return weights
        error = np.minimum(self.bonus.square * width, H**2)
        error += np.minimum(2 * H * self.bonus.check * width, H**2)
        gap = 4 * d**3 * H**2 * (mean - low + 2 * self.bonus.check * width)
        sigma2 = variance + error + np.clip(gap, 0.0, d**3 * H**3) + H
        sigma2 = np.maximum(sigma2, self._floor(task, d, width))
        weights = 1.0 / sigma2.reshape(H, S, A)
        return weights

    def _floor(self, task: Task, d: int, width: Array) -> Array:
        """max(H^2, 4 d^6 H^4 |phi|): the square of the theorem's floor on sigma."""
        H = task.horizon
        floor: Array = np.maximum(float(H) ** 2, 4.0 * d**6 * H**4 * width)
        return floor
