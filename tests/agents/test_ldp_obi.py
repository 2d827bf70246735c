import math

import numpy as np
import pytest

import tacit
from tacit.agents import LdpOBI
from tacit.errors import InvalidInput
from tacit.kernels.obi import Precision, obi_induction
from tacit.planners import ObiPlanner
from tacit.privacy import published
from tacit.privacy.local.additive import AdditiveLaw
from tacit.release import Release

PROBLEM = tacit.problem("random-mdp", seed=1)


def random_release(seed: int, users: int = 50, kind: str = "laplace", scale: float = 60.0):
    rng = np.random.default_rng(seed)
    blocks = {
        "reward": rng.normal(20, 60, (1, 2, 2)),
        "visits": rng.normal(50, 60, (1, 2, 2)),
        "transitions": rng.normal(20, 60, (1, 2, 2, 2)),
    }
    law = AdditiveLaw(kind, dict.fromkeys(blocks, scale), users)
    return Release(users, blocks, law, "simulated")


def specified(release, precision: Precision, printed: bool, H: int = 2):
    """Spec tabular_ldp 3.2, line by line."""
    c1, c2, c3, c4, alpha, lg = precision
    S = 2
    V = np.zeros((H + 1, S))
    Q = np.zeros((H, S, 2))
    for h in range(H, 0, -1):
        for s in range(S):
            for a in range(2):
                row = release.blocks["transitions"][0, s, a]
                dr = release.blocks["visits"][0, s, a] + alpha * c2
                dp = row.sum() + alpha * c3
                weight = H - h + 1 if printed else H - h
                if dr <= 0 or (dp <= 0 and weight > 0):
                    Q[h - 1, s, a] = H - h + 1
                    continue
                beta_r = math.sqrt(2 * lg / dr) + ((alpha + 1) * c2 + c1) / dr
                value = release.blocks["reward"][0, s, a] / dr + beta_r
                if weight:
                    beta_p = math.sqrt(14 * S * lg / dp) + (S * c4 + (alpha + 1) * c3) / dp
                    value += weight * beta_p
                if h < H:
                    value += (row / dp) @ V[h]
                Q[h - 1, s, a] = value
            V[h - 1, s] = min(H - h + 1, Q[h - 1, s].max())
    return Q, V


@pytest.mark.parametrize("printed", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_is_the_specified_recursion(seed: int, printed: bool) -> None:
    release = random_release(seed)
    small = seed % 2 == 0  # small widths, so that some denominators are not positive
    precision = Precision(
        *((1.0, 1.0, 2.0, 1.0) if small else (90.0, 90.0, 150.0, 80.0)), 2.0, 12.0
    )
    Q, V = np.empty((2, 2, 2)), np.empty((3, 2))
    blocks = release.blocks
    arguments = (blocks["reward"], blocks["visits"], blocks["transitions"], precision, printed)
    obi_induction(*arguments, Q, V)
    assert np.allclose(Q, specified(release, precision, printed)[0])
    assert np.allclose(V, specified(release, precision, printed)[1])
    plain_Q, plain_V = np.empty_like(Q), np.empty_like(V)
    obi_induction.py_func(*arguments, plain_Q, plain_V)
    assert np.array_equal(plain_Q, Q) and np.array_equal(plain_V, V)


def test_laplace_widths_are_the_published_ones() -> None:
    task = PROBLEM.task(users=1000)
    planner = ObiPlanner(alpha=2.0, beta=0.1, printed=True)
    precision = planner.precision(task, random_release(0, users=999, scale=60.0))
    d = 3 * 0.1 / (2 * math.pi**2 * 1000**2)
    one, all_ = math.log(24 / d), math.log(48 / d)
    assert precision.c1 == pytest.approx(max(math.sqrt(1000), one) * math.sqrt(8 * one) * 60)
    assert precision.c3 == pytest.approx(max(math.sqrt(2000), all_) * math.sqrt(8 * all_) * 60)
    assert precision.c4 == pytest.approx(precision.c3 / math.sqrt(2))
    assert precision.log == pytest.approx(math.log(4 * math.pi**2 * 8 * 1000**3 / 0.3))


def test_gaussian_widths_get_the_missing_root_two_unless_printed() -> None:
    task, release = PROBLEM.task(users=1000), random_release(0, users=400, kind="gaussian")
    printed = ObiPlanner(alpha=2.0, beta=0.1, printed=True).precision(task, release)
    right = ObiPlanner(alpha=2.0, beta=0.1, printed=False).precision(task, release)
    assert right.c1 == pytest.approx(math.sqrt(2) * printed.c1)
    assert right.c4 > math.sqrt(2) * printed.c4


@pytest.mark.parametrize("randomizer", ["laplace", "gaussian"])
def test_paper_mode_uses_the_published_noise_and_prints_its_true_cost(randomizer) -> None:
    delta = 0.1 if randomizer == "gaussian" else 0.0
    agent = LdpOBI(2.0, delta, randomizer, "paper")
    said = tacit.guarantee(agent, PROBLEM, 100)
    if randomizer == "laplace":
        assert said.noise["visits scale"] == published.tabular_laplace(2, 2.0).scales["scale"]
        assert said.epsilon == pytest.approx(2.0 * 10 / 12)
    else:
        assert said.delta_at_requested_epsilon == pytest.approx(0.0109, rel=0.01)
    assert said.requested_epsilon == 2.0 and "stronger than asked" in str(said)


def test_weak_published_noise_is_called_weaker() -> None:
    said = tacit.guarantee(LdpOBI(20.0, 0.1, "gaussian", "paper"), PROBLEM, 100)
    assert said.epsilon == pytest.approx(51.73, abs=0.01) and "WEAKER than asked" in str(said)
    tight = tacit.guarantee(LdpOBI(20.0, 0.1, "gaussian"), PROBLEM, 100)
    assert tight.epsilon == pytest.approx(20.0) and "asked" not in str(tight)


def test_it_learns_when_noise_is_small() -> None:
    result = tacit.simulate(PROBLEM, tacit.agent("ldp-obi", epsilon=1000.0), 3000, seeds=2)
    assert result.guarantee.simulated and result.guarantee.model == "local"
    assert result.regret_per_episode(2700, 3000).max() < 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "ldp-obi is private and needs an epsilon"),
        ({"epsilon": 0.0}, "epsilon = 0"),
        ({"epsilon": math.nan}, "epsilon = nan"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta = 1"),
        ({"epsilon": 1.0, "randomizer": "gaussian"}, "needs a delta > 0"),
        ({"epsilon": 1.0, "delta": 1e-5}, "leave delta out"),
        ({"epsilon": 1.0, "alpha": 1.0}, "alpha = 1"),
        ({"epsilon": 1.0, "calibration": "loose"}, "one of tight, paper"),
        ({"epsilon": 1.0, "randomizer": "cauchy"}, "one of laplace, gaussian"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent("ldp-obi", **parameters)


def test_stage_dependent_problems_are_refused() -> None:
    problem = tacit.problem("river-swim", inhomogeneous=True)
    with pytest.raises(InvalidInput, match="declared homogeneous"):
        tacit.guarantee(LdpOBI(1.0), problem, 10)
