"""LSVI-UCB++: variance-weighted regression, optimistic and pessimistic values, rare switching."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.planners.base import Ask, Streams, next_version
from tacit.planners.lsvi import Asked, Regression, Switching, grown, published, unchanged
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task, feature_table


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


@dataclass(frozen=True, eq=False)
class LsviPlusPlanner:
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
    """

    ridge: float
    least: float
    bonus: PlusBonus
    switching: Switching
    asked: Asked = field(default_factory=Asked)
    monotone: bool = True

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Backward regression at a switch; otherwise the same policy, and perhaps new weights."""
        if release.users == 0:
            return self._first(task, previous, streams)
        assert previous is not None
        fit = Regression(task, release, self.ridge, self.least)
        due = grown(fit.logdet, previous, self.switching)
        if not due and not self.bonus.theory:
            return unchanged(previous)
        fit.solve(asked=bool(self.asked.ranges))
        if due:
            return self._switch(task, fit, ask, previous, streams)
        context = dict(previous.context)
        context["weights"] = self._weights(task, fit, context)
        return Publication(previous.version + 1, previous.policy, context)

    def _first(self, task: Task, previous: Publication | None, streams: Streams) -> Publication:
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        d = feature_table(task).shape[2]
        tops = np.broadcast_to(np.arange(H, 0, -1.0)[:, None, None], (H, S, A))
        context: dict[str, Any] = {
            "logdet": np.full(H, d * np.log(self.ridge)),
            "switches": 0,
            "Qhat": tops,
            "Qcheck": np.zeros((H, S, A)),
            "mean": np.zeros((H, S * A)),
            "low": np.zeros((H, S * A)),
            "square": np.zeros((H, S * A)),
        }
        if self.bonus.theory:
            width = np.linalg.norm(feature_table(task), axis=2) / np.sqrt(self.ridge)
            context["weights"] = 1.0 / np.broadcast_to(self._floor(task, d, width), (H, S, A))
        else:
            context["weights"] = np.full((H, S, A), 1.0 / H)
        return published(task, previous, tops.copy(), streams, context)

    def _switch(
        self,
        task: Task,
        fit: Regression,
        ask: Ask,
        previous: Publication,
        streams: Streams,
    ) -> Publication:
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        known, unknown = task.known.get("reward"), "reward" not in task.known
        version = next_version(previous)
        context = {name: array.copy() for name, array in previous.context.items()}
        Qhat, Qcheck = context["Qhat"], context["Qcheck"]
        V = low = np.zeros(S)
        for h in reversed(range(H)):
            reward = 0.0 if known is None else known[h if len(known) > 1 else 0].ravel()
            if h < H - 1 or unknown:
                regress = (h, V, unknown, ask, self.asked)
                context["mean"][h] = fit.predict(version, "hat", *regress)
                context["low"][h] = fit.predict(version, "check", h, low, unknown, ask, self.asked)
            if h < H - 1:
                squares = V**2
                context["square"][h] = fit.predict(
                    version, "square", h, squares, False, ask, self.asked
                )
            up = reward + context["mean"][h] + self.bonus.hat * fit.widths[h]
            down = reward + context["low"][h] - self.bonus.check * fit.widths[h]
            up, down = (np.clip(q, 0.0, H - h).reshape(S, A) for q in (up, down))
            Qhat[h] = np.minimum(Qhat[h], up) if self.monotone else up
            Qcheck[h] = np.maximum(Qcheck[h], down) if self.monotone else down
            V, low = Qhat[h].max(axis=1), Qcheck[h].max(axis=1)
        context["weights"] = self._weights(task, fit, context)
        context["logdet"] = fit.logdet
        context["switches"] = context["switches"] + 1
        return published(task, previous, Qhat, streams, context)

    def _weights(self, task: Task, fit: Regression, context: dict[str, Any]) -> Array:
        """1 / sigma^2 [H, S, A].

        Where the reward is part of the regression, <w, phi> - 1 stands in for the mean of V: the
        variance is then never underestimated because of it.
        """
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        d = fit.phi.shape[1]
        ranges = np.arange(H - 1, -1, -1.0)[:, None]
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
