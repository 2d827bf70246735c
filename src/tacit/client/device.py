"""The device: joins a task on terms it has checked, and reports once, randomized, the same bytes.

When a report is due the device first asks whether it would be taken, and randomizes only then; what
would not be taken is never made, and costs its user nothing.

Nothing but ``POST /v1/reports`` carries anything about the user, and its body is made of the task's
id, a random report id, the version of the policy, and the randomized message. If the task says how
long an episode takes, requests are made at its beginning and when its report is due, a moment that
was drawn at the beginning, and never in between: see ``times.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tacit import wire
from tacit.client.episode import Episode
from tacit.client.errors import Declined, NotTaken, Refused, TookPart, Unreachable
from tacit.client.outbox import UNMADE, Delivery, Outbox, Saved
from tacit.client.terms import Model, Terms, read_terms
from tacit.client.times import Times
from tacit.client.transport import Api
from tacit.errors import InvalidInput
from tacit.privacy.noise import SecureNoise
from tacit.publication import Publication
from tacit.trajectory import Trajectory
from tacit.validate import choice, number

OUTCOMES = ("accepted", "duplicate", "stale", "invalid", "refused")

LATER = frozenset({"not_open", "paused", "unknown_task"})
"""Reasons that time may cure: a report is kept and sent again, an answer waits to become one."""


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
        report_id: makes the id of a report where the task lets devices choose it; it is public,
            and must not depend on the user.
        clock: unix time; pass a better one if the platform has it (see ``times.py``).
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.max_epsilon = number(max_epsilon, "max_epsilon", low=0.0)
        self.max_delta = number(max_delta, "max_delta", low=0.0, high=1.0)
        self.model = choice(model, "model", ("local", "joint"))
        self._api = collector if isinstance(collector, Api) else Api(collector)
        self._owns_api = not isinstance(collector, Api)
        self._outbox = Outbox(outbox)
        self._token = token
        self._report_id = report_id
        self._clock = clock
        self._terms: Terms | None = None

    def terms(self) -> Terms:
        """Fetch the task and check it; declined terms raise. Nothing is joined yet."""
        terms = read_terms(self._api.task())
        if self._terms is not None and terms.task_id != self._terms.task_id:
            raise Declined("the collector's task changed while this device was running; start anew")
        self._agree(terms)
        self._terms = terms
        return terms

    def _agree(self, terms: Terms) -> None:
        """Decline terms that the app does not allow."""
        if terms.model == "joint" and self.model != "joint":
            raise Declined(
                f"the task {terms.name!r} asks for raw trajectories (joint model); pass "
                'model="joint" if the user trusts the operator with them'
            )
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

    def _joined(self, task_id: str) -> Terms | None:
        """Terms that were joined, if the app still allows them; None from an older program."""
        description = self._outbox.description(task_id)
        if description is None:
            return None
        terms = read_terms(description, wire.READABLE)
        self._agree(terms)
        return terms

    def begin(self) -> Episode:
        """Join and start an episode under the newest policy, or go on with the one that runs.

        To go on needs no network. While the time of an episode is not over no other one begins, and
        nothing is fetched, also if its report was made already.
        """
        fetched = self._find()
        now = self._end_overdue()
        for running in self._outbox.running(self._api.address):
            known = self._joined(running.task_id)
            if known is not None:
                return self._episode(known, running)
        self._refuse_early(now)
        terms = fetched or self.terms()
        _refuse_standstill(terms)
        self._outbox.join(terms, self._api.address)
        saved = self._outbox.episode(terms.task_id)
        if saved is None:
            self._outbox.refuse_more(terms.task_id, terms.task.participations)
            answer = self._api.policy()
            publication = _publication(answer, terms)
            self._outbox.see(terms.task_id, publication.version)
            self._refuse_vain(terms, answer)
            times = None
            if terms.task.duration:
                times = Times.drawn(self._clock(), terms.task.duration, terms.delay)
            saved = Saved(terms.task_id, self._new_id(terms), answer, [], times)
            self._outbox.begin(saved)
        return self._episode(terms, saved)

    def _new_id(self, terms: Terms) -> str:
        """Of the next report: the first that the token gives and that is not in use."""
        if not terms.assigned:
            return self._report_id()
        if self._token is None:
            raise Declined("ids of this task's reports follow from a token, and there is none")
        seat = wire.seat(self._token, terms.task_id)
        ids = (wire.assigned_id(seat, k) for k in range(terms.task.participations))
        return next(one for one in ids if not self._outbox.uses(one))

    def _episode(self, terms: Terms, saved: Saved) -> Episode:
        publication = _publication(saved.publication, terms)

        def over() -> bool:
            now = self._clock()
            self._outbox.note_clock(now)
            times = self._outbox.times(saved.report_id)
            return times is not None and times.over(now)

        return Episode(
            terms,
            publication,
            saved.steps,
            lambda steps: self._outbox.save(terms.task_id, steps),
            lambda lived: self._end(terms, publication, saved, lived),
            over,
        )

    def _find(self) -> Terms | None:
        """The terms, fetched only if nothing is known under this address: a task may have moved."""
        if self._outbox.knows(self._api.address):
            return None
        terms = self.terms()
        self._outbox.move(terms.task_id, self._api.address)
        return terms

    def _end_overdue(self) -> float:
        """Make the reports of episodes whose time is over; what the clock shows."""
        now = self._clock()
        self._outbox.note_clock(now)
        for saved in self._outbox.running(self._api.address):
            if saved.times is not None and saved.times.over(now):
                terms = self._joined(saved.task_id)
                assert terms is not None, "who knows of times knows of descriptions"
                self._episode(terms, saved).leave()
        return now

    def _refuse_early(self, now: float) -> None:
        """Ask for nothing while others may still be in the same episode: it would tell who left."""
        address = self._api.address
        past = [made.times for made in self._outbox.reports(address)]
        past += [saved.times for saved in self._outbox.waiting(address)]
        for times in past:
            if times is not None and not times.over(now):
                ends = datetime.fromtimestamp(times.at(times.ends, now), UTC)
                raise TookPart(
                    "this device has taken part, and nothing is asked or begun before "
                    f"{ends:%Y-%m-%d %H:%M} UTC, when the time of the episode is over: it would "
                    "show who stopped early"
                )

    def _refuse_vain(self, terms: Terms, publication: dict[str, Any]) -> None:
        """Begin nothing whose report would not be taken."""
        obstacle = self._obstacle(terms, publication)
        if obstacle is not None and obstacle[0] not in LATER:
            raise NotTaken(*obstacle)
        last = self._clock() + terms.task.duration + terms.delay
        if terms.closes is not None and last >= terms.closes:
            raise NotTaken("closed", "the task closes before the report would be due")

    def _end(self, terms: Terms, publication: Publication, saved: Saved, lived: Trajectory) -> None:
        """Statistic and clipping: of the steps only the answer stays, until its report is due."""
        answer: Any
        if terms.model == "joint":
            answer = wire.pack_trajectory(lived, terms.task.horizon)
        else:
            coin = wire.coin(terms.task_id, saved.report_id)
            contribution = np.zeros(terms.bound.statistic.layout.size, dtype=np.int64)
            terms.bound.statistic.contribute(lived, publication, coin, contribution)
            cells = np.flatnonzero(contribution)
            answer = [cells.tolist(), contribution[cells].tolist()]
        self._outbox.end(saved, answer, terms.task.participations)

    def _make(self, waiting: Saved) -> Delivery | None:
        """Randomize an answer if its report would be taken now; what is said of one that waits on.

        An answer that nobody takes any more is forgotten. If the collector does not say, this
        raises, and everything stays as it is.
        """
        terms = self._joined(waiting.task_id) or self.terms()
        obstacle = self._obstacle(terms, waiting.publication)
        if obstacle is None:
            body = self._report(terms, waiting)
            self._outbox.store(waiting.task_id, waiting.report_id, body)
            return None
        if obstacle[0] in LATER:
            return Delivery(waiting.report_id, waiting.task_id, None, *obstacle)
        self._outbox.drop(Delivery(waiting.report_id, waiting.task_id, UNMADE, *obstacle))
        return None

    def _obstacle(self, terms: Terms, publication: dict[str, Any]) -> tuple[str, str] | None:
        """Why the collector would not take a report under a policy now: a word and a sentence."""
        try:
            answer = self._api.taking(publication["version"])
            task_id, name = str(answer["task_id"]), answer["publication"]
            reason = str(answer["reason"])[:60], str(answer["message"])[:500]
            taken = answer["taken"] is True
        except Refused as refusal:
            if refusal.code == "unknown_task":
                return refusal.code, str(refusal)
            if refusal.code != "not_found":
                raise
            raise Unreachable(
                "the collector does not say whether it would take a report, as one that is older "
                "than this device; nothing was randomized or sent. Ask its operator to update it"
            ) from None
        except (KeyError, TypeError):
            raise Unreachable(
                "the collector's answer whether it would take a report cannot be read; nothing "
                "was randomized or sent"
            ) from None
        if task_id != terms.task_id:
            return "unknown_task", f"another task than {terms.name!r} is served there now"
        if not taken:
            return reason
        if "previous" in publication and name != wire.publication_hash(publication):
            return "stale", "the collector was restored since from a copy without this policy"
        return None

    @staticmethod
    def _report(terms: Terms, waiting: Saved) -> bytes:
        """The bytes that are sent, however often: noise is added here."""
        message: Any = waiting.steps
        if terms.model == "local":
            publication = _publication(waiting.publication, terms)
            contribution = np.zeros(terms.bound.statistic.layout.size, dtype=np.int64)
            contribution[waiting.steps[0]] = waiting.steps[1]
            coin = wire.coin(terms.task_id, waiting.report_id)
            message = wire.pack_message(
                wire.device_message(terms.bound, contribution, publication, coin, SecureNoise())
            )
        version = waiting.publication["version"]
        report = {"id": waiting.report_id, "version": version, "message": message}
        if "previous" in waiting.publication:  # an older collector knows no hashes
            report["publication"] = wire.publication_hash(waiting.publication)
        return wire.canonical({"task_id": terms.task_id, "reports": [report]})

    def send(self) -> list[Delivery]:
        """Send what is due and unsettled; what every report to this collector came to.

        Reports that are held say until when; nothing is asked of the network for them. One that is
        due is made if the collector says that it would be taken; bytes once made are sent as they
        are until the collector answers. One that cannot be reached raises: what was not randomized
        stays so, what was is sent again by the next call, the same bytes.
        """
        self._find()
        now = self._end_overdue()
        held = []
        for waiting in self._outbox.waiting(self._api.address):
            times = waiting.times
            if times is not None and times.held(now):
                due = times.at(times.due, now)
                held.append(Delivery(waiting.report_id, waiting.task_id, None, due=due))
            elif (later := self._make(waiting)) is not None:
                held.append(later)
        for made in self._outbox.reports(self._api.address):
            if made.body is not None and not made.held(now):
                if self._joined(made.delivery.task_id) is None:  # declined if no longer allowed
                    self.terms()
                delivery = self._upload(made.delivery, made.body)
                self._outbox.settle(delivery, final=delivery.reason not in LATER)
        return [
            replace(made.delivery, due=made.times.at(made.times.due, now))
            if made.times is not None and made.held(now)
            else made.delivery
            for made in self._outbox.reports(self._api.address)
        ] + held

    def _upload(self, unsent: Delivery, body: bytes) -> Delivery:
        try:
            answer = self._api.upload(body, self._token)
        except Refused as refusal:
            if refusal.code not in LATER:
                raise
            return replace(unsent, outcome="refused", reason=refusal.code, detail=str(refusal))
        return _outcome(answer, unsent.task_id, unsent.id)

    def due(self) -> float | None:
        """When to call :meth:`send` next, in unix time of the clock; None if nothing waits.

        Known as soon as an episode has begun, so that an app can have itself woken then. Needs no
        network.
        """
        now = self._clock()
        self._outbox.note_clock(now)
        address = self._api.address
        waiting = [made.times for made in self._outbox.reports(address) if made.body is not None]
        waiting += [saved.times for saved in self._outbox.waiting(address)]
        running = [saved.times for saved in self._outbox.running(address) if saved.times]
        moments = [
            now if times is None else max(now, times.at(times.due, now))
            for times in [*waiting, *running]
        ]
        return min(moments, default=None)

    def close(self) -> None:
        """Close the outbox, and the connection if it is the device's own."""
        self._outbox.close()
        if self._owns_api:
            self._api.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def _refuse_standstill(terms: Terms) -> None:
    """Begin no episode whose report would not be taken; an older collector has no state."""
    state = terms.description.get("state", "open")
    if state == "paused":
        raise NotTaken("paused", f"the task {terms.name!r} is paused; try again later")
    if state == "closed":
        raise NotTaken("closed", f"the task {terms.name!r} is over; its last policy stays up")


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
