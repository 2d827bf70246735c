"""People who come back, in virtual time: each with one token, one outbox and one device.

They come by a stated law (``tacit.simulation.attendance``) and a week in the life of a device takes
a week of the clock. The law says when somebody wants to take part; whether they may, and whether
anything is reported, is the device's decision, as it is outside.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.client.device import Device
from tacit.client.errors import AlreadyTookPart, NotTaken
from tacit.simulation.attendance import AttendanceTrace, attend
from tacit.task.participation import Participation
from tacit.util.durations import DAY, HOUR
from tacit_service.rehearsal.fleet import TRUSTING, Watch
from tacit_service.rehearsal.virtual_fleet import VirtualFleet

LOOK = HOUR
"""Seconds after which the planner looks for work, also if nothing was sent, and after which a
device tries again what is still unsent."""


@dataclass(frozen=True)
class ReturnPattern:
    """How people come back.

    Attributes:
        times: how often a person wants to take part, on average.
        law: when, one of ``attendance.LAWS``.
        decoys: whether devices send decoys.
    """

    times: int = 1
    law: str = "rounds"
    decoys: bool = False


@dataclass
class VisitTally:
    """What became of the times at which people wanted to take part.

    Attributes:
        begun: participations.
        free: those of them of which nothing is reported.
        refused: times at which the device did not begin, since the rule does not allow it.
    """

    begun: int = 0
    free: int = 0
    refused: int = 0


@dataclass(eq=False, repr=False)
class ReturningFleet(VirtualFleet):
    """A population that comes back, against a collector in the same process.

    Attributes:
        returns: how often, and when.
    """

    returns: ReturnPattern = ReturnPattern()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.visits = VisitTally()
        self._devices: dict[int, Device] = {}
        self._settled: set[str] = set()

    def run(self, users: int, watch: Watch = lambda counted: None) -> None:
        """Let so many people live through their calendar, and wait for the last reports."""
        coming, began, order = self._calendar(users), self.clock.now, itertools.count()
        moments = began + DAY * coming.when
        due: list[tuple[float, int, int]] = []
        arrived, planned = 0, began
        while arrived < len(moments) or due:
            sends = arrived == len(moments) or (bool(due) and due[0][0] < moments[arrived])
            if sends:
                moment, _, person = heapq.heappop(due)
                self.clock.now = max(self.clock.now, moment)
                self._deliver(person)
                watch(self.tally.counted)
            else:
                self.clock.now, person = float(moments[arrived]), int(coming.who[arrived])
                arrived += 1
                self._visit(person, arrived)
            if (then := self._devices[person].due()) is not None:
                at = max(then, self.clock.now + LOOK) if sends else then
                heapq.heappush(due, (at, next(order), person))
            if sends or self.clock.now - planned >= LOOK:
                self.plan()
                planned = self.clock.now
        self.passed = self.clock.now - began

    def _calendar(self, people: int) -> AttendanceTrace:
        """Nobody comes again while their last episode lasts; a second is for rounding."""
        task = self.terms.task
        apart = max(task.duration, 0.0 if task.rule is None else task.rule.apart) + 1.0
        rule = Participation(None, "first", apart=apart)
        rng = np.random.default_rng([self.seed])
        return attend(rule, people * self.returns.times, people, self.returns.law, rng)

    def _visit(self, person: int, number: int) -> None:
        """Somebody wants to take part, and lives through their steps at once if they may."""
        try:
            episode = self._device_of(person).begin()
        except AlreadyTookPart:
            self.visits.refused += 1
            return
        except NotTaken as refusal:
            self._note(refusal.reason, over=False)
            return
        self.visits.begun += 1
        self.visits.free += episode.silent is not None
        luck = np.random.default_rng([self.seed, person]).random()
        rng = np.random.default_rng([self.seed, person, number])
        self.people.live(episode, rng, luck, self.terms)

    def _device_of(self, person: int) -> Device:
        if person not in self._devices:
            own: dict[str, Any] = {"token": self.tokens[person], "decoys": self.returns.decoys}
            self._devices[person] = Device(self._api, None, clock=self.clock, **own, **TRUSTING)
        return self._devices[person]

    def _deliver(self, person: int) -> None:
        """Send what is due, and note what is new."""
        for delivery in self._devices[person].send():
            if delivery.outcome is not None and delivery.id not in self._settled:
                self._settled.add(delivery.id)
                self._note(delivery.reason or delivery.outcome, over=False)

    def close(self) -> None:
        """Close every device, and the connection."""
        for device in self._devices.values():
            device.close()
        super().close()
