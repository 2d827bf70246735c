"""The payload is a function of the randomized values, and of public ones, only.

Noise is replaced by recorded draws: the same randomized output must give the same bytes whatever
the user did, and another randomized output must give other bytes.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.collector import FakeCollector, H, S
from contracts.replay import ReplayNoise
from tacit.client import device as device_module
from tacit.wire import messages

IDS = ["11" * 16, "7f" * 16, "c3" * 16, "0d" * 16]


class Recorded(ReplayNoise):
    """Coins, then the randomizer's output: the same whatever is asked."""

    def __init__(self, report) -> None:
        super().__init__([])
        self.report = report

    def randomize(self, randomizer, value):
        return self.report[: getattr(randomizer, "domain", len(self.report))].copy()

    def happens(self, chance, of) -> bool:
        return chance * 2 > of  # depends on the data, as the real coin does


class Exactly(ReplayNoise):
    """Additive noise that makes the sum come out as recorded."""

    def __init__(self, target, contribution) -> None:
        super().__init__([target - contribution])


@pytest.fixture(scope="module")
def collector() -> FakeCollector:
    return FakeCollector(epsilon=1.0)


def payload(collector, monkeypatch, noise, states, rewards, report_id, steps, token) -> bytes:
    monkeypatch.setattr(device_module, "SecureNoise", lambda: noise)
    collector.bodies.clear()
    collector.headers.clear()
    collector.ids.clear()
    device = collector.device(report_id=lambda: report_id, token=token)
    episode = device.begin()
    for h in range(steps):
        episode.act(states[h])
        episode.observe(rewards[h], states[h + 1])
    if steps < H:
        episode.leave()
    device.send()
    (body,) = collector.bodies
    return body


LIVES = st.tuples(
    st.lists(st.integers(0, S - 1), min_size=H + 1, max_size=H + 1),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=H, max_size=H),
    st.integers(0, H),
)


@given(LIVES, LIVES, st.sampled_from(IDS))
@settings(max_examples=40, deadline=None)
def test_one_randomized_cell_one_payload(collector, one, other, report_id) -> None:
    with pytest.MonkeyPatch.context() as patch:
        coin = messages.coin(collector.task_id, report_id)
        _, kind = collector.bound.statistic.question(collector.publication, coin)
        oracle = collector.bound.privatizer.oracles[kind]
        rows = [oracle.encode_secure(cell) for cell in (0, 1)]
        first, second = (
            payload(collector, patch, Recorded(rows[0]), states, rewards, report_id, steps, "token")
            for states, rewards, steps in (one, other)
        )
        assert first == second
        if not np.array_equal(rows[0], rows[1]):
            states, rewards, steps = one
            noise = Recorded(rows[1])
            third = payload(collector, patch, noise, states, rewards, report_id, steps, "token")
            assert third != first


def test_one_noisy_vector_one_payload() -> None:
    collector = FakeCollector("ldp-obi", epsilon=1.0)
    size = collector.bound.statistic.layout.size
    target = np.arange(size) * 1000
    seen = set()
    for states, rewards, steps in (
        ([0, 0, 0, 0, 0], [0.0, 0.0, 0.0, 0.0], 4),
        ([2, 1, 2, 1, 2], [3.0, 2.9, float("nan"), -9.0], 4),
        ([1, 2, 0, 0, 0], [1.0, 1.0, 0.0, 0.0], 2),
    ):
        with pytest.MonkeyPatch.context() as patch:
            privatizer = type(collector.bound.privatizer)

            def randomize(self, contribution, publication, noise):
                drawn = Exactly(target, contribution * self.factors)
                message = np.zeros(size, dtype=np.int64)
                drawn.fill(self.noise_law, message)
                return message + contribution * self.factors

            patch.setattr(privatizer, "randomize", randomize)
            seen.add(payload(collector, patch, None, states, rewards, IDS[0], steps, None))
    assert len(seen) == 1


def test_headers_and_questions_do_not_depend_on_the_user(collector, monkeypatch) -> None:
    rows = np.zeros(2 * S * S, dtype=np.int64)
    seen = set()
    for states, reward, steps in (([0] * 5, 0.0, H), ([2] * 5, 3.0, 1), ([1, 2, 0, 1, 2], 1.0, 0)):
        coin = messages.coin(collector.task_id, IDS[1])
        _, kind = collector.bound.statistic.question(collector.publication, coin)
        oracle = collector.bound.privatizer.oracles[kind]
        rows[: oracle.ones] = 1
        payload(collector, monkeypatch, Recorded(rows), states, [reward] * H, IDS[1], steps, "t")
        seen.add(tuple(sorted(collector.headers[0].items())))
    assert len(seen) == 1
