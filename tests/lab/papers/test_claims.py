"""Claims are judged right on curves whose regrets are known, also where they fail."""

from dataclasses import replace

import numpy as np
import pytest

from papers.made_up import evidence, guarantee, runs
from tacit.agents.catalogue import make_agent
from tacit.errors import InvalidInput, UnknownName
from tacit.problems.catalogue import make_problem
from tacit.util.intervals import Interval
from tacit_lab.figures.figure import Claim, Evidence, Measured, Measurement, Size
from tacit_lab.figures.judge import growth, judged, ratio, together
from tacit_lab.papers import lq_jdp
from tacit_lab.papers.tabular_ldp import (
    learners,
    lower_bound,
    regret,
    reports,
    table_1,
)

SAME = [100.0, 120.0, 90.0, 110.0]


def times(factor: float) -> list[float]:
    return [factor * x for x in SAME]


def test_ratios_are_paired_and_say_when_they_are_not_decided() -> None:
    a, b = runs("a", [10, 200, 3000, 40]), runs("b", [20, 400, 6000, 80])
    assert ratio(a, b).value == pytest.approx(0.5) and ratio(a, b).below(1.0) is True
    assert ratio(b, a).below(1.0) is False
    mixed = runs("c", [5, 400, 1500, 80])
    assert ratio(mixed, a).below(1.0) is None
    one = ratio(runs("d", [1.0]), runs("e", [2.0]))
    assert one.value == pytest.approx(0.5) and one.below(1.0) is None
    assert np.isfinite(ratio(runs("f", [0.0, 0.0]), runs("g", [1.0, 1.0])).value)


def test_verdicts_combine() -> None:
    assert together([True, True]) is True and together([True, None]) is None
    assert together([None, False]) is False
    assert [judged("c", "e", {}, holds, "no").why for holds in (True, False)] == ["", "no"]
    assert judged("c", "e", {}, [True, None], "no", "open").why == "open"
    assert "not decided" in judged("c", "e", {}, None, "no").why
    assert judged("c", "e", {"x": Interval(2.0, 1.0, 3.0), "y": 1.0}, True, "no").measured == {
        "x": 2.0,
        "y": 1.0,
    }


def test_a_claim_that_does_not_hold_must_say_why() -> None:
    for holds in (False, None):
        with pytest.raises(InvalidInput, match="must say why"):
            Claim("c", "e", {}, holds)
    assert Claim("c", "e", {}, True).why == ""


def test_growth_is_the_exponent() -> None:
    assert growth(runs("a", SAME, power=0.5)).value == pytest.approx(0.5)
    assert runs("a", SAME, power=0.5).at(999) == pytest.approx(np.mean(SAME) * 0.1**0.5)
    assert growth(runs("zero", [0.0])).value == 0.0
    with pytest.raises(UnknownName, match="did you mean 'laplace@2'"):
        evidence(runs("laplace@2", SAME)).curve("laplce@2")


@pytest.mark.parametrize(
    ("finals", "holds"),
    [((9, 3, 1), True), ((9, 1, 3), False), ((1, 3, 9), False), ((3, 3, 1), None)],
)
def test_the_order_in_epsilon(finals: tuple[float, ...], holds: bool | None) -> None:
    wiggle = [1.0, 1.01, 0.99, 1.0]
    found = [
        runs(
            f"psrl@{e:g}", [f * x * (w if e == 2 else 1) for x, w in zip(SAME, wiggle, strict=True)]
        )
        for e, f in zip(learners.EPSILONS, finals, strict=True)
    ]
    claim = regret.smaller_epsilon_costs_more("psrl", "LDP-PSRL")(evidence(*found))
    assert claim.holds is holds and bool(claim.why) is (holds is not True)
    assert claim.measured["regret at 0.2"] == pytest.approx(finals[0] * np.mean(SAME))


@pytest.mark.parametrize(("power", "holds"), [(0.95, True), (1.01, False), (0.5, False)])
def test_almost_linear_yet_learning(power: float, holds: bool) -> None:
    found = evidence(runs("laplace@0.2", SAME, power))
    claim = regret.almost_linear_yet_learning("laplace", "LDP-OBI")(found)
    assert claim.holds is holds and claim.measured["x"] == pytest.approx(power)


def figure_1_evidence(
    psrl: float = 0.7, ucb: float = 0.1, ours: float = 0.01, obi: float = 0.05
) -> Evidence:
    powers = {0.2: 0.95, 2.0: 0.8, 20.0: 0.6}
    return evidence(
        *(runs(f"laplace@{e:g}", times(10 / e), powers[e]) for e in learners.EPSILONS),
        *(runs(f"psrl@{e:g}", times(psrl * 10 / e)) for e in learners.EPSILONS),
        *(runs(f"tight@{e:g}", times(5 / e)) for e in learners.EPSILONS),
        *(runs(f"tacit-local@{e:g}", times(ours * 10 / e)) for e in learners.EPSILONS),
        runs("ucb-vi", times(ucb)),
        runs("obi", times(obi)),
    )


def test_figure_1_claims_hold_and_fail_where_they_should() -> None:
    good = [judge(figure_1_evidence()) for judge in regret.FIGURE_1.claims]
    assert all(claim.holds is True for claim in good)
    assert regret.psrl_is_better(figure_1_evidence(psrl=1.5)).holds is False
    assert regret.psrl_is_slightly_better(figure_1_evidence(psrl=0.1)).holds is False
    assert regret.privacy_is_expensive(figure_1_evidence(obi=3.0)).holds is False
    assert regret.privacy_is_expensive(figure_1_evidence(ucb=3.0)).holds is True
    assert regret.worse_than_ucb_vi(figure_1_evidence(ucb=3.0)).holds is False
    assert regret.same_guarantee_spent_well(figure_1_evidence(ours=2.0)).holds is False
    assert regret.same_guarantee_spent_well(figure_1_evidence(ours=0.7)).holds is False
    for powers, holds in (((0.9, 0.9, 0.9), None), ((0.6, 0.8, 0.95), False)):
        found = zip(learners.EPSILONS, powers, strict=True)
        alike = evidence(*(runs(f"laplace@{e:g}", SAME, power) for e, power in found))
        assert regret.larger_epsilon_bends(alike).holds is holds


FACTORS = {
    "bounded": 1.0,
    "undivided": 0.5,
    "laplace": 2.0,
    "gaussian": 3.0,
    "proposition": 3.5,
    "response": 4.0,
}


def test_randomizers_are_compared_and_their_true_privacy_is_looked_at() -> None:
    truths = {"bounded": guarantee(0.28, 0.1), "gaussian": guarantee(0.01, 0.1)}
    found = evidence(
        *(
            runs(f"{n}@2", times(f), spread=0.3 if f <= 1 else 0.1, said=truths.get(n))
            for n, f in FACTORS.items()
        )
    )
    best, undivided, proof, proposition, scatter, equal = (
        judge(found) for judge in regret.claims(2.0)
    )
    assert best.holds is undivided.holds is proof.holds is proposition.holds is True
    assert scatter.holds is None and "below the paper's length" in scatter.why
    assert scatter.measured["bounded"] == pytest.approx(0.3 * 2**0.5)
    assert equal.holds is False and "bounded" in equal.why and "gaussian" not in equal.why
    assert equal.measured["delta of bounded"] == 0.28
    assert equal.measured["delta of undivided"] == pytest.approx(1.0, abs=1e-3)
    of_the_paper = replace(found, size=learners.PAPER)
    assert regret.claims(2.0)[4](of_the_paper).holds is True
    swapped = evidence(*(runs(f"{n}@2", times(5 - f), spread=0.1 / f) for n, f in FACTORS.items()))
    verdicts = [judge(swapped).holds for judge in regret.claims(2.0)]
    assert verdicts == [False, False, False, False, None, True]
    proof, proposition = (regret.claims(2.0)[i](swapped).why for i in (2, 3))
    assert "lower is gaussian and response" in proof and "half of what they must be" in proof
    assert "lower is proposition and response" in proposition and "E5" in proposition


def measured(key: str, **arrays: np.ndarray) -> Evidence:
    part = Measurement(key, key, measured, {})
    return Evidence(
        Size(episodes=1000, instances=1, runs=2000), {}, {key: Measured(part, arrays, 0.0)}
    )


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.8, False), (1.25, False)])
def test_figure_8_notices_noise_of_another_size(factor: float, holds: bool) -> None:
    """Chance of a false verdict with the right noise: 0.1%, and the seed is fixed."""
    noise = np.random.default_rng(1).normal(0, factor * 268.33, 2000)
    found = measured("sums", exact=np.zeros(2000), noisy=np.stack([noise, noise, noise]))
    assert reports.noise_has_its_size(1)(found).holds is holds


def test_figure_8_judges_every_epsilon_by_itself() -> None:
    exact = np.random.default_rng(2).normal(0, 1.0, 2000)
    found = measured("sums", exact=exact, noisy=np.stack([120 * exact, 12 * exact, 1.5 * exact]))
    claims = [reports.much_more_variation(which)(found) for which in range(3)]
    assert [claim.holds for claim in claims] == [True, True, False]
    assert claims[2].measured["noisy std / exact std"] == pytest.approx(1.5)


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.9, False), (1.1, False)])
def test_figure_9_notices_noise_of_another_size(factor: float, holds: bool) -> None:
    draws = np.random.default_rng(2).laplace(0, factor * 0.6, (3, 20_000))
    found = measured("reports", reports=np.arange(3)[:, None] + draws, sums=np.arange(3))
    assert reports.scale_and_shift(found).holds is holds


def test_figure_9_says_how_well_one_can_guess() -> None:
    draws = np.random.default_rng(3).laplace(0, 0.6, (3, 50_000))
    shifted = measured("reports", reports=np.arange(3)[:, None] + draws, sums=np.arange(3))
    claim = reports.almost_indistinguishable(shifted)
    assert claim.holds is False
    exact = [1 - np.exp(-shift / 1.2) / 2 for shift in (1, 2)]
    assert list(claim.measured.values()) == pytest.approx(exact, abs=0.01)
    alike = measured("reports", reports=draws, sums=np.zeros(3))
    assert reports.almost_indistinguishable(alike).holds is True


def test_table_1_reads_powers_off_the_noise() -> None:
    grids = {name: np.array(grid, dtype=float) for name, grid in table_1.GRIDS.items()}
    noise = {
        "users": grids["users"] ** 0.5,
        "horizon": grids["horizon"],
        "states": grids["states"],
        "actions": grids["actions"] ** 0.5,
    }
    found = measured("bounded", **noise)
    claim = table_1.order_of_regret("bounded")(found)
    assert claim.holds is False and "E9" in claim.why
    assert list(claim.measured.values()) == pytest.approx([3.0, 3.0, 1.5])
    printed = measured("bounded", **{**noise, "horizon": np.ones(4)})
    assert table_1.order_of_regret("bounded")(printed).holds is True


@pytest.mark.parametrize(
    ("over", "holds"), [((3.9, 3.8, 3.7), True), ((0.5, 0.6, 0.55), False), ((0.5, 3.0, 1.2), None)]
)
def test_regret_is_held_against_the_lower_bound(
    over: tuple[float, ...], holds: bool | None
) -> None:
    found = evidence(
        *(
            runs(f"psrl@{e:g}:{k}", [x * lower_bound.bound(e, k) for x in over])
            for e in lower_bound.EPSILONS
            for k in (10, 100, 1000)
        )
    )
    claim = lower_bound.above_the_bound("psrl", 1.0, "corrected")(found)
    assert claim.holds is holds
    assert claim.measured["epsilon 2, K = 100"] == pytest.approx(np.mean(over))
    assert lower_bound.privacy_makes_it_hard(found).holds is (None if holds is None else not holds)


def test_the_lower_bound_is_the_corrected_one() -> None:
    tree = 4 * np.sqrt(10_000 * 27) / (64 * np.sqrt(2))
    assert lower_bound.bound(20.0, 10_000) == pytest.approx(tree / 0.5)
    assert lower_bound.bound(0.2, 10_000) == pytest.approx(tree / np.expm1(0.2))


@pytest.mark.parametrize(("power", "episodes"), [(1.0, 1000), (0.5, 1000), (0.5, 10**9)])
def test_the_rate_of_private_control_is_open_below_its_break_even(power, episodes) -> None:
    """docs/papers/lq_jdp.md#e5: up to there regret is that of doing nothing."""
    keys = [f"paper@{epsilon:g}:lq-scalar" for epsilon in lq_jdp.EPSILONS]
    found = evidence(runs("do-nothing:lq-scalar", SAME), *(runs(k, SAME, power) for k in keys))
    size = replace(found.size, episodes=episodes, instances=1)
    claim = lq_jdp.private_is_sublinear(replace(found, size=size))
    assert claim.holds is (True if episodes > 10**8 else None)
    assert claim.measured["x, lq-scalar, epsilon 10"] == pytest.approx(power)
    assert ("35,000 users" in claim.why and "is 1 to 1 times" in claim.why) == (claim.holds is None)


def test_private_control_is_compared_at_its_best_calibration_and_true_epsilon() -> None:
    """What the paper must be asked for at gamma 0.6 to give 1 (docs/papers/lq_jdp.md#e3)."""
    asked = lq_jdp.request_for("lq-scalar", 1.0)
    agent = make_agent("private-ofu-rl", epsilon=asked, calibration="paper")
    given = agent.bind(make_problem("lq-scalar").task(100, ["start"])).guarantee.epsilon
    assert asked > 1.8 and given == pytest.approx(1.0, rel=1e-4)
    for ours, holds in ((0.15, True), (0.3, False)):
        curves = {"do-nothing": 1.0, "paper": 1.0, "corrected": 1.0, "tight": 0.9, "tacit@1": ours}
        found = evidence(*(runs(f"{key}:lq-scalar", times(x)) for key, x in curves.items()))
        size = replace(found.size, episodes=lq_jdp.LONG, instances=1)
        claim = lq_jdp.far_below_optimism(replace(found, size=size))
        assert claim.holds is holds
        assert claim.measured["lq-scalar"] == pytest.approx(0.9 / ours)
