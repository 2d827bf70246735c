"""Claims on linear mixtures are judged right on made-up curves, also where they fail."""

import numpy as np
import pytest

from papers.made_up import SIZE, evidence, runs
from tacit_lab.figures import judge
from tacit_lab.figures.figure import Evidence, Measured, Measurement, Size
from tacit_lab.papers.mixture import counters, joint, ladder, local

SAME = [100.0, 120.0, 90.0, 110.0]


def times(factor: float) -> list[float]:
    return [factor * x for x in SAME]


@pytest.mark.parametrize(("bar", "holds"), [(150.0, True), (105.0, None), (50.0, False)])
def test_a_bar_within_two_errors_decides_nothing(bar: float, holds: bool | None) -> None:
    found = evidence(runs("a", SAME))
    claim = judge.below_bar("a", bar, 1000, "it learns")(found)
    assert claim.holds is holds and claim.measured["regret"] == pytest.approx(105.0)
    other = judge.below_bar("a", bar, 2000, "it learns")(found)
    assert other.holds is None and "2,000" in other.why


def test_not_learning_and_smaller() -> None:
    found = evidence(runs("straight", SAME), runs("bent", times(0.5), power=0.05))
    assert judge.not_learning(["straight"], "flat")(found).holds is True
    assert judge.not_learning(["straight", "bent"], "flat")(found).holds is False
    assert judge.smaller("bent", "straight", "s")(found).holds is True
    assert judge.smaller("straight", "bent", "s")(found).holds is False
    assert judge.smaller("bent", "bent", "s")(found).holds is None


def searched(name: str, panel: str, least: float, bend: float = 1.0) -> list:
    """Runs of a whole grid, of which c = 0.01 has the least regret."""
    return [
        runs(
            local.grid_key(name, c, panel),
            times(least if c == 0.01 else least + 1.0),
            **({} if bend == 1.0 else {"power": bend}),
        )
        for c in local.GRID
    ]


def test_larger_epsilon_is_closer() -> None:
    for factor, holds in ((0.3, True), (0.9, False)):
        levels = {0.1: 1.0, 1.0: 1.0, 10.0: factor, 100.0: factor}
        found = evidence(
            *searched("ucrl-vtr", "homogeneous", 0.1),
            *(one for e, f in levels.items() for one in searched(f"paper@{e:g}", "homogeneous", f)),
        )
        claim = local.larger_epsilon_is_closer(found)
        assert claim.holds is holds and claim.measured["c at 10"] == 0.01
        assert local.no_radius_learns("homogeneous")(found).holds is True


def test_what_was_chosen_is_said_and_the_others_are_not_shown() -> None:
    found = evidence(*searched("paper@1", "inhomogeneous", 1.0))
    c, chosen = local.best(found, "paper@1", "inhomogeneous")
    assert c == 0.01 and ", c = 0.01" in chosen.label
    assert chosen.final.mean() == min(curve.final.mean() for curve in found.matching())


def test_one_bent_curve_of_the_grid_shows() -> None:
    curves = [
        one for e in local.EPSILONS for one in searched(f"paper@{e:g}", "inhomogeneous", 1.0, 0.05)
    ]
    assert local.no_radius_learns("inhomogeneous")(evidence(*curves)).holds is False


def test_the_least_noise_comes_closer() -> None:
    for factors, holds in (((4.0, 3.0, 2.0, 1.0), True), ((1.0, 2.0, 3.0, 4.0), False)):
        found = evidence(
            *(
                one
                for e, f in zip(local.LEVELS, factors, strict=True)
                for one in searched(f"tight@{e:g}", "homogeneous", f)
            )
        )
        assert local.least_noise_comes_closer(found).holds is holds


def test_slower_with_more_states() -> None:
    scale = local.UNIFORM["5"] / local.UNIFORM["3"]
    for factor, holds in ((3.0, True), (0.3, False)):
        found = evidence(runs("x 3", SAME), runs("x 5", times(scale * factor)))
        assert local.slower("x", "it")(found).holds is holds


def bandit_evidence(tight: float, level: float) -> Evidence:
    return evidence(
        *(
            runs(local.bandit_key(way, e, d), times(factor * level))
            for e, d in local.REQUESTS
            for way, factor in (("paper", 1.0), ("tight", tight))
        )
    )


def test_bandit_claims() -> None:
    assert all(judge(bandit_evidence(0.5, 1.0)).holds is True for judge in local.BANDIT.claims)
    verdicts = [judge(bandit_evidence(0.9, 4.0)).holds for judge in local.BANDIT.claims]
    assert verdicts == [False, False, False, False]


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.9, False)])
def test_no_learning_is_the_level_of_the_uniform_policy(factor: float, holds: bool) -> None:
    found = evidence(
        *(
            runs(f"{way}@{e:g} {place}", [factor * 1000 * joint.UNIFORM[place]] * 4)
            for place in joint.PLACES
            for way in joint.WAYS
            for e in joint.EPSILONS
        )
    )
    assert [judge(found).holds for judge in joint.NO_LEARNING.claims] == [holds] * 3


def rungs(**factors: float) -> Evidence:
    return evidence(
        *(
            runs(f"{k.replace('_', '-')}@{e:g}", times(f))
            for k, f in factors.items()
            for e in (1, 10)
        )
    )


def test_rungs_of_the_ladder() -> None:
    found = rungs(paper=20, tight_tree=19, tight_root=15, free_tree=3, free_root=1, free_theory=4)
    verdicts = [judge(found).holds for judge in ladder.LADDER.claims]
    assert verdicts == [True, True, True, True, True, None]  # the bar is for 10,000 episodes
    turned = rungs(paper=1, tight_tree=1, tight_root=2, free_tree=3, free_root=4, free_theory=1)
    verdicts = [judge(turned).holds for judge in ladder.LADDER.claims[:5]]
    assert verdicts == [False] * 5


@pytest.mark.parametrize(("factor", "holds"), [(1.1, True), (2.0, False)])
def test_states_do_not_matter(factor: float, holds: bool) -> None:
    found = evidence(runs("10@1", SAME), runs("100@1", times(factor)))
    assert ladder.states_do_not_matter(1.0)(found).holds is holds


def test_schedules() -> None:
    def made(growth: list[float], first: dict[float, list[float]]) -> Evidence:
        return evidence(
            *(runs(f"growth {g:g}", times(f)) for g, f in zip(ladder.GROWTHS, growth, strict=True)),
            *(
                runs(f"first {n}@{e:g}", times(f))
                for e, factors in first.items()
                for n, f in zip(ladder.FIRSTS, factors, strict=True)
            ),
        )

    good = made([3, 2, 1, 1, 2, 3], {0.1: [3, 2, 1], 1.0: [2, 1, 2], 10.0: [1, 2, 3]})
    assert ladder.moderate_growth(good).holds is ladder.patience(good).holds is True
    assert ladder.patience(good).measured["best first batch at 1"] == 100
    bad = made([1, 2, 3, 3, 2, 1], {0.1: [1, 2, 3], 1.0: [2, 1, 2], 10.0: [1, 2, 3]})
    assert ladder.moderate_growth(bad).holds is ladder.patience(bad).holds is False


def test_a_curve_that_bends_has_learnt() -> None:
    for power, holds in ((1.0, True), (0.05, False)):
        found = evidence(runs("local@1", SAME, power=power))
        assert joint.learns_nothing("local@1", "nothing is learnt")(found).holds is holds


def counter_evidence(factor: float) -> Evidence:
    """Errors of the table, the tree's times ``factor``; running code off by that factor."""
    tables = {kind: np.array([*table.values()]) for kind, table in counters.TABLE.items()}
    tables["blt-4"] = np.array([2.531, *tables["blt-4"]])
    tables["tree"] = tables["tree"] * factor
    made = {}
    for kind in counters.KINDS:
        for key, arrays in (
            (kind, {"worst": tables[kind], "rms": tables[kind]}),
            (f"{kind} running", {"ratio": np.full(64, factor)}),
        ):
            part = Measurement(key, key, counters.errors, {})
            made[key] = Measured(part, arrays, 0.0)
    return Evidence(Size(episodes=100_000, instances=1, runs=2000), {}, made)


def test_counters_of_another_size_are_noticed() -> None:
    right, wrong = counter_evidence(1.0), counter_evidence(0.8)
    claims = counters.COUNTERS.claims
    assert [judge(right).holds for judge in claims] == [True] * 4
    assert [judge(wrong).holds for judge in claims] == [False, False, True, False]


def test_the_made_up_size_is_not_one_with_a_bar() -> None:
    assert SIZE.episodes != ladder.USERS
