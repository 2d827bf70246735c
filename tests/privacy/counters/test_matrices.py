"""What a counter says about itself against its matrices written out."""

import math

import numpy as np
import pytest

from privacy.counters.recorded import LENGTHS, NAMES, make
from tacit.errors import InvalidInput
from tacit.privacy.counters import strategy
from tacit.privacy.counters.base import Strategy
from tacit.privacy.counters.blt import blt
from tacit.privacy.counters.toeplitz import Toeplitz, convolve_last
from tacit.privacy.counters.tree import Honaker, Tree, levels_of

EVERY = [(name, n) for name in NAMES for n in LENGTHS]


def completed_at(counter: Strategy) -> np.ndarray:
    """The step that completes each node."""
    return np.concatenate([np.full(len(counter.nodes(t)), t) for t in range(1, counter.length + 1)])


@pytest.mark.parametrize(("name", "n"), EVERY)
def test_the_factors_multiply_to_prefix_sums(name: str, n: int) -> None:
    b, c = make(name, n).factors()
    prefix_sums = np.tril(np.ones((n, n)))
    if name == "tree":
        assert np.array_equal(b @ c, prefix_sums)
    np.testing.assert_allclose(b @ c, prefix_sums, atol=1e-12)


@pytest.mark.parametrize(("name", "n"), EVERY)
def test_nothing_depends_on_the_future(name: str, n: int) -> None:
    counter = make(name, n)
    b, c = counter.factors()
    when, step = completed_at(counter), np.arange(1, n + 1)
    assert b.shape == (n, len(when)) and c.shape == (len(when), n)
    assert not b[step[:, None] < when[None, :]].any()
    assert not c[when[:, None] < step[None, :]].any()


@pytest.mark.parametrize(("name", "n"), EVERY)
def test_norms_are_those_of_the_matrices(name: str, n: int) -> None:
    counter = make(name, n)
    b, c = counter.factors()
    columns = np.linalg.norm(c, axis=0)
    assert counter.column_norm() == pytest.approx(columns.max(), rel=1e-13)
    assert columns[0] == pytest.approx(columns.max(), rel=1e-14)
    stds = [counter.error_std(t) for t in range(1, n + 1)]
    np.testing.assert_allclose(stds, np.linalg.norm(b, axis=1), rtol=1e-12)
    assert counter.worst_std() == max(stds)
    np.testing.assert_allclose(counter.covariance(), b @ b.T, rtol=1e-15)


@pytest.mark.parametrize("n", LENGTHS)
def test_tree_and_honaker_publish_the_dyadic_blocks_of_the_definition(n: int) -> None:
    blocks = {
        (start, start + 2**i)
        for i in range(n.bit_length())
        for start in range(0, n, 2**i)
        if start + 2**i <= n
    }
    used = set()
    for t in range(1, n + 1):  # highest bit first (docs/papers/lq_jdp.md#counter)
        start = 0
        for level in reversed(levels_of(t)):
            used.add((start, start + 2**level))
            start += 2**level
        assert start == t
    for counter, expected in ((Honaker(n), blocks), (Tree(n), used)):
        _, c = counter.factors()
        found = {(int(np.argmax(row)), int(np.argmax(row) + row.sum())) for row in c}
        assert len(found) == len(c) and found == expected


def test_cover_of_thirteen() -> None:
    b, c = Tree(13).factors()
    covered = [tuple(np.flatnonzero(c[node]) + 1) for node in np.flatnonzero(b[12])]
    assert covered == [tuple(range(1, 9)), tuple(range(9, 13)), (13,)]


@pytest.mark.parametrize(("n", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (9, 4)])
def test_a_power_of_two_has_one_level_more(n: int, levels: int) -> None:
    for counter in (Tree(n), Honaker(n)):
        assert counter.column_norm() ** 2 == pytest.approx(levels)
    if n == 8:  # ceil(log2 n) levels would have promised less than user 1 spends
        assert math.ceil(math.log2(n)) < levels


def test_honaker_variances_have_the_closed_form() -> None:
    for i, v in enumerate(Honaker(2**20).variances):
        assert v == pytest.approx(1 / (2 * (1 - 2.0 ** -(i + 1))), rel=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_the_formulas_hold_at_lengths_whose_matrices_nobody_writes_out(name: str) -> None:
    counter = make(name, 2**16)
    assert 1.0 < counter.column_norm() < 5.0
    assert 1.0 <= counter.error_std(2**16 - 1) < 5.0
    with pytest.raises(InvalidInput, match="up to 4096"):
        counter.factors()


def test_compiled_convolution_equals_its_source() -> None:
    rng = np.random.default_rng(3)
    coefficients, rows = rng.normal(size=9), rng.normal(size=(9, 4))
    outs = np.empty((2, 4))
    convolve_last(coefficients, rows, 7, outs[0])
    getattr(convolve_last, "py_func", convolve_last)(coefficients, rows, 7, outs[1])
    assert np.array_equal(outs[0], outs[1])
    np.testing.assert_allclose(outs[0], coefficients[6::-1] @ rows[:7], rtol=1e-12)


def test_bad_descriptions_are_refused() -> None:
    for kind in ("tree", "honaker", "toeplitz", "normalised", "blt"):
        for length in (0, -3, 2.5, "many", float("nan"), True):
            with pytest.raises(InvalidInput, match="length = "):
                strategy(kind, length)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="one of tree, honaker, toeplitz, normalised, blt"):
        strategy("wood", 3)
    with pytest.raises(InvalidInput, match="<= 1.04858e\\+06"):
        blt(2**20 + 1)
    with pytest.raises(InvalidInput, match="buffers = 5"):
        blt(8, buffers=5)
    for step in (0, 6, 1.5):
        with pytest.raises(InvalidInput, match="step = .*>= 1 and <= 5"):
            Toeplitz(5).error_std(step)  # type: ignore[arg-type]
