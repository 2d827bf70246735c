"""A cohort in simulated time: week-long episodes under the example's own settings, nobody stale."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tacit.client import Device
from tacit.util import durations
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.planning.loop import PlannerLoop
from tacit_service.rehearsal.fleet import VirtualClock
from tacit_service.rehearsal.in_process import InProcessApi
from tacit_service.rehearsal.virtual_fleet import EPOCH

COACH = Path(__file__).resolve().parents[3] / "examples" / "health_coach"
PER_DAY, DAYS = 150, 8


@pytest.mark.parametrize("name", ["coach", "coach_joint"])
def test_nobody_who_sends_on_time_is_stale(tmp_path, name) -> None:
    """1,200 people in 8 days; a third leaves early. By number of versions most would be stale."""
    time, rng, outcomes = VirtualClock(EPOCH), np.random.default_rng(1), Counter()
    path = tmp_path / f"{name}.toml"
    path.write_text((COACH / f"{name}.toml").read_text())
    deployment = Deployment.load(path)
    assert deployment.task.duration == 7 * durations.DAY
    begun = np.sort(time.now + rng.random(PER_DAY * DAYS) * DAYS * durations.DAY)
    behind = 0
    with Collector.open(deployment, clock=time) as collector:
        planner, api = PlannerLoop(collector), InProcessApi(collector)
        tokens = collector.tokens.issue("device", len(begun), "cohort")
        waiting: list[tuple[float, int, Device]] = []

        def deliver(until: float) -> None:
            nonlocal behind
            while waiting and waiting[0][0] <= until:
                time.now, person, device = waiting.pop(0)
                version = collector.policy().version
                with device:
                    (delivery,) = device.send()
                outcomes[delivery.outcome] += 1
                behind += version - first[person] >= 3
                while planner.step():
                    pass

        first = []
        for person, moment in enumerate(begun):
            deliver(moment)
            time.now = moment
            device = Device(
                *(api, None),
                max_epsilon=5.0,
                model="joint",
                token=tokens[person],
                clock=time,
            )
            episode = device.begin()
            first.append(episode.publication.version)
            for _ in range(rng.integers(0, 7) if rng.random() < 1 / 3 else 7):
                episode.act(int(rng.integers(12)))
                episode.observe(float(rng.random()), int(rng.integers(12)))
            if not episode.done:
                episode.leave()
            assert device.send()[0].outcome is None
            due = device.due()
            assert moment + 7 * durations.DAY <= due <= moment + 7.25 * durations.DAY
            waiting.append((due, person, device))
            waiting.sort(key=lambda entry: entry[:2])
        deliver(np.inf)
        assert outcomes == {"accepted": 1200}
        assert collector.policy().version >= 5
        assert behind > 600, "the rule by number would have refused these"
