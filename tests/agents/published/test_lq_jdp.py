"""OFU-RL and Private-OFU-RL, derived from docs/papers/lq_jdp.md by hand, and what they give.

Nothing here calls what it checks: noises, radii and times are written down from the formulas.
"""

import math

import numpy as np
import pytest

import tacit
from contracts.planner import publications
from tacit.experiment import bind
from tacit.planners.lq_model import linear_task
from tacit.planners.ofu import confidence

SYSTEMS = {  # H, n, d, gamma
    "lq-scalar": (10, 1, 1, 0.6),
    "lq-double-integrator": (20, 2, 1, 0.6),
    "lq-thermal": (24, 4, 2, 1.0),
}
SIZES = [("lq-scalar", 50, 60.0), ("lq-double-integrator", 1000, 1.0), ("lq-thermal", 9000, 40.0)]
DELTA, ALPHA, C_W = (
    1e-5,
    0.05,
    {"lq-scalar": 0.12, "lq-double-integrator": 0.07, "lq-thermal": 0.12},
)


def small(gamma: float | None = None) -> tacit.LQSystem:
    return tacit.LQSystem(
        A=[[0.6]],
        B=[[0.3]],
        Q=[[1.0]],
        R=[[0.1]],
        horizon=3,
        noise=0.1,
        start=[0.9],
        gain=gamma,
    )


def private(epsilon: float, calibration: str, **more):
    return tacit.agent("private-ofu-rl", epsilon=epsilon, calibration=calibration, **more)


def bound_to(agent, system: str, K: int):
    return bind(tacit.problem(system), agent, K)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Of a mu-Gaussian mechanism at epsilon."""

    def Phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return Phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * Phi(-mu / 2 - epsilon / mu)


def least_factor(gamma: float, epsilon: float, delta: float = DELTA) -> float:
    """By how much both noises must grow: #e3, mu = sqrt2 (q + 1/2) eps / sqrt(8 ln(2/delta))."""
    q = (1 + gamma**2) / (1 + gamma) ** 2
    mu = math.sqrt(2) * (q + 0.5) * epsilon / math.sqrt(8 * math.log(2 / delta))
    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high) if gaussian_delta(mu / middle, epsilon) > delta else (low, middle)
        )
    return high


@pytest.mark.parametrize(("system", "K", "epsilon"), SIZES)
@pytest.mark.parametrize("calibration", ["paper", "corrected"])
def test_noises_radius_and_times_are_those_of_the_page(system, K, epsilon, calibration) -> None:
    (H, n, d, gamma), m = SYSTEMS[system], math.ceil(math.log2(K))
    D, root = n + d, math.sqrt(8 * m * math.log(2 / DELTA)) / epsilon
    factor = max(1.0, least_factor(gamma, epsilon)) if calibration == "corrected" else 1.0
    assert factor == 1.0 or epsilon >= 30
    bound = bound_to(private(epsilon, calibration), system, K)
    used = bound.privatizer.noise_std
    first, second = used, used * H * (1 + gamma) / (H * (1 + gamma) ** 2)
    near = 1e-9 if factor == 1.0 else 1e-6  # the least noise covers the grid of reports too
    assert first == pytest.approx(factor * H * (1 + gamma) ** 2 * root, rel=near)
    assert used >= factor * H * (1 + gamma) ** 2 * root * (1 - 1e-12)
    # noise on and above the diagonal, and the factor 1 + gamma that makes both nodes alike
    assert not bound.statistic.isometric and bound.statistic.weight == 1 + gamma
    Lambda = first * math.sqrt(m) * (4 * math.sqrt(D) + math.sqrt(8 * math.log(4 * K / ALPHA)))
    nu = second * math.sqrt(m / Lambda)
    nu *= math.sqrt(2 * n * D) + math.sqrt(4 * math.log(2 * K / ALPHA))
    ridge = bound.planner.ridge
    for name, value in {
        "shift": 2 * Lambda,
        "least": Lambda,
        "most": 3 * Lambda,
        "target": nu,
    }.items():
        assert getattr(ridge, name) == pytest.approx(value, rel=1e-9), name
    # the radius of released matrices
    rng, facts = np.random.default_rng(1), linear_task(bound.task)
    Z, N = rng.normal(size=(40, D)), rng.normal(size=(D, n))
    M = Z.T @ Z
    V = M + 2 * Lambda * np.eye(D)
    region = confidence(facts, M, N, ridge, bound.planner.beta)
    logdet = np.linalg.slogdet(V / Lambda)[1]
    radius = C_W[system] * math.sqrt(2 * math.log(2 / ALPHA) + n * logdet)
    assert region.radius == pytest.approx(radius + math.sqrt(3 * Lambda) + nu, rel=1e-9)
    assert region.centre == pytest.approx(np.linalg.solve(V, N), rel=1e-9)
    assert [bound.schedule(served) for served in (0, 1, 20, K - 1)] == [1, 1, 1, 1]
    assert bound.privatizer.strategy.name == "tree" and bound.privatizer.strategy.length == K - 1


@pytest.mark.parametrize("gamma", [0.05, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0, 12.0, 20.0, 50.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("K", [2, 1000])
def test_corrected_gives_what_is_asked_for(gamma, epsilon, delta, K) -> None:
    """And is the paper's in every digit where its noise is enough already."""
    task = small(gamma).task(K, ["start"])
    corrected, paper = (private(epsilon, word, delta=delta) for word in ("corrected", "paper"))
    bound, printed = corrected.bind(task), paper.bind(task)
    # a stream of one release costs one node, which is m = 1 here too
    factor = least_factor(gamma, epsilon, delta)
    assert gaussian_delta(bound.guarantee.mu, epsilon) <= delta * (1 + 1e-9)
    raised = "times the published noise" in " ".join(corrected.notes(task))
    assert raised == (factor > 1.0)
    if raised:
        assert bound.guarantee.epsilon == pytest.approx(epsilon, rel=1e-5)
        assert gaussian_delta(printed.guarantee.mu, epsilon) > delta
    else:
        assert bound.guarantee == printed.guarantee and bound.planner == printed.planner
        assert bound.privatizer.noise_std == printed.privatizer.noise_std


def test_where_nothing_is_raised_runs_are_the_same_to_the_last_bit() -> None:
    """At an epsilon at which it does act, by few steps and little noise."""
    system = small()
    shown = {
        word: tacit.simulate(system, private(5.0, word), 40, 2, seed=4).reward
        for word in ("corrected", "paper")
    }
    assert np.array_equal(shown["corrected"], shown["paper"])
    parts = {
        word: [
            p.context["radius"] for p in publications(bind(system, private(5.0, word), 40), system)
        ]
        for word in ("corrected", "paper")
    }
    assert np.array_equal(parts["corrected"], parts["paper"]) and len(parts["paper"]) == 40


@pytest.mark.parametrize("calibration", ["paper", "corrected"])
@pytest.mark.parametrize(("system", "K"), [(name, 12) for name in SYSTEMS])
def test_without_privacy_every_episode_has_a_plan_at_the_radius_of_the_page(
    system, K, calibration
) -> None:
    H, n, d, _ = SYSTEMS[system]
    agent = tacit.agent("ofu-rl", calibration=calibration, ridge=0.5)
    bound = bound_to(agent, system, K)
    ridge = bound.planner.ridge
    assert (ridge.shift, ridge.least, ridge.most, ridge.target) == (0.5, 0.5, 0.5, 0.0)
    assert [bound.schedule(served) for served in (0, 1, 50, 10**6)] == [1, 1, 1, 1]
    shown = publications(bound, tacit.problem(system))
    assert len(shown) == K
    empty = C_W[system] * math.sqrt(2 * math.log(2 / ALPHA)) + math.sqrt(0.5)
    assert float(shown[0].context["radius"]) == pytest.approx(empty, rel=1e-9)


def test_what_is_not_published_is_refused_as_published() -> None:
    for more in ({"counter": "honaker"}, {"clipping": "energy"}):
        for calibration in ("paper", "corrected"):
            with pytest.raises(tacit.InvalidInput, match="sums go through a tree"):
                private(1.0, calibration, **more)
        assert private(1.0, "tight", **more).parameters()["counter"] in ("honaker", "toeplitz")
    assert private(1.0, "paper").parameters()["counter"] == "tree"
