"""Bounds as numbers, against formulas written down a second time and known numbers."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.agents.catalogue import AGENTS, FROM_A_LOG, agents
from tacit.bounds import mixture, regret_bound, tabular
from tacit.experiment import bind
from tacit.kernels.public.widths import paper_terms
from tacit.policies.tabular import TabularPolicy

DIMENSIONS = {"remap-walk": (4, 5), "river-swim": (50, 10)}


def obi(epsilon: float, **others: Any) -> tacit.Agent:
    return tacit.agent("ldp-obi", epsilon=epsilon, **others)


# Tables under local privacy


def appendix_d(H: int, S: int, A: int, K: int, scale: float, twice: bool = False) -> float:
    """The end of Appendix D with Laplace noise of this scale, alpha = 2 and beta = 0.1."""
    T, beta, alpha = K * H, 0.1, 2.0
    d = 3 * beta / (2 * np.pi**2 * K**2)
    one, every = np.log(6 * S * A / d), np.log(6 * S * S * A / d)
    c1 = c2 = max(np.sqrt(K), one) * np.sqrt(8 * one) * scale
    c3 = max(np.sqrt(K * S), every) * np.sqrt(8 * every) * scale
    c4 = c3 / np.sqrt(S)
    root, log = np.sqrt(2 * S * A * T) + H * S * A, np.log(14 * S * A * T / beta)
    visits = np.log(2 * T * S * A) + H
    bonuses = H * np.sqrt(46 * S * log) * root + np.sqrt(6 * log) * root
    bonuses += 2 * S * A * H * ((alpha + 1) * c3 + S * c4) * visits
    bonuses += 2 * ((alpha + 1) * c2 + c1) * S * A * visits
    return float((2 if twice else 1) * bonuses + 2 * H * np.sqrt(T * np.log(2 / beta)))


@pytest.mark.parametrize("calibration", ["paper", "corrected", "tight"])
@pytest.mark.parametrize(
    ("problem", "shape"), [("random-mdp", (2, 2, 2)), ("river-swim", (20, 6, 2))]
)
@pytest.mark.parametrize("K", [1, 1000, 10**15])
def test_theorem_5_is_computed_from_the_noise(
    problem: str, shape: tuple[int, int, int], calibration: str, K: int
) -> None:
    H, S, A = shape
    stated = tacit.bound(problem, obi(2.0, calibration=calibration), K)
    scale = (6 * H - 2 if calibration == "tight" else 6 * H) / 2.0
    assert stated.upper == pytest.approx(appendix_d(H, S, A, K, scale), rel=1e-6)
    assert f"{appendix_d(H, S, A, K, scale, twice=True):.3g}" in stated.erratum
    assert ("#e8" in stated.erratum) == (calibration == "paper")
    assert (stated.kind, stated.failure, stated.episodes) == ("proof", 0.1, K)


@pytest.mark.parametrize(
    ("problem", "epsilon", "H", "known"),
    [
        ("random-mdp", 0.2, 2, 1.0e13),
        ("random-mdp", 2.0, 2, 6.4e10),
        ("random-mdp", 20.0, 2, 3.6e8),
        ("river-swim", 1.0, 20, 3.9e15),
    ],
)
def test_where_appendix_d_begins_to_speak(
    problem: str, epsilon: float, H: int, known: float
) -> None:
    """docs/papers/tabular_ldp.md#break-even, against the trivial H K."""
    before, after = (tacit.bound(problem, obi(epsilon), int(known * f)) for f in (0.95, 1.05))
    assert before.upper > H * before.episodes and after.upper < H * after.episodes


def test_raised_noise_raises_the_bound() -> None:
    def upper(calibration: str, **others: Any) -> float:
        agent = obi(20.0, calibration=calibration, width="paper", **others)
        stated = tacit.bound("random-mdp", agent, 10_000)
        assert stated.upper is not None
        return stated.upper

    gauss = {"randomizer": "gaussian", "delta": 0.1}
    assert upper("corrected", **gauss) > upper("paper", **gauss)
    assert upper("corrected") == upper("paper") > upper("tight")


def test_tight_widths_have_no_theorem() -> None:
    stated = tacit.bound("random-mdp", obi(1.0, width="tight"), 1000)
    assert stated.upper is None and stated.kind == "none" and "tight" in stated.statement()


def test_theorem_2_has_its_conditions_and_its_constant() -> None:
    """docs/papers/tabular_ldp.md#e10: a full tree of three levels has nine leaves."""
    H, S, A, K = 8, 15, 3, 10**6
    low = math.expm1(0.1)
    assert tabular.theorem_2((H, S, A), K, 0.1) == pytest.approx(
        (H - 3) * math.sqrt(K * 27) / (64 * math.sqrt(2) * low)
    )
    free = tabular.theorem_2((H, S, A), K, math.inf)
    assert (
        free
        == tabular.theorem_2((H, S, A), K, 20.0)
        == pytest.approx((H - 3) * math.sqrt(K * 27) / (32 * math.sqrt(2)))
    )
    nothing = [((6, 15, 3), K, 1.0), ((H, 2, 3), K, 1.0), ((H, S, 1), K, 1.0), ((H, S, A), 1, 1.0)]
    assert [tabular.theorem_2(*case) for case in nothing] == [None] * 4
    river = tabular.theorem_2((20, 6, 2), K, 1.0)
    assert river == pytest.approx(17 * math.sqrt(K * 2 * 2) / (32 * math.sqrt(2)))
    assert tacit.bound("river-swim", obi(1.0), K).lower == river
    gauss = obi(0.01, randomizer="gaussian", delta=0.1)
    assert tacit.bound("river-swim", gauss, K).lower == river  # its proof is for delta 0
    assert tacit.bound("river-swim", tacit.agent("tacit-local", epsilon=0.01), K).lower > river


# Linear mixtures under local privacy


def local_terms(S: int, A: int, H: int, K: int, epsilon: float, theta: float) -> float:
    sigma = 4 * H**3 * math.sqrt(2 * math.log(2.5 * H / 0.1)) / epsilon
    d = S * S * A
    return float(paper_terms(K - 1.0, sigma, d, theta, float(H), H, 0.01)[1])


@pytest.mark.parametrize(("epsilon", "exponent"), [(1.0, 20.946), (10.0, 18.856)])
def test_where_theorem_5_2_begins_to_speak(epsilon: float, exponent: float) -> None:
    """docs/papers/mixture_ldp.md#e16, S = 3, H = 6: without the martingale, which is smaller."""
    H, d = 6, 18
    for K, speaks in ((int(10 ** (exponent - 0.01)), False), (int(10 ** (exponent + 0.01)), True)):
        radius = local_terms(3, 2, H, K, epsilon, math.sqrt(d))
        upper = mixture.theorem_5_2(H, K, d, radius, 0.01, float(H))
        assert (upper < H * K) == speaks


def test_theorem_5_2_is_computed_from_the_noise() -> None:
    problem = tacit.problem("river-swim", states=3, horizon=6)
    agent = tacit.agent("ldp-ucrl-vtr", epsilon=1.0, delta=0.1, calibration="paper")
    for K in (1000, 10**19):
        stated = tacit.bound(problem, agent, K)
        radius = local_terms(3, 2, 6, K, 1.0, math.sqrt(6))
        expected = 12 * radius * math.sqrt(36 * K * math.log1p(K))
        expected += 24 * math.sqrt(12 * K * math.log(1200))
        assert stated.upper == pytest.approx(expected, rel=1e-6)
        assert stated.vacuous and "vacuous" in stated.statement() and "#e14" in stated.erratum


def test_lower_bounds_of_mixtures() -> None:
    """docs/papers/mixture_ldp.md#e17 and #e18."""
    constant, m = math.exp(-32) / 8, math.expm1(0.1) * math.exp(0.1)
    assert constant == pytest.approx(1.6e-15, rel=0.02)
    H, d, K = 6, 5, 10**6
    assert mixture.theorem_5_6(H, K, d, 0.1) == pytest.approx(
        constant / m * H**2 / 20 * (d - 1) * math.sqrt(K / H)
    )
    assert mixture.theorem_5_6(H, K, d, 10.0) == mixture.theorem_5_6(H, K, d, math.inf)
    least = 4 * (d - 1) ** 2 * H / m**2
    assert mixture.theorem_5_6(H, int(least) - 1, d, 0.1) is None
    assert mixture.theorem_5_6(H, int(least) + 1, d, 0.1) is not None
    assert mixture.theorem_5_6(H, K, 1, 0.1) is mixture.theorem_5_6(2, K, d, 0.1) is None
    assert mixture.lemma_5_5(K, d, 0.1) == pytest.approx(constant / m * d * math.sqrt(K / 3))
    bandit = tacit.agent("ldp-bandit", epsilon=1.0, calibration="paper")
    stated = tacit.bound("linear-bandit", bandit, K)
    assert stated.lower == mixture.lemma_5_5(K, 5, math.inf) and stated.upper > stated.lower


# Linear mixtures under joint privacy


def lemma_3_1(H: int, K: int, d: tuple[int, int], epsilon: float | None) -> dict[str, Any]:
    """Radii and potentials at delta 1e-5 and alpha 0.05; no noise and lambda 1 without epsilon."""
    alpha, rows = 0.05, []
    for size, first, second in ((d[0], d[0] * H**2, math.sqrt(d[0]) * H**2), (d[1], 1, 1)):
        least = most = 1.0
        nu = 0.0
        if epsilon is not None:
            m = math.ceil(math.log2(K))
            sigma = H / epsilon * math.sqrt(32 * m * math.log(4 * H / 1e-5)) * math.sqrt(m)
            least = (
                sigma * first * (4 * math.sqrt(size) + math.sqrt(8 * math.log(8 * K * H / alpha)))
            )
            most = 3 * least
            nu = sigma * second / math.sqrt(least)
            nu *= math.sqrt(size) + math.sqrt(2 * math.log(4 * K * H / alpha))
        reward = len(rows) == 1
        mass = K / size if reward else K * H**2
        potential = size * math.log(1 + mass / least)
        radius = (0.5 if reward else H / 2) * math.sqrt(2 * math.log(H / alpha) + potential)
        rows.append((radius + math.sqrt(size * most) + nu, potential))
    return {"radii": [row[0] for row in rows], "potentials": [row[1] for row in rows]}


@pytest.mark.parametrize(
    ("problem", "epsilon", "known"),
    [
        ("remap-walk", 1.0, 1.53e12),
        ("river-swim", 1.0, 3.18e15),
        ("remap-walk", None, 8.51e6),
        ("river-swim", None, 4.81e8),
    ],
)
def test_where_theorem_4_1_begins_to_speak(
    problem: str, epsilon: float | None, known: float
) -> None:
    """docs/papers/mixture_jdp.md#e11, H = 10."""
    for K, speaks in ((int(0.99 * known), False), (int(1.01 * known), True)):
        widths = lemma_3_1(10, K, DIMENSIONS[problem], epsilon)
        assert (mixture.theorem_4_1(10, K, 0.05, **widths) < 10 * K) == speaks


@pytest.mark.parametrize(
    ("problem", "name", "parameters"),
    [
        ("remap-walk", "private-linopt-vi", {}),
        ("remap-walk", "private-linopt-po", {}),
        ("remap-walk", "private-linopt-vi", {"model": "local"}),
        ("lq-scalar", "private-ofu-rl", {}),
        ("river-swim", "ldp-obi", {}),
        ("river-swim", "pucb", {}),
    ],
)
@pytest.mark.parametrize("K", [1001, 200_000])
def test_bounds_of_more_users_than_an_agent_is_fitted_for(
    problem: str, name: str, parameters: dict[str, Any], K: int
) -> None:
    """Theorems speak of more users than sums have room for."""
    truth, agent = (
        tacit.problem(problem),
        tacit.agent(name, epsilon=1.0, calibration="paper", **parameters),
    )
    stated, later = (
        tacit.bound(truth, agent, K),
        regret_bound(truth, agent, bind(truth, agent, 1000), K),
    )
    assert later.upper == pytest.approx(stated.upper, rel=1e-9)
    assert (later.lower, later.worst) == (stated.lower, stated.worst)


def test_where_theorem_6_5_begins_to_speak() -> None:
    agent = tacit.agent("private-linopt-vi", epsilon=1.0, calibration="paper")
    before, after = (tacit.bound("remap-walk", agent, int(f * 1.53e12)) for f in (0.99, 1.01))
    assert before.upper > 10 * before.episodes and after.upper < 10 * after.episodes


@pytest.mark.parametrize("problem", DIMENSIONS)
def test_theorem_6_5_is_computed_from_the_noise(problem: str) -> None:
    K, H = 5000, 10
    sizes = {"states": 5, "horizon": H} if problem == "river-swim" else {}
    truth = tacit.problem(problem, **sizes)
    widths = lemma_3_1(H, K, DIMENSIONS[problem], 1.0)
    bonuses = 2 * widths["radii"][0] * math.sqrt(widths["potentials"][0])
    bonuses += 2 * H * widths["radii"][1] * math.sqrt(widths["potentials"][1])
    bonuses *= H * math.sqrt(2 * K)
    vi = bonuses + H * math.sqrt(2 * K * H * math.log(20))
    po = bonuses + 4 * H * math.sqrt(2 * K * H * math.log(20))
    po += math.sqrt(2 * H**3 * K * H * math.log(truth.sizes["actions"]))
    for name, expected in (("private-linopt-vi", vi), ("private-linopt-po", po)):
        agent = tacit.agent(name, epsilon=1.0, calibration="paper")
        stated = tacit.bound(truth, agent, K)
        assert stated.upper == pytest.approx(expected, rel=1e-9)
        assert stated.failure == pytest.approx(0.2) and stated.vacuous and "#e8" in stated.erratum
    known = tacit.bound(truth, agent, K, reveal=["reward"])
    assert known.upper < stated.upper


# Linear control


def test_theorem_3_is_computed_from_the_noise() -> None:
    """docs/papers/lq_jdp.md#private-ofu-rl on the double integrator, at D = C H."""
    H, n, D, gain, C_w, C, K, alpha = 20, 2, 3, 0.6, 0.07, 1.0, 3000, 0.05
    m = math.ceil(math.log2(K))
    sigma = H * (1 + gain) * math.sqrt(8 * m * math.log(2e5)) / 5.0
    least = sigma * (1 + gain) * math.sqrt(m)
    least *= 4 * math.sqrt(D) + math.sqrt(8 * math.log(4 * K / alpha))
    nu = (
        sigma
        * math.sqrt(m / least)
        * (math.sqrt(2 * n * D) + math.sqrt(4 * math.log(2 * K / alpha)))
    )
    for name, lam, rest in (
        ("private-ofu-rl", least, math.sqrt(3 * least) + nu),
        ("ofu-rl", 1.0, 1.0),
    ):
        psi = D * math.log(1 + H * K * (1 + gain) ** 2 / (D * lam))
        radius = C_w * math.sqrt(2 * math.log(2 / alpha) + n * psi) + rest
        expected = 4 * (C * H) ** 2 * (1 + gain) ** 2 * H * math.sqrt(K) * radius * math.sqrt(psi)
        expected += (H * (1 + gain**2) * C + 2 * C * H) * math.sqrt(2 * K * H * math.log(2 / alpha))
        others = {"epsilon": 5.0, "calibration": "paper"} if name == "private-ofu-rl" else {}
        stated = tacit.bound("lq-double-integrator", tacit.agent(name, **others), K)
        assert stated.upper == pytest.approx(expected, rel=1e-6)
        assert (
            not stated.worst_exact
            and stated.vacuous
            and "no policy loses more" in stated.statement()
        )
        assert stated.worst == pytest.approx(K * (20 * (1 + 0.36 * 0.5) - 2.0163053943), rel=1e-9)


# All of them


PROBLEMS = {
    "ldp-bandit": "linear-bandit",
    "policy-search": "cart-pole",
    "tacit-search": "cart-pole",
}
PROBLEMS |= {
    name: "synthetic-linear" for name in AGENTS if "lsvi" in name or name == "tacit-linear"
}
PROBLEMS |= {
    name: "lq-scalar"
    for name in AGENTS
    if "ofu" in name or name in ("tacit-control", "certainty-equivalence", "thompson", "do-nothing")
}


@pytest.mark.parametrize("name", [*AGENTS, *FROM_A_LOG])
def test_every_agent_answers(name: str) -> None:
    """With a number, or with a sentence that says why there is none."""
    parameters = agents.entry(name).parameters
    chosen = {"epsilon": 1.0} if "epsilon" in parameters else {}
    ways = (None, "paper", "tight") if "calibration" in parameters else (None,)
    for way in ways:
        agent = tacit.agent(name, **chosen, **({} if way is None else {"calibration": way}))
        stated = tacit.bound(PROBLEMS.get(name, "river-swim"), agent, 2000)
        assert stated.theorem and stated.statement().startswith("Regret: ")
        assert (
            (stated.upper is None) == (stated.kind == "none") == ("no bound" in stated.statement())
        )
        assert stated.upper is None or 0 < stated.upper < math.inf
        assert stated.worst > 0 and ("constant 1" in stated.statement()) == (stated.kind == "order")
        assert json.loads(json.dumps(stated.to_json()))["vacuous"] == stated.vacuous
        assert name.startswith("tacit-") <= (stated.upper is None)


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(
        ["ldp-obi", "private-linopt-vi", "private-ofu-rl", "pucb", "dp-lsvi-ucb++"]
    ),
    K=st.integers(100, 10**5),
    epsilon=st.floats(0.05, 20.0),
    more=st.floats(1.01, 8.0),
)
def test_bounds_grow_with_episodes_and_fall_with_epsilon(
    name: str, K: int, epsilon: float, more: float
) -> None:
    problem = PROBLEMS.get(name, "river-swim")

    def stated(K: int, epsilon: float) -> tacit.RegretBound:
        return tacit.bound(problem, tacit.agent(name, epsilon=epsilon, calibration="paper"), K)

    here, later, looser = (
        stated(K, epsilon),
        stated(int(K * more), epsilon),
        stated(K, epsilon * more),
    )
    assert here.upper < later.upper
    if name in (
        "ldp-obi",
        "pucb",
        "dp-lsvi-ucb++",
    ):  # a larger ridge makes others' logarithms small
        assert here.upper > looser.upper
    if here.lower is not None and later.lower is not None:
        assert here.lower <= later.lower
    if here.lower is not None and looser.lower is not None:
        assert here.lower >= looser.lower


def test_the_worst_policy_is_the_worst() -> None:
    problem = tacit.problem("random-mdp", seed=3)
    tables = itertools.product((0, 1), repeat=4)
    policies = [TabularPolicy(np.array(table).reshape(2, 2)) for table in tables]
    least = min(problem.value(policy) for policy in policies)
    assert problem.worst_value() == pytest.approx(least)
    stated = tacit.bound(problem, "psrl", 100)
    assert (
        stated.worst == pytest.approx(100 * (problem.optimal_value() - least))
        and stated.worst_exact
    )
