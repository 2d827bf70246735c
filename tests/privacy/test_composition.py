"""Statements added up, against dp-accounting and against each other."""

import dataclasses
import json
import math
import pickle
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidInput
from tacit.privacy import Guarantee, composition
from tacit.privacy.accounting import gaussian_delta, gaussian_epsilon, mixed_delta
from tacit.privacy.comparison import compare_statements, read_statement
from tacit.privacy.sentences import at_most
from tacit.task.participation import Participation


def made(**fields: Any) -> Guarantee:
    base = {"model": "joint", "mechanism": "noise", "accountant": "exact", "delta": 0.0}
    return Guarantee(**{**base, **fields})


def gaussian(mu: float, delta: float = 1e-5) -> Guarantee:
    return made(mu=mu, delta=delta, epsilon=gaussian_epsilon(mu, delta))


def pure(epsilon: float) -> Guarantee:
    return made(epsilon=epsilon)


LEAVES = st.one_of(
    st.floats(0.01, 2.0).map(gaussian),
    st.floats(0.01, 2.0).map(pure),
    st.builds(lambda e, d: made(epsilon=e, delta=d), st.floats(0.01, 2.0), st.floats(1e-9, 1e-3)),
)


@settings(max_examples=25, deadline=None)
@given(LEAVES, LEAVES, LEAVES)
def test_sums_do_not_depend_on_order_and_only_grow(a: Guarantee, b: Guarantee, c: Guarantee):
    assert (a + b) + c == a + (b + c) == c + b + a
    assert a.compose(1) is a and a + a == a.compose(2)
    assert a.compose(2).compose(3) == a.compose(6)
    for epsilon in (0.0, 0.3, 1.7):
        lone, both = a.delta(epsilon), (a + b).delta(epsilon)
        assert lone <= both * (1 + 1e-9) and both <= (a + b + c).delta(epsilon) * (1 + 1e-9)
    assert (a + b).epsilon_at(0.01) >= a.epsilon_at(0.01) * (1 - 1e-9)


@settings(max_examples=25, deadline=None)
@given(LEAVES, LEAVES)
def test_what_is_stated_holds_and_is_least(a: Guarantee, b: Guarantee):
    total = a + b
    assert total.delta(total.epsilon) <= total.delta * (1 + 1e-9)
    at = total.epsilon_at(0.01)
    assert total.delta(at) <= 0.01
    assert at == 0.0 or total.delta(at * (1 - 1e-6)) > 0.01 * (1 - 1e-8)
    again = Guarantee.from_json(json.loads(json.dumps(total.to_json())))
    assert again == total and again.delta(0.5) == total.delta(0.5)


def reference(*statements: tuple[int, Guarantee]) -> Any:
    """The same by dp-accounting, which rounds up on a grid of 1e-4."""
    total = pld.identity()
    for times, one in statements:
        if one.mu is not None:
            law = pld.from_gaussian_mechanism(1.0 / one.mu)
        else:
            law = pld.from_privacy_parameters(
                dp.pld.common.DifferentialPrivacyParameters(one.epsilon, one.delta)
            )
        total = total.compose(law.self_compose(times) if times > 1 else law)
    return total


@pytest.mark.parametrize(
    "parts",
    [
        [(4, gaussian(0.3))],
        [(10, pure(0.5))],
        [(3, pure(0.5)), (2, pure(0.2))],
        [(5, made(epsilon=0.3, delta=1e-4))],
        [(3, pure(0.4)), (2, gaussian(0.5)), (1, made(epsilon=0.2, delta=1e-4))],
    ],
    ids=["gaussian", "pure", "two pure", "points", "mixed"],
)
def test_numbers_are_those_of_dp_accounting(parts: list[tuple[int, Guarantee]]) -> None:
    first, *rest = [one.compose(times) for times, one in parts]
    total = sum(rest, start=first)
    theirs = reference(*parts)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert total.delta(epsilon) == pytest.approx(
            theirs.get_delta_for_epsilon(epsilon), rel=5e-3, abs=1e-12
        )
    assert total.epsilon_at(0.01) == pytest.approx(theirs.get_epsilon_for_delta(0.01), rel=5e-3)


def test_rules() -> None:
    both = gaussian(0.3) + gaussian(0.4, 1e-6)
    assert both.mu == pytest.approx(0.5) and both.mu >= 0.5
    assert both.delta == 1e-5 and both.epsilon == gaussian_epsilon(both.mu, 1e-5)
    ten = pure(0.1).compose(10)
    assert (ten.epsilon, ten.delta, ten.mu) == (1.0, 0.0, None)
    mixed = gaussian(0.5) + pure(1.0)
    assert mixed.mu is None and mixed.delta(0.7) == pytest.approx(mixed_delta(0.5, 1.0, 0.7))
    point = made(epsilon=1.0, delta=1e-3) + pure(1.0)
    assert (point.epsilon, point.delta) == (2.0, 1e-3) and math.isinf(point.epsilon_at(1e-4))
    assert math.isinf(mixed.epsilon_at(0.0))
    twice = made(epsilon=1.0, delta=0.1).compose(2)  # one of two independent failures
    assert twice.delta(2.0) == pytest.approx(0.19)
    assert composition.Total.of(((1, made(epsilon=1.0, delta=1.0)),)).fails == 1.0


def test_a_sum_with_renewed_budgets_counts_the_periods_in_it() -> None:
    daily = dataclasses.replace(gaussian(0.3), rule=Participation(times=5, period=86400.0))
    for total, words in (
        (daily + gaussian(0.4), "1 period of 1 day and 1 task without periods"),
        (daily + gaussian(0.4) + daily, "2 periods of 1 day and 1 task without periods"),
        (daily.compose(12), "12 periods of 1 day"),
        (daily.compose(12).compose(12), "144 periods of 1 day"),
    ):
        said = total.statement().split("\n")
        assert said[0].startswith(
            f"({at_most(total.epsilon, 6)}, 1e-05)-differential privacy over {words}, "
        )
        assert f"whatever one person does in all their participations in {words} by" in said[1]
        assert f"get to see, in {words}, and" in said[2] and "true of a user in them" in said[2]
        assert said[4].startswith(f"A sum over {words}: ") and "further period" in said[4]
    assert "period" not in (gaussian(0.3) + gaussian(0.4)).statement().partition("Assumes")[0]


def test_answers_that_are_taken_together_lose_nothing() -> None:
    """However few sums of losses are left: the largest is that of all answers."""
    answers = tuple((0.1 * k, times) for k in range(1, 8) for times in (1, 3))
    together = sum(epsilon * times for epsilon, times in answers)
    for most in (4, 8, 30, 500):
        losses, weights = composition._law(answers, most)
        assert together * (1 - 1e-12) <= losses.max() <= 1.5 * together
        assert weights.sum() == pytest.approx(1.0) and len(losses) <= most


def test_too_many_answers_are_covered_not_dropped() -> None:
    fine, coarse = pure(0.01).compose(100_000 - 1), pure(0.01).compose(200_000)
    assert fine.delta(5.0) < coarse.delta(5.0) <= 1.0
    few, many = (pure(0.01).compose(k) + gaussian(0.1) for k in (190, 400))
    assert few.delta(1.0) < many.delta(1.0)
    exact = reference((400, pure(0.01)), (1, gaussian(0.1))).get_delta_for_epsilon(1.0)
    assert many.delta(1.0) >= exact * (1 - 5e-3)


def test_one_statement_implies_a_curve() -> None:
    assert gaussian(0.5).delta(1.0) == gaussian_delta(0.5, 1.0)
    assert gaussian(0.5).epsilon_at(1e-5) == gaussian(0.5).epsilon
    asked = made(epsilon=4.0, delta=1e-9, requested_epsilon=1.0, delta_at_requested_epsilon=1e-5)
    assert asked.delta(1.0) == 1e-5 and asked.epsilon_at(1e-5) == pytest.approx(1.0)
    assert math.isinf(asked.epsilon_at(1e-10)) and asked.epsilon_at(0.99) == 0.0
    nothing = made(model="none", epsilon=math.inf)
    assert nothing.delta(3.0) == 1.0 and math.isinf(nothing.epsilon_at(0.5))


def test_delta_is_a_number_and_can_be_called() -> None:
    said = gaussian(0.5)
    assert said.delta == 1e-5 and hash(said.delta) == hash(1e-5) and repr(said.delta) == "1e-05"
    assert json.dumps(said.delta) == "1e-05" and type(said.to_json()["delta"]) is float
    assert type(pickle.loads(pickle.dumps(said.delta))) is float
    later = said.as_simulated()
    assert later.delta(0.3) == said.delta(0.3) == gaussian_delta(0.5, 0.3) != said.delta
    with pytest.raises(InvalidInput, match="epsilon = -1, but"):
        said.delta(-1.0)


@pytest.mark.parametrize("one", [gaussian(1.0), pure(1.0), pure(0.5) + gaussian(0.5)])
def test_the_curve_is_convex_and_between_the_diagonal_and_zero(one: Guarantee) -> None:
    alarms, missed = one.curve(101).T
    assert alarms[0] == 0.0 and alarms[-1] == 1.0 and missed[0] == 1.0 and missed[-1] == 0.0
    assert (missed <= 1.0 - alarms + 1e-12).all() and (np.diff(missed, 2) >= -1e-9).all()
    best = (1.0 - one.delta(0.0)) / 2  # half the least sum of both errors
    assert (alarms + missed).min() / 2 == pytest.approx(best, abs=2e-3)


@pytest.mark.parametrize(
    ("one", "relation"),
    [
        (gaussian(0.5).compose(4), dp.NeighboringRelation.ADD_OR_REMOVE_ONE),
        (pure(0.5).compose(3), dp.NeighboringRelation.REPLACE_ONE),
        (pure(0.5).compose(3) + gaussian(0.5), dp.NeighboringRelation.REPLACE_ONE),
    ],
)
def test_events_mean_the_same_to_dp_accounting(one: Guarantee, relation: Any) -> None:
    theirs = PLDAccountant(relation).compose(one.to_dp_event()).get_delta(0.6)
    assert theirs == pytest.approx(one.delta(0.6), rel=5e-3)
    if one.mu is None:
        assert not PLDAccountant().supports(one.to_dp_event())


def test_events_at_the_edges() -> None:
    assert made(model="none", epsilon=math.inf).to_dp_event() == dp.NonPrivateDpEvent()
    assert pure(0.0).to_dp_event() == dp.NoOpDpEvent()
    with pytest.raises(InvalidInput, match="no event for"):
        made(epsilon=1.0, delta=1e-6).to_dp_event()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"model": "local"}, "model 'joint' and model 'local' do not add up"),
        ({"unit": "participation"}, "unit 'user' and unit"),
        ({"relation": "add-remove"}, "relation 'replace-one' and relation"),
        ({"simulated": True}, "made in simulation"),
        ({"model": "none", "epsilon": math.inf}, "promises nothing"),
        ({"delta": 0.6}, "hold at delta 1.2 only"),
    ],
)
def test_what_has_no_sum_is_refused(other: dict[str, Any], said: str) -> None:
    one = made(epsilon=1.0, delta=0.6 if "delta" in other else 0.0)
    with pytest.raises(InvalidInput, match=said):
        one + dataclasses.replace(one, **other)
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="times = 0"):
        one.compose(0)


def test_the_statement_of_a_sum_says_what_it_covers(tmp_path) -> None:
    twice = made(epsilon=0.5, participations=2, assumptions=("a holds",), noise={"std": 3.0})
    total = twice + gaussian(0.1)
    words = total.statement()
    assert "in each of 2 tasks by any other" in words and "get to see, in 2 tasks, and" in words
    assert "in each of them 1 to 2 times, as stated for each, all of it together" in words
    assert "may take part 3 times" not in words
    assert "Assumes: a holds." in words and "noise independently" in words
    assert total.participations == 3 and list(total.noise.values()) == [3.0]
    each = dataclasses.replace(pure(0.5), unit="participation").compose(3).statement()
    assert "any single participation in each of 3 tasks" in each
    assert "true of a participation in each of them" in each

    file = tmp_path / "sum.json"
    file.write_text(json.dumps(total.to_json()))
    assert read_statement(file) == total
    assert compare_statements(total, total).stronger == "same"
    against = compare_statements(twice, total)
    assert against.stronger is None  # a sum is about other tasks than its part
    assert "tasks added up: A 1, B 2" in [d.words for d in against.differences]
    file.write_text(json.dumps({**total.to_json(), "parts": [{"times": 0.5, "guarantee": {}}]}))
    with pytest.raises(InvalidInput, match="holds no guarantee"):
        read_statement(file)
