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
from functools import partial

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
from tacit_service.config.serving import Model
from tacit_service.responses import Status

TIMED = frozenset({"/v1/task", "/v1/policy", "/v1/guarantee", "/healthz", "/livez", "/readyz"})
"""Routes that read what is public before they are asked."""

CONTENT_DEPENDENT = frozenset({"invalid"})
"""Outcomes that are decided by looking at a message."""


class Metrics:
    """Counters of one process, in a registry of their own; the label ``task`` says whose."""

    def __init__(self, task: str, model: Model) -> None:
        self._task, self._model = task, model
        self._hidden = frozenset() if model == "local" else CONTENT_DEPENDENT
        disable_created_metrics()  # type: ignore[no-untyped-call]  # no time of a first count
        self._registry = registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.requests = counter(
            "tacit_http_requests",
            "Requests answered, by route and class of status.",
            ["task", "route", "status"],
        )
        self.reports = counter(
            "tacit_reports", "Reports received since the start, by outcome.", ["task", "outcome"]
        )
        self.failures = counter(
            "tacit_planner_failures", "Rounds of the planner that failed since the start.", ["task"]
        ).labels(task)
        self.seconds = histogram(
            "tacit_http_request_duration_seconds",
            "Time to answer, of routes that take nothing from a person.",
            ["task", "route"],
        )
        self.planning = histogram(
            "tacit_planner_duration_seconds",
            "Time to absorb a batch, release, plan and publish.",
            ["task"],
            buckets=(0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800),
        ).labels(task)

    def text(self, status: Status | None) -> bytes:
        """The page that Prometheus reads; with several workers, the sum over all of them.

        ``status`` are the public numbers of now, None if they could not be had.
        """
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        state = CollectorRegistry()
        state.register(_State(self._task, self._model, status))
        return generate_latest(registry) + generate_latest(state)

    def count_request(self, route: str, status: int | None, seconds: float) -> None:
        """One request was answered, or its client went away (status None)."""
        if route in TIMED:
            self.seconds.labels(self._task, route).observe(seconds)
        shown = f"{status // 100}xx" if status else "gone"
        self.requests.labels(self._task, route, shown).inc()

    def count_reports(self, outcomes: Iterable[str]) -> None:
        """One upload was answered."""
        for outcome, count in Tally(outcomes).items():
            if outcome not in self._hidden:
                self.reports.labels(self._task, outcome).inc(count)


class _State(Source):
    """Gauges as they were read a moment ago; a task that could not be read is not ready."""

    def __init__(self, task: str, model: Model, status: Status | None) -> None:
        self._task, self._model, self._status = task, model, status

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The public numbers of now."""
        now = self._status
        build = GaugeMetricFamily(
            "tacit_build_info", "What runs.", labels=["task", "version", "model"]
        )
        build.add_metric([self._task, __version__, self._model], 1.0)
        yield build
        ready = now is not None and now.trouble is None
        yield self._gauge("ready", "Whether the service does all of its work.", ready)
        if now is None:
            return
        sound = bool(now.budget["verified"])
        for name, text, value in (
            ("population", "Reports the budget is for.", now.population),
            ("accepted", "Reports accepted so far.", now.accepted),
            ("next_batch", "Reports missing before the next policy.", now.next_batch),
            ("policy_version", "Newest published policy.", now.version),
            ("released_users", "Reports in the newest release.", now.users),
            ("published_timestamp_seconds", "Unix time of the newest policy.", now.last_published),
            ("planner_alive", "Whether a process holds the planner's lease.", now.planner_alive),
            ("open", "Whether it is neither paused nor closed.", now.state == "open"),
            ("ledger_verified", "Whether every line of the ledger is sound.", sound),
        ):
            yield self._gauge(name, text, value)
        budget = GaugeMetricFamily(
            "tacit_budget",
            "Privacy budget of one unit, of one period where budgets are renewed, in epsilon (pure "
            "part) and mu squared (Gaussian part).",
            labels=["task", "part", "amount"],
        )
        for part in ("spent", "remaining"):
            for amount, value in (now.budget[part] or {}).items():
                budget.add_metric([self._task, part, amount], float(value))
        yield budget

    def _gauge(self, name: str, text: str, value: float) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily(f"tacit_{name}", text, labels=["task"])
        gauge.add_metric([self._task], float(value))
        return gauge
