"""What a stated pace leads to, against a simulation of the collector's own rule; and nonsense."""

import numpy as np
import pytest

from service.conftest import LOCAL
from tacit.errors import InvalidInput
from tacit_service.config.arrival_rate import LATE, nonsense, pacing, sentences
from tacit_service.config.sections import pace

DAY, HOUR = 86400.0, 3600.0
WEEK = LOCAL.replace("horizon = 4", 'horizon = 4\nduration = "7d"').replace(
    "accepted_versions = 2", "{updates}"
)


@pytest.fixture
def paced(deploy):
    def make(updates="", window="", pace='pace = "150/day"', users=10_000, batch=50, text=WEEK):
        text = text.replace("{updates}", updates)
        text = text.replace('tokens = "shared"', f'tokens = "shared"\n{pace}')
        return deploy(text, users=users, batch=batch, more=window)

    return make


def test_the_shipped_rule_loses_nobody(paced) -> None:
    now = pacing(paced())
    assert now.per_day == pytest.approx(150) and now.policy_every == pytest.approx(8 * HOUR)
    assert (now.lost_on_time, now.lost_late, now.arriving) == (0.0, 0.0, 1.0)
    assert now.complete == pytest.approx((10_000 / 150 + 7 + 0.125) * DAY)
    said = " ".join(sentences(now, 10_000))
    assert "At 150 people a day" in said and "0% of reports on time, 0% of those" in said
    assert nonsense(paced()) == [] and pacing(paced(pace="")) is None


@pytest.mark.parametrize(
    ("delay", "grace"), [("6h", "0s"), ("6h", "6h"), ("0s", "1h"), ("1d", "0s")]
)
def test_the_share_that_is_lost_is_that_of_the_rule(paced, delay, grace) -> None:
    """People one by one, against the moment their version ends; standard error below 0.0012."""
    deployment = paced(f'delay = "{delay}"\ngrace = "{grace}"')
    now, rng, n = pacing(deployment), np.random.default_rng(1), 200_000
    begun = rng.random(n) * 1000 * now.policy_every
    replaced = (np.floor(begun / now.policy_every) + 1) * now.policy_every
    due = begun + 7 * DAY + rng.random(n) * deployment.delay
    ends = replaced + 7 * DAY + deployment.delay + deployment.grace
    assert (due > ends).mean() == now.lost_on_time == 0.0
    late = (due + rng.random(n) * LATE > ends).mean()
    assert late == pytest.approx(now.lost_late, abs=0.006)
    if late > 0.51:
        (sentence,) = nonsense(deployment)
        assert "would be lost" in sentence and "grace in [updates]" in sentence
    elif late < 0.49:
        assert nonsense(deployment) == []


def test_without_a_duration_nobody_knows_but_the_limits_are_said(paced) -> None:
    now = pacing(paced(text=LOCAL))
    assert now.lost_on_time is None and now.lost_late is None
    assert (now.spared, now.stale) == pytest.approx((8 * HOUR, 16 * HOUR))
    assert "longer than 16 hours always is" in sentences(now, 10_000)[1]


WINDOW = "[window]\nopens = 2030-01-01T00:00:00Z\ncloses = 2030-01-{day:02}T00:00:00Z"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": WINDOW.format(day=7)}, "no report can be due before the task closes"),
        (
            {"window": WINDOW.format(day=20), "updates": 'cadence = "19d"'},
            "no policy would follow the first",
        ),
        ({"users": 50}, "nothing would be learned: the first batch takes 50 reports"),
        (
            {"window": WINDOW.format(day=9), "pace": 'pace = "2/hour"'},
            "would never fill: at 48.0 people a day 36 can report",
        ),
    ],
)
def test_nonsense_is_refused(paced, options, words) -> None:
    (sentence,) = nonsense(paced(**options))
    assert words in sentence


def test_a_task_that_closes_early_says_how_many_can_report(paced) -> None:
    now = pacing(paced(window=WINDOW.format(day=31)))
    assert now.arriving == pytest.approx((30 - 7.25) * 150 / 10_000)
    assert "closes when 34.1% of the population" in sentences(now, 10_000)[-1]


def test_a_pace_is_people_per_time_and_no_term(paced) -> None:
    assert pace("20/hour", "") == pytest.approx(480 / DAY) == pace(" 480 / day", "")
    for bad in ("150", 150, "0/day", "-1/day", "5/week", None):
        with pytest.raises(InvalidInput, match="150/day"):
            pace(bad, "pace")
    assert paced().fixed == paced(pace='pace = "9/day"').fixed
    assert paced().task_id == paced(pace="").task_id
