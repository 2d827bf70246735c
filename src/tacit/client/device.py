"""The device: joins a task on terms it has checked, and reports once, randomized, the same bytes.

When a report is due the device first asks whether it would be taken, and randomizes only then; what
would not be taken is never made, and costs its user nothing. People who come back act on the newest
policy; which of their participations are reported is said by the task's rule
(``participation.py``).

Nothing but ``POST /v1/reports`` carries anything about the user, and its body is made of the task's
id, a report id, the policy and the rules that it names, and the randomized message. If the task
says how long an episode takes, requests are made at its beginning and when its report is due, a
moment that was drawn at the beginning, and never in between: see ``report_times.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from pathlib import Path
from typing import Any

from tacit.client.episode import Episode
from tacit.client.errors import AlreadyTookPart, CollectorRefused, Declined, NotTaken, Unreachable
from tacit.client.outbox import DECOY, Delivery, Outbox, StoredEpisode
from tacit.client.participation import ONCE, NextParticipation, in_utc, next_participation
from tacit.client.report_times import ReportTimes
from tacit.client.search_episode import SearchEpisode
from tacit.client.terms import Model, Terms, read_terms
from tacit.client.transport import Api
from tacit.errors import InvalidInput
from tacit.privacy.noise import SecureNoise
from tacit.publication import Publication
from tacit.trajectory import Trajectory
from tacit.validate import choice, number
from tacit.wire import documents, messages, strict_json
from tacit.wire.strict_json import whole

OUTCOMES = ("accepted", "duplicate", "stale", "invalid", "refused", DECOY)

STANDSTILL = {"paused": "paused; try again later", "closed": "over; its last policy stays up"}
"""States of a task in which no report would be taken, in words."""

LATER = frozenset({"not_open", "paused", "unknown_task", "batch_full"})
"""Reasons that time may cure: a report is kept and sent again, an answer waits to become one."""


@dataclass(eq=False, repr=False)
class Device:
    """One user's device.

    >>> device = Device("https://coach.example.org", None, max_epsilon=1.0)
    >>> device.close()

    Args:
        collector: address of the service, or an Api that several devices share.
        outbox: file to remember things in, for ever; None forgets (for simulated people).
        max_epsilon: the most that the app allows for everything in this outbox: the epsilons of
            all tasks joined are added up, anew for every period of which something is reported.
            Periods that do not fit any more are not reported.
        max_delta: likewise.
        model: "local" declines tasks whose raw trajectories would leave the device; "joint" means
            that the user trusts the operator with them.
        token: the device's own token, or the one that all share; None where none is needed.
        report_id: makes the id of a report where the task lets devices choose it; it is public,
            and must not depend on the user.
        clock: unix time; pass a better one if the platform has it (see ``report_times.py``).
        decoys: whether episodes that are not reported end with an upload that looks like a report,
            of a task in the local model whose rule is that the first one is. It hides from the
            network which participations are reported, and not from the collector, who can tell a
            decoy and counts nothing.
    """

    collector: InitVar[str | Api]
    outbox: InitVar[str | Path | None]
    _: KW_ONLY
    max_epsilon: float
    max_delta: float = 1e-3
    model: Model = "local"
    token: str | None = None
    report_id: Callable[[], str] = messages.new_report_id
    clock: Callable[[], float] = time.time
    decoys: bool = False

    def __post_init__(self, collector: str | Api, outbox: str | Path | None) -> None:
        self.max_epsilon = number(self.max_epsilon, "max_epsilon", low=0.0)
        self.max_delta = number(self.max_delta, "max_delta", low=0.0, high=1.0)
        choice(self.model, "model", ("local", "joint"))
        self._api = collector if isinstance(collector, Api) else Api(collector)
        self._owns_api = not isinstance(collector, Api)
        self._outbox = Outbox(outbox)
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
        too_much = self._too_much(terms, max(1, self._outbox.periods(terms.task_id)))
        if too_much is not None:
            raise Declined(too_much)

    def _too_much(self, terms: Terms, periods: int) -> str | None:
        """Why the app does not allow a task that is paid for in so many periods, if it does not."""
        epsilon, delta = self._outbox.spent_elsewhere(terms.task_id)
        for name, spent, asked, most in (
            ("epsilon", epsilon, terms.guarantee.epsilon, self.max_epsilon),
            ("delta", delta, terms.guarantee.delta, self.max_delta),
        ):
            if spent + periods * asked > most * (1 + 1e-9):
                once = " in one period" if terms.task.rule and terms.task.rule.period else ""
                each = f" in each of {periods} periods" if periods > 1 else once
                return (
                    f"the task {terms.name!r} costs {name} {asked:.6g}{each} beside {spent:.6g} "
                    f"for other tasks, but the app allows {most:g}"
                )
        return None

    def _joined(self, task_id: str) -> Terms | None:
        """Terms that were joined, if the app still allows them; None from an older program."""
        description = self._outbox.description(task_id)
        if description is None:
            return None
        terms = read_terms(description, documents.READABLE)
        self._agree(terms)
        return terms

    def begin(self) -> Episode | SearchEpisode:
        """Join and start an episode under the newest policy, or go on with the one that runs.

        To go on needs no network. While the time of an episode is not over no other one begins, and
        nothing is fetched, also if its report was made already. Whether a report follows is fixed
        here, before the first step: ``episode.silent`` says why if none does.
        """
        fetched = self._find()
        now = self._end_overdue()
        for running in self._outbox.running(self._api.address):
            known = self._joined(running.task_id)
            if known is not None:
                return self._episode(known, running)
        self._refuse_early(now)
        terms = fetched or self.terms()
        begins = self._turn(terms, now)
        state = str(terms.description.get("state"))  # an older collector has none
        if begins.silent is None and state in STANDSTILL:
            raise NotTaken(state, f"the task {terms.name!r} is {STANDSTILL[state]}")
        self._outbox.join(terms, self._api.address)
        saved = self._outbox.episode(terms.task_id)
        if saved is None:
            saved = self._new(terms, begins)
            self._outbox.begin(saved, begins)
        return self._episode(terms, saved)

    def _turn(self, terms: Terms, now: float) -> NextParticipation:
        """What a participation is that begins now."""
        rule = terms.task.rule
        if rule is None:
            return ONCE
        past = self._outbox.history(terms.task_id, rule.period_at(now))
        return next_participation(rule, past, now, self._too_much(terms, past.periods + 1))

    def _new(self, terms: Terms, begins: NextParticipation) -> StoredEpisode:
        """Fetch the newest policy for an episode whose report will be taken, or that has none."""
        period, silent = begins.period, begins.silent
        if period is None:
            self._outbox.refuse_more(terms.task_id, terms.task.participations)
        identity, version, number = self._new_id(terms, begins), None, None
        if terms.ticketed and silent is None:
            self._refuse_closing(terms)
            version, number = self._ticket(terms, identity)
        answer = self._api.policy(version)
        publication = _publication(answer, terms)
        self._outbox.note_version(terms.task_id, publication.version)
        if version is not None and publication.version != version:
            raise Declined("the collector sent another policy than the one of the ticket")
        if not terms.ticketed and silent is None:
            self._refuse_vain(terms, answer)
        elif self._has_decoy(terms):
            self._obstacle(terms, answer)  # asked as before a report, whatever the answer
        times = None
        if terms.task.duration:
            begun = self.clock() if period is None else begins.begun
            times = ReportTimes.drawn(begun, terms.task.duration, terms.delay)
        return StoredEpisode(terms.task_id, identity, answer, [], times, number, period, silent)

    def _has_decoy(self, terms: Terms) -> bool:
        """Whether an episode that is not reported ends with a decoy."""
        first = terms.task.rule is not None and terms.task.rule.teaches == "first"
        return self.decoys and first and terms.model == "local" and not terms.ticketed

    def _ticket(self, terms: Terms, identity: str) -> tuple[int, int]:
        """Be counted: the policy's version, and the number that decides the direction."""
        answer = self._api.ticket(terms.task_id, identity, terms.rules, self.token)
        try:
            version, number, reason = answer["version"], answer["number"], answer["reason"]
            if number is None:
                raise NotTaken(str(reason)[:60], str(answer["message"])[:500])
            last = terms.task.users - 1
            return whole(version, "version", 0), whole(number, "number", 0, last)
        except (KeyError, TypeError, InvalidInput):
            raise Unreachable("the collector's answer about a ticket cannot be read") from None

    def _new_id(self, terms: Terms, begins: NextParticipation) -> str:
        """Of the next report: the first that the token gives and that is not in use.

        Every period has as many of its own as participations are counted in it.
        """
        if begins.silent is not None:
            return messages.new_report_id()
        if not terms.assigned:
            return self.report_id()
        if self.token is None:
            raise Declined("ids of this task's reports follow from a token, and there is none")
        seat, counted = messages.seat(self.token, terms.task_id), terms.task.participations
        first = (begins.period or 0) * counted
        ids = (messages.assigned_id(seat, k) for k in range(first, first + counted))
        return next(one for one in ids if not self._outbox.uses(one))

    def _episode(self, terms: Terms, saved: StoredEpisode) -> Episode | SearchEpisode:
        publication, acted = _publication(saved.publication, terms), None
        if saved.number is not None:
            acted = publication.for_user(saved.number)

        def over() -> bool:
            now = self.clock()
            self._outbox.note_clock(now)
            times = self._outbox.times(saved.report_id)
            return times is not None and times.over(now)

        kind = SearchEpisode if terms.ticketed else Episode
        return kind(
            terms,
            acted or publication,
            saved.steps,
            lambda steps: self._outbox.save(saved.report_id, steps),
            lambda lived: self._end(terms, publication, saved, lived),
            over,
            saved.silent,
        )

    def _find(self) -> Terms | None:
        """The terms, fetched only if nothing is known under this address: a task may have moved."""
        if self._outbox.knows(self._api.address):
            return None
        terms = self.terms()
        self._outbox.set_address(terms.task_id, self._api.address)
        return terms

    def _end_overdue(self) -> float:
        """Make the reports of episodes whose time is over; what the clock shows."""
        now = self.clock()
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
        past += self._outbox.last(address)
        for times in past:
            if times is not None and not times.over(now):
                raise AlreadyTookPart(
                    "this device has taken part, and nothing is asked or begun before "
                    f"{in_utc(times.at(times.ends, now))}, when the time of the episode is over: "
                    "it would show who stopped early"
                )

    def _refuse_vain(self, terms: Terms, publication: dict[str, Any]) -> None:
        """Begin nothing whose report would not be taken."""
        obstacle = self._obstacle(terms, publication)
        if obstacle is not None and obstacle[0] not in LATER:
            raise NotTaken(*obstacle)
        self._refuse_closing(terms)

    def _refuse_closing(self, terms: Terms) -> None:
        last = self.clock() + terms.task.duration + terms.delay
        if terms.closes is not None and last >= terms.closes:
            raise NotTaken("closed", "the task closes before the report would be due")

    def _end(
        self, terms: Terms, publication: Publication, saved: StoredEpisode, lived: Trajectory
    ) -> None:
        """Statistic and clipping: of the steps only the answer stays, until its report is due.

        Of an episode that is not reported nothing stays, or a decoy: an answer of nothing lived.
        """
        if saved.silent is not None and not self._has_decoy(terms):
            return self._outbox.forget(saved)
        answer = terms.reports.answer(lived, publication, _coin(terms, saved))
        self._outbox.end(saved, answer, terms.task.participations)

    def _make(self, waiting: StoredEpisode) -> Delivery | None:
        """Randomize an answer if its report would be taken now; what is said of one that waits on.

        An answer that nobody takes any more is forgotten. If the collector does not say, this
        raises, and everything stays as it is.
        """
        terms = self._joined(waiting.task_id) or self.terms()
        obstacle = self._obstacle(terms, waiting.publication)
        if obstacle is None:
            self._outbox.store(waiting, self._report(terms, waiting))
            return None
        if obstacle[0] in LATER:
            return Delivery(waiting.report_id, waiting.task_id, None, *obstacle)
        self._outbox.drop(waiting, *obstacle)
        return None

    def _obstacle(self, terms: Terms, publication: dict[str, Any]) -> tuple[str, str] | None:
        """Why the collector would not take a report under a policy now: a word and a sentence."""
        try:
            answer = self._api.taking(publication["version"])
            task_id, name = str(answer["task_id"]), answer["publication"]
            reason = str(answer["reason"])[:60], str(answer["message"])[:500]
            taken = answer["taken"] is True
        except CollectorRefused as refusal:
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
        if "previous" in publication and name != documents.publication_hash(publication):
            return "stale", "the collector was restored since from a copy without this policy"
        return None

    @staticmethod
    def _report(terms: Terms, waiting: StoredEpisode) -> bytes:
        """The bytes that are sent, however often: noise is added here."""
        publication, coin = _publication(waiting.publication, terms), _coin(terms, waiting)
        message = terms.reports.message(waiting.steps, publication, coin, SecureNoise())
        report = {"id": waiting.report_id, "message": message}
        if waiting.number is not None:  # the ticket says all the rest
            return strict_json.canonical({"reports": [report]})
        report["version"] = waiting.publication["version"]
        if "previous" in waiting.publication:  # an older collector knows no hashes
            report["publication"] = documents.publication_hash(waiting.publication)
        if terms.rules is not None:
            report["rules"] = terms.rules if waiting.silent is None else messages.DECOY
        return strict_json.canonical({"task_id": terms.task_id, "reports": [report]})

    def send(self) -> list[Delivery]:
        """Send what is due and unsettled; what every report to this collector came to.

        Reports that are held say until when; nothing is asked of the network for them. One that is
        due is made if the collector says that it would be taken; bytes once made are sent as they
        are until the collector answers. One that cannot be reached raises: what was not randomized
        stays so, what was is sent again by the next call, the same bytes. Decoys are sent likewise,
        and forgotten as soon as they are answered.
        """
        self._find()
        now = self._end_overdue()
        besides = []
        for waiting in self._outbox.waiting(self._api.address):
            times = waiting.times
            if times is not None and times.held(now):
                due = times.at(times.due, now)
                besides.append(Delivery(waiting.report_id, waiting.task_id, None, due=due))
            elif (later := self._make(waiting)) is not None:
                besides.append(later)
        for made in self._outbox.reports(self._api.address):
            if made.body is not None and not made.held(now):
                if self._joined(made.delivery.task_id) is None:  # declined if no longer allowed
                    self.terms()
                delivery = self._upload(made.delivery, made.body)
                if made.delivery.outcome == DECOY:
                    self._outbox.forget_decoy(delivery.id)
                    besides.append(replace(delivery, outcome=DECOY))
                else:
                    self._outbox.settle(delivery, final=delivery.reason not in LATER)
        return [
            replace(made.delivery, due=made.times.at(made.times.due, now))
            if made.times is not None and made.held(now)
            else made.delivery
            for made in self._outbox.reports(self._api.address)
        ] + besides

    def _upload(self, unsent: Delivery, body: bytes) -> Delivery:
        try:
            answer = self._api.upload(body, self.token)
        except CollectorRefused as refusal:
            if refusal.code not in LATER:
                raise
            return replace(unsent, outcome="refused", reason=refusal.code, detail=str(refusal))
        return _outcome(answer, unsent.task_id, unsent.id)

    def due(self) -> float | None:
        """When to call :meth:`send` next, in unix time of the clock; None if nothing waits.

        Known as soon as an episode has begun, so that an app can have itself woken then. Needs no
        network.
        """
        now = self.clock()
        self._outbox.note_clock(now)
        address = self._api.address
        waiting = [made.times for made in self._outbox.reports(address) if made.body is not None]
        waiting += [saved.times for saved in self._outbox.waiting(address)]
        waiting += [saved.times for saved in self._outbox.running(address) if saved.times]
        moments = [
            now if times is None else max(now, times.at(times.due, now)) for times in waiting
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


def _coin(terms: Terms, saved: StoredEpisode) -> int:
    """The public coin of a report: of its ticket, or of its id."""
    chosen = messages.coin(terms.task_id, saved.report_id)
    return chosen if saved.number is None else saved.number


def _publication(answer: Any, terms: Terms) -> Publication:
    try:
        return documents.publication_from_json(answer, terms.task, terms.task_id)
    except InvalidInput as error:
        raise Declined(f"the collector's policy cannot be followed: {error}") from None


def _outcome(answer: Any, task_id: str, report_id: str) -> Delivery:
    """The one outcome of the one report sent."""
    try:
        (one,) = answer["outcomes"]
        if one["id"] != report_id or one["outcome"] not in OUTCOMES:
            raise ValueError
        texts = (one.get("reason"), 60), (one.get("detail"), 500)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Unreachable("the collector's answer to a report cannot be read") from None
    reason, detail = (None if text is None else str(text)[:most] for text, most in texts)
    return Delivery(report_id, task_id, one["outcome"], reason, detail)
