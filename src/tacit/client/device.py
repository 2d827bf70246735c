"""The device: joins a task on terms it has checked, and reports once, randomized, the same bytes.

Nothing but ``POST /v1/reports`` carries anything about the user, and its body is made of the task's
id, a random report id, the version of the policy, and the randomized message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit import wire
from tacit.client.episode import Episode
from tacit.client.errors import Declined, Unreachable
from tacit.client.outbox import Delivery, Outbox, Saved, refuse_more
from tacit.client.terms import Model, Terms, read_terms
from tacit.client.transport import Api
from tacit.errors import InvalidInput
from tacit.privacy.noise import SecureNoise
from tacit.publication import Publication
from tacit.trajectory import Trajectory
from tacit.validate import choice, number

OUTCOMES = ("accepted", "duplicate", "stale", "invalid", "refused")

LATER = frozenset({"not_open"})
"""Reasons of a refusal that time may cure: the report is kept and sent again."""


class Device:
    """One user's device.

    >>> device = Device("https://coach.example.org", None, max_epsilon=1.0)
    >>> device.close()

    Args:
        collector: address of the service, or an Api that several devices share.
        outbox: file to remember things in, for ever; None forgets (for simulated people).
        max_epsilon: the most that the app allows for everything in this outbox: the epsilons of
            all tasks joined are added up.
        max_delta: likewise.
        model: "local" declines tasks whose raw trajectories would leave the device; "joint" means
            that the user trusts the operator with them.
        token: the device's own token, or the one that all share; None where none is needed.
        report_id: makes the id of a report; it is public, and must not depend on the user.
    """

    def __init__(
        self,
        collector: str | Api,
        outbox: str | Path | None,
        *,
        max_epsilon: float,
        max_delta: float = 1e-3,
        model: Model = "local",
        token: str | None = None,
        report_id: Callable[[], str] = wire.new_report_id,
    ) -> None:
        self.max_epsilon = number(max_epsilon, "max_epsilon", low=0.0)
        self.max_delta = number(max_delta, "max_delta", low=0.0, high=1.0)
        self.model = choice(model, "model", ("local", "joint"))
        self._api = collector if isinstance(collector, Api) else Api(collector)
        self._owns_api = not isinstance(collector, Api)
        self._outbox = Outbox(outbox)
        self._token = token
        self._report_id = report_id
        self._terms: Terms | None = None

    def terms(self) -> Terms:
        """Fetch the task and check it; declined terms raise. Nothing is joined yet."""
        terms = read_terms(self._api.task())
        if terms.model == "joint" and self.model != "joint":
            raise Declined(
                f"the task {terms.name!r} asks for raw trajectories (joint model); pass "
                'model="joint" if the user trusts the operator with them'
            )
        if self._terms is not None and terms.task_id != self._terms.task_id:
            raise Declined("the collector's task changed while this device was running; start anew")
        epsilon, delta = self._outbox.elsewhere(terms.task_id)
        for name, spent, asked, most in (
            ("epsilon", epsilon, terms.guarantee.epsilon, self.max_epsilon),
            ("delta", delta, terms.guarantee.delta, self.max_delta),
        ):
            if spent + asked > most * (1 + 1e-9):
                raise Declined(
                    f"the task {terms.name!r} costs {name} {asked:.6g} beside {spent:.6g} for "
                    f"other tasks, but the app allows {most:g}"
                )
        self._terms = terms
        return terms

    def begin(self) -> Episode:
        """Join and start an episode under the newest policy, or go on with the one that runs."""
        terms = self.terms()
        self._outbox.join(
            task_id=terms.task_id,
            address=self._api.address,
            name=terms.name,
            terms=terms.document,
            epsilon=terms.guarantee.epsilon,
            delta=terms.guarantee.delta,
        )
        saved = self._outbox.episode(terms.task_id)
        if saved is None:
            refuse_more(self._outbox, terms.task_id, terms.task.participations)
            answer = self._api.policy()
            publication = _publication(answer, terms)
            self._outbox.see(terms.task_id, publication.version)
            saved = Saved(self._report_id(), answer, [])
            self._outbox.begin(terms.task_id, saved)
        else:
            publication = _publication(saved.publication, terms)
        return Episode(
            terms,
            publication,
            saved.steps,
            save=lambda steps: self._outbox.save(terms.task_id, steps),
            finish=lambda lived: self._report(terms, publication, saved.report_id, lived),
        )

    def _report(
        self, terms: Terms, publication: Publication, report_id: str, lived: Trajectory
    ) -> None:
        """Statistic, clipping, noise; then the bytes are on the disk and the steps are gone."""
        if terms.model == "joint":
            message = wire.pack_trajectory(lived, terms.task.horizon)
        else:
            coin = wire.coin(terms.task_id, report_id)
            contribution = np.zeros(terms.bound.statistic.layout.size, dtype=np.int64)
            terms.bound.statistic.contribute(lived, publication, coin, contribution)
            message = wire.pack_message(
                wire.device_message(terms.bound, contribution, publication, coin, SecureNoise())
            )
        report = {"id": report_id, "version": publication.version, "message": message}
        body = wire.canonical({"task_id": terms.task_id, "reports": [report]})
        self._outbox.store(terms.task_id, report_id, body, terms.task.participations)

    def send(self) -> list[Delivery]:
        """Send what is stored and unsettled; what every report of the task has come to.

        A collector that cannot be reached raises; the report stays stored, and the next call sends
        the same bytes again.
        """
        terms = self._terms or self.terms()
        for report_id, body in self._outbox.pending(terms.task_id):
            answer = self._api.upload(body, self._token)
            delivery = _outcome(answer, terms.task_id, report_id)
            self._outbox.settle(delivery, final=delivery.reason not in LATER)
        return self._outbox.deliveries(terms.task_id)

    def close(self) -> None:
        """Close the outbox, and the connection if it is the device's own."""
        self._outbox.close()
        if self._owns_api:
            self._api.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def _publication(answer: Any, terms: Terms) -> Publication:
    try:
        return wire.publication_from_json(answer, terms.task, terms.task_id)
    except InvalidInput as error:
        raise Declined(f"the collector's policy cannot be followed: {error}") from None


def _outcome(answer: Any, task_id: str, report_id: str) -> Delivery:
    """The one outcome of the one report sent."""
    try:
        (one,) = answer["outcomes"]
        if one["id"] != report_id or one["outcome"] not in OUTCOMES:
            raise ValueError
        reason, detail = one.get("reason"), one.get("detail")
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Unreachable("the collector's answer to a report cannot be read") from None
    return Delivery(
        report_id,
        task_id,
        one["outcome"],
        None if reason is None else str(reason)[:60],
        None if detail is None else str(detail)[:500],
    )
