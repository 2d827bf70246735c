import numpy as np
import pytest

import tacit
from lab.report import made_up
from tacit.util.intervals import Interval
from tacit_lab.report.analysis import (
    break_even,
    in_epsilon,
    in_users,
    pairwise_tests,
    prices,
    users_needed,
)
from tacit_lab.report.results import paired
from tacit_lab.report.sections import share, stated_regret

STUDY = made_up.study()
LONG = [arm for arm in STUDY.arms if arm.users == 100_000]


def of(label: str):
    return next(arm for arm in LONG if arm.label == label)


def test_labels_name_what_differs_from_the_defaults() -> None:
    labels = {arm.label for arm in LONG}
    assert {"psrl", "ucb-vi (bonus_scale = 0.1)", "tacit-local, ε = 2"} <= labels
    assert (
        of("uniform").result.reference
        and not of("psrl").result.reference
        and not of("psrl").private
    )
    assert of("ldp-obi, ε = 8").private


def test_pairs_are_matched_by_seed_not_by_place() -> None:
    arm, other = of("psrl"), made_up.arm("psrl", 100_000)
    turned = type(other)(other.result, other.pairs[::-1])
    mine, theirs = paired(arm, turned)
    assert np.allclose(theirs, turned.final[::-1]) and len(mine) == 8


def test_the_price_is_paired_and_names_what_it_is_measured_against() -> None:
    rows = {row.arm.label: row for row in prices(LONG)}
    assert set(rows) == {arm.label for arm in LONG if arm.private}
    row = rows["tacit-local, ε = 4"]
    assert row.against.label == "psrl" and row.counterpart and row.pairs == 8
    assert row.ratio.low < 10 < row.ratio.high and row.ratio.high / row.ratio.low < 3
    assert not rows["ldp-obi, ε = 4"].counterpart
    assert rows["ldp-obi, ε = 4"].against.label == "psrl"


def test_exponents_find_the_laws_the_curves_were_made_with() -> None:
    by_epsilon = {row.name: row for row in in_epsilon(LONG)}
    fit = by_epsilon["tacit-local"].fit.exponent
    assert fit.low < -1 < fit.high and by_epsilon["tacit-local"].stated is None
    assert by_epsilon["ldp-obi"].stated == -1.0 and by_epsilon["ldp-obi"].fit.exponent.low > -0.5
    by_users = {row.name: row for row in in_users(STUDY.arms)}
    assert by_users["psrl"].points == "runs of 2 lengths" and by_users["psrl"].stated == 0.5
    assert by_users["psrl"].fit.exponent.high < 1.0
    alone = {row.name: row for row in in_users(LONG)}["psrl"]
    assert alone.points == "the last decade of one curve"
    assert alone.fit.exponent.value == pytest.approx(0.5)


def test_bounds_stand_beside_curves_as_numbers() -> None:
    """Of the longest run, by the one function that knows them; its words say how much it is."""
    rows = {row.name: row for row in in_users(STUDY.arms)}
    row = rows["ldp-obi, ε = 2"]
    chosen = of("ldp-obi, ε = 2").result
    agent = tacit.agent("ldp-obi", **chosen.agent["parameters"])
    assert row.stated_regret == tacit.bound(chosen.problem["name"], agent, 100_000)
    assert stated_regret(row) == "7.59e+10, vacuous"
    assert stated_regret(rows["psrl"]).endswith("(order with constant 1)")
    assert stated_regret(rows["tacit-local, ε = 2"]) == "none"


def test_who_beats_the_baseline_and_from_when_on() -> None:
    rows = {row.arm.label: row for row in break_even(LONG)}
    assert "uniform" not in rows
    found = rows["tacit-local, ε = 1"].answer
    assert found.verdict == "beats" and 800 < found.episodes < 20_000
    several = {row.arm.label: row for row in break_even(STUDY.arms)}["psrl"]
    assert several.several and several.answer.episodes == 10_000


def test_final_regret_as_a_share_of_the_baseline() -> None:
    found = Interval(3e4, 1.5e4, 4.5e4)
    assert share(found, 3e5) == "10.00% (5.00% to 15.00%)"
    assert share(Interval(6e6, -np.inf, np.inf), 3e5) == "20"
    assert share(found, 0.0) == "nothing to lose here"


def test_comparisons_are_corrected_together() -> None:
    rows = pairwise_tests(LONG)
    assert len(rows) == 3 + 3 + 4
    assert all(row.adjusted >= row.result.p for row in rows)
    verdicts = {(row.first.label, row.second.label): row.verdict for row in rows}
    couple = ("tacit-local, ε = 1", "ldp-obi, ε = 1")
    assert verdicts[couple] == "not decided" or verdicts[couple].endswith("is better")
    few = made_up.study(seeds=4)
    verdict = pairwise_tests([arm for arm in few.arms if arm.users == 100_000])[0].verdict
    assert verdict == "not decided: 4 seeds are too few for any verdict"


def test_who_is_best_was_chosen_by_the_same_runs() -> None:
    """Of three learners two pairs are told, and corrected as the three that might have been."""
    from tacit_lab.report.statistics import compare, holm

    trio = [
        made_up.arm(name, 100_000, epsilon=1.0, level=level)
        for name, level in (("tacit-local", 40.0), ("ldp-obi", 41.0), ("ldp-psrl", 42.0))
    ]
    rows = pairwise_tests(trio)
    assert len(rows) == 2 and rows[0].first is rows[1].first
    best, second, third = rows[0].first, rows[0].second, rows[1].second
    pairs = [(best, second), (best, third), (second, third)]
    p = holm([compare(*paired(*pair)).p for pair in pairs])
    assert [row.adjusted for row in rows] == p[:2]
    assert p[:2] != holm([row.result.p for row in rows]), "else this tests nothing"


def test_users_needed_say_what_is_measured_and_what_is_not() -> None:
    rows = {row.name: row for row in users_needed(LONG)}
    good, bad = rows["tacit-local"], rows["ldp-obi"]
    assert [epsilon for epsilon, _, _ in good.measured] == [1, 2, 4, 8]
    (ahead,) = good.forecasts
    assert ahead.epsilon == 0.5 and ahead.extrapolated
    assert ahead.exponent.low < -2 < ahead.exponent.high
    assert not bad.forecasts and "at least two epsilons" in bad.why_not
