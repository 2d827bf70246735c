"""A fleet in virtual time: people arrive at a pace, live, and their devices send when they may.

Everything is the real thing but time and the network: the same devices, the same collector, one
clock for all of them that jumps to the next moment at which something happens.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.client.device import Device
from tacit.client.errors import NotTaken
from tacit_service.rehearsal.fleet import Fleet, VirtualClock, Watch

EPOCH = 1_800_000_000.0
"""What a virtual clock shows first, where the task does not say when it opens."""


@dataclass(eq=False, repr=False)
class VirtualFleet(Fleet):
    """People over time against a collector in the same process.

    Attributes:
        clock: of the collector and of every device.
        pace: people per second who begin, on average: gaps between them are exponential.
        plan: lets the planner do what is due.
    """

    clock: VirtualClock = field(default_factory=VirtualClock)
    pace: float = 1.0
    plan: Callable[[], None] = lambda: None

    def run(self, users: int, watch: Watch = lambda counted: None) -> None:
        """Let people come until ``users`` are counted or no more are taken; then wait for the rest.

        A person lives through their steps at once; their report is held like everybody's.
        """
        rng, order, began = np.random.default_rng([self.seed]), itertools.count(), self.clock.now
        waiting: list[tuple[float, int, Device, str]] = []
        arrival = began + rng.exponential(1.0 / self.pace)
        while True:
            more = self.tally.over is None and self.tally.counted + len(waiting) < users
            if not (more or waiting):
                break
            if more and (not waiting or arrival <= waiting[0][0]):
                self.clock.now, arrival = arrival, arrival + rng.exponential(1.0 / self.pace)
                if (token := self._next_token()) is not None:
                    device = self._begin(self._next, token)
                    self._next += 1
                    if device is not None:
                        due = device.due() or self.clock.now
                        heapq.heappush(waiting, (due, next(order), device, token))
            else:
                due, _, device, token = heapq.heappop(waiting)
                self.clock.now = max(self.clock.now, due)
                with device:
                    (delivery,) = device.send()
                self._settle(delivery, token)
                watch(self.tally.counted)
            self.plan()
        self.passed = self.clock.now - began

    def _begin(self, person: int, token: str) -> Device | None:
        """Somebody who begins, and has lived; None if nothing is taken any more."""
        device = self._device(self._api, person, token, self.clock)
        try:
            self._live(device, person)
        except NotTaken as refusal:
            device.close()
            self._come_back(refusal.reason, token)
            return None
        return device

    def settle(self, patience: float = 0.0) -> dict[str, Any]:
        """The collector's public numbers, when the last batch that is full has been waited for."""
        if self.terms.ticketed:
            facts = self.terms.description
            self.clock.now += self.terms.task.duration + facts["delay"] + facts["grace"]
        self.plan()
        numbers: dict[str, Any] = self._api.dashboard()
        return numbers
