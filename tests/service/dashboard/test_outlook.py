import pytest

from tacit.schedules import CappedBatches, Every, Geometric
from tacit_service.dashboard.outlook import WINDOW, outlook, policies_left
from tacit_service.planning.publications import Version

HOUR = 3600.0


def test_pace_and_times_at_that_pace() -> None:
    versions = [Version(0, 0, 0.0), Version(1, 100, HOUR), Version(2, 200, 2 * HOUR)]
    ahead = outlook(versions, 250, 1_000, 50, Every(100), 2.5 * HOUR)
    assert ahead.users_left == 750
    assert ahead.users_per_day == pytest.approx(2_400)
    assert ahead.next_policy_at == pytest.approx(3 * HOUR)
    assert ahead.finished_at == pytest.approx(10 * HOUR)
    assert ahead.policies_left == 8  # after 300, ..., 1000


def test_the_pace_is_over_a_week_or_little_more() -> None:
    versions = [Version(0, 0, 0.0), Version(1, 10, 1.0), Version(2, 1_000, 2 * WINDOW)]
    ahead = outlook(versions, 1_100, 10_000, 900, Every(1_000), 2 * WINDOW + 1.0)
    assert ahead.since == versions[1]
    assert ahead.users_per_day == pytest.approx(1_090 / (2 * WINDOW) * 86_400)
    later = outlook(versions, 1_100, 10_000, 900, Every(1_000), 10 * WINDOW)
    assert later.since == versions[2]
    assert later.users_per_day == pytest.approx(100 / (8 * WINDOW) * 86_400)


def test_after_silence_nothing_is_forecast() -> None:
    """Everybody came on the first day, a month ago: the average since the start is not a pace."""
    day = 86_400.0
    versions = [Version(0, 0, 0.0), Version(1, 100, day)]
    ahead = outlook(versions, 100, 1_000, 100, Every(100), 30 * day)
    assert ahead.users_per_day == 0.0 and ahead.since == versions[1]
    assert ahead.next_policy_at is None and ahead.finished_at is None
    soon = outlook(versions, 100, 1_000, 100, Every(100), 5 * day)
    assert soon.users_per_day == pytest.approx(20.0) and soon.since == versions[0]


@pytest.mark.parametrize("accepted", [0, 1_000])
def test_no_pace_before_the_first_user_and_after_the_last(accepted: int) -> None:
    versions = [Version(0, 0, 0.0)]
    ahead = outlook(versions, accepted, 1_000, 100, Every(100), 50.0)
    assert ahead.users_per_day is None
    assert ahead.finished_at is None
    assert outlook(versions, 0, 1_000, 100, Every(100), 50.0).policies_left == 10


@pytest.mark.parametrize(
    ("schedule", "population"),
    [(Every(7), 50), (CappedBatches(5, 30, 0.1), 500), (Geometric(10, 1.25), 400)],
)
def test_policies_left_follow_the_driver(schedule, population: int) -> None:
    """As many as a loop that serves batch by batch publishes after the first."""
    served, edges = 0, []
    while served < population:
        served += min(schedule(served), population - served)
        edges.append(served)
    assert edges[-1] == population
    assert policies_left(0, population, schedule) == len(edges)
    assert policies_left(edges[1], population, schedule) == len(edges) - 2
    assert policies_left(population, population, schedule) == 0


def test_countless_policies_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit_service.dashboard.outlook.MOST", 50)
    assert policies_left(0, 10**9, Every(1)) is None
