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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

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

Standings = Mapping[str, tuple[Model | None, Status | None]]
"""By task: its model (None for a file that could not be opened), and its public numbers if they
could be had."""


class Metrics:
    """Counters of one process, in a registry of their own; the label ``task`` says whose."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # no time of a first count
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "tacit_http_requests",
            "Requests answered, by route and class of status.",
            ["task", "route", "status"],
            registry=self._registry,
        )
        self.reports = Counter(
            "tacit_reports",
            "Reports received since the start, by outcome.",
            ["task", "outcome"],
            registry=self._registry,
        )
        self.failures = Counter(
            "tacit_planner_failures",
            "Rounds of the planner that failed since the start.",
            ["task"],
            registry=self._registry,
        )
        self.seconds = Histogram(
            "tacit_http_request_duration_seconds",
            "Time to answer, of routes that take nothing from a person.",
            ["task", "route"],
            registry=self._registry,
        )
        self.planning = Histogram(
            "tacit_planner_duration_seconds",
            "Time to absorb a batch, release, plan and publish.",
            ["task"],
            buckets=(0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800),
            registry=self._registry,
        )

    def of(self, task: str, model: Model | None = None) -> TaskMetrics:
        """Those of one task; of the server itself where the task is "" and has no model."""
        if model is not None:  # shown as 0 before the first
            self.failures.labels(task)
            self.planning.labels(task)
        return TaskMetrics(self, task, frozenset() if model == "local" else CONTENT_DEPENDENT)

    def text(self, found: Standings) -> bytes:
        """The page that Prometheus reads; with several workers, the sum over all of them."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        state = CollectorRegistry()
        state.register(_State(found))
        return generate_latest(registry) + generate_latest(state)


@dataclass(frozen=True)
class TaskMetrics:
    """Counts for one task."""

    _all: Metrics
    _task: str
    _hidden: frozenset[str]

    def count_request(self, route: str, status: int | None, seconds: float) -> None:
        """One request was answered, or its client went away (status None)."""
        if route in TIMED:
            self._all.seconds.labels(self._task, route).observe(seconds)
        shown = f"{status // 100}xx" if status else "gone"
        self._all.requests.labels(self._task, route, shown).inc()

    def count_reports(self, outcomes: Iterable[str]) -> None:
        """One upload was answered."""
        for outcome, count in Tally(outcomes).items():
            if outcome not in self._hidden:
                self._all.reports.labels(self._task, outcome).inc(count)

    def time_plan(self, seconds: float) -> None:
        """One version was planned by this process."""
        self._all.planning.labels(self._task).observe(seconds)

    def planner_failed(self) -> None:
        """One round of this process's planner failed."""
        self._all.failures.labels(self._task).inc()


class _State(Source):
    """Gauges as they were read a moment ago; a task that could not be read is not ready."""

    def __init__(self, found: Standings) -> None:
        self._found = found

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The public numbers of now."""
        labels = ["task", "version", "model"]
        build = GaugeMetricFamily("tacit_build_info", "What runs.", labels=labels)
        ready = GaugeMetricFamily(
            "tacit_ready", "Whether the service does all of its work.", labels=["task"]
        )
        for task, (model, status) in self._found.items():
            if model is not None:
                build.add_metric([task, __version__, model], 1.0)
            ready.add_metric([task], float(status is not None and status.trouble is None))
        yield build
        yield ready
        known = [(task, status) for task, (_, status) in self._found.items() if status is not None]
        for name, text, value in (
            ("population", "Reports the budget is for.", lambda now: now.population),
            ("accepted", "Reports accepted so far.", lambda now: now.accepted),
            ("next_batch", "Reports missing before the next policy.", lambda now: now.next_batch),
            ("policy_version", "Newest published policy.", lambda now: now.version),
            ("released_users", "Reports in the newest release.", lambda now: now.users),
            (
                "published_timestamp_seconds",
                "Unix time of the newest policy.",
                lambda now: now.last_published,
            ),
            (
                "planner_alive",
                "Whether a process holds the planner's lease.",
                lambda now: now.planner_alive,
            ),
            ("open", "Whether it is neither paused nor closed.", lambda now: now.state == "open"),
            (
                "ledger_verified",
                "Whether every line of the ledger is sound.",
                lambda now: bool(now.budget["verified"]),
            ),
        ):
            gauge = GaugeMetricFamily(f"tacit_{name}", text, labels=["task"])
            for task, now in known:
                gauge.add_metric([task], float(value(now)))
            yield gauge
        budget = GaugeMetricFamily(
            "tacit_budget",
            "Privacy budget of one unit, of one period where budgets are renewed, in epsilon (pure "
            "part) and mu squared (Gaussian part).",
            labels=["task", "part", "amount"],
        )
        for task, now in known:
            for part in ("spent", "remaining"):
                for amount, value in (now.budget[part] or {}).items():
                    budget.add_metric([task, part, amount], float(value))
        yield budget
