"""The rule of who may come back, what it does to a guarantee, and what is refused."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Participation
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.comparison import compare_statements, implies
from tacit.privacy.counters import strategy
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.joint.counted import CountedSums
from tacit.privacy.local.additive import LocalAdditive
from tacit.privacy.local.response import LocalResponse
from tacit.statistics import Relation
from tacit.statistics.counts import VisitCounts
from tacit.statistics.first_visits import FirstVisits
from tacit.statistics.norm_budget import NormBudget
from tacit.task.participation import LONGEST
from tacit.task.task import Task
from tacit.util.durations import DAY

MONTH = "30d"
TABLE = tacit.problem("river-swim", states=4, horizon=6)


def agent(name: str = "tacit-joint") -> tacit.Agent:
    return tacit.agent(name, epsilon=1.0)


def stated(name: str = "tacit-joint", episodes: int = 1000, **rule: Any) -> Guarantee:
    return tacit.guarantee(TABLE, agent(name), episodes, participation=Participation(**rule))


# ---- the rule ----


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"times": 0}, "participations = 0"),
        ({"times": 10**6}, "participations = 1000000"),
        ({"times": 2.5}, "participations = 2.5"),
        ({"teaches": "last"}, "teaches = 'last'"),
        ({"attendance": "secret"}, "attendance = 'secret'"),
        ({"apart": -1.0}, "apart = -1"),
        ({"apart": "a day"}, "apart = 'a day'"),
        ({"period": math.nan}, "period = nan"),
        ({"period": 2 * LONGEST}, "period = 2e"),
        ({"times": 3, "period": "1d", "apart": "1d"}, "nobody could take part twice"),
        ({"times": None, "teaches": "every"}, "no noise is enough"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_in_a_sentence(rule: dict, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Participation(**rule)


def test_any_number_needs_somebody_to_say_what_it_teaches() -> None:
    assert Participation("any") == Participation(None) == Participation.of("any")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="what they teach"):
        Task("tabular", 3, {"states": 2, "actions": 2}, True, 10, rule=Participation(None))


def test_a_rule_says_in_words_what_it_allows() -> None:
    said = Participation(30, "first", apart="20h", period=MONTH).in_words()
    assert said == "up to 30 times in every period of 30 days, at least 20 hours apart"
    assert Participation(None, "lifetime").in_words() == "any number of times"
    assert Participation(1, period=MONTH).in_words() == "once in every period of 30 days"


RULES = st.builds(
    Participation,
    times=st.one_of(st.none(), st.integers(1, 10_000)),
    teaches=st.sampled_from(["first", "lifetime", None]),
    apart=st.floats(0, 1e5),
    period=st.sampled_from([0.0, 1e6, 3e7]),
    attendance=st.sampled_from(["public", "private"]),
)


@given(RULES)
def test_a_rule_survives_json(rule: Participation) -> None:
    assert Participation.from_json(json.loads(json.dumps(rule.to_json()))) == rule
    with pytest.raises(InvalidInput, match="no 'sometimes'"):
        Participation.from_json({**rule.to_json(), "sometimes": 3})


def test_the_agent_decides_what_is_left_open() -> None:
    """One report in the local model, whole lives in tables of a curator, else the group."""
    staged = tacit.problem("river-swim", states=3, horizon=2, inhomogeneous=True)
    for problem, name, teaches in (
        (TABLE, "tacit-local", "first"),
        (TABLE, "ldp-obi", "first"),
        (TABLE, "tacit-joint", "lifetime"),
        (staged, "tacit-joint", None),
        (TABLE, "private-ucb-vi", None),
    ):
        task = bind(problem, agent(name), 1000, participation=3).task
        assert (None if task.rule is None else task.rule.teaches) == teaches
        assert task.participations == (1 if teaches else 3)


# ---- the guarantee ----


def test_lives_cost_what_one_participation_costs() -> None:
    """And the noise of a life is larger only by the pairs that one episode has no time for."""
    once, often = stated(times=1), stated(times="any")
    assert often.epsilon == pytest.approx(once.epsilon) and often.mu == pytest.approx(once.mu)
    assert often.participations is None
    group = stated(times=3, teaches="every")
    assert group.mu == pytest.approx(once.mu)
    assert group.noise["node std"] > 2.9 * once.noise["node std"]
    pairs, horizon = len(bind(TABLE, agent(), 1000).task.pairs.action), TABLE.horizon
    assert often.noise["node std"] < 1.1 * math.sqrt(pairs / horizon) * once.noise["node std"]


@pytest.mark.parametrize("times", [1, 3])
def test_private_attendance_rests_on_a_clock(times: int) -> None:
    """Also of people who come once: who stays away is what it is about."""
    found = stated(times=times, teaches="lifetime", attendance="private")
    assert any("close by a public clock" in said for said in found.assumptions)


def test_the_stated_mu_is_that_of_the_proof() -> None:
    for rule in ({"times": 7}, {"times": None}, {"times": 3, "period": MONTH}):
        bound = bind(TABLE, agent(), 1000, participation=Participation(**rule))
        statistic, counter = bound.statistic, bound.privatizer.strategy  # type: ignore[attr-defined]
        m = min(statistic.cap, len(bound.task.pairs.action))  # type: ignore[attr-defined]
        starts = 0 if "initial" in bound.task.known else 2
        squared = statistic.sensitivity("l2", Relation.REPLACE_ONE) ** 2
        assert squared == pytest.approx(3 * m + starts, rel=1e-12)
        shift = counter.column_norm() * math.sqrt(3 * m + starts) + bound.privatizer.rounding
        assert bound.guarantee.mu == pytest.approx(shift / bound.privatizer.noise_std)


@pytest.mark.parametrize(
    ("name", "rule", "sentence"),
    [
        ("private-ucb-vi", {"times": 3, "attendance": "private"}, "does not hide who takes part"),
        ("tacit-local", {"times": 3, "attendance": "private"}, "does not hide who takes part"),
        ("tacit-local", {"times": 3, "teaches": "lifetime"}, "nothing here bounds"),
        ("private-ucb-vi", {"times": 3, "teaches": "lifetime"}, "nothing here bounds"),
        ("tacit-joint", {"times": 3, "teaches": "first", "period": MONTH}, "leave the period out"),
        ("tacit-joint", {"times": 3, "teaches": "every", "period": MONTH}, "leave the period out"),
        ("private-ucb-vi", {"times": 3, "period": MONTH}, "leave the period out"),
        ("private-ucb-vi", {"times": None}, "participations may not be any number"),
    ],
)
def test_what_no_proof_covers_is_refused(name: str, rule: dict, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        stated(name, **rule)


@pytest.mark.parametrize("name", ["tree", "honaker", "toeplitz", "normalised", "blt"])
def test_a_period_needs_lives_that_are_bounded(name: str) -> None:
    """Whatever the counter: it begins again."""
    asked: Any = {"batch": 9, "requested": (1.0, 1e-5)}
    counter = strategy(name, 8)
    task = Task("tabular", 3, {"states": 2, "actions": 2}, True, 100)
    lives = dataclasses.replace(task, rule=Participation(None, "lifetime", period=DAY))
    assert CountedSums(FirstVisits(lives, 4, 4), lives, counter, **asked).guarantee.rule
    first = dataclasses.replace(task, rule=Participation(None, "first", period=DAY))
    with pytest.raises(InvalidInput, match="leave the period out"):
        CountedSums(FirstVisits(first, 4, 4), first, counter, **asked)


def test_lives_are_covered_only_where_the_statistic_bounds_them() -> None:
    """Whoever adds the noise: counts of every participation are no bound of a whole life."""
    task = Task("tabular", 3, {"states": 2, "actions": 2}, True, 100)
    lives = dataclasses.replace(task, rule=Participation(None, "lifetime"))
    counts, asked = VisitCounts(lives), (1.0, 1e-5)
    for make in (
        lambda: BatchSums(counts, lives, requested=asked),
        lambda: CountedSums(counts, lives, strategy("tree", 8), batch=9, requested=asked),
        lambda: LocalAdditive(counts, lives, "gaussian", requested=asked),
        lambda: LocalResponse(counts, lives, requested_epsilon=1.0),
    ):
        with pytest.raises(InvalidInput, match="nothing here bounds what one person teaches"):
            make()
    bounded = NormBudget(counts, lives)
    assert BatchSums(bounded, lives, requested=asked).guarantee.rule == lives.rule


def test_a_pair_is_not_taught_more_often_than_a_memory_can_count() -> None:
    """One byte per pair: 256 visits would be none."""
    task = Task("tabular", 3, {"states": 2, "actions": 2}, True, 100)
    assert FirstVisits(task, 4, 4, 255).often == 255
    with pytest.raises(InvalidInput, match="often = 256"):
        FirstVisits(task, 4, 4, 256)


def test_periods_add_up_as_independent_noise_does() -> None:
    one = stated(times=3, period=MONTH)
    assert one.mu is not None and one.mu == pytest.approx(gaussian_mu(1.0, 1e-5), rel=1e-6)
    for periods in (2, 12):
        assert one.compose(periods).mu == pytest.approx(math.sqrt(periods) * one.mu)
    local = stated("tacit-local", times=3, period=MONTH)
    assert local.compose(12).epsilon == pytest.approx(12 * local.epsilon)


# ---- statements ----


def test_the_statement_speaks_of_all_that_one_person_does() -> None:
    text = stated(times=30, apart="20h").statement()
    assert "Replacing whatever one person does in all their participations by anything" in text
    assert "up to 30 times, at least 20 hours apart; all of them are covered together" in text
    assert "when people take part is public" in text and "its memory is secret state" in text
    assert "period" not in text


def test_the_statement_of_a_period_says_so_and_what_twelve_cost() -> None:
    guarantee = stated(times=30, period=MONTH)
    text, total = guarantee.statement(), guarantee.compose(12)
    assert "participations of a period of 30 days by anything else" in text
    assert f"12 periods ({total.epsilon:.5f}"[:-2] in text
    assert "in the period in which the batch that it is counted in began" in text
    local = stated("tacit-local", times=30, period=MONTH).statement()
    assert "sends in one period" in local and "only the first participation of its user in a" in (
        local
    )
    assert "a device that has lost its memory takes its user for a new person" in local
    assert "batch" not in local


@pytest.mark.parametrize("period", [0.0, MONTH])
@pytest.mark.parametrize("name", ["tacit-joint", "tacit-local"])
def test_a_statement_with_a_rule_survives_json(name: str, period: Any) -> None:
    for times in (3, None):
        one = stated(name, times=times, period=period)
        again = Guarantee.from_json(json.loads(json.dumps(one.to_json())))
        assert again == one and again.digest() == one.digest() and again.rule == one.rule
        assert one.digest() != stated(name, times=4, period=period).digest()


BASE = Guarantee("joint", 1.0, 1e-5, "gaussian", "exact", mu=0.268)  # type: ignore[arg-type]


def with_rule(**rule: Any) -> Guarantee:
    made = Participation(**rule)
    return dataclasses.replace(BASE, rule=made, participations=made.times)


@pytest.mark.parametrize(
    ("a", "b", "stronger"),
    [
        ({"times": 3}, {"times": 3}, "same"),
        ({"times": 3, "teaches": "first"}, {"times": 3, "teaches": "lifetime"}, "same"),
        ({"times": None}, {"times": 3}, "A"),
        ({"times": 3}, {"times": 3, "period": MONTH}, "A"),
        ({"times": 3, "period": MONTH}, {"times": 3, "period": "20d"}, None),
        ({"times": 3, "period": MONTH}, {"times": 3, "period": MONTH}, "same"),
        ({"times": 3, "apart": "20h"}, {"times": 3}, "B"),
        ({"times": 3, "attendance": "private"}, {"times": 3}, "A"),
        ({"times": 3, "period": MONTH}, {"times": 2}, None),
    ],
)
def test_which_rule_promises_more(a: dict, b: dict, stronger: str | None) -> None:
    mirrored = {"A": "B", "B": "A"}.get(stronger or "", stronger)
    one, two = with_rule(**a), with_rule(**b)
    assert compare_statements(one, two).stronger == stronger
    assert compare_statements(two, one).stronger == mirrored


def test_a_rule_that_only_one_of_them_has_is_named() -> None:
    for a, b in ((BASE, with_rule(times=3, period=MONTH)), (with_rule(times=3), BASE)):
        (found,) = [d for d in compare_statements(a, b).differences if d.field == "rule"]
        assert "up to 3 times" in found.words and json.dumps(vars(found))


def test_numbers_over_a_period_and_over_a_life_are_not_compared() -> None:
    """Epsilon 0.5 of a month is not better than epsilon 1 for ever."""
    month = dataclasses.replace(with_rule(times=30, period=MONTH), epsilon=0.5, mu=0.14)
    compared = compare_statements(month, with_rule(times=3))
    found = {d.field: d for d in compared.differences}
    for field in ("epsilon", "mu", "participations"):
        assert found[field].stronger is None
        assert "A per period of 30 days, B over all that one person does" in found[field].words
    assert compared.stronger is None


def test_sums_of_periods_are_not_sums_of_lives() -> None:
    """Twelve periods of a task promise less than twelve tasks with one whole life in each."""
    months, lives = with_rule(times=3, period=MONTH).compose(12), with_rule(times=3).compose(12)
    assert implies(months, months) and not implies(months, lives)


# ---- counters ----


@pytest.mark.parametrize("name", ["tree", "honaker", "toeplitz", "normalised", "blt"])
def test_no_two_items_pull_a_row_apart(name: str) -> None:
    """The proof for lives needs columns of C with inner products that are not negative."""
    for n in (1, 2, 7, 64):
        _, c = strategy(name, n).factors()
        assert c.min() >= 0.0 and c.max() > 0.0
        assert np.linalg.norm(c, axis=0).max() <= strategy(name, n).column_norm() * (1 + 1e-12)
