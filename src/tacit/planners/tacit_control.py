"""tacit-control: learn a linear system from clipped, instrumented responses, act when it pays.

Joins two practical learners (docs/papers/lq_jdp.md#b1 and #b7) and goes beyond both: server-drawn
excitation and the expected path are public instruments, so that no second moment of states has to
be released; residuals are taken against the newest model; one joint clip replaces one per block;
gains, excitation and the length of the next batch are planned from the belief that releases allow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public import lq
from tacit.planners import lq_design
from tacit.planners.base import KEYS, Ask, Streams, next_version
from tacit.planners.lq_model import LinearTask, certainty_gains, inverted, linear_task
from tacit.planners.lq_posterior import Belief, as_context, posterior, prior, served_so_far
from tacit.policies.linear import LinearPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task

TUNING = lq_design.ControlTuning()
SHORTEST_BATCH = 20
"""Users of the shortest batch. Not measured: others."""


class ControlBatch(NamedTuple):
    """A plan for the next users."""

    users: int
    amplitude: float
    weights: Array


class Situation(NamedTuple):
    """What the next batch is planned on."""

    facts: LinearTask
    belief: Belief
    outlook: lq_design.Prospect
    made: lq_design.Design


class TacitControlPlanner:
    """Belief from releases, gains if they are predicted to pay, excitation if it is.

    Args:
        noise_std: standard deviation of the noise in every released cell, known beforehand.
        tuning: constants.
    """

    def __init__(self, noise_std: float, tuning: lq_design.ControlTuning = TUNING) -> None:
        self.noise_std = noise_std
        self.tuning = tuning

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """The next batch: policy, projections, clipping weights and number of users."""
        facts, rng = linear_task(task), streams.posterior
        done, spent, belief, served = 0, 0.0, prior(facts), None
        if previous is not None and release.users > 0:
            first = int(previous.context["done"])
            done, spent = first + release.users, float(previous.context["spent"])
            served = served_so_far(facts, release, previous, first)
            before = Belief(*(previous.context[name] for name in ("reference", "sigma", "W")))
            belief = posterior(facts, served, before, self.noise_std)
        gains = certainty_gains(facts, belief.theta, facts.gain, belief.sigma)
        outlook = lq_design.prospect(facts, belief, gains, self.tuning, rng)
        acting = outlook.scale * gains
        made = lq_design.design(facts, belief, acting, self.tuning, rng)
        batch = self._batch(task, Situation(facts, belief, outlook, made), done, spent)
        lq.cap_gains(acting, facts.gain - batch.amplitude)
        policy = LinearPolicy(acting, amplitude=batch.amplitude, key=int(rng.integers(KEYS)))
        context = {
            "reference": belief.theta,
            "sigma": belief.sigma,
            "W": belief.W,
            "path": made.mean[:, : facts.n],
            "whitener": made.whitener,
            "instruments": made.instruments,
            "usual": made.usual,
            "weights": batch.weights,
            "misfit": np.array(made.misfit),
            "done": np.array(done),
            "spent": np.array(spent + batch.users * outlook.price * batch.amplitude**2),
            **as_context(served),
        }
        return Publication(next_version(previous), policy, context, users=batch.users)

    def _batch(self, task: Task, on: Situation, done: int, spent: float) -> ControlBatch:
        """The plan of least predicted regret over all remaining users, if nothing else is learned.

        Excitation must be predicted to save 2% over not exciting, and keep within its budget: a
        share of what doing nothing costs the users met until the batch ends. What acting is worth
        is a guess at first, and few users are met on it.
        """
        facts, _, outlook, made = on
        rest = max(task.users - done, 1)  # after the last user: as if one more would come
        tuning, collected = self.tuning, "noise" not in task.known
        first = max(SHORTEST_BATCH, int(np.ceil(tuning.first * self.noise_std / 2.0)))
        calm = max(SHORTEST_BATCH, done // 2) if done else min(first, max(task.users // 5, 1))
        plans = [
            ControlBatch(min(calm, rest), 0.0, made.weights(0, shares, collected))
            for shares in lq_design.UNEXCITED_SHARES
        ]
        longest = min(rest, max(calm, int(tuning.growth * done)))
        shortest = min(max(SHORTEST_BATCH, done // 4) if done else calm, longest)
        lengths = np.geomspace(shortest, longest, lq_design.BATCH_LENGTHS)
        lengths = np.unique(lengths.astype(np.int64))
        allowed = tuning.budget * (done + lengths) * outlook.idle - spent
        for number, amplitude in enumerate(lq_design.AMPLITUDES, start=1):
            price = outlook.price * amplitude**2
            affordable = [int(users) for users in lengths[lengths * price <= allowed]]
            if amplitude > facts.gain / 2.0 or not affordable:
                continue
            for shares in lq_design.EXCITED_SHARES:
                weights = made.weights(number, shares, collected)
                plans += [ControlBatch(users, float(amplitude), weights) for users in affordable]
        total = self._predicted(on, plans, rest)
        best = int(total.argmin())
        calmest = int(total[: len(lq_design.UNEXCITED_SHARES)].argmin())
        chosen = plans[best if total[best] <= 0.98 * total[calmest] else calmest]
        return chosen._replace(users=rest) if rest < 1.2 * chosen.users else chosen

    def _predicted(self, on: Situation, plans: list[ControlBatch], rest: int) -> Array:
        """Regret of the batch, plus that of all users after it at what would then be known."""
        facts, belief, outlook, made = on
        N = np.array([plan.users for plan in plans], dtype=np.float64)
        amplitude = np.array([plan.amplitude for plan in plans])
        weights = np.array([plan.weights for plan in plans])
        along = made.instruments.T @ made.mean
        across = made.whitener @ made.spread
        privacy = (self.noise_std / np.maximum(weights, 1e-12)) ** 2
        info = inverted(belief.sigma) + _times(
            N**2 / (privacy[:, 0] + N * made.noise), along.T @ along
        )
        info += _times(N**2 / (privacy[:, 1] + N * made.noise), across.T @ across)
        inputs = np.zeros((facts.D, facts.D))
        inputs[facts.n :, facts.n :] = np.eye(facts.d)
        each = facts.H / facts.d
        info += _times(
            (amplitude * N * each) ** 2 / (privacy[:, 2] + N * each * made.noise), inputs
        )
        after = outlook.loss_after(inverted(info))
        total: Array = N * (outlook.loss + outlook.price * amplitude**2) + (rest - N) * after
        return total


def _times(factors: Array, matrix: Array) -> Array:
    product: Array = factors[:, np.newaxis, np.newaxis] * matrix
    return product
