"""Coefficients of buffered counters: the table, and the sensitivity of running code."""

import numpy as np
import pytest

from privacy.counters.recorded import rows_of
from tacit.errors import InvalidInput
from tacit.privacy.counters.blt import GAPS, BufferedToeplitz, blt

EVERY = [(buffers, n) for buffers in GAPS for n in GAPS[buffers]]


@pytest.mark.parametrize(("buffers", "n"), EVERY)
def test_table_entries_interlace_and_are_used_as_they_are(buffers: int, n: int) -> None:
    counter = blt(n, buffers)
    assert counter.gaps == GAPS[buffers][n] and len(counter.gaps) == 2 * buffers
    assert (counter.scales > 0).all() and (counter.weights > 0).all()
    assert (np.diff(counter.gaps) > 0).all()


@pytest.mark.parametrize("buffers", GAPS)
@pytest.mark.parametrize("n", [100, 1000])
def test_sensitivity_of_the_running_code(buffers: int, n: int) -> None:
    counter = blt(n, buffers)
    impulse = np.zeros((n, 1), dtype=int)
    impulse[0] = 2**50
    c = rows_of(counter, impulse)[:, 0] / 2.0**50
    assert np.linalg.norm(c) == pytest.approx(counter.column_norm(), rel=1e-12)
    # The same from the other side: impulse response b of the pole buffers, then 1 / ((1 - x) B(x)).
    _, public = counter.buffers(1)
    b = [counter.decode(public, t, impulse[t - 1 : t])[0] / 2.0**50 for t in range(1, n + 1)]
    differences = np.diff(b, prepend=0.0)
    inverse = np.zeros(n)
    inverse[0] = 1.0 / differences[0]
    for k in range(1, n):
        inverse[k] = -(differences[1 : k + 1] @ inverse[k - 1 :: -1][:k]) / differences[0]
    assert np.linalg.norm(inverse) == pytest.approx(counter.column_norm(), rel=1e-12)


def test_own_coefficients_are_welcome() -> None:
    counter = BufferedToeplitz(50, (0.02, 0.3))
    assert len(counter.decays) == 1
    b, c = counter.factors()
    np.testing.assert_allclose(b @ c, np.tril(np.ones((50, 50))), atol=1e-12)


@pytest.mark.parametrize(
    "gaps",
    [(), (0.1,), (0.2, 0.1), (0.1, 0.1), (0.0, 0.5), (0.5, 1.0), (0.1, float("nan")), (1e-20, 0.5)],
)
def test_coefficients_that_do_not_interlace_are_refused(gaps: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="gaps"):
        BufferedToeplitz(10, gaps)
