"""One crafted report weighs at most the mechanism's stated bound, whatever it says."""

import numpy as np
import pytest

from service.conftest import LOCAL
from service.devices import report_under
from tacit import wire
from tacit.errors import InvalidInput
from tacit.privacy.base import Secret

ADDITIVE = ("ldp-obi", "ldp-psrl")


def sums(secret: Secret, privatizer) -> np.ndarray:
    arrays = privatizer.state(secret)
    return np.concatenate([np.ravel(a) for a in arrays.values() if a.dtype.kind in "iu"])


@pytest.mark.parametrize("name", ADDITIVE)
def test_f_reports_move_a_sum_by_f_times_the_bound(deploy, opened, name) -> None:
    deployment = deploy(LOCAL.replace('"tacit-local"', f'"{name}"'))
    publication = opened(deployment).billboard.publication(0)
    privatizer, f = wire.local_privatizer(deployment.bound), 7
    worst = privatizer.reach(publication)
    privatizer.inspect(worst, publication, 0)
    for where in (0, len(worst) - 1):
        beyond = worst.copy()
        beyond[where] += 1
        with pytest.raises(InvalidInput, match="goes beyond"):
            privatizer.inspect(beyond, publication, 0)
    secret = privatizer.fold(privatizer.init(), [worst] * f, publication, list(range(f)))
    moved = np.abs(sums(secret, privatizer)).max()
    assert moved == f * privatizer.largest


def test_a_report_about_one_cell_weighs_no_more_than_the_bound(deploy, opened) -> None:
    """Also the heaviest answer of all: every cell marked is refused, or within the bound."""
    deployment, rng = deploy(), np.random.default_rng(1)
    publication = opened(deployment).billboard.publication(0)
    privatizer = wire.local_privatizer(deployment.bound)
    taken = 0
    for _ in range(40):
        report = report_under(deployment, publication, rng)
        coin, message = (
            wire.coin(deployment.task_id, report.id),
            wire.unpack_message(report.message),
        )
        for crafted in (message, np.full_like(message, -1), np.full_like(message, 2**62)):
            try:
                privatizer.inspect(crafted, publication, coin)
            except InvalidInput:
                continue
            taken += 1
            secret = privatizer.fold(privatizer.init(), [crafted], publication, [coin])
            assert np.abs(sums(secret, privatizer)).max() <= privatizer.largest
    assert taken >= 40
