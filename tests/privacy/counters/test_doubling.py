"""Streams of unknown length."""

import numpy as np
import pytest

from privacy.counters.recorded import LARGEST, Recorded, items, run
from tacit.errors import InvalidInput
from tacit.privacy.counters import KINDS, Doubling, strategy

SIZE = 2
CASES = [
    Doubling("tree"),
    Doubling("honaker", first=3),
    Doubling("toeplitz", growth=3, longest=20),
    Doubling("blt", first=2, longest=5),
    Doubling("tree", first=4, longest=4),
]


def lengths(counter: Doubling, n: int) -> list[int]:
    """Phases until n items are covered, by the definition."""
    found: list[int] = []
    while sum(found) < n:
        found.append(min(counter.first * counter.growth ** len(found), counter.longest))
    return found


def explicit(counter: Doubling, n: int) -> tuple[np.ndarray, np.ndarray]:
    """B (with the noise scales in it) and C, phases as blocks."""
    parts = [strategy(counter.kind, m).factors() for m in lengths(counter, n)]
    total = sum(len(b) for b, _ in parts)
    rows, columns = np.zeros((total, 0)), np.zeros((0, total))
    start = 0
    for b, c in parts:
        block = np.zeros((total, b.shape[1]))
        block[start : start + len(b)] = b
        block[start + len(b) :] = b[-1]
        rows = np.hstack([rows, block])
        columns = np.vstack([columns, np.zeros((len(c), total))])
        columns[-len(c) :, start : start + len(b)] = c
        start += len(b)
    return rows, columns


@pytest.mark.parametrize("counter", CASES, ids=str)
def test_releases_are_the_explicit_product(counter: Doubling) -> None:
    n = 45
    b, c = explicit(counter, n)
    total = len(b)
    np.testing.assert_allclose(b @ c, np.tril(np.ones((total, total))), atol=1e-12)
    stream, draw = items(total, SIZE), Recorded(SIZE)
    released = run(counter, stream, draw)
    published = np.rint(c @ stream) + draw.matrix(len(c))
    np.testing.assert_allclose(released, b @ published, rtol=0, atol=1e-9 * LARGEST)
    assert draw.asked == list(range(len(c)))


@pytest.mark.parametrize("counter", CASES, ids=str)
def test_error_and_charge_are_exact(counter: Doubling) -> None:
    b, c = explicit(counter, 45)
    scales = np.array([counter.node_scale(node) for node in range(len(c))])
    stds = [counter.error_std(t) for t in range(1, len(b) + 1)]
    np.testing.assert_allclose(stds, np.linalg.norm(b * scales, axis=1), rtol=1e-12)
    columns = np.linalg.norm(c / scales[:, None], axis=0)
    assert columns.max() == pytest.approx(counter.column_norm()) == 1.0
    rounding = [
        strategy(counter.kind, m).rounding_sensitivity(SIZE, LARGEST)
        / strategy(counter.kind, m).column_norm()
        for m in {*lengths(counter, 45), counter.longest}
    ]
    assert counter.rounding_sensitivity(SIZE, LARGEST) == max(rounding)


def test_the_charge_does_not_grow_with_the_number_of_phases() -> None:
    counter = Doubling("tree")
    assert counter.charge(3.0, 10.0, SIZE, LARGEST) == pytest.approx(0.09)


def test_phases_stop_growing_and_far_steps_cost_no_time() -> None:
    counter = Doubling("tree", longest=8)
    found = [counter.locate(t) for t in range(1, 32)]
    expected = [
        (index, local)
        for index, length in enumerate([1, 2, 4, 8, 8, 8])
        for local in range(1, length + 1)
    ]
    assert found == expected
    far = 7 + 8 * 10**9
    assert counter.locate(far) == (2 + 10**9, 8)
    variance = [strategy("tree", m).column_norm() ** 2 for m in (1, 2, 4, 8)]
    assert counter.error_std(far) ** 2 == pytest.approx(sum(variance[:3]) + 10**9 * variance[3])
    assert counter.node_scale(far) == 2.0 and counter.nodes(far) == range(far - 1, far)


def test_a_new_phase_forgets_the_exact_sums_of_the_last() -> None:
    counter, draw = Doubling("tree", first=2), Recorded(SIZE)
    state = counter.init(SIZE, LARGEST)
    for item in (np.full(SIZE, 900), np.full(SIZE, 90), np.full(SIZE, 7)):
        counter.step(state, item, draw)
    assert state.secret["blocks"].max() == 7


def test_faster_growth_adds_up_less_noise() -> None:
    twice, fourfold = (Doubling("blt", growth=growth).error_std(10_000) for growth in (2, 4))
    known = strategy("blt", 10_000)
    assert known.column_norm() * known.error_std(10_000) < fourfold < twice
    bounded = strategy("blt", 2**20)
    assert bounded.column_norm() * bounded.error_std(10_000) < 0.7 * fourfold


def test_bad_phases_are_refused() -> None:
    for bad, message in (
        ({"kind": "wood"}, "one of " + ", ".join(KINDS)),
        ({"kind": "tree", "first": 0}, "first = 0"),
        ({"kind": "tree", "first": 9, "longest": 8}, "first = 9"),
        ({"kind": "tree", "growth": 1}, "growth = 1"),
        ({"kind": "blt", "longest": 2**21}, "length = 2097152"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Doubling(**bad)  # type: ignore[arg-type]
    for step in (0, -1, 2.5):
        with pytest.raises(InvalidInput, match="step = "):
            Doubling("tree").error_std(step)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="node = -1"):
        Doubling("tree").node_scale(-1)
