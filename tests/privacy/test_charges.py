import json
import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidInput, UnknownName
from tacit.privacy.accounting import mixed_delta
from tacit.privacy.charges import (
    Charge,
    CopiesCharge,
    GaussianCharge,
    PureCharge,
    charge_from_json,
    exact,
    rounded_down,
    rounded_up,
)

CHARGES = [
    GaussianCharge(0.25),
    PureCharge(0.5),
    CopiesCharge(PureCharge(0.1), 12),
]


# --- records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("charge", CHARGES, ids=lambda charge: charge.kind)
def test_charges_survive_json_and_are_values(charge: Charge) -> None:
    again = charge_from_json(json.loads(json.dumps(charge.to_json(), allow_nan=False)))
    assert again == charge and hash(again) == hash(charge) and again.to_json() == charge.to_json()


def test_the_json_is_the_one_people_have_on_disk() -> None:
    assert GaussianCharge(0.25).to_json() == {"kind": "gaussian", "mu_squared": 0.25}
    assert PureCharge(0.5).to_json() == {"kind": "pure", "epsilon": 0.5}
    assert CopiesCharge(PureCharge(0.5), 3).to_json() == {
        "kind": "copies",
        "charge": {"kind": "pure", "epsilon": 0.5},
        "count": 3,
    }


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"kind": "renyi", "alpha": 2}, "renyi"),
        ({"mu_squared": 1.0}, "unknown kind of charge"),
        ({"kind": "pure"}, "epsilon"),
        ({"kind": "pure", "epsilon": 1.0, "delta": 0.1}, "delta"),
        ({"kind": "pure", "epsilon": "1"}, "epsilon"),
        ({"kind": ["pure"], "epsilon": 1.0}, "unknown kind"),
        ([1.0], "JSON object"),
    ],
)
def test_reading_refuses_what_it_does_not_know(data: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        charge_from_json(data)
    assert issubclass(UnknownName, InvalidInput)


@pytest.mark.parametrize("bad", [-1.0, -5e-324, math.nan, math.inf, 1e10, "1", True, None])
def test_impossible_amounts_are_refused_by_name_and_value(bad: object) -> None:
    with pytest.raises(InvalidInput, match="mu_squared = .*must be a finite number >= 0"):
        GaussianCharge(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="epsilon = .*must be a finite number >= 0"):
        PureCharge(bad)  # type: ignore[arg-type]


def test_copies_are_of_simple_charges_and_countable() -> None:
    with pytest.raises(InvalidInput, match="one simple charge"):
        CopiesCharge(CopiesCharge(PureCharge(1.0), 2), 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="count = 0"):
        CopiesCharge(PureCharge(1.0), 0)


def test_numbers_mean_the_decimals_they_are_written_as() -> None:
    assert 10 * exact(0.1) == 1
    third = Fraction(1, 3)
    assert exact(rounded_down(third)) < third < exact(rounded_up(third))
    assert rounded_up(Fraction(1, 10**400)) == 5e-324
    assert math.copysign(1.0, rounded_down(Fraction(0))) == 1.0


@given(st.floats(1e-3, 1e2), st.floats(1e-2, 1e6))
def test_the_charge_of_gaussian_noise_is_never_rounded_down(width: float, std: float) -> None:
    charge = GaussianCharge.of(width, std)
    assert charge.as_gaussian() >= (Fraction(width) / Fraction(std)) ** 2
    assert charge.mu_squared == pytest.approx((width / std) ** 2, rel=1e-15)


# --- pure ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1e-3, 0.0099, 0.0101, 0.5, 2.0, 20.0, 600.0])
def test_a_pure_charge_is_covered_by_its_gaussian(epsilon: float) -> None:
    mu_squared = PureCharge(epsilon).as_gaussian()
    with mpmath.workdps(700):
        corner = 1 / (1 + mpmath.exp(mpmath.mpf(repr(epsilon))))
        guess = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator) / 2
        assert mpmath.ncdf(-guess) <= corner  # the Gaussian curve passes below the corner
        assert mpmath.ncdf(-guess * (1 - mpmath.mpf("2e-5"))) > corner  # and not far below
    assert 0 < mu_squared <= Fraction(15708, 10000) * exact(epsilon) ** 2


# --- mixed -----------------------------------------------------------------------------------


def test_gaussian_beside_pure_is_the_integral_over_both() -> None:
    mu, pure, epsilon = 0.6, 0.4, 1.1
    share = 1 / (1 + math.exp(-pure))
    y = np.linspace(-12, 12, 400_001)
    upper, lower = np.exp(-((y - mu) ** 2) / 2), np.exp(-(y**2) / 2)
    sides = [(share, 1 - share), (1 - share, share)]
    excess = sum(np.maximum(0, a * upper - math.exp(epsilon) * b * lower) for a, b in sides)
    integral = float(np.trapezoid(excess, y)) / math.sqrt(2 * math.pi)
    assert mixed_delta(mu, pure, epsilon) == pytest.approx(integral, rel=1e-7)
    assert mixed_delta(mu, math.inf, epsilon) == 1.0


def test_the_heavy_library_is_loaded_on_first_use_only() -> None:
    code = (
        "import sys; from tacit.privacy.filter import Budget, PrivacyFilter; "
        "from tacit.privacy import charges, ledger; PrivacyFilter(Budget(1.0, 1e-5)); "
        "sys.exit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_charge_of_minus_zero_is_one_of_zero() -> None:
    for charge in (GaussianCharge(-0.0), PureCharge(-0.0)):
        assert "-0" not in json.dumps(charge.to_json())
