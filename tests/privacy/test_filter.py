import copy
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.composed import composed_delta
from tacit.errors import InvalidInput, TacitError
from tacit.privacy.accounting import gaussian_mu, mixed_delta
from tacit.privacy.charges import Charge, CopiesCharge, GaussianCharge, PureCharge, exact
from tacit.privacy.filter import Budget, BudgetExhausted, Cost, PrivacyFilter


def admits(filter: PrivacyFilter, *charges: Charge) -> bool:
    """Whether a filter would admit all of these; asked of a copy, so that nothing changes."""
    twin = copy.deepcopy(filter)
    try:
        for charge in charges:
            twin.reserve(charge)
    except BudgetExhausted:
        return False
    return True


def true_delta(budget: Budget) -> mpmath.mpf:
    """Delta of both caps together, to sixty digits."""
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpmath.mpf(repr(budget.mu_squared)))
        pure, epsilon = mpmath.mpf(repr(budget.pure)), mpmath.mpf(repr(budget.epsilon))
        share = 1 / (1 + mpmath.exp(-pure))

        def one(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu)

        return share * one(epsilon - pure) + (1 - share) * one(epsilon + pure)


# --- budgets ---------------------------------------------------------------------------------


def test_known_caps() -> None:
    assert Budget(1.0, 1e-5).caps == Cost(exact(Budget(1.0, 1e-5).mu_squared), Fraction(0))
    assert Budget(1.0, 1e-5).mu_squared == pytest.approx(1 / 3.730632**2, rel=1e-6)
    assert Budget(2.0, 0.0).caps == Cost(epsilon=Fraction(2))
    half = Budget(1.0, 1e-5, pure=0.5)
    assert half.mu_squared == pytest.approx(0.0215777, abs=1e-7)
    assert half.mu_squared > gaussian_mu(0.5, 1e-5) ** 2  # better than adding two epsilons
    assert 0 < Budget(1.0, 1e-5, pure=1.0).mu_squared < 1e-8


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-9, 1e-30])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_the_caps_keep_their_promise_to_sixty_digits(
    epsilon: float, delta: float, part: float
) -> None:
    budget = Budget(epsilon, delta, pure=part * epsilon)
    assert true_delta(budget) <= mpmath.mpf(repr(delta))
    if epsilon >= 0.01:
        assert true_delta(budget) > 0.9999 * delta


def test_a_given_cap_is_checked_and_restored_to_the_last_digit() -> None:
    budget = Budget(1.0, 1e-5, pure=0.2)
    assert Budget.from_json(budget.to_json()) == budget
    assert Budget(1.0, 1e-5, mu_squared=0.01).caps.mu_squared == Fraction(1, 100)
    with pytest.raises(InvalidInput, match=r"mu_squared = 0.0719 .*does not keep delta below"):
        Budget(1.0, 1e-5, mu_squared=0.0719)
    with pytest.raises(InvalidInput, match="does not keep delta"):
        Budget(1e9, 0.0, mu_squared=1e-300)
    with pytest.raises(InvalidInput, match="does not keep delta"):
        Budget(1.0, 1e-5, pure=1.0, mu_squared=0.01)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0.0, 1e-5), "epsilon = 0, .*> 0"),
        ((-1.0, 1e-5), "epsilon = -1"),
        ((math.nan, 1e-5), "epsilon = nan"),
        ((math.inf, 1e-5), "epsilon = inf"),
        ((1.0, -1e-9), "delta = -1e-09, .*>= 0 and < 1"),
        ((1.0, 1.0), "delta = 1,"),
        ((1.0, math.nan), "delta = nan"),
        ((1.0, 1e-5, 1.1), "pure = 1.1, .*<= 1"),
        ((1.0, 1e-5, -0.1), "pure = -0.1"),
        ((1.0, 1e-5, 0.0, -1.0), "mu_squared = -1"),
        ((1.0, 1e-5, 0.0, math.inf), "mu_squared = inf"),
        (("1", 1e-5), "epsilon = '1'"),
    ],
)
def test_impossible_budgets_are_refused_by_name_value_and_range(
    arguments: tuple, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        Budget(*arguments)


@settings(deadline=None)
@given(st.floats(1e-3, 1e3), st.integers(1, 50))
def test_noise_calibrated_to_the_budget_fits_to_the_last_digit(width: float, releases: int) -> None:
    filter = PrivacyFilter(Budget(1.0, 1e-5))
    std = filter.budget.noise_std(width, releases)
    assert std == pytest.approx(3.730632 * width * math.sqrt(releases), rel=1e-5)
    for _ in range(releases):
        filter.commit(filter.reserve(GaussianCharge.of(width, std)))
    assert 0 <= filter.remaining.mu_squared < filter.budget.caps.mu_squared / 10**13


def test_there_is_no_gaussian_noise_without_delta() -> None:
    with pytest.raises(InvalidInput, match="delta > 0"):
        Budget(1.0, 0.0).noise_std(1.0)


# --- spending --------------------------------------------------------------------------------


def test_ten_tenths_are_one_and_then_not_even_the_smallest_number_passes() -> None:
    filter = PrivacyFilter(Budget(1.0, 0.0))
    for _ in range(10):
        filter.commit(filter.reserve(PureCharge(0.1)))
    assert filter.remaining == Cost() and not filter.closed
    with pytest.raises(BudgetExhausted):
        filter.reserve(PureCharge(5e-324))
    assert filter.closed and filter.spent == Cost(epsilon=Fraction(1))


def test_the_smallest_number_does_not_pass_as_gaussian_either() -> None:
    budget = Budget(1.0, 1e-5)
    for tiny in (PureCharge(5e-324), GaussianCharge(5e-324), CopiesCharge(PureCharge(1e-200), 3)):
        filter = PrivacyFilter(budget)
        filter.commit(filter.reserve(GaussianCharge(budget.mu_squared)))
        with pytest.raises(BudgetExhausted):
            filter.reserve(tiny)


def test_what_is_reserved_counts_and_comes_back_only_when_cancelled() -> None:
    filter = PrivacyFilter(Budget(1.0, 0.0))
    first, second = filter.reserve(PureCharge(0.6)), filter.reserve(PureCharge(0.3))
    assert filter.reserved == Cost(epsilon=Fraction(9, 10)) and filter.spent == Cost()
    assert not admits(filter, PureCharge(0.2)) and admits(filter, PureCharge(0.1))
    filter.cancel(first)
    filter.commit(second)
    assert filter.spent == Cost(epsilon=Fraction(3, 10)) and filter.reserved == Cost()
    assert filter.remaining == Cost(epsilon=Fraction(7, 10))
    for used in (first, second):
        for settle in (filter.commit, filter.cancel):
            with pytest.raises(InvalidInput, match="not open here"):
                settle(used)
    other = PrivacyFilter(Budget(1.0, 0.0))
    with pytest.raises(InvalidInput, match="another filter"):
        filter.commit(other.reserve(PureCharge(0.1)))


def test_a_refusal_says_what_was_spent_reserved_and_asked_and_closes_for_good() -> None:
    filter = PrivacyFilter(Budget(1.0, 0.0))
    filter.commit(filter.reserve(PureCharge(0.5)))
    held = filter.reserve(PureCharge(0.25))
    with pytest.raises(BudgetExhausted) as refusal:
        filter.reserve(PureCharge(0.3))
    error = refusal.value
    assert isinstance(error, TacitError) and not isinstance(error, InvalidInput)
    assert (error.spent.epsilon, error.reserved.epsilon, error.asked.epsilon) == (
        Fraction(1, 2),
        Fraction(1, 4),
        Fraction(3, 10),
    )
    assert error.budget == filter.budget
    assert str(error) == (
        "budget exhausted: asked for mu^2 0 and epsilon 0.3; already spent: mu^2 0 and epsilon "
        "0.5; reserved: mu^2 0 and epsilon 0.25; the budget is epsilon = 1, delta = 0 (mu^2 0 and "
        "epsilon 1). Nothing was charged; the filter is now closed for good"
    )
    with pytest.raises(BudgetExhausted, match="when an earlier request was refused"):
        filter.reserve(PureCharge(0.0))
    filter.commit(held)  # paid for before
    assert filter.spent == Cost(epsilon=Fraction(3, 4))
    with pytest.raises(BudgetExhausted):
        filter.reserve(PureCharge(0.01))


@pytest.mark.parametrize("name", ["spent", "reserved", "remaining", "closed"])
def test_nobody_but_the_filter_says_what_was_spent(name: str) -> None:
    """Accounts are read from outside, never written: a closed filter stays closed."""
    filter: Any = PrivacyFilter(Budget(1.0, 0.0))
    filter.close()
    with pytest.raises(AttributeError):
        setattr(filter, name, getattr(PrivacyFilter(filter.budget), name))
    assert filter.closed


def test_a_charge_that_misses_by_rounding_is_told_how_to_calibrate() -> None:
    filter = PrivacyFilter(Budget(1.0, 1e-5))
    with pytest.raises(BudgetExhausted, match=r"by rounding only: .*Budget.noise_std"):
        filter.reserve(GaussianCharge(filter.budget.mu_squared * (1 + 1e-12)))


def test_pure_charges_are_added_plainly_while_they_may_and_count_as_gaussian_then() -> None:
    filter = PrivacyFilter(Budget(1.0, 1e-5, pure=0.5))
    assert filter.reserve(PureCharge(0.45)).cost == Cost(epsilon=Fraction(45, 100))
    spill = filter.reserve(PureCharge(0.1)).cost
    assert spill.epsilon == 0 and spill.mu_squared == pytest.approx(0.0157, rel=1e-2)
    assert filter.reserve(PureCharge(0.05)).cost == Cost(epsilon=Fraction(5, 100))
    wide = PrivacyFilter(Budget(10.0, 1e-5))
    with pytest.raises(BudgetExhausted, match=r"beyond what Budget\(pure=...\) sets aside"):
        wide.reserve(PureCharge(9.0))


def test_copies_count_every_time() -> None:
    filter = PrivacyFilter(Budget(1.0, 0.0))
    assert filter.reserve(CopiesCharge(PureCharge(0.1), 7)).cost == Cost(epsilon=Fraction(7, 10))
    filter = PrivacyFilter(Budget(1.0, 1e-5))
    assert filter.reserve(CopiesCharge(GaussianCharge(0.01), 7)).cost.mu_squared == Fraction(7, 100)


def test_a_recorded_reservation_must_fit_and_cover_its_charge() -> None:
    filter = PrivacyFilter(Budget(1.0, 1e-5, pure=0.5))
    filter.restore(PureCharge(0.3), Cost(epsilon=Fraction(3, 10)))
    with pytest.raises(InvalidInput, match="does not fit"):
        filter.restore(PureCharge(0.3), Cost(epsilon=Fraction(3, 10)))
    with pytest.raises(InvalidInput, match="does not cover"):
        filter.restore(GaussianCharge(0.01), Cost(mu_squared=Fraction(1, 1000)))
    with pytest.raises(InvalidInput, match="does not cover"):
        filter.restore(GaussianCharge(0.01), Cost(epsilon=Fraction(1, 10)))
    for short in (Fraction(99, 100), 1 - Fraction(1, 10**8)):  # more than another version's digits
        with pytest.raises(InvalidInput, match="does not cover"):
            filter.restore(GaussianCharge(0.01), Cost(mu_squared=short / 100))
        with pytest.raises(InvalidInput, match="does not cover"):
            filter.restore(PureCharge(0.1), Cost(epsilon=short / 10))
    filter.close()
    with pytest.raises(InvalidInput, match="does not fit"):
        filter.restore(PureCharge(0.0), Cost())


SMALL = st.one_of(
    st.floats(1e-4, 0.4).map(PureCharge),
    st.floats(1e-6, 0.02).map(GaussianCharge),
)


@settings(max_examples=10, deadline=None)
@given(st.lists(SMALL, min_size=1, max_size=12), st.sampled_from([0.0, 0.4, 0.8]))
def test_what_was_admitted_never_exceeds_the_budget(charges: list[Charge], pure: float) -> None:
    budget = Budget(1.0, 1e-5, pure=pure)
    filter, paid = PrivacyFilter(budget), []
    for charge in charges:
        if admits(filter, charge):
            filter.commit(filter.reserve(charge))
            paid.append(charge)
    slack = 1e-3 * len(paid)  # the grid on which losses are composed rounds up
    assert composed_delta(paid, budget.epsilon + slack) <= budget.delta


# --- why the caps are fixed in advance -------------------------------------------------------


def after_a_first_look(first: float, rest: np.ndarray, epsilon: float, y: np.ndarray) -> float:
    """Delta of a Gaussian release of mu^2 = first whose value y decides how to go on."""
    density = np.exp(-((y - math.sqrt(first)) ** 2) / 2) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(density * rest, y))


def test_choosing_along_the_way_gains_nothing_against_fixed_caps_and_would_against_a_trade() -> (
    None
):
    """Look once, then go on with more Gaussian or with pure charges, whichever hurts more."""
    epsilon, delta = 1.0, 1e-5
    budget = Budget(epsilon, delta, pure=0.4)
    first = budget.mu_squared / 2
    y = np.linspace(-10, 10, 2001)
    left = epsilon - (math.sqrt(first) * y - first / 2)  # what the first look leaves of epsilon
    within = [mixed_delta(math.sqrt(budget.mu_squared - first), 0.4, x) for x in left]
    assert after_a_first_look(first, np.array(within), epsilon, y) <= delta * (1 + 1e-6)

    # Either way alone would be within the budget; choosing between them after a look is not.
    gaussian = Budget(epsilon, delta).mu_squared
    more = np.array([mixed_delta(math.sqrt(gaussian - first), 0.0, x) for x in left])
    amounts = np.linspace(0, 1, 2001)
    pure = max(e for e in amounts if mixed_delta(math.sqrt(first), e, epsilon) <= delta)
    plain = np.array([mixed_delta(0.0, pure, x) for x in left])
    assert after_a_first_look(first, more, epsilon, y) <= delta * (1 + 1e-6)
    assert after_a_first_look(first, plain, epsilon, y) <= delta * (1 + 1e-6)
    assert after_a_first_look(first, np.maximum(more, plain), epsilon, y) > 1.2 * delta
