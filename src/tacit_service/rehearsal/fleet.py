"""A simulated population through the real network path: every person is a :class:`Device`.

People are numbered. Person k's luck follows from the fleet's seed and k, and their report id from
their token or, where they share one, from the fleet's seed, the task and k: so a fleet that was
stopped, or killed, goes on without counting anybody twice.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.client.device import Device
from tacit.client.errors import NotTaken, Unreachable
from tacit.client.outbox import Delivery
from tacit.client.terms import Terms, read_terms
from tacit.client.transport import Api
from tacit.wire import documents
from tacit_service.rehearsal.people import SearchPeople, TablePeople

TRUSTING: dict[str, Any] = {"max_epsilon": 1e6, "max_delta": 1.0, "model": "joint"}
"""Simulated people accept anything: they have nothing to lose."""

BETWEEN, WAIT = "batch_full", 0.2
"""Why nobody can begin while the reports of a full batch are waited for; seconds until the next
person tries."""

Watch = Callable[[int], None]
"""Is told how many users were counted so far."""


@dataclass
class VirtualClock:
    """Time that passes when somebody says so.

    Every simulated person of a fleet has one: it stands still while they live, then their report is
    due. The collector's clock is real, so a fleet of week-long episodes takes no weeks, and says
    nothing about who would come too late: ``virtual_fleet.py`` does.
    """

    now: float = 0.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


@dataclass
class Tally:
    """What became of the people sent so far."""

    counted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    over: str | None = None
    """Why nobody else can take part: the task is full or closed, or there are no more tokens."""


@dataclass(eq=False, repr=False)  # tokens are not printed
class Fleet:
    """People against one collector.

    Attributes:
        connect: opens a connection to the collector; every worker has its own.
        people: who they are.
        tokens: one for each person, the first of them for those counted before; or the one that
            all share.
        workers: how many people are on their way at the same time.
        seed: of the people's luck. Their noise is secure all the same.
        passed: seconds of virtual time that went by.
    """

    connect: Callable[[], Api]
    people: TablePeople | SearchPeople
    tokens: Sequence[str]
    workers: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        self.passed = 0.0
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._api = self.connect()
        self.terms: Terms = read_terms(self._api.task())
        self.tally = Tally(counted=self._counted())
        self.before = self._next = self.tally.counted
        self._own_tokens = self.terms.guarantee.unit == "user"
        self._tokens = deque(self.tokens[self.before :] if self._own_tokens else self.tokens)

    def _counted(self) -> int:
        try:
            return int(self._api.dashboard()["progress"]["accepted"])
        except (KeyError, TypeError, ValueError):
            raise Unreachable("the collector does not say how many users it counted") from None

    def run(self, users: int, watch: Watch = lambda counted: None) -> None:
        """Send people until ``users`` are counted in all, the task is full, or the user stops it.

        Raises what a worker raised, after all others have finished the person they were at.
        """
        with ThreadPoolExecutor(self.workers, "tacit-fleet") as pool:
            work = [pool.submit(self._work, users) for _ in range(self.workers)]
            try:
                while not all(job.done() for job in work):
                    time.sleep(0.1)
                    watch(self.tally.counted)
            finally:  # an interruption, too, waits for the people who are on their way
                self._stop.set()
        for job in work:
            job.result()

    def _work(self, users: int) -> None:
        api = self.connect()
        try:
            while (person := self._take(users)) is not None:
                self._send(api, person)
        except BaseException:
            self._stop.set()
            raise
        finally:
            api.close()

    def _take(self, users: int) -> int | None:
        """The next person's number, as long as more are wanted."""
        with self._changed:
            while not (self._stop.is_set() or self.tally.over):
                sent = sum(self.tally.outcomes.values())
                on_their_way = self._next - self.before - sent
                if self.tally.counted + on_their_way < users:
                    self._next += 1
                    return self._next - 1
                if on_their_way == 0:
                    break
                self._changed.wait(0.2)  # somebody may come back uncounted
        return None

    def _send(self, api: Api, person: int) -> None:
        if (token := self._next_token()) is None:
            return
        calendar = VirtualClock()
        with self._device(api, person, token, calendar) as device:
            try:
                self._live(device, person)
                calendar.now = device.due() or calendar.now
                (delivery,) = device.send()
            except NotTaken as refusal:
                self._come_back(refusal.reason, token)
                self._stop.wait(WAIT if refusal.reason == BETWEEN else 0.0)
                return
        self._settle(delivery, token)

    def _come_back(self, reason: str, token: str) -> None:
        """Somebody who could not begin: the next person has the token, if there is one."""
        if reason == BETWEEN and self._own_tokens:
            self._tokens.appendleft(token)
        self._note(reason, over=reason != BETWEEN)

    def _next_token(self) -> str | None:
        try:
            return self._tokens.popleft() if self._own_tokens else self._tokens[0]
        except IndexError:
            self._note("no token", over=True)
            return None

    def _device(self, api: Api, person: int, token: str, clock: Callable[[], float]) -> Device:
        identity = f"{self.terms.task_id}:fleet {self.seed}:{person}"
        name = hashlib.sha256(identity.encode()).hexdigest()[:32]
        return Device(api, None, token=token, report_id=lambda: name, clock=clock, **TRUSTING)

    def _settle(self, delivery: Delivery, token: str) -> None:
        outcome = delivery.reason or delivery.outcome or "unsent"
        if self._own_tokens and outcome == "stale":
            self._tokens.appendleft(token)  # not used: the next person has it
        self._note(outcome, over=outcome in ("population_reached", "closed"))

    def _note(self, outcome: str, *, over: bool) -> None:
        with self._changed:
            self.tally.outcomes[outcome] += 1
            self.tally.counted += outcome == "accepted"
            if over:
                self.tally.over = outcome
            self._changed.notify_all()

    def _live(self, device: Device, person: int) -> None:
        """One episode in the problem of the person's type, on the person's own luck."""
        rng = np.random.default_rng([self.seed, person])
        self.people.live(device.begin(), rng, rng.random(), self.terms)

    def settle(self, patience: float = 60.0) -> dict[str, Any]:
        """Wait until the planner has caught up; the collector's public numbers then.

        While it owes a policy it says that the next one needs no more users. It says so for ever
        once the task is full, so there a pause without a new policy counts as the end.
        """
        end = time.monotonic() + patience
        while True:
            numbers: dict[str, Any] = self._api.dashboard()
            now = numbers["progress"]
            if now["accepted"] >= now["population"]:
                end = min(end, time.monotonic() + 5.0)
            if now["next_policy_in"] != 0 or time.monotonic() >= end:
                return numbers
            time.sleep(0.5)

    def score(self, versions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Values of published policies, in the operator's units, by version and users."""
        return [{**row, "value": self._value(int(row["version"]))} for row in versions]

    def _value(self, version: int) -> float:
        answer, terms = self._api.policy(version), self.terms
        published = documents.publication_from_json(answer, terms.task, terms.task_id)
        return self.people.earned(published.policy, terms)

    def close(self) -> None:
        """Close the connection."""
        self._api.close()
