import math
from dataclasses import replace

import numpy as np
import pytest

import tacit
from contracts.privatizer import no_questions, streams
from dense import dense
from tacit.agents import LdpOBI, paper_constants
from tacit.errors import InvalidInput
from tacit.kernels.public.obi import (
    BERNSTEIN,
    CORRECTED,
    KINDS,
    PAPER,
    CellNoise,
    Precision,
    obi_precision,
)
from tacit.planners.obi import cell_noise
from tacit.privacy import Query, ZeroNoise
from tacit.privacy.base import BlockLaw
from tacit.release import Release

PROBLEM = tacit.problem("random-mdp", seed=1)


def random_release(seed: int, users: int = 50, kind: str = "laplace", scale: float = 60.0):
    rng = np.random.default_rng(seed)
    blocks = {
        "reward": rng.normal(20, 60, (1, 2, 2)),
        "visits": rng.normal(50, 60, (1, 2, 2)),
        "transitions": rng.normal(20, 60, (1, 2, 2, 2)),
    }
    variance = np.asarray(users * 2.0 * scale**2)
    law = BlockLaw(kind, dict.fromkeys(blocks, scale), dict.fromkeys(blocks, variance))
    return Release(users, blocks, law, "simulated")


def specified(release, precision: Precision, printed: bool, H: int = 2):
    """docs/papers/tabular_ldp.md#ldp-obi, line by line."""
    c1, c2, c3, c4, alpha, lg, least = precision
    S = 2
    V = np.zeros((H + 1, S))
    Q = np.zeros((H, S, 2))
    for h in range(H, 0, -1):
        for s in range(S):
            for a in range(2):
                row = release.blocks["transitions"][0, s, a]
                dr = max(release.blocks["visits"][0, s, a] + alpha * c2, least)
                dp = max(row.sum() + alpha * c3, least)
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
        *((1.0, 1.0, 2.0, 1.0) if small else (90.0, 90.0, 150.0, 80.0)), 2.0, 12.0, -math.inf
    )
    Q, V = np.empty((2, 2, 2)), np.empty((3, 2))
    blocks = release.blocks
    arguments = (blocks["reward"], blocks["visits"], blocks["transitions"], precision, printed)
    dense.obi_induction(*arguments, Q, V)
    assert np.allclose(Q, specified(release, precision, printed)[0])
    assert np.allclose(V, specified(release, precision, printed)[1])
    plain_Q, plain_V = np.empty_like(Q), np.empty_like(V)
    dense.obi_induction.py_func(*arguments, plain_Q, plain_V)
    assert np.array_equal(plain_Q, Q) and np.array_equal(plain_V, V)


def test_without_noise_denominators_are_at_least_one() -> None:
    release = random_release(3, scale=1.0)
    precision = obi_precision(CellNoise(KINDS["none"], 0.0, 0.0), 9, (2, 2, 2), 1.0, 0.1, PAPER)
    assert precision[:4] == (0.0, 0.0, 0.0, 0.0) and precision.least == 1.0
    Q, V = np.empty((2, 2, 2)), np.empty((3, 2))
    blocks = release.blocks
    assert blocks["visits"].min() < 0.0
    dense.obi_induction(
        blocks["reward"], blocks["visits"], blocks["transitions"], precision, True, Q, V
    )
    assert np.allclose(Q, specified(release, precision, True)[0])


def widths(kind: str, scale: float, n: int, printed: bool, next_scale: float | None = None):
    noise = CellNoise(KINDS[kind], scale, scale if next_scale is None else next_scale)
    return obi_precision(noise, n, (2, 2, 2), 2.0, 0.1, PAPER if printed else CORRECTED)


K = 1000
D = 3 * 0.1 / (2 * math.pi**2 * K**2)
ONE, EVERY = math.log(24 / D), math.log(48 / D)


@pytest.mark.parametrize("printed", [True, False])
def test_laplace_widths_are_the_published_ones(printed: bool) -> None:
    precision = widths("laplace", 60.0, K - 1, printed)
    assert precision.c1 == pytest.approx(max(math.sqrt(K), ONE) * math.sqrt(8 * ONE) * 60)
    assert precision.c3 == pytest.approx(max(math.sqrt(2 * K), EVERY) * math.sqrt(8 * EVERY) * 60)
    assert precision.c4 == pytest.approx(precision.c3 / math.sqrt(2))
    assert precision.log == pytest.approx(math.log(4 * math.pi**2 * 8 * K**3 / 0.3))


def test_gaussian_widths_get_the_missing_root_two_unless_printed() -> None:
    printed, right = (widths("gaussian", 60.0, 400, printed) for printed in (True, False))
    assert right.c1 == pytest.approx(math.sqrt(2) * printed.c1)
    assert right.c4 > math.sqrt(2) * printed.c4


@pytest.mark.parametrize("per_bit", [0.01, 0.5, math.log(2), 3.0])
def test_response_widths(per_bit: float) -> None:
    """As printed w = (2e-1)/(e-1); by docs/papers/tabular_ldp.md#e5 it is (e+1)/(e-1), and 8SA."""
    e, n = math.exp(per_bit), K - 1
    for printed, w, log in (
        (True, (2 * e - 1) / (e - 1), math.log(4 * 4 / D)),
        (False, (e + 1) / (e - 1), math.log(8 * 4 / D)),
    ):
        precision = widths("randomized-response", (e + 1) / (e - 1), n, printed)
        one = w * math.sqrt(n * 2 / 2 * log)
        assert precision.c1 == precision.c2 == pytest.approx(one)
        assert precision.c3 == pytest.approx(2 * one)
        assert precision.c4 == pytest.approx(w * math.sqrt(n * 2 / 2 * (log + math.log(2))))
    assert widths("randomized-response", 5.0, 0, printed)[:4] == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("per_bit", [0.01, 1.0, 3.0])
def test_bernstein_widths_of_bits(per_bit: float) -> None:
    """(sqrt((k-1) H p (1 - p/2) L) + 2L/3) / (1 - p), p = 2 / (e + 1)."""
    e, n, H = math.exp(per_bit), K - 1, 2
    p = 2 / (e + 1)
    noise = CellNoise(KINDS["randomized-response"], (e + 1) / (e - 1), (e + 1) / (e - 1))
    precision = obi_precision(noise, n, (2, 2, H), 2.0, 0.1, BERNSTEIN)
    for found, log in ((precision.c1, ONE), (precision.c4, EVERY), (precision.c3 / 2, EVERY)):
        stated = math.sqrt(n * H * p * (1 - p / 2) * log) + 2 * log / 3
        assert found == pytest.approx(stated / (1 - p), rel=1e-9)


def test_published_response_widths_are_too_narrow_for_small_epsilon() -> None:
    """At epsilon 0.2 and k = 1e6 it is 4.26 deviations (docs/papers/tabular_ldp.md#e5)."""
    law = LdpOBI(0.2, randomizer="randomized-response", calibration="paper")
    bound = law.bind(PROBLEM.task(users=10**6))
    precision = obi_precision(
        cell_noise(bound.privatizer.law(1)), 10**6 - 1, (2, 2, 2), 2.0, 0.1, PAPER
    )
    std = math.sqrt(bound.privatizer.law(10**6 - 1).variance("visits"))
    assert precision.c2 / std == pytest.approx(4.26, abs=0.01)


def test_bounded_widths_and_their_zero_before_the_first_report() -> None:
    precision = widths("bounded", 10.0, K - 1, True, 15.0)
    assert precision.c1 == pytest.approx(10 * math.sqrt(2 * (K - 1) * ONE))
    assert precision.c4 == pytest.approx(15 * math.sqrt(2 * (K - 1) * EVERY))
    assert precision.c3 == pytest.approx(math.sqrt(2) * precision.c4)
    assert widths("bounded", 10.0, 0, True)[:4] == (0.0, 0.0, 0.0, 0.0)
    bound = LdpOBI(2.0, 0.1, "bounded").bind(PROBLEM.task(users=100))
    first = {"first": set(), "second": set()}
    for seed in range(40):
        release = bound.privatizer.release(bound.privatizer.init(), Query(0), ZeroNoise())
        policy = bound.planner.plan(bound.task, release, no_questions, None, streams(seed)).policy
        first["first"].add(int(policy.actions[0, 0]))
        first["second"].add(int(policy.actions[1, 1]))
    assert first == {"first": {0, 1}, "second": {0, 1}}  # all ties: nothing is known


def test_noise_of_an_unknown_law_has_no_widths() -> None:
    release = random_release(0)
    object.__setattr__(release.law, "name", "cauchy")
    with pytest.raises(InvalidInput, match="no widths for 'cauchy'"):
        cell_noise(release.law)


@pytest.mark.parametrize(
    ("epsilon", "one", "tenth"),
    [(0.2, 1.9e8, 3.3e10), (2.0, 1.7e6, 3.1e8), (20.0, 3.4e4, 5.6e6)],
)
def test_break_even_of_the_published_bonus(epsilon: float, one: float, tenth: float) -> None:
    """When the bonus of step 1 is below 1, and 0.1 (docs/papers/tabular_ldp.md#break-even)."""
    agent = LdpOBI(epsilon, calibration="paper")
    task = PROBLEM.task(users=10)
    bound = agent.bind(task)
    for target, expected in ((1.0, one), (0.1, tenth)):
        found = bound.planner.break_even(task, bound.privatizer.law(1), target)
        assert found == pytest.approx(expected, rel=0.03)
    assert f"below 1 at episode {one:.1e}"[:21] in agent.notes(task)[0]


def test_break_even_of_river_swim_and_of_what_never_ends() -> None:
    task = tacit.problem("river-swim").task(users=10)
    bound = LdpOBI(1.0, calibration="paper").bind(task)
    found = bound.planner.break_even(task, bound.privatizer.law(1), 1.0)
    assert found == pytest.approx(1.2e9, rel=0.03)
    task = tacit.problem("random-mdp", horizon=1).task(users=10)
    # the last-step bonus stays near 2.2: docs/papers/tabular_ldp.md#e8
    bound = LdpOBI(1.0, calibration="paper").bind(task)
    assert bound.planner.break_even(task, bound.privatizer.law(1), 1.0) == math.inf
    assert "below 1 never" in LdpOBI(1.0, calibration="paper").notes(task)[0]


@pytest.mark.parametrize("randomizer", ["laplace", "randomized-response", "gaussian", "bounded"])
def test_better_widths_break_even_earlier(randomizer: str) -> None:
    task, delta = PROBLEM.task(users=10), 0.1 if randomizer in ("gaussian", "bounded") else 0.0
    found = []
    for width in ("paper", "corrected", "tight"):
        bound = LdpOBI(1.0, delta, randomizer, width=width).bind(task)
        found.append(bound.planner.break_even(task, bound.privatizer.law(1), 1.0))
    published_, corrected, tight = found
    assert tight < 0.2 * corrected
    if randomizer in ("laplace", "bounded"):  # the other two corrections widen
        assert corrected < published_


def test_the_width_follows_the_calibration_and_is_reported() -> None:
    assert LdpOBI(1.0).parameters()["width"] == "corrected"
    assert LdpOBI(1.0, calibration="paper").parameters()["width"] == "paper"
    chosen = LdpOBI(1.0, calibration="paper", width="tight")
    assert (
        chosen.parameters()["width"] == "tight"
        and "tight widths" in chosen.notes(PROBLEM.task(users=5))[0]
    )


@pytest.mark.parametrize("randomizer", ["laplace", "gaussian", "randomized-response", "bounded"])
def test_paper_mode_uses_the_published_noise_and_prints_its_true_cost(randomizer) -> None:
    delta = 0.1 if randomizer in ("gaussian", "bounded") else 0.0
    agent = LdpOBI(2.0, delta, randomizer, "paper")
    said = tacit.guarantee(PROBLEM, agent, 100)
    if randomizer == "laplace":
        assert said.noise["visits scale"] == paper_constants.tabular_laplace(2, 2.0)
        assert said.epsilon == pytest.approx(2.0 * 10 / 12)
    elif randomizer == "randomized-response":
        assert said.noise["epsilon per bit"] == pytest.approx(2.0 / 12, rel=1e-9)
        assert said.epsilon == pytest.approx(2.0 * 10 / 12) and said.delta == 0.0
    elif randomizer == "gaussian":
        assert said.delta_at_requested_epsilon == pytest.approx(0.0109, rel=0.01)
    else:
        assert said.noise["visits radius"] == pytest.approx(9.105, rel=1e-3)
        assert said.delta_at_requested_epsilon == pytest.approx(0.276, rel=0.01)
    verdict = "WEAKER" if randomizer == "bounded" else "stronger"
    assert said.requested_epsilon == 2.0 and f"{verdict} than asked" in str(said)


def test_weak_published_noise_is_called_weaker() -> None:
    said = tacit.guarantee(PROBLEM, LdpOBI(20.0, 0.1, "gaussian", "paper"), 100)
    assert said.epsilon == pytest.approx(51.73, abs=0.01) and "WEAKER than asked" in str(said)
    tight = tacit.guarantee(PROBLEM, LdpOBI(20.0, 0.1, "gaussian", "tight"), 100)
    assert tight.epsilon == pytest.approx(20.0) and "asked" not in str(tight)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, 20.0])
@pytest.mark.parametrize("randomizer", ["laplace", "gaussian", "randomized-response", "bounded"])
def test_corrected_noise_is_the_published_one_unless_that_falls_short(randomizer, epsilon) -> None:
    """Raised to the least that is enough, and said so; else equal in bits."""
    delta = 0.1 if randomizer in ("gaussian", "bounded") else 0.0
    task = PROBLEM.task(users=100)
    agents = {way: LdpOBI(epsilon, delta, randomizer, way) for way in ("paper", "corrected")}
    stated = {way: agent.bind(task).guarantee for way, agent in agents.items()}
    enough = stated["paper"].delta_at_requested_epsilon <= delta
    assert (randomizer, epsilon, enough) not in [("gaussian", 20.0, True), ("bounded", 2.0, True)]
    notes = " ".join(agents["corrected"].notes(task))
    assert ("times the published noise" in notes) == (not enough) and "#e8" in notes
    if enough:
        assert stated["corrected"] == stated["paper"]
        return
    assert stated["corrected"].delta_at_requested_epsilon <= delta * (1 + 1e-9)
    tight = LdpOBI(epsilon, delta, randomizer, "tight").bind(task).guarantee
    assert stated["corrected"].noise == tight.noise


def test_the_constant_of_the_proposition() -> None:
    """c = 4 ln(24 / delta), 4.7 times that of the proof at delta 0.1: enough also at epsilon 20."""
    agent = LdpOBI(20.0, 0.1, "gaussian", constant="proposition")
    said = agent.bind(PROBLEM.task(users=10)).guarantee
    assert said.noise["visits std"] == pytest.approx(4 * math.log(240) * 2 / 20, rel=1e-12)
    assert said.delta_at_requested_epsilon < 0.1
    for options in ({"randomizer": "laplace"}, {"calibration": "tight"}):
        given = {"epsilon": 1.0, "delta": 0.1, "randomizer": "gaussian", **options}
        if options.get("randomizer"):
            given["delta"] = 0.0
        with pytest.raises(InvalidInput, match="leave constant out"):
            tacit.agent("ldp-obi", constant="proposition", **given)


def test_what_people_who_come_back_cost_is_corrected_too() -> None:
    for randomizer, delta in (("laplace", 0.0), ("randomized-response", 0.0), ("gaussian", 1e-5)):
        task = replace(PROBLEM.task(users=100), participations=3)
        said = LdpOBI(1.0, delta, randomizer).bind(task).guarantee
        assert 0.9 < said.epsilon <= 1.0 + 1e-9
        assert LdpOBI(1.0, delta, randomizer, "paper").bind(task).guarantee.epsilon > 1.5


@pytest.mark.parametrize("width", ["corrected", "tight"])
def test_it_learns_when_noise_is_small(width: str) -> None:
    agent = tacit.agent("ldp-obi", epsilon=1000.0, width=width)
    result = tacit.simulate(PROBLEM, agent, 3000, runs=2)
    assert result.guarantee.simulated and result.guarantee.model == "local"
    assert result.regret_per_episode(2700, 3000).max() < 0.05


@pytest.mark.parametrize("randomizer", ["laplace", "gaussian", "randomized-response", "bounded"])
def test_less_privacy_is_less_regret(randomizer: str) -> None:
    """The order in epsilon on two problems, deterministic seeds."""
    delta = 0.1 if randomizer in ("gaussian", "bounded") else 0.0
    regret = []
    for epsilon in (0.2, 2.0, 20.0):
        agent = LdpOBI(epsilon, delta, randomizer, "tight")
        runs = [
            tacit.simulate(tacit.problem("random-mdp", seed=seed), agent, 100_000).regret[0, -1]
            for seed in (2, 3)
        ]
        regret.append(sum(runs))
    assert regret[0] > regret[1] > regret[2]


def test_tight_widths_learn_faster() -> None:
    regret = {
        width: tacit.simulate(PROBLEM, LdpOBI(20.0, width=width), 100000, runs=2).regret[:, -1]
        for width in ("corrected", "tight")
    }
    assert (regret["tight"] < 0.8 * regret["corrected"]).all()


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
        ({"epsilon": 1.0, "calibration": "loose"}, "one of corrected, paper, tight"),
        ({"epsilon": 1.0, "randomizer": "cauchy"}, "one of laplace, gaussian"),
        ({"epsilon": 1.0, "randomizer": "bounded"}, "bounded noise needs a delta > 0"),
        (
            {"epsilon": 1.0, "delta": 0.1, "randomizer": "randomized-response"},
            "randomized-response is purely epsilon-private",
        ),
        ({"epsilon": 1.0, "width": "loose"}, "width = 'loose'"),
        ({"epsilon": 1.0, "beta": 1.0}, "beta = 1"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent("ldp-obi", **parameters)


def test_stage_dependent_problems_are_refused() -> None:
    problem = tacit.problem("river-swim", inhomogeneous=True)
    with pytest.raises(InvalidInput, match="declared homogeneous"):
        tacit.guarantee(problem, LdpOBI(1.0), 10)
