"""PUCB, Private-UCB-VI and -PO, DP-UCBVI, derived from their pages by hand, and what they give.

docs/papers/pucb.md, docs/papers/private_ucb.md, docs/papers/dp_ucbvi.md. Nothing here calls what it
checks: scales, bounds and bonuses are written down from the formulas.
"""

import math

import numpy as np
import pytest

import tacit
from tacit.experiment import bind

NAMES = ("pucb", "private-ucb-vi", "private-ucb-po", "dp-ucbvi")
SIZES = [(3, 4, 60, 1.0), (5, 8, 1000, 0.3), (6, 20, 100_000, 8.0)]
BETA = 0.1


def problem(S: int, H: int):
    return tacit.problem("river-swim", states=S, horizon=H)


def scales(H: int, K: int, epsilon: float, releases: int) -> tuple[float, float]:
    """3 H m / eps, and (6H - 2) nodes / eps: what was published, and what is needed."""
    published = 3 * H * math.ceil(math.log2(K)) / epsilon
    return published, (6 * H - 2) * (math.floor(math.log2(releases)) + 1) / epsilon


def noise_bound(b: float, releases: int, tables: float) -> float:
    """sqrt(2 v x) + b x, v of the longest sum of Laplace draws, x for all cells and releases."""
    most = max(bin(n).count("1") for n in range(1, releases + 1))
    v, x = 2 * b**2 * most, math.log(2 * releases * tables / BETA)
    return math.sqrt(2 * v * x) + b * x


def bonuses(name: str, S: int, H: int, K: int, epsilon: float, b: float) -> dict[str, float]:
    """What the page says of the bonus, by the names of the kernel's constants."""
    A, factor = 2, b / (3 * H * math.ceil(math.log2(K)) / epsilon)
    few, many = (noise_bound(b, K - 1, S * A * H * n) for n in (1, S))
    if name == "pucb":
        E = 3 / epsilon * H * math.log((2 * S * A * H + S**2 * A * H) / BETA)
        E *= math.log(K) ** 2.5 * factor
        root = (H + 1) * math.sqrt(2 * math.log(4 * K * H / BETA))
        noise = 1 + S * H
        return {
            "root": root,
            "back": E,
            "one": 3 * noise * E,
            "two": 2 * noise * E**2,
            "least": 2 * E,
        }
    if name.startswith("private"):
        L = math.sqrt(2 * math.log(6 * S * A * K * H / BETA))
        one = 3 * few + H * (S * many + 2 * few)
        return {"shift": few, "root": L + H * L, "one": one}
    E, log = 4 * max(few, many), math.log(30 * H * S * A * K / BETA)
    m = 1000
    return {
        "root": math.sqrt(2 * log),
        "one": 20 * H * S * E * log,
        "spread": 2 * math.sqrt(log),
        # 4 sqrt(I / N) sqrt(min(H^2, .)) is 2 sqrt(I / N) sqrt(4 min(H^2, .))
        "most": math.sqrt(4 * H**2),
        "next": 4 * m**2 * H**3 * S * A * log**2,
        "after": 4 * m**2 * (H**4 * S**4 * A**2 * E**2 * log**4 + H**6 * S**4 * A**2 * log**4),
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("calibration", ["paper", "corrected"])
@pytest.mark.parametrize(("S", "H", "K", "epsilon"), SIZES)
def test_noise_bonus_and_times_are_those_of_the_page(name, calibration, S, H, K, epsilon) -> None:
    bound = bind(problem(S, H), tacit.agent(name, epsilon=epsilon, calibration=calibration), K)
    published, needed = scales(H, K, epsilon, K - 1)
    assert needed > published
    b = published if calibration == "paper" else needed
    assert bound.privatizer.scale == pytest.approx(b, rel=1e-9)
    assert bound.privatizer.kind == "laplace" and bound.statistic.stages == H
    assert [bound.schedule(served) for served in (0, 1, 17, K - 1)] == [1, 1, 1, 1]
    used = bound.planner.bonus(bound.task, bound.privatizer.law(1))._asdict()
    for constant, value in bonuses(name, S, H, K, epsilon, b).items():
        assert used[constant] == pytest.approx(value, rel=1e-9), constant
    assert bound.planner.paper  # values are capped at H


def test_policy_optimisation_takes_the_step_of_the_page() -> None:
    for calibration in ("paper", "corrected"):
        agent = tacit.agent("private-ucb-po", epsilon=1.0, calibration=calibration)
        assert bind(problem(3, 4), agent, 60).planner.rate == "paper"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize(("S", "H"), [(3, 1), (3, 4), (6, 20)])
@pytest.mark.parametrize(("K", "every"), [(2, 1), (60, 1), (1000, 300), (100_000, 7)])
def test_corrected_gives_what_is_asked_for(name, epsilon, S, H, K, every) -> None:
    """And is the paper's in every digit where its noise is enough already."""
    parameters = {"epsilon": epsilon, "every": every}
    task = problem(S, H).task(K)
    corrected, paper = (
        tacit.agent(name, calibration=word, **parameters) for word in ("corrected", "paper")
    )
    bound, printed = corrected.bind(task), paper.bind(task)
    assert bound.guarantee.epsilon <= epsilon and bound.guarantee.delta == 0.0
    published, needed = scales(H, K, epsilon, max(1, math.ceil(K / every) - 1))
    note = "times the published noise"
    assert (note in " ".join(corrected.notes(task))) == (needed > published)
    if needed > published:
        assert bound.guarantee.epsilon == pytest.approx(epsilon, rel=1e-9)
        assert printed.guarantee.epsilon > epsilon
    else:
        assert bound.guarantee == printed.guarantee
        assert bound.privatizer.scale == printed.privatizer.scale
        law = printed.privatizer.law(1)
        assert bound.planner.bonus(task, law) == printed.planner.bonus(task, law)


@pytest.mark.parametrize("name", NAMES)
def test_where_nothing_is_raised_runs_are_the_same_to_the_last_bit(name) -> None:
    runs = {}
    for every in (30, 1):
        for calibration in ("corrected", "paper"):
            parameters = {"every": every, "calibration": calibration, "bonus_scale": 0.0}
            agent = tacit.agent(name, epsilon=200.0, **parameters)
            runs[every, calibration] = tacit.simulate(problem(3, 5), agent, 90, 2, seed=4).reward
    assert np.array_equal(runs[30, "corrected"], runs[30, "paper"])
    assert not np.array_equal(runs[1, "corrected"], runs[1, "paper"])  # raised: other noise
