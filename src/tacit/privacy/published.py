"""The noise that the papers print, and what it truly gives.

Every function takes what a paper asks for and returns the published scales with their true cost,
worked out for replacing one user's whole trajectory. ``calibration="paper"`` uses these scales and
prints the true guarantee; nothing here is a recommendation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.privacy import accounting
from tacit.validate import number


@dataclass(frozen=True)
class PublishedNoise:
    """Scales as printed and their true cost: ``mu`` for Gaussian noise, ``epsilon`` for pure DP.

    Attributes:
        paper: where it is written down.
        scales: by name, as printed.
        mu: true Gaussian parameter of everything one user contributes, or None.
        epsilon: true pure epsilon, or None.
    """

    paper: str
    scales: Mapping[str, float]
    mu: float | None = None
    epsilon: float | None = None

    def true_epsilon(self, delta: float) -> float:
        """What the printed noise gives at delta."""
        if self.mu is not None:
            return accounting.gaussian_epsilon(self.mu, delta)
        assert self.epsilon is not None
        return self.epsilon

    def true_delta(self, epsilon: float) -> float:
        """What the printed noise gives at epsilon."""
        if self.mu is not None:
            return accounting.gaussian_delta(self.mu, epsilon)
        assert self.epsilon is not None
        return accounting.pure_delta(self.epsilon, epsilon)


def tabular_laplace(horizon: int, epsilon: float) -> PublishedNoise:
    """LDP-OBI: Laplace of scale 6H / eps on R, N_r, N_p; the L1 sensitivity is 6H - 2."""
    b = 6 * horizon / _positive(epsilon)
    return PublishedNoise(
        "docs/papers/tabular_ldp.md#randomizers", {"scale": b}, epsilon=(6 * horizon - 2) / b
    )


def tabular_gaussian(
    horizon: int, epsilon: float, delta: float, *, proof: bool = True
) -> PublishedNoise:
    """LDP-OBI: sigma = c H / eps, with c^2 = 4 ln(24 / delta) in the proof.

    As printed in the proposition it is c = 4 ln(24 / delta) (``proof=False``). The L2 sensitivity
    is sqrt(4H^2 + 2(H-1)^2). The proof's constant does not give its claim
    (docs/papers/tabular_ldp.md#e1 to E3).
    """
    log = 4 * math.log(24 / _fraction(delta))
    sigma = (math.sqrt(log) if proof else log) * horizon / _positive(epsilon)
    sensitivity = math.sqrt(4 * horizon**2 + 2 * (horizon - 1) ** 2)
    return PublishedNoise(
        "docs/papers/tabular_ldp.md#randomizers", {"std": sigma}, mu=sensitivity / sigma
    )


def tabular_response(horizon: int, epsilon: float) -> PublishedNoise:
    """LDP-OBI: every bit keeps its value with eps0 = eps / (6H); one user moves 6H - 2 bits."""
    per_bit = _positive(epsilon) / (6 * horizon)
    return PublishedNoise(
        "docs/papers/tabular_ldp.md#randomizers",
        {"epsilon per bit": per_bit},
        epsilon=(6 * horizon - 2) * per_bit,
    )


def tabular_shuffle(horizon: int, epsilon: float, reward_bits: int = 1) -> PublishedNoise:
    """M_sh: every bit passes p = 2 / (e^eps + 1); one user moves 2H(m + 2) - 2 bits.

    See docs/papers/tabular_ldp.md#e12.
    """
    p = 2.0 / (math.exp(_positive(epsilon)) + 1.0)
    bits = 2 * horizon * (reward_bits + 2) - 2
    return PublishedNoise("docs/papers/tabular_ldp.md#shuffling", {"p": p}, epsilon=bits * epsilon)


def shuffle_claim(horizon: int, users: int, epsilon: float, delta: float) -> float:
    """The central epsilon that equation (113) states for M_sh after that many users, if any.

    It has no ground (docs/papers/tabular_ldp.md#e12, docs/papers/tabular_ldp.md#e13);
    infinite where even its own condition on p does not hold.
    """
    p, n = tabular_shuffle(horizon, epsilon).scales["p"], users * horizon
    rest = p - math.sqrt(2 * p * math.log(2 / _fraction(delta)) / n)
    if p < 14 / n * math.log(4 / delta) or rest <= 0:
        return math.inf
    return 32 * math.log(4 / delta) / math.sqrt(n) / math.sqrt(rest) * (1 - rest)


def tabular_psrl(horizon: int, epsilon: float) -> PublishedNoise:
    """LDP-PSRL: Laplace of scale 8H / eps on four tables; the L1 sensitivity is 8H - 2."""
    b = 8 * horizon / _positive(epsilon)
    return PublishedNoise(
        "docs/papers/tabular_ldp.md#ldp-psrl", {"scale": b}, epsilon=(8 * horizon - 2) / b
    )


def mixture_local(
    horizon: int,
    epsilon: float,
    delta: float,
    *,
    values: list[float],
    states: int | None = None,
    rewards_over_horizon: bool = False,
) -> PublishedNoise:
    """LDP-UCRL-VTR: sigma = 4 H^3 sqrt(2 ln(2.5 H / delta)) / eps; H for H^3 if rewards are / H.

    Args:
        horizon: H.
        epsilon: asked for.
        delta: asked for.
        values: enforced cap v_h on V_{h+1} at stages h = 1..H-1 (stage H carries no data).
        states: S for one-hot features: a stage moves (S^2 + 3S) v^4; None for features clipped to
            norm v_h: 4.5 v^4 (docs/papers/mixture_ldp.md#published-noise).
        rewards_over_horizon: the experiment's scaling.
    """
    power = 1 if rewards_over_horizon else 3
    root = math.sqrt(2 * math.log(2.5 * horizon / _fraction(delta)))
    sigma = 4 * horizon**power * root / _positive(epsilon)
    moved = 4.5 if states is None else states**2 + 3 * states
    squared = sum(moved * value**4 for value in values)
    return PublishedNoise(
        "docs/papers/mixture_ldp.md#ldp-ucrl-vtr", {"std": sigma}, mu=math.sqrt(squared) / sigma
    )


def mixture_joint(horizon: int, epsilon: float, delta: float, levels: int) -> PublishedNoise:
    """Private-LinOpt: sigma_x = (H Delta_x / eps) sqrt(32 m ln(4H / delta)) per tree node.

    Scales are per unit of each statistic's norm Delta_x. Replacing a user moves the two Gram sums
    by sqrt2 Delta and the two target sums by 2 Delta at every one of H stages and m levels:
    mu^2 = 12 eps^2 / (32 H ln(4H / delta)) (docs/papers/mixture_jdp.md#noise-scales).
    """
    log = math.log(4 * horizon / _fraction(delta))
    per_unit = horizon / _positive(epsilon) * math.sqrt(32 * levels * log)
    mu = math.sqrt(12 * horizon * levels) / per_unit
    return PublishedNoise(
        "docs/papers/mixture_jdp.md#private-linopt", {"std per unit norm": per_unit}, mu=mu
    )


def linear_joint(
    horizon: int, epsilon: float, delta: float, largest_weight: float
) -> PublishedNoise:
    """DP-LSVI-UCB++ with fresh noise at every release.

    Rho_true of docs/papers/linear_jdp.md#published-constants; rho is the paper's own zCDP budget
    (sqrt(L + eps) - sqrt L)^2, L = ln(1/delta); stage ranges are R_h = H - h and weights at most
    ``largest_weight``.
    """
    log = math.log(1 / _fraction(delta))
    rho = (math.sqrt(log + _positive(epsilon)) - math.sqrt(log)) ** 2
    ratios = [(horizon - h) / horizon for h in range(1, horizon + 1)]
    vectors = sum(r**2 for r in ratios) / (2 * horizon) + sum(r**4 for r in ratios) / (4 * horizon)
    true = rho * largest_weight**2 * (0.5 + vectors)
    return PublishedNoise(
        "docs/papers/linear_jdp.md#published-constants", {"rho": rho}, mu=math.sqrt(2 * true)
    )


def linear_batches(
    dimension: int, horizon: int, users: int, epsilon: float, delta: float
) -> PublishedNoise:
    """Luyo's batched algorithm with the constants of the public code.

    See docs/papers/linear_jdp.md#luyo. Its target noise carries 1/H where H is needed, so mu grows
    like H^2.
    """
    H, eps = horizon, _positive(epsilon)
    B = math.ceil((users * eps) ** 0.4 * dimension**0.6 * H**0.2)
    B0 = math.ceil(math.log2(B) + 1)
    log = math.log2(32 * H * B0 * B / _fraction(delta))
    gram = 128 / eps * math.sqrt(B * H * B0) * log
    target = 128 / (eps * H) * math.sqrt(H * B) * log
    levels = math.floor(math.log2(B)) + 1
    mu = math.sqrt(2 * H * levels / gram**2 + 4 * H * B * (H + 1) ** 2 / target**2)
    return PublishedNoise(
        "docs/papers/linear_jdp.md#luyo", {"gram std": gram, "target std": target}, mu=mu
    )


def linear_adaptive(horizon: int, epsilon: float, delta: float) -> PublishedNoise:
    """Ngo's adaptive batches with the constants of the public code.

    See docs/papers/linear_jdp.md#ngo. The target noise N(0, 6 H^2 N / rho) forgets the H stages:
    targets cost rho (H+1)^2 / (3H), on top of rho / 2 for the Gram matrices.
    """
    log = math.log(1 / _fraction(delta))
    rho = (math.sqrt(log + _positive(epsilon)) - math.sqrt(log)) ** 2
    true = rho * ((horizon + 1) ** 2 / (3 * horizon) + 0.5)
    return PublishedNoise("docs/papers/linear_jdp.md#ngo", {"rho": rho}, mu=math.sqrt(2 * true))


def control_joint(
    horizon: int, gain: float, epsilon: float, delta: float, levels: int
) -> PublishedNoise:
    """Private-OFU-RL: sigma_i = Delta_i sqrt(8 m ln(2/delta)) / eps per node of two trees.

    Delta_1 = H (1+gamma)^2, Delta_2 = H (1+gamma) are norms, not differences; with r^2 = 1 +
    gamma^2 the joint cost is at most mu = sqrt2 (q + 1/2) eps / sqrt(8 ln(2/delta)), q = r^2 /
    (1+gamma)^2 (docs/papers/lq_jdp.md#e2 and #e3).
    """
    root = math.sqrt(8 * math.log(2 / _fraction(delta))) / _positive(epsilon)
    norms = {"moment std": horizon * (1 + gain) ** 2, "target std": horizon * (1 + gain)}
    scales = {name: norm * math.sqrt(levels) * root for name, norm in norms.items()}
    q = (1 + gain**2) / (1 + gain) ** 2
    return PublishedNoise(
        "docs/papers/lq_jdp.md#private-ofu-rl", scales, mu=math.sqrt(2) * (q + 0.5) / root
    )


def _positive(epsilon: float) -> float:
    return number(epsilon, "epsilon", low=0.0, low_open=True)


def _fraction(delta: float) -> float:
    return number(delta, "delta", low=0.0, high=1.0, low_open=True, high_open=True)
