import math

import pytest

import tacit
from tacit.forecast import bind, forecast

PROBLEM = tacit.problem("river-swim")


def test_the_forecast_is_the_law_of_the_noise() -> None:
    bound = bind(PROBLEM, tacit.agent("ldp-obi", epsilon=1.0), 100_000)
    expected = forecast(bound)
    assert expected.users == 100_000
    assert expected.noise_std["visits"] == pytest.approx(118 * math.sqrt(2 / 100_000))
    needed = expected.users_needed["0.1"]["visits"]
    assert 118 * math.sqrt(2 / needed) <= 0.1 < 118 * math.sqrt(2 / (needed - 1))


def test_without_noise_one_user_is_enough() -> None:
    expected = forecast(bind(PROBLEM, tacit.agent("psrl"), 10))
    assert set(expected.noise_std.values()) == {0.0}
    assert {n for row in expected.users_needed.values() for n in row.values()} == {1}


def test_collecting_nothing_forecasts_nothing() -> None:
    assert forecast(bind(PROBLEM, tacit.agent("uniform"), 10)).noise_std == {}


@pytest.mark.parametrize("ask", [tacit.guarantee, tacit.simulate], ids=["guarantee", "simulate"])
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (tacit.agent("psrl"), PROBLEM, "psrl is an agent, .* swap the two"),
        (PROBLEM, PROBLEM, "river-swim is a problem, .* swap the two"),
        ("psrl", "river-swim", "psrl is an agent, .* swap the two"),
        ("river-swim", "river-swim", "river-swim is a problem"),
        (3, "psrl", r"problem is 3 of type int, .*tacit\.problem\('river-swim'\)"),
        ("river-swim", None, r"agent is None of type NoneType, .*tacit\.agent\('psrl'\)"),
        (tacit.TabularMDP, "psrl", r"the class TabularMDP \(call it"),
        ("river-swim", tacit.TabularMDP, r"the class TabularMDP \(call it"),
        ("river-swim", type(tacit.agent("psrl")), r"the class PSRL \(call it: PSRL\(\.\.\.\)\)"),
        ("river-swin", "psrl", "unknown problem 'river-swin'; did you mean"),
        ("river-swim", "tacit-local", r"needs an epsilon.*tacit\.agent\('tacit-local', epsilon="),
    ],
)
def test_what_is_not_a_problem_and_an_agent_in_this_order_is_explained(
    ask, first, second, message
) -> None:
    with pytest.raises(tacit.InvalidInput, match=message):
        ask(first, second, 10)


def test_an_audit_explains_a_swapped_pair_too() -> None:
    with pytest.raises(tacit.InvalidInput, match="psrl is an agent, .* swap the two"):
        tacit.audit(tacit.agent("psrl"), PROBLEM)


def test_names_do_what_objects_do() -> None:
    by_name = tacit.simulate("river-swim", "psrl", 50)
    by_object = tacit.simulate(PROBLEM, tacit.agent("psrl"), 50)
    assert (by_name.regret == by_object.regret).all()
    assert tacit.guarantee("river-swim", "psrl", 50).model == "none"


def test_all_participations_of_one_person_are_covered() -> None:
    agent = tacit.agent("ldp-obi", epsilon=1.0)
    once, thrice = (tacit.guarantee(PROBLEM, agent, 90, participations=n) for n in (1, 3))
    assert thrice.participations == 3 and thrice.epsilon == pytest.approx(once.epsilon)
    scales = [next(iter(said.noise.values())) for said in (once, thrice)]
    assert scales[1] == pytest.approx(3 * scales[0], rel=1e-6)
    result = tacit.simulate(PROBLEM, agent, 90, participations=3)
    assert result.guarantee == thrice.as_simulated()
