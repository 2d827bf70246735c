"""The tabular paper from its own formulas, beside what bound agents use.

Noise, widths, prior and planning times are worked out here by hand from docs/papers/tabular_ldp.md
at three sizes, in the calibrations "paper" and "corrected".
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

import tacit
from tacit.agents import LdpOBI, LdpPSRL, ShuffleOBI
from tacit.kernels.public.obi import obi_precision
from tacit.planners.obi import cell_noise
from tacit.privacy.bounded import tabular_delta

SIZES = [(2, 2, 2), (3, 2, 5), (5, 3, 8)]
"""S, A, H."""

EPSILONS = [0.3, 2.0, 20.0]
BETA, ALPHA, DELTA = 0.1, 2.0, 0.1
RANDOMIZERS = ["laplace", "gaussian", "randomized-response", "bounded"]


def problem(S: int, A: int, H: int):
    return tacit.problem("random-mdp", states=S, actions=A, horizon=H, seed=1)


def gaussian_delta(mu: float, epsilon: float) -> float:
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def enough(moved: float, epsilon: float, delta: float) -> float:
    """The least Gaussian standard deviation, by bisection of the exact curve.

    Ours is 2e-8 more, which pays for noise on a grid.
    """
    low, high = 1e-9, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (
            (low, middle) if gaussian_delta(moved / middle, epsilon) <= delta else (middle, high)
        )
    return high


def noise(randomizer: str, S: int, A: int, H: int, epsilon: float, tables: int) -> float:
    """What is printed: scale, sigma, epsilon of a bit, or R_1."""
    if randomizer == "laplace":
        return 2 * tables * H / epsilon
    if randomizer == "gaussian":
        return math.sqrt(4 * math.log(24 / DELTA)) * H / epsilon * tables / 3
    if randomizer == "randomized-response":
        return epsilon / (2 * tables * H)
    return math.sqrt(S * A * math.log(1 / DELTA)) * tables * H / epsilon


def precisions(randomizer, scale, S, A, H, k, d, corrected):
    """c_1, c_3 and c_4 with n = k - 1 reports."""
    n, one, every = k - 1, math.log(6 * S * A / d), math.log(6 * S**2 * A / d)
    if randomizer == "laplace":
        c3 = max(math.sqrt(k * S), every) * math.sqrt(8 * every) * scale
        return max(math.sqrt(k), one) * math.sqrt(8 * one) * scale, c3, c3 / math.sqrt(S)
    if randomizer == "gaussian":
        twice, wide = (2, every) if corrected else (1, one)
        sizes = (twice * n * one, twice * n * S * wide, twice * n * wide)
        return tuple(max(scale * math.sqrt(size), 1.0) for size in sizes)
    if randomizer == "bounded":
        c4 = math.sqrt(S) * scale * math.sqrt(2 * n * every)
        return scale * math.sqrt(2 * n * one), math.sqrt(S) * c4, c4
    e = math.exp(scale)
    w = (e + 1 if corrected else 2 * e - 1) / (e - 1)
    pairs = (8 if corrected else 4) * S * A
    c1 = w * math.sqrt(n * H / 2 * math.log(pairs / d))
    c4 = w * math.sqrt(n * H / 2 * math.log(pairs * S / d))
    return max(1.0, c1), max(1.0, S * c1), max(1.0, c4)


def stated(guarantee) -> float:
    """The noise that a statement says was added to a count of visits."""
    names = ("epsilon per bit", "visits scale", "visits std", "visits radius")
    return next(guarantee.noise[name] for name in names if name in guarantee.noise)


def needed(randomizer: str, S: int, H: int, epsilon: float) -> float:
    """The least noise that gives what is asked for; 0 where what is printed is always enough."""
    if randomizer == "gaussian":
        return enough(math.sqrt(4 * H**2 + 2 * (H - 1) ** 2), epsilon, DELTA)
    return 0.0


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("S", "A", "H"), SIZES)
@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_ldp_obi(randomizer: str, S: int, A: int, H: int, epsilon: float) -> None:
    delta = DELTA if randomizer in ("gaussian", "bounded") else 0.0
    task, printed = problem(S, A, H).task(users=1000), noise(randomizer, S, A, H, epsilon, 3)
    for calibration in ("paper", "corrected"):
        bound = LdpOBI(epsilon, delta, randomizer, calibration).bind(task)
        corrected, said = calibration == "corrected", bound.guarantee
        used = stated(said)
        if not corrected:
            assert used == pytest.approx(printed, rel=1e-9)
        elif randomizer == "bounded":
            is_enough = tabular_delta(printed, math.sqrt(S), H, epsilon) <= delta
            assert used == pytest.approx(printed, rel=1e-9) if is_enough else used > printed
            assert tabular_delta(used, math.sqrt(S), H, epsilon) <= delta
        else:
            least = needed(randomizer, S, H, epsilon)
            assert used == pytest.approx(max(printed, least), rel=3e-8 if least > printed else 1e-9)
        if corrected:
            assert said.epsilon <= epsilon * (1 + 1e-8) and said.delta <= delta
        law, k = bound.privatizer.law(1), 400
        got = obi_precision(
            cell_noise(law), k - 1, (S, A, H), ALPHA, BETA, bound.planner.rule.width
        )
        d = 3 * BETA / (2 * math.pi**2 * k**2)
        c1, c3, c4 = precisions(randomizer, used, S, A, H, k, d, corrected)
        log = math.log(4 * math.pi**2 * S * A * H * k**3 / (3 * BETA))
        assert got[:7] == pytest.approx((c1, c1, c3, c4, ALPHA, log, -np.inf), rel=1e-9)
        assert {bound.schedule(served) for served in range(200)} == {1}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("S", "A", "H"), SIZES)
def test_ldp_psrl(S: int, A: int, H: int, epsilon: float) -> None:
    for calibration in ("paper", "corrected"):
        for users in (3, 5000):
            bound = LdpPSRL(epsilon, calibration).bind(problem(S, A, H).task(users=users))
            assert set(bound.guarantee.noise.values()) == {8 * H / epsilon}
            prior = bound.planner.prior
            one, every = math.log(6 * S * A / BETA), math.log(6 * S**2 * A / BETA)
            b = 8 * H / epsilon
            alpha0 = max(math.sqrt(users * S), every) * math.sqrt(8 * every) * b
            lambda0 = max(math.sqrt(users), one) * math.sqrt(8 * one) * b
            expected = (alpha0, lambda0, lambda0, 5 * lambda0)
            found = (prior.alpha0, prior.lambda0, prior.nu0, prior.beta0)
            assert found == pytest.approx(expected, rel=1e-9)
            assert {bound.schedule(served) for served in range(200)} == {1}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("S", "A", "H"), SIZES)
def test_shuffled_bits(S: int, A: int, H: int, epsilon: float) -> None:
    task, differing = problem(S, A, H).task(users=1000), 2 * H * (1 + 2) - 2
    whole = min(differing * epsilon, 64.0)  # beyond that no report is ever wrong
    for calibration, bit in (("paper", whole / differing), ("corrected", epsilon / differing)):
        bound = ShuffleOBI(epsilon, calibration=calibration).bind(task)
        e = math.exp(bit)
        assert bound.guarantee.noise["chance of a true bit"] == pytest.approx(e / (e + 1), rel=1e-9)
        assert {bound.schedule(served) for served in range(200)} == {1}


@pytest.mark.parametrize("agent", [LdpOBI, LdpPSRL])
def test_where_nothing_is_wrong_the_noise_is_the_paper_s_to_the_last_bit(agent) -> None:
    """Laplace noise is private as claimed: LDP-PSRL is equal in everything, LDP-OBI but for E8."""
    truth = problem(3, 2, 4)
    runs = [
        tacit.Experiment(problem=truth, agent=agent(5.0, calibration=way), episodes=300, runs=2)
        for way in ("paper", "corrected")
    ]
    assert runs[0].guarantee == runs[1].guarantee
    if agent is LdpPSRL:
        assert np.array_equal(*(run.run().regret for run in runs))
