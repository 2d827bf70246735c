"""The running counter against its matrices; noise drawn once; resuming; refusals."""

import copy
import pickle

import numpy as np
import pytest

from privacy.counters.recorded import LARGEST, LENGTHS, NAMES, Recorded, items, make, run
from tacit.errors import InvalidInput, RawDataLeak
from tacit.privacy.counters.blt import blt
from tacit.privacy.counters.tree import Honaker, Tree

SIZE = 3
EVERY = [(name, n) for name in NAMES for n in LENGTHS]


@pytest.mark.parametrize(("name", "n"), EVERY)
def test_released_prefixes_are_the_matrix_product_on_the_same_draws(name: str, n: int) -> None:
    counter, stream, draw = make(name, n), items(n, SIZE), Recorded(SIZE)
    b, c = counter.factors()
    noise = draw.matrix(c.shape[0])
    exact = c @ stream
    published = np.rint(exact) + noise
    if name in ("tree", "honaker"):
        assert np.array_equal(np.rint(exact), exact)
    released = run(counter, stream, draw)
    np.testing.assert_allclose(released, b @ published, rtol=0, atol=1e-9 * LARGEST)
    if name == "tree":
        assert np.array_equal(released, np.cumsum(stream, axis=0) + b @ noise)
    assert draw.asked == list(range(c.shape[0]))


@pytest.mark.parametrize("name", NAMES)
def test_without_noise_prefixes_are_exact_up_to_the_grid(name: str) -> None:
    stream = items(33, SIZE)
    released = run(make(name, 33), stream, Recorded(SIZE, spread=0))
    rounding = 0.0 if name == "tree" else 1e-9 if name == "honaker" else 0.5 * 6.5  # sum of b
    assert np.abs(released - np.cumsum(stream, axis=0)).max() <= rounding


@pytest.mark.parametrize(("name", "n"), EVERY)
def test_closing_adds_one_item_whose_noise_is_its_own_and_costs_nobody_more(name, n) -> None:
    counter, stream, draw = make(name, n), items(n + 1, SIZE), Recorded(SIZE)
    state = counter.init(SIZE, LARGEST)
    with pytest.raises(InvalidInput, match=f"after its {n} steps"):
        counter.close(state, np.zeros(SIZE), stream[n], draw)
    prefix = [counter.step(state, item, draw)[0] for item in stream[:n]][-1]
    closed = counter.close(state, prefix, stream[n], draw)
    b, c = counter.factors()
    assert draw.asked == list(range(len(c) + 1))
    assert np.array_equal(closed, prefix + (stream[n] + draw.of(len(c))))
    longer = np.zeros((len(c) + 1, n + 1))
    longer[:-1, :-1], longer[-1, -1] = c, 1.0
    assert np.linalg.norm(longer, axis=0).max() == pytest.approx(counter.column_norm())
    assert counter.closing_std() ** 2 == pytest.approx((b[-1] ** 2).sum() + 1)
    with pytest.raises(InvalidInput, match="closed once"):
        counter.close(state, prefix, stream[n], draw)


COUNTERS = [make(name, 17) for name in NAMES]


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda c: c.name)
def test_resuming_at_every_position_is_bit_equal(counter: Tree, tmp_path: object) -> None:
    stream = items(17, SIZE)
    whole = run(counter, stream, Recorded(SIZE))
    for stop in range(18):
        draw = Recorded(SIZE)
        state = counter.init(SIZE, LARGEST)
        for item in stream[:stop]:
            counter.step(state, item, draw)
        np.savez(tmp_path / "state.npz", **state.to_arrays())  # type: ignore[operator]
        with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:  # type: ignore[operator]
            again = counter.from_arrays(saved, SIZE, LARGEST)
        rest = [counter.step(again, item, draw)[0] for item in stream[stop:]]
        assert np.array_equal(np.reshape(rest, (-1, SIZE)), whole[stop:])
        assert draw.asked == list(range(len(draw.asked)))


def test_saved_arrays_are_copies() -> None:
    counter = Tree(4)
    state = counter.init(SIZE, LARGEST)
    saved = state.to_arrays()
    counter.step(state, np.ones(SIZE, dtype=int), Recorded(SIZE))
    assert saved["steps"] == 0
    assert not saved["secret.blocks"].any() and not saved["public.blocks"].any()


def test_memory_is_what_is_promised() -> None:
    n = 2**12
    vectors = {"tree": 2 * 13, "honaker": 2 * 13, "toeplitz": 2 * n, "normalised": 2 * n + 1}
    vectors |= {"blt-2": 5, "blt-4": 9}
    for name, count in vectors.items():
        state = make(name, n).init(SIZE, LARGEST)
        buffers = (*state.secret.values(), *state.public.values())
        assert sum(array.size for array in buffers) == count * SIZE, name


def test_a_state_cannot_be_restored_elsewhere() -> None:
    counter = blt(17, 3)
    state = counter.init(SIZE, LARGEST)
    counter.step(state, np.ones(SIZE, dtype=int), Recorded(SIZE))
    saved = state.to_arrays()
    for other in (blt(17, 4), blt(18, 3), Tree(17)):
        with pytest.raises(InvalidInput, match="saved state has counter"):
            other.from_arrays(saved, SIZE, LARGEST)
        with pytest.raises(InvalidInput, match="belongs to BufferedToeplitz"):
            other.step(state, np.ones(SIZE, dtype=int), Recorded(SIZE))
    with pytest.raises(InvalidInput, match="size = 3, not 4"):
        counter.from_arrays(saved, SIZE + 1, LARGEST)
    with pytest.raises(InvalidInput, match="largest = 10000, not 7"):
        counter.from_arrays(saved, SIZE, 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": np.array(2)}, "drawn 1 nodes with 0 pending, but 3 are used up after 2 steps"),
        ({"steps": np.array(9)}, "step = 9"),
        ({"steps": np.array([1, 2])}, "steps of the saved state"),
        ({"drawn": np.array(0)}, "drawn 0 nodes"),
        ({"drawn": np.array(1.0)}, "drawn of the saved state has dtype float64"),
        ({"pending": np.zeros((1, SIZE), dtype=int)}, "with 1 pending"),
        ({"pending": np.zeros((1, SIZE))}, "whole numbers"),
        ({"pending": np.array(3)}, "pending of the saved state"),
        ({"public.estimates": np.full((4, SIZE), np.nan)}, "not finite"),
        ({"public.estimates": np.zeros((3, SIZE))}, "shape"),
        ({"secret.blocks": np.zeros((4, SIZE))}, "dtype float64"),
        ({"extra": np.array(0)}, "has the parts"),
    ],
)
def test_damaged_arrays_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    counter = Honaker(8)
    state = counter.init(SIZE, LARGEST)
    counter.step(state, np.ones(SIZE, dtype=int), Recorded(SIZE))
    with pytest.raises(InvalidInput, match=message):
        counter.from_arrays(state.to_arrays() | change, SIZE, LARGEST)
    for missing in state.to_arrays():
        with pytest.raises(InvalidInput):
            partial = {k: v for k, v in state.to_arrays().items() if k != missing}
            counter.from_arrays(partial, SIZE, LARGEST)


def test_the_state_is_hidden_and_cannot_be_pickled_or_copied() -> None:
    state = Tree(4).init(SIZE, LARGEST)
    assert repr(state) == "State(content hidden)" == str(state)
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(RawDataLeak):
            leak(state)


class Fails(Recorded):
    """Gives up at one node, the first time."""

    def __init__(self, at: int) -> None:
        super().__init__(SIZE)
        self.at = at

    def __call__(self, node: int) -> np.ndarray:
        if node == self.at and node not in self.asked:
            self.asked.append(node)
            raise ConnectionError
        return super().__call__(node)


def test_a_failed_noise_source_can_be_asked_again_and_drawn_noise_is_kept() -> None:
    counter, stream = Honaker(4), items(4, SIZE)
    expected = run(counter, stream, Recorded(SIZE))
    draw = Fails(at=5)  # step 4 completes nodes 4, 5 and 6
    state = counter.init(SIZE, LARGEST)
    for item in stream[:3]:
        counter.step(state, item, draw)
    with pytest.raises(ConnectionError):
        counter.step(state, stream[3], draw)
    assert len(state.to_arrays()["pending"]) == 1
    state = counter.from_arrays(state.to_arrays(), SIZE, LARGEST)
    prefix, _ = counter.step(state, stream[3], draw)
    assert np.array_equal(prefix, expected[3])
    assert draw.asked == [0, 1, 2, 3, 4, 5, 5, 6]  # node 4 once; node 5 never answered at first


def test_a_node_cannot_be_drawn_twice() -> None:
    counter, draw = Tree(8), Recorded(SIZE)
    state = counter.init(SIZE, LARGEST)
    for item in items(3, SIZE):
        counter.step(state, item, draw)
    for node in (0, 2, 4):
        with pytest.raises(InvalidInput, match=f"node {node} was asked for.* is 3"):
            state.take(range(node, node + 1), draw)

    def meddler(node: int) -> np.ndarray:
        counter.step(state, np.ones(SIZE, dtype=int), draw)
        return draw(node)

    with pytest.raises(InvalidInput, match="node 3 was drawn while it was being drawn"):
        counter.step(state, np.ones(SIZE, dtype=int), meddler)
    assert draw.asked[:4] == [0, 1, 2, 3]


def test_an_interrupted_step_cannot_be_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, draw, item = blt(4), Recorded(SIZE), np.ones(SIZE, dtype=int)
    state = counter.init(SIZE, LARGEST)
    with monkeypatch.context() as patch:
        patch.setattr(type(counter), "decode", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            counter.step(state, item, draw)
    for use in (lambda: counter.step(state, item, draw), state.to_arrays):
        with pytest.raises(InvalidInput, match="step 1 of this counter was interrupted"):
            use()


@pytest.mark.parametrize("name", NAMES)
def test_prefixes_are_made_from_published_values_only(name: str) -> None:
    counter, stream, draw = make(name, 17), items(17, SIZE), Recorded(SIZE)
    state = counter.init(SIZE, LARGEST)
    published = []
    inner = counter.encode

    def overwritten(secret: dict, t: int, item: np.ndarray) -> np.ndarray:
        rows = inner(secret, t, item)
        published.append(rows + [draw.of(node) for node in counter.nodes(t)])
        kept = {key: array.copy() for key, array in secret.items()}
        for array in secret.values():
            array[...] = -1
        secrets.append(kept)
        return rows

    secrets: list[dict] = []
    object.__setattr__(counter, "encode", overwritten)
    _, public = counter.buffers(SIZE)
    for t, item in enumerate(stream, start=1):
        prefix, _ = counter.step(state, item, draw)
        assert np.array_equal(prefix, counter.decode(public, t, published[-1]))
        state.secret.update(secrets[-1])


@pytest.mark.parametrize("name", NAMES)
def test_bad_steps_are_refused_and_change_nothing(name: str) -> None:
    counter = make(name, 2)
    state, draw = counter.init(SIZE, LARGEST), Recorded(SIZE)
    good = np.ones(SIZE, dtype=int)
    bad = (
        np.ones(SIZE + 1, dtype=int),
        np.ones((1, SIZE), dtype=int),
        np.ones(SIZE),
        np.array([1.0, np.nan, 0.0]),
        np.ones(SIZE, dtype=bool),
        np.ones(SIZE, dtype=np.uint64),
        [1, 2.5, 3],
        "abc",
        7,
    )
    for value in bad:
        with pytest.raises(InvalidInput, match="contribution has dtype .* 3 whole numbers"):
            counter.step(state, value, draw)
        with pytest.raises(InvalidInput, match="noise of node 0 has dtype .* 3 whole numbers"):
            counter.step(state, good, lambda node, value=value: value)
    assert state.steps == state.drawn == 0 and not draw.asked
    counter.step(state, [1, 2, 3], draw)
    counter.step(state, np.ones(SIZE, dtype=np.int8), draw)
    with pytest.raises(InvalidInput, match="step = 3, but .* <= 2"):
        counter.step(state, good, draw)
    for size, largest in ((0, 1), (1.5, 1), (1, 0), (1, -1)):
        with pytest.raises(InvalidInput, match="size = |largest = "):
            counter.init(size, largest)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="size = |largest = "):
            counter.rounding_sensitivity(size, largest)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="2 releases .* could leave the 64-bit integers; plan"):
        counter.init(SIZE, 2**61 + 1)
    for sensitivity in (-1.0, np.nan):
        with pytest.raises(InvalidInput, match="sensitivity = "):
            counter.shift(sensitivity, SIZE, LARGEST)


@pytest.mark.parametrize("name", NAMES)
def test_large_cells_are_clipped_not_refused(name: str) -> None:
    counter, draw = make(name, 4), Recorded(SIZE)
    extreme = np.array([[np.iinfo(np.int64).max, np.iinfo(np.int64).min, 5]] * 4)
    clipped = np.clip(extreme, -LARGEST, LARGEST)
    given = extreme.copy()
    assert np.array_equal(run(counter, extreme, draw), run(counter, clipped, draw))
    assert np.array_equal(extreme, given)
