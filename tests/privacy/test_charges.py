import itertools
import json
import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting import NeighboringRelation, ZCDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tacit.errors import InvalidInput, UnknownName
from tacit.privacy.accounting import gaussian_delta, gaussian_epsilon, pure_delta
from tacit.privacy.charges import (
    Charge,
    CopiesCharge,
    FiniteCharge,
    GaussianCharge,
    PureCharge,
    charge_from_json,
    grouped,
)
from tacit.privacy.decimals import exact, rounded_down, rounded_up
from tacit.privacy.loss import mixed_delta, total

LN = math.log
K_ARY = FiniteCharge((LN(0.7), LN(0.1), LN(0.1), LN(0.1)), (LN(0.1), LN(0.7), LN(0.1), LN(0.1)))
LOPSIDED = FiniteCharge((LN(0.5), LN(0.3), LN(0.2)), (LN(0.1), LN(0.3), LN(0.6)))
LEAKY = FiniteCharge((LN(0.99), LN(0.01)), (0.0, -math.inf))
CHARGES = [
    GaussianCharge(0.25),
    PureCharge(0.5),
    K_ARY,
    LEAKY,
    CopiesCharge(PureCharge(0.1), 12),
]


def laws(charge: FiniteCharge) -> tuple[list[float], list[float]]:
    return [math.exp(x) for x in charge.log_p], [math.exp(x) for x in charge.log_q]


def hockey_stick(p: list[float], q: list[float], epsilon: float) -> float:
    return sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


def product(*laws: list[float]) -> list[float]:
    return [math.prod(cells) for cells in itertools.product(*laws)]


# --- records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("charge", CHARGES, ids=lambda charge: charge.kind)
def test_charges_survive_json_and_are_values(charge: Charge) -> None:
    again = charge_from_json(json.loads(json.dumps(charge.to_json(), allow_nan=False)))
    assert again == charge and hash(again) == hash(charge) and again.to_json() == charge.to_json()


def test_the_json_is_the_one_people_have_on_disk() -> None:
    assert GaussianCharge(0.25).to_json() == {"kind": "gaussian", "mu_squared": 0.25}
    assert PureCharge(0.5).to_json() == {"kind": "pure", "epsilon": 0.5}
    assert LEAKY.to_json() == {
        "kind": "finite",
        "log_p": [LN(0.99), LN(0.01)],
        "log_q": [0.0, None],
    }
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


@pytest.mark.parametrize(
    ("p", "q", "says"),
    [
        ((LN(0.5), LN(0.5)), (0.0,), "same outputs"),
        ((LN(0.5), LN(0.4)), (LN(0.5), LN(0.5)), "sum to 0.9"),
        ((0.0, -701.0), (LN(0.5), LN(0.5)), r"log_p\[1\] = -701"),
        ((0.1,), (0.0,), r"log_p\[0\] = 0.1"),
        ((math.nan,), (0.0,), "log_p"),
        ((), (), "sum to 0"),
        ("ab", (0.0,), "logs of probabilities"),
        ((0.0, -math.inf), (-math.inf, 0.0), "share no output"),
    ],
)
def test_impossible_laws_are_refused(p: object, q: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        FiniteCharge(p, q)  # type: ignore[arg-type]


def test_copies_are_of_simple_charges_and_countable() -> None:
    with pytest.raises(InvalidInput, match="one simple charge"):
        CopiesCharge(CopiesCharge(PureCharge(1.0), 2), 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="count = 0"):
        CopiesCharge(PureCharge(1.0), 0)


def test_numbers_mean_the_decimals_they_are_written_as() -> None:
    assert 10 * exact(0.1) == 1
    assert total([PureCharge(0.1)] * 10).epsilon(0.0) == 1.0
    third = Fraction(1, 3)
    assert exact(rounded_down(third)) < third < exact(rounded_up(third))
    assert rounded_up(Fraction(1, 10**400)) == 5e-324
    assert math.copysign(1.0, rounded_down(Fraction(0))) == 1.0


@given(st.floats(1e-3, 1e2), st.floats(1e-2, 1e6))
def test_the_charge_of_gaussian_noise_is_never_rounded_down(width: float, std: float) -> None:
    charge = GaussianCharge.of(width, std)
    assert charge.as_gaussian() >= (Fraction(width) / Fraction(std)) ** 2
    assert charge.mu_squared == pytest.approx((width / std) ** 2, rel=1e-15)


# --- Gaussian --------------------------------------------------------------------------------


def test_gaussians_add_as_mu_squared_and_convert_exactly() -> None:
    loss = total([GaussianCharge(0.1)] * 7 + [CopiesCharge(GaussianCharge(0.1), 3)])
    assert loss == total([GaussianCharge(1.0)])
    assert loss.epsilon(1e-5) == pytest.approx(4.3771781, abs=1e-7)
    assert loss.epsilon(1e-5) == gaussian_epsilon(1.0, 1e-5)
    assert loss.delta(1.0) == gaussian_delta(1.0, 1.0) == pytest.approx(0.1269367, abs=1e-7)
    assert loss.epsilon(0.0) == math.inf


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_the_analytic_gaussian_agrees_with_the_loss_distribution(mu: float, delta: float) -> None:
    numeric = pld.from_gaussian_mechanism(1 / mu).get_epsilon_for_delta(delta)
    assert total([GaussianCharge(mu**2)]).epsilon(delta) == pytest.approx(numeric, abs=1e-4)


def test_two_libraries_agree_on_zcdp_and_both_are_looser_than_the_exact_conversion() -> None:
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    google = accountant.compose(ZCDpEvent(rho=0.5)).get_epsilon(1e-5)
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, 1.0)
    assert gaussian.map(1.0) == 0.5
    harvard = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(1e-5)
    assert google == pytest.approx(4.7285, abs=5e-5)
    assert harvard == pytest.approx(google, abs=2e-4)
    assert total([GaussianCharge(1.0)]).epsilon(1e-5) < min(google, harvard) - 0.35


# --- pure ------------------------------------------------------------------------------------


def test_one_pure_charge_is_randomized_response() -> None:
    loss = total([PureCharge(1.5)])
    for epsilon in (0.0, 0.7, 1.5, 2.0):
        assert loss.delta(epsilon) == pytest.approx(pure_delta(1.5, epsilon), abs=1e-16)
    assert loss.epsilon(0.0) == 1.5 and loss.delta(1.5) == 0.0
    assert 1.49 < loss.epsilon(1e-3) < 1.5


@pytest.mark.parametrize(("count", "epsilon", "at"), [(2, 1.0, 1.0), (30, 0.2, 2.0), (100, 0.1, 3)])
def test_many_pure_charges_meet_the_optimal_composition(
    count: int, epsilon: float, at: float
) -> None:
    """The optimal composition of randomized responses is a binomial sum, here to 40 digits."""
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(-epsilon))
        ways = [
            (math.comb(count, j), p ** (count - j) * (1 - p) ** j, p**j * (1 - p) ** (count - j))
            for j in range(count + 1)
        ]
        best = float(sum(n * max(0, a - mpmath.exp(at) * b) for n, a, b in ways))
    loss = total([PureCharge(epsilon)] * count)
    assert best * (1 - 1e-9) <= loss.delta(at) <= best * 1.001
    assert loss.epsilon(best) == pytest.approx(at, abs=1e-4)
    assert loss.epsilon(1e-6) < count * epsilon == pytest.approx(loss.epsilon(0.0))


def test_very_many_small_charges_are_quick() -> None:
    limit = gaussian_epsilon(math.sqrt(10**7) * 1e-4, 1e-6)  # of the loss as a sum of coin flips
    assert limit < total([CopiesCharge(PureCharge(1e-4), 10**7)]).epsilon(1e-6) < 1.3 * limit


@pytest.mark.parametrize(("count", "epsilon"), [(1000, 0.01), (100_000, 1e-3)])
def test_rounding_in_long_compositions_is_allowed_for(count: int, epsilon: float) -> None:
    """Convolving by FFT is off by about count * 1e-16, downwards too; far tails would show it."""
    p = 1 / (1 + math.exp(-epsilon))
    loss = total([CopiesCharge(PureCharge(epsilon), count)])
    for deviations in (2, 4, 5, 6, 7):
        at = deviations * math.sqrt(count) * epsilon + count * epsilon**2 / 2
        heads = math.floor((at / epsilon + count) / 2)
        true = binom.sf(heads, count, p) - math.exp(at) * binom.sf(heads, count, 1 - p)
        assert true <= loss.delta(at) <= 1.001 * true + 1e-9


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1e-3, 0.0099, 0.0101, 0.5, 2.0, 20.0, 600.0])
def test_a_pure_charge_is_covered_by_its_gaussian(epsilon: float) -> None:
    mu_squared = PureCharge(epsilon).as_gaussian()
    with mpmath.workdps(700):
        corner = 1 / (1 + mpmath.exp(mpmath.mpf(repr(epsilon))))
        guess = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator) / 2
        assert mpmath.ncdf(-guess) <= corner  # the Gaussian curve passes below the corner
        assert mpmath.ncdf(-guess * (1 - mpmath.mpf("2e-5"))) > corner  # and not far below
    assert 0 < mu_squared <= Fraction(15708, 10000) * exact(epsilon) ** 2


def test_laplace_and_randomized_response_are_covered() -> None:
    laplace = pld.from_laplace_mechanism(parameter=1.0).self_compose(20)
    loss = total([CopiesCharge(PureCharge(1.0), 20)])
    for epsilon in (1.0, 5.0, 10.0):
        assert loss.delta(epsilon) >= laplace.get_delta_for_epsilon(epsilon)
    flip = pld.from_randomized_response(noise_parameter=0.5, num_buckets=2)  # ln 3
    one = total([PureCharge(LN(3.0))])
    for epsilon in (0.1, 0.5, 1.0):
        assert one.delta(epsilon) == pytest.approx(flip.get_delta_for_epsilon(epsilon), abs=1e-4)


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
    loss = total([PureCharge(pure), GaussianCharge(mu**2)])
    assert loss.delta(epsilon) == pytest.approx(integral, rel=1e-7)
    assert mixed_delta(mu, math.inf, epsilon) == 1.0


def test_mixed_charges_agree_with_the_loss_distributions_composed_by_hand() -> None:
    parts = [GaussianCharge(0.36), PureCharge(0.4), PureCharge(0.25), K_ARY]
    pmfs = [dict(enumerate(log)) for log in (K_ARY.log_p, K_ARY.log_q)]
    whole = pld.from_gaussian_mechanism(1 / 0.6, value_discretization_interval=1e-4)
    fine = {"value_discretization_interval": 1e-4}
    for epsilon in (0.4, 0.25):
        likely = -math.log1p(math.exp(-epsilon))
        pair = {0: likely, 1: likely - epsilon}, {0: likely - epsilon, 1: likely}
        whole = whole.compose(pld.from_two_probability_mass_functions(*pair, **fine))
    whole = whole.compose(pld.from_two_probability_mass_functions(*pmfs, **fine))
    for delta in (1e-3, 1e-6):
        assert total(parts).epsilon(delta) == pytest.approx(
            whole.get_epsilon_for_delta(delta), abs=5e-4
        )


def test_order_and_grouping_do_not_matter() -> None:
    parts = [GaussianCharge(0.1), PureCharge(0.2), K_ARY, PureCharge(0.2), GaussianCharge(0.2)]
    again = [K_ARY, CopiesCharge(PureCharge(0.2), 2), GaussianCharge(0.3)]
    assert total(parts).epsilon(1e-5) == pytest.approx(total(again).epsilon(1e-5), rel=1e-9)


@pytest.mark.parametrize("mu_squared", [0.0, 1e-300, 1.0, 1e9])
@pytest.mark.parametrize("epsilon", [1e-300, 1.0, 1e4, 1e9])
def test_extreme_charges_neither_fail_nor_flatter(mu_squared: float, epsilon: float) -> None:
    loss = total([GaussianCharge(mu_squared), PureCharge(epsilon), PureCharge(0.3)])
    answer = loss.epsilon(1e-5)
    assert math.isinf(answer) or loss.delta(answer) <= 1e-5
    assert answer >= 0.3 - 1e-4 and (epsilon < 1e4 or answer >= 0.99 * epsilon)
    assert math.isinf(answer) == (mu_squared == 1e9)


def test_nothing_costs_nothing() -> None:
    for charges in ([], [GaussianCharge(0.0)], [PureCharge(0.0)], [FiniteCharge((0.0,), (0.0,))]):
        assert total(charges).epsilon(0.0) == 0.0 and total(charges).delta(0.0) == 0.0


CHOICES = [GaussianCharge(0.04), PureCharge(0.3), PureCharge(0.05), K_ARY, LOPSIDED]


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.sampled_from(CHOICES), min_size=1, max_size=4),
    st.sampled_from([1e-2, 1e-5]),
)
def test_both_directions_are_inverse_and_never_optimistic(
    charges: list[Charge], delta: float
) -> None:
    loss = total(charges)
    epsilon = loss.epsilon(delta)
    assert loss.delta(epsilon) <= delta
    assert epsilon == 0.0 or loss.delta(epsilon * (1 - 1e-9)) >= delta
    assert loss.delta(epsilon / 2) >= loss.delta(epsilon)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, math.nan, math.inf])
def test_questions_out_of_range_are_refused(bad: float) -> None:
    with pytest.raises(InvalidInput, match="delta = "):
        total([PureCharge(1.0)]).epsilon(bad)
    with pytest.raises(InvalidInput, match="epsilon = "):
        total([PureCharge(1.0)]).delta(-1.0)


# --- finite ----------------------------------------------------------------------------------


def test_a_finite_randomizer_has_the_epsilon_other_libraries_give_it() -> None:
    dp.enable_features("contrib")
    harvard = dp.m.make_randomized_response(["a", "b", "c", "d"], 0.7).map(1)
    assert float(K_ARY.as_pure()) == pytest.approx(harvard, rel=1e-12) == pytest.approx(LN(7))
    coin = FiniteCharge((LN(0.75), LN(0.25)), (LN(0.25), LN(0.75)))
    assert float(coin.as_pure()) == pytest.approx(dp.m.make_randomized_response_bool(0.75).map(1))
    google = pld.from_randomized_response(noise_parameter=0.4, num_buckets=4)  # 0.6 + 0.4 / 4
    for epsilon in (0.5, 1.0, 1.9):
        assert total([K_ARY]).delta(epsilon) == pytest.approx(
            google.get_delta_for_epsilon(epsilon), abs=1e-4
        )


@pytest.mark.parametrize("charge", [K_ARY, LOPSIDED, LEAKY], ids=["k-ary", "lopsided", "leaky"])
def test_the_corners_cover_both_directions_and_are_exact(charge: FiniteCharge) -> None:
    p, q = laws(charge)
    corners = charge.corners
    assert corners[0] == (0, 1) and corners[-1] == (1, 0)
    assert sorted((y, x) for x, y in corners) == sorted(corners)  # the same both ways round
    steps = list(itertools.pairwise(corners))
    first = [float(b[0] - a[0]) for a, b in steps]
    second = [float(a[1] - b[1]) for a, b in steps]
    for epsilon in (0.0, 0.3, 1.0, 1.7, 3.0):
        worst = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        assert hockey_stick(first, second, epsilon) == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize("charge", [K_ARY, LOPSIDED], ids=["k-ary", "lopsided"])
def test_a_finite_charge_is_covered_by_its_gaussian_and_barely(charge: FiniteCharge) -> None:
    (p, q), mu = laws(charge), math.sqrt(charge.as_gaussian() or 0)
    grid = np.linspace(-6, 6, 2401)

    def exceeds(mu: float) -> bool:
        """Whether some test does better on the finite pair than on the Gaussians."""
        return any(
            hockey_stick(a, b, epsilon) > mixed_delta(mu, 0.0, epsilon) + 1e-12
            for epsilon in grid[grid >= 0]
            for a, b in ((p, q), (q, p))
        )

    assert not exceeds(mu) and exceeds(0.9 * mu)
    assert charge.as_gaussian() <= PureCharge(rounded_up(charge.as_pure())).as_gaussian()


def test_turning_a_lopsided_pair_around_between_releases_is_covered() -> None:
    """One person may be p in one release and q in the next; composing one direction misses it."""
    p, q, epsilon = [0.995, 0.005], [0.35, 0.65], 3.8
    charge = FiniteCharge([LN(x) for x in p], [LN(x) for x in q])
    straight = max(
        hockey_stick(product(p, p), product(q, q), epsilon),
        hockey_stick(product(q, q), product(p, p), epsilon),
    )
    turned = hockey_stick(product(p, q), product(q, p), epsilon)
    assert straight + 0.1 < turned <= total([charge, charge]).delta(epsilon)


def test_outputs_that_only_one_law_has_leave_no_pure_epsilon() -> None:
    assert LEAKY.as_pure() is None and LEAKY.as_gaussian() is None
    assert total([LEAKY]).delta(5.0) == pytest.approx(0.01, rel=1e-9)
    assert total([LEAKY]).epsilon(0.001) == math.inf == total([LEAKY]).epsilon(0.0)
    assert math.isfinite(total([LEAKY, GaussianCharge(0.1), PureCharge(0.1)]).epsilon(0.02))
    with pytest.raises(InvalidInput, match="no finite epsilon"):
        grouped(LEAKY, 2)


# --- several participations ------------------------------------------------------------------


def test_fresh_noise_composes_and_shared_noise_groups() -> None:
    one = GaussianCharge.of(1.0, 10.0)
    assert total([CopiesCharge(one, 3)]) == total([one] * 3) == total([GaussianCharge(0.03)])
    assert grouped(one, 3) == GaussianCharge.of(3.0, 10.0)  # three contributions, one noise
    assert grouped(PureCharge(0.1), 3) == PureCharge(0.3)
    assert grouped(CopiesCharge(one, 5), 3) == CopiesCharge(GaussianCharge(0.09), 5)
    assert grouped(K_ARY, 2).as_pure() == pytest.approx(2 * K_ARY.as_pure())
    with pytest.raises(InvalidInput, match="people = 0"):
        grouped(one, 0)


def test_the_heavy_library_is_loaded_on_first_use_only() -> None:
    code = (
        "import sys; from tacit.privacy.filter import Budget, PrivacyFilter; "
        "from tacit.privacy import charges, ledger; PrivacyFilter(Budget(1.0, 1e-5)); "
        "sys.exit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
