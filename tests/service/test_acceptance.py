"""Versions of tasks with a duration are accepted by time, on both databases and in both models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.conftest import JOINT, LOCAL
from service.devices import local_reports, trajectories
from tacit_service.collector import Collector
from tacit_service.intake.task_state import State
from tacit_service.intake.uploads import Acceptance
from tacit_service.planning.loop import PlannerLoop

DAY = 86400.0
WINDOW = 7 * DAY + 3600.0 + 2 * DAY


def timed(text: str) -> str:
    return text.replace("horizon = 4", 'horizon = 4\nduration = "7d"').replace(
        "accepted_versions = 2", 'delay = "1h"\ngrace = "2d"'
    )


def send(collector: Collector, reports) -> list[str]:
    answer = collector.upload(collector.deployment.task_id, reports, None)
    return [outcome.outcome for outcome in answer.outcomes]


@pytest.mark.parametrize(("text", "make"), [(LOCAL, local_reports), (JOINT, trajectories)])
def test_a_version_is_taken_until_its_time_is_over(
    deploy, opened, clock, database, text, make
) -> None:
    """However many versions came out; then it is stale, and those after it are not."""
    keep = {"keep": "true", "more": database}
    collector = opened(deploy(timed(text), users=2000, batch=40, **keep))
    planner, rng = PlannerLoop(collector), np.random.default_rng(1)
    under, published = [], []
    for _ in range(6):
        under.append(make(collector, rng, 20))
        published.append(clock.now)
        send(collector, make(collector, rng, collector.status().next_batch))
        clock.now += DAY
        assert planner.step()
    assert collector.policy().version == 6
    worker = opened(collector.deployment)  # remembers nothing yet
    for version in (0, 1, 5):
        replaced = collector.billboard.published(version + 1).published_at
        clock.now = replaced + WINDOW
        for one in (collector, worker):
            assert one.taking(version).taken, "devices are told the same"
            assert send(one, [under[version].pop()]) == ["accepted"], version
        clock.now = replaced + WINDOW + 0.01
        first, second = under[version].pop(), under[version].pop()
        good = make(collector, rng, 1)
        assert [collector.taking(v).reason for v in (version, 6)] == ["stale", None]
        assert send(collector, [first]) == ["stale"]
        assert send(worker, [second, *good]) == ["stale", "accepted"], "the newest always is"
    clock.now = collector.billboard.published(1).published_at + WINDOW
    assert send(collector, [under[0].pop(), first]) == ["accepted", "accepted"], "refused, not used"
    clock.now += DAY
    while planner.step():
        pass
    assert collector.verify().sound, "late reports count under the policy they name"


def test_a_version_that_was_not_published_is_stale(deploy, opened, clock) -> None:
    collector = opened(deploy(timed(LOCAL)))
    (report,) = local_reports(collector, np.random.default_rng(2), 1)
    report.version = 1
    assert send(collector, [report]) == ["stale"]


def test_a_full_population_is_told_before_anything_is_randomized(deploy, opened) -> None:
    collector = opened(deploy(users=3, batch=3))
    *reports, late = local_reports(collector, np.random.default_rng(2), 4)
    assert collector.taking(0).taken
    assert send(collector, reports) == ["accepted"] * 3
    taking = collector.taking(0)
    assert not taking.taken and taking.reason == "population_reached"
    assert send(collector, [late]) == ["refused"]
    collector.turn("closed")
    assert collector.taking(0).reason == "closed"


class Times:
    """A deployment and publications at given times, without a database."""

    accepted_versions = None
    delay, grace = 10.0, 20.0

    class task:
        duration = 70.0


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=30),
    st.integers(0, 2000),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_the_oldest_version_follows_the_rule(times, now, sort) -> None:
    """Word for word; a server's clock that was set back makes no version end sooner."""
    times = sorted(times) if sort else times
    rows = [(version, 0, time) for version, time in enumerate(times)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tacit_service.intake.uploads.timeline", lambda connection, after: rows[after + 1 :]
        )
        newest = len(times) - 1
        rule = Acceptance(Times, lambda: now)
        rule.oldest(None, newest // 2, State())  # later publications are read when they are needed
        oldest = rule.oldest(None, newest, State())
    replaced = [max(times[: version + 2]) for version in range(newest)]
    taken = [v for v in range(newest) if now <= replaced[v] + 100.0]
    assert oldest == min(taken, default=newest)
