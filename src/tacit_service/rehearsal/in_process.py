"""``tacit admin rehearse --virtual``: a deployment in this process, on a clock that jumps."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tacit.client.transport import Api
from tacit.errors import InvalidInput
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.dashboard.facts import FactReader
from tacit_service.dashboard.view import build
from tacit_service.planning.loop import PlannerLoop
from tacit_service.rehearsal.fleet import VirtualClock
from tacit_service.rehearsal.people import SearchPeople, TablePeople
from tacit_service.rehearsal.returning_fleet import ReturningFleet, ReturnPattern
from tacit_service.rehearsal.virtual_fleet import EPOCH, VirtualFleet
from tacit_service.responses import IncomingReport


class InProcessApi(Api):
    """A collector in the same process; what is said is what a network would carry."""

    def __init__(self, collector: Collector) -> None:
        super().__init__("https://inside.invalid", client=httpx.Client())
        self._collector = collector
        self._facts = FactReader(collector)

    def task(self) -> Any:
        """As JSON makes it."""
        return json.loads(json.dumps(self._collector.describe()))

    def policy(self, version: int | None = None) -> Any:
        """The newest, or that one."""
        return json.loads(self._collector.policy(version).body)

    def taking(self, version: int) -> Any:
        """Whether a report would be taken now."""
        return dataclasses.asdict(self._collector.would_accept(version))

    def ticket(self, task_id: str, report_id: str, rules: str | None, token: str | None) -> Any:
        """Be counted."""
        sender = None if token is None else self._collector.tokens.authenticate(token)
        return dataclasses.asdict(self._collector.ticket(task_id, report_id, rules, sender))

    def dashboard(self) -> Any:
        """Public numbers."""
        return build(self._facts.read(None)).to_json()

    def upload(self, body: bytes, token: str | None) -> Any:
        """Decide about reports."""
        content = json.loads(body)
        reports = [IncomingReport(**report) for report in content["reports"]]
        sender = None if token is None else self._collector.tokens.authenticate(token)
        return dataclasses.asdict(self._collector.upload(content.get("task_id"), reports, sender))


@contextmanager
def rehearse(
    deployment: Deployment,
    people: TablePeople | SearchPeople,
    users: int,
    seed: int,
    returns: ReturnPattern | None = None,
) -> Iterator[VirtualFleet]:
    """A fleet against a collector of its own: a new database, which is deleted at the end.

    ``users`` come once, at the file's pace, or so many people come back by a law.
    """
    if returns is None and deployment.settings.population.pace is None:
        raise InvalidInput(
            'people need a pace to come at: write for example pace = "150/day" in [population]'
        )
    once = deployment.task.rule is None and deployment.task.participations == 1
    if returns is not None and (once or deployment.unit != "user"):
        raise InvalidInput(
            "people who come back need a token of their own and a rule: write for example "
            'participations = "any" and tokens = "per-device" in [population]'
        )
    pace, each = deployment.settings.population.pace, deployment.unit == "user"
    clock = VirtualClock(deployment.settings.window.opens or EPOCH)
    with tempfile.TemporaryDirectory(prefix="tacit-virtual-") as folder:
        place = Path(folder)
        there = dataclasses.replace(
            deployment,
            database=f"sqlite:///{place / 'virtual.db'}",
            key_file=place / "virtual.key",
            witness=place / "virtual.witness",
        )
        with Collector.open(there, clock=clock) as collector:
            planner = PlannerLoop(collector)

            def plan() -> None:
                while planner.step():
                    pass

            parts: dict[str, Any] = {
                "connect": lambda: InProcessApi(collector),
                "people": people,
                "tokens": collector.tokens.issue("device", users if each else 1, "virtual"),
                "seed": seed,
                "clock": clock,
                "plan": plan,
            }
            if returns is None:
                fleet = VirtualFleet(pace=pace or 0.0, **parts)
            else:
                fleet = ReturningFleet(returns=returns, **parts)
            try:
                yield fleet
            finally:
                fleet.close()
