"""Policy search on released gradients: filter, step, follow the returns, perhaps go back.

Everything is worked out from releases and known noise. The constants were chosen on problems other
than those that results are reported for (docs/results/search.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.planners.base import KEYS, Context, ReleasePlanner, Streams, least_count
from tacit.policies.base import Policy
from tacit.policies.parametric import ParametricPolicy, parameters, scale_free, scoring
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task


@dataclass(frozen=True)
class SearchTuning:
    """Constants; nothing here depends on people.

    Chosen on cart-poles, pendulums, acrobots and linear systems other than those reported; which of
    them made a difference stands in docs/guides/policy_search.md. No script of it is kept;
    ``benchmarks/search.py`` measures them on the problems reported.

    Attributes:
        tau: wanted length of the error of a batch's gradient, in units of x per direction.
        fewest: least number of batches.
        most: largest number of batches.
        eta: longest step, in units of sigma sqrt(d), the length of what is tried out.
        signal: prior length of the gradient E[x z].
        memory: share of the filtered gradient that is still true one step later.
        last_sigma: size of what is tried out in the end, where the size of parameters matters.
        hold: share of the batches before it begins to shrink from 1.
        target: wanted variance of x in the window.
        edge: how sure the guess is that returns spread as far as they are from the window's edge.
        average: share of the last batches whose parameters are averaged in the end.
        restarts: how often the search may go back to where returns were better.
    """

    tau: float = 0.15
    fewest: int = 12
    most: int = 150
    eta: float = 0.6
    signal: float = 0.3
    memory: float = 0.9
    last_sigma: float = 0.25
    hold: float = 0.5
    target: float = 0.33
    edge: float = 0.15
    average: float = 0.3
    restarts: int = 3


TUNING = SearchTuning()


class Errors(NamedTuple):
    """Known variances of released sums of x z (an entry), x and x^2, before anybody has come.

    Attributes:
        release: of the noise in one release of each sum.
        person: of what each person adds to it, own noise and chance of the sample.
        cumulative: whether a release is about everybody so far, or about the last batch.
    """

    release: tuple[float, float, float]
    person: tuple[float, float, float]
    cumulative: bool

    def sd(self, block: int, people: int) -> float:
        """Standard deviation of the mean over a batch of that many."""
        return math.sqrt(self.release[block] / people**2 + self.person[block] / people)


class SearchBatch(NamedTuple):
    """What one release says of a batch: estimates of E[x z], E[x] and E[x^2], with their errors."""

    people: int
    gradient: Array
    mean: float
    square: float
    gradient_sd: float
    mean_sd: float
    square_sd: float


class ReturnWindow(NamedTuple):
    """What returns are measured against."""

    centre: float
    half: float


@dataclass(frozen=True)
class SearchPlanner(ReleasePlanner):
    """Plans the next batch of a search: parameters, how much is tried out, and the window.

    Attributes:
        errors: what is known of the noise before the first person.
        tuning: constants.
        whole: people of a batch where one that stays short is never opened.
        shared: how many directions people share; 0 if everybody has an own one.
    """

    errors: Errors
    tuning: SearchTuning = TUNING
    whole: int | None = None
    shared: int = 0

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The next batch; after the last one the policy that is left."""
        form = scoring(task.sizes, task.known)
        low, high = (float(end) for end in task.known["returns"])
        size = batch_size(task.users, parameters(form), self.errors, self.tuning)
        batches = task.users // self.whole if self.whole else math.ceil(task.users / size)
        if previous is None:
            key = int(streams.posterior.integers(KEYS))
            state = self._begin(parameters(form), ReturnWindow((low + high) / 2, (high - low) / 2))
        else:
            assert isinstance(previous.policy, ParametricPolicy)
            key, state = previous.policy.key, dict(previous.context)
            batch = self._read(release, state)
            if batch is not None:
                self._absorb(batch, state, previous.policy.sigma, batches, low, high)
        if self.shared:  # the same few directions again would show a part of the space
            key = int(streams.posterior.integers(KEYS))
        done = int(state["done"])
        theta, sigma = state["w"], self._sigma(done / batches, scale_free(form))
        if done >= batches:
            theta, sigma = (state["summed"] + state["w"]) / (1.0 + float(state["averaged"])), 0.0
        policy = ParametricPolicy(
            form, theta, task.horizon, sigma=sigma, key=key, shared=self.shared
        )
        return policy, state

    def _begin(self, d: int, window: ReturnWindow) -> dict[str, Array]:
        return {
            "w": np.zeros(d),
            "gradient": np.zeros(d),
            "variance": np.array(self.tuning.signal**2 / d),
            "window": np.array(window),
            "recent": np.zeros((0, d + 3)),
            "best": np.zeros((0, d + 3)),
            "restarts": np.array(0.0),
            "done": np.array(0.0),
            "summed": np.zeros(d),
            "averaged": np.array(0.0),
            "before": np.zeros(d + 3),
            "curve": np.zeros((0, 5)),
        }

    def _sigma(self, done: float, free: bool) -> float:
        """Public schedule: 1, and where size matters geometric to the last one in the end."""
        c = self.tuning
        if free or done <= c.hold:
            return 1.0
        return float(c.last_sigma ** ((done - c.hold) / (1.0 - c.hold)))

    def _read(self, release: Release, state: dict[str, Array]) -> SearchBatch | None:
        """The newest batch alone, as means; None if nobody was in it."""
        blocks, d = release.blocks, len(state["w"])
        sums = np.concatenate(
            [blocks["gradient"], [blocks["mean"], blocks["square"], release.users]]
        )
        if self.errors.cumulative:
            sums, state["before"] = sums - state["before"], sums
        people = int(sums[d + 2])
        if people < 1:
            return None
        weight = math.sqrt(2.0 * (d + 1))
        return SearchBatch(
            people,
            sums[:d] / people,
            min(max(float(sums[d]) / people, -1.0), 1.0),
            float(sums[d + 1]) / (weight * people) + 0.5,
            *(self.errors.sd(block, people) for block in range(3)),
        )

    def _absorb(
        self,
        batch: SearchBatch,
        state: dict[str, Array],
        sigma: float,
        batches: int,
        low: float,
        high: float,
    ) -> None:
        """Filter, step, follow the returns, perhaps go back."""
        done, played = int(state["done"]), state["w"]
        window = ReturnWindow(*map(float, state["window"]))
        if done > batches - max(1, round(self.tuning.average * batches)):
            state["summed"] = state["summed"] + played
            state["averaged"] = state["averaged"] + 1.0
        state["done"] = np.array(done + 1.0)
        level = _level(played, batch, window)
        state["curve"] = np.vstack([state["curve"], _point(batch, window)])
        self._filter(batch, state)
        self._step(state, sigma)
        state["window"] = np.array(self._follow(batch, window, low, high))
        self._go_back(level, state, low, high)

    def _filter(self, batch: SearchBatch, state: dict[str, Array]) -> None:
        """Kalman filter of a gradient that drifts: g' = memory g + N(0, (1 - memory^2) prior).

        The error of a release is known, so the weight of the newest one follows: near 1 without
        privacy noise, near 0 (long memory) with much.
        """
        keep, prior = self.tuning.memory, self.tuning.signal**2 / len(state["w"])
        expected = keep * state["gradient"]
        variance = keep**2 * float(state["variance"]) + (1.0 - keep**2) * prior
        gain = variance / (variance + batch.gradient_sd**2)
        state["gradient"] = expected + gain * (batch.gradient - expected)
        state["variance"] = np.array((1.0 - gain) * variance)

    def _step(self, state: dict[str, Array], sigma: float) -> None:
        """w += eta sigma sqrt(d) g / sqrt(|g|^2 + d var): shorter where g is within its error."""
        g, d = state["gradient"], len(state["w"])
        size = math.sqrt(float(g @ g) + d * float(state["variance"]))
        state["w"] = state["w"] + self.tuning.eta * sigma * math.sqrt(d) / size * g

    def _follow(
        self, batch: SearchBatch, window: ReturnWindow, low: float, high: float
    ) -> ReturnWindow:
        """Move the window's centre to the mean; widen or narrow it towards the target variance.

        At most by a factor of 2, and by less where the estimate is within its error. Where noise
        hides the spread, returns are guessed to spread as far as they are from the window's edge (a
        fall at the bottom of the declared range is what most searches begin with).
        """
        c, mean = self.tuning, batch.mean
        variance = min(batch.square, 1.0) - mean * mean
        sd = math.hypot(batch.square_sd, 2.0 * abs(mean) * batch.mean_sd)
        guess = min(1.0, 1.0 - abs(mean) + 0.5 * batch.mean_sd) ** 2
        weight = sd**2 / (sd**2 + c.edge**2)
        variance = weight * guess + (1.0 - weight) * variance
        sd *= c.edge / math.hypot(sd, c.edge)
        gap = variance - c.target
        trust = gap * gap / (gap * gap + sd * sd) if gap else 0.0
        ratio = 0.5 * math.log(max(variance, 0.02) / c.target)
        factor = math.exp(trust * min(max(ratio, -math.log(2.0)), math.log(2.0)))
        half = min(window.half * factor, (high - low) / 2)
        gain = 0.25 / (0.25 + batch.mean_sd**2)
        return _inside(window.centre + window.half * mean * gain, half, low, high)

    def _go_back(self, level: Array, state: dict[str, Array], low: float, high: float) -> None:
        """Back to the best three batches in a row, if the last three lie clearly below them.

        Clearly: their means differ by three standard deviations, and even the top of the last
        window is below the better mean, so that it is no effect of cutting at the window.
        """
        recent = np.vstack([state["recent"], level])
        state["recent"] = recent[-5:]
        if len(recent) < 6 or state["restarts"] >= self.tuning.restarts:
            return
        known, d = np.vstack([state["best"], _pooled(recent[:3])]), len(state["w"])
        best = known[np.argmax(known[:, d] - known[:, d + 1])]
        state["best"] = best[np.newaxis]
        now = _pooled(recent[3:])
        above = best[d] - now[d]
        if above > 3.0 * math.hypot(best[d + 1], now[d + 1]) and now[d + 2] < best[d]:
            half = min(2.0 * float(state["window"][1]), (high - low) / 2)
            fresh = self._begin(d, _inside(float(best[d]), half, low, high))
            for name in ("gradient", "variance", "window", "recent", "best"):
                state[name] = fresh[name]
            state["w"], state["restarts"] = best[:d].copy(), state["restarts"] + 1.0


def _inside(centre: float, half: float, low: float, high: float) -> ReturnWindow:
    """A window that sticks out of the declared range is moved in and keeps its width."""
    return ReturnWindow(min(max(centre, low + half), high - half), half)


def _level(played: Array, batch: SearchBatch, window: ReturnWindow) -> Array:
    """Parameters, mean return (cut at the window), its error, and the window's top [d + 3]."""
    mean = window.centre + window.half * batch.mean
    return np.concatenate(
        [played, [mean, window.half * batch.mean_sd, window.centre + window.half]]
    )


def _point(batch: SearchBatch, window: ReturnWindow) -> Array:
    """People, mean return (cut at the window), its error at most, and the window's ends [5].

    The error is that of noise, as known, and of a sample of numbers in [-1, 1] with this mean.
    """
    spread = 1.0 - batch.mean**2 + 2.0 * abs(batch.mean) * batch.mean_sd
    error = window.half * math.hypot(batch.mean_sd, math.sqrt(min(spread, 1.0) / batch.people))
    least, most = window.centre - window.half, window.centre + window.half
    return np.array([batch.people, window.centre + window.half * batch.mean, error, least, most])


def _pooled(levels: Array) -> Array:
    """Several batches as one, weighed by their precision."""
    sds = levels[:, -2]
    weights = sds**-2 / (sds**-2).sum()
    pooled: Array = weights @ levels
    pooled[-2] = math.sqrt(float((weights**2 * sds**2).sum()))
    pooled[-1] = levels[:, -1].max()
    return pooled


def batch_size(users: int, d: int, errors: Errors, tuning: SearchTuning = TUNING) -> int:
    """People of a batch, an even number: few enough that a gradient has an error of about tau.

    A public function of the number of people, of d and of known noise. The last batch has what is
    left over.
    """
    wanted = least_count(lambda n: errors.sd(0, n) * math.sqrt(d) <= tuning.tau, most=users)
    least = max(wanted or users, 2 * d)
    batches = min(max(users // least, tuning.fewest), tuning.most, max(users // 2, 1))
    return 2 * math.ceil(users / (2 * batches))
