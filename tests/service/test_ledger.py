"""What the service charges: never below what its mechanism costs."""

from fractions import Fraction
from pathlib import Path

import pytest

from service.conftest import JOINT, LOCAL
from tacit.privacy.accounting import DISCRETE
from tacit.privacy.filter import Budget, PrivacyFilter
from tacit.privacy.guarantee import Guarantee
from tacit.statistics import Relation
from tacit_service.config.deployment import Deployment
from tacit_service.storage.ledger import budget, whole_charge

LOCAL = LOCAL.format(users=400, batch=100, keep="false", more="")
JOINT = JOINT.format(users=400, batch=100, keep="false", more="")
AGENT = 'name = "tacit-local"\nepsilon = 4.0'
OBI = 'name = "ldp-obi"\nepsilon = {epsilon}\ndelta = {delta}\nrandomizer = "gaussian"'


def deployed(text: str, participations: int = 1) -> Deployment:
    if participations > 1:
        times = f'tokens = "per-device"\nparticipations = {participations}\nteaches = "every"'
        text = text.replace('tokens = "shared"', times)
    return Deployment.parse(text, Path("/nowhere/file.toml"))


def moved(deployment: Deployment) -> Fraction:
    return Fraction(deployment.bound.statistic.sensitivity("l2", Relation.REPLACE_ONE))


@pytest.mark.parametrize("participations", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-5), (8.0, 0.01)])
def test_local_gaussian_reports_are_charged_in_full(epsilon, delta, participations) -> None:
    """m fresh reports: m (Delta / sigma)^2, and what drawing on a grid adds."""
    agent = OBI.format(epsilon=epsilon, delta=delta)
    deployment = deployed(LOCAL.replace(AGENT, agent), participations)
    (std,) = set(deployment.bound.privatizer.scales.values())
    covered = participations * (moved(deployment) / Fraction(std) * (1 + Fraction(DISCRETE))) ** 2
    charged = whole_charge(deployment).as_gaussian()
    assert covered * (1 - Fraction(1, 10**14)) <= charged <= covered * (1 + Fraction(1, 10**14))
    PrivacyFilter(Budget(epsilon, delta)).reserve(whole_charge(deployment))  # is not refused
    assert budget(whole_charge(deployment), deployment.guarantee) == Budget(epsilon, delta)


def test_a_stream_is_charged_in_full() -> None:
    deployment = deployed(JOINT)
    privatizer = deployment.bound.privatizer
    norm = Fraction(privatizer.strategy.column_norm())
    true = (norm * moved(deployment) / Fraction(privatizer.noise_std)) ** 2
    charged = whole_charge(deployment).as_gaussian()
    assert true * (1 + Fraction(DISCRETE)) ** 2 <= charged <= true * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize("participations", [1, 2])
def test_pure_reports_are_charged_in_full(participations) -> None:
    deployment = deployed(LOCAL, participations)
    each = max(oracle.epsilon for oracle in deployment.bound.privatizer.oracles)
    stated: Guarantee = deployment.guarantee
    assert whole_charge(deployment).as_pure() >= participations * Fraction(each) * (
        1 - Fraction(1, 10**15)
    )
    assert stated.epsilon <= 4.0
