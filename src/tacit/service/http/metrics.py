"""Prometheus metrics: public counts only.

Nothing here depends on what a report holds. In joint mode a report is raw until the release, so
that its outcomes are counted only where they follow from ids, versions and counts, never from the
message. Only requests that carry nothing about a person are timed (``TIMED``): how long an upload
takes can depend on what it says, through decoding, clipping and branches of the processor. Planning
is timed as a whole: it works on sums of a fixed size and on releases.
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector as Source

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit.service.collector import Collector

TIMED = frozenset({"/v1/task", "/v1/policy", "/v1/guarantee", "/healthz", "/livez", "/readyz"})
"""Routes that read what is public before they are asked."""

CONTENT_DEPENDENT = frozenset({"invalid"})
"""Outcomes that are decided by looking at a message."""


class Metrics:
    """Counters of one application, in a registry of its own."""

    def __init__(self, collector: Collector) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # no time of a first count
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "tacit_http_requests",
            "Requests answered, by route and class of status.",
            ["route", "status"],
            registry=self._registry,
        )
        self._reports = Counter(
            "tacit_reports",
            "Reports received since the start, by outcome.",
            ["outcome"],
            registry=self._registry,
        )
        self._failures = Counter(
            "tacit_planner_failures",
            "Rounds of the planner that failed since the start.",
            registry=self._registry,
        )
        collector.readiness.failed = self._failures.inc
        self._seconds = Histogram(
            "tacit_http_request_duration_seconds",
            "Time to answer, of routes that take nothing from a person.",
            ["route"],
            registry=self._registry,
        )
        self._planning = Histogram(
            "tacit_planner_duration_seconds",
            "Time to absorb a batch, release, plan and publish.",
            buckets=(0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800),
            registry=self._registry,
        )
        self._state = _State(collector)
        local = collector.describe()["model"] == "local"
        self._hidden = frozenset() if local else CONTENT_DEPENDENT

    def count_request(self, route: str, status: int | None, seconds: float) -> None:
        """One request was answered, or its client went away (status None)."""
        if route in TIMED:
            self._seconds.labels(route).observe(seconds)
        self._requests.labels(route, f"{status // 100}xx" if status else "gone").inc()

    def count_reports(self, outcomes: Iterable[str]) -> None:
        """One upload was answered."""
        for outcome, count in Tally(outcomes).items():
            if outcome not in self._hidden:
                self._reports.labels(outcome).inc(count)

    def time_plan(self, seconds: float) -> None:
        """One version was planned by this process."""
        self._planning.observe(seconds)

    def text(self) -> bytes:
        """The page that Prometheus reads; with several workers, the sum over all of them."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        state = CollectorRegistry()
        state.register(self._state)
        return generate_latest(registry) + generate_latest(state)


class _State(Source):
    """Gauges read from the collector when they are asked for."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The public numbers of now."""
        build = GaugeMetricFamily("tacit_build_info", "What runs.", labels=["version", "model"])
        build.add_metric([__version__, self._collector.deployment.model], 1.0)
        yield build
        now = self._collector.status()
        for name, text, value in (
            ("population", "Reports the budget is for.", now.population),
            ("accepted", "Reports accepted so far.", now.accepted),
            ("next_batch", "Reports still missing before the next policy.", now.next_batch),
            ("policy_version", "Newest published policy.", now.version),
            ("released_users", "Users in the newest release.", now.users),
            ("published_timestamp_seconds", "Unix time of the newest policy.", now.last_published),
            ("planner_alive", "Whether a process holds the planner's lease.", now.planner_alive),
            ("ready", "Whether the service does all of its work.", now.trouble is None),
            (
                "ledger_verified",
                "Whether every line of the ledger is sound.",
                bool(now.budget["verified"]),
            ),
        ):
            yield GaugeMetricFamily(f"tacit_{name}", text, value=float(value))
        budget = GaugeMetricFamily(
            "tacit_budget",
            "Privacy budget of one unit, in epsilon (pure part) and mu squared (Gaussian part).",
            labels=["part", "amount"],
        )
        for part in ("spent", "remaining"):
            for amount, value in (now.budget[part] or {}).items():
                budget.add_metric([part, amount], float(value))
        yield budget
