"""Published noise against what it truly gives, for every mechanism of the five papers.

``factor`` is how much larger the published noise is than the least noise with the same joint
accounting and the guarantee that was asked for: above 1 it wastes utility, below 1 it breaks its
claim. Run: python benchmarks/calibration.py
"""

from __future__ import annotations

import math

from tacit.privacy import published
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.published import PublishedNoise

CASES: list[tuple[str, float, float, PublishedNoise]] = []
for epsilon in (0.1, 1.0, 10.0):
    delta = 1e-5
    CASES += [
        ("tabular laplace H=2", epsilon, 0.0, published.tabular_laplace(2, epsilon)),
        ("tabular laplace H=20", epsilon, 0.0, published.tabular_laplace(20, epsilon)),
        ("tabular response H=20", epsilon, 0.0, published.tabular_response(20, epsilon)),
        ("tabular psrl H=20", epsilon, 0.0, published.tabular_psrl(20, epsilon)),
        ("tabular gaussian H=2", epsilon, delta, published.tabular_gaussian(2, epsilon, delta)),
        ("tabular gaussian H=20", epsilon, delta, published.tabular_gaussian(20, epsilon, delta)),
        (
            "mixture local, S=3 H=6",
            epsilon,
            delta,
            published.mixture_local(
                6, epsilon, delta, values=[1.0] * 5, states=3, rewards_over_horizon=True
            ),
        ),
        ("mixture joint H=10", epsilon, delta, published.mixture_joint(10, epsilon, delta, 14)),
        ("linear joint H=20", epsilon, delta, published.linear_joint(20, epsilon, delta, 1.0)),
        (
            "linear batches H=30",
            epsilon,
            delta,
            published.linear_batches(10, 30, 5000, epsilon, delta),
        ),
        ("linear adaptive H=20", epsilon, delta, published.linear_adaptive(20, epsilon, delta)),
        ("control gamma=.6", epsilon, delta, published.control_joint(10, 0.6, epsilon, delta, 14)),
    ]


def factor(noise: PublishedNoise, epsilon: float, delta: float) -> float:
    """Published scale over the least scale."""
    if noise.mu is None:
        return epsilon / noise.true_epsilon(0.0)
    return gaussian_mu(epsilon, delta) / noise.mu


def main() -> None:
    """Print the table."""
    print(f"{'mechanism':26}{'asked eps':>10}{'delta':>9}{'true eps':>11}{'factor':>9}")
    for name, epsilon, delta, noise in CASES:
        true = noise.true_epsilon(delta)
        ratio = factor(noise, epsilon, delta)
        verdict = "  broken" if true > epsilon * (1 + 1e-9) else ""
        shown = f"{true:.4g}" if math.isfinite(true) else "inf"
        print(f"{name:26}{epsilon:>10g}{delta:>9g}{shown:>11}{ratio:>9.3g}{verdict}")


if __name__ == "__main__":
    main()
