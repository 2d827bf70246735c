import math

import numpy as np
import pytest

import tacit
from tacit.experiment import bind
from tacit.forecast import few_users, forecast

PROBLEM = tacit.problem("river-swim")


def test_the_forecast_is_the_law_of_the_noise() -> None:
    agent = tacit.agent("ldp-obi", epsilon=1.0, calibration="tight")
    bound = bind(PROBLEM, agent, 100_000)
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
    agent = tacit.agent("ldp-obi", epsilon=1.0, calibration="tight")
    each = tacit.Participation(3, teaches="every")
    once, thrice = (tacit.guarantee(PROBLEM, agent, 90, participation=n) for n in (1, each))
    assert thrice.participations == 3 and thrice.epsilon == pytest.approx(once.epsilon)
    scales = [next(iter(said.noise.values())) for said in (once, thrice)]
    assert scales[1] == pytest.approx(3 * scales[0], rel=1e-6)
    result = tacit.Experiment(problem=PROBLEM, agent=agent, episodes=90, participation=each).run()
    assert result.guarantee == thrice.as_simulated()


def test_devices_report_the_first_participation_unless_told_otherwise() -> None:
    agent = tacit.agent("ldp-obi", epsilon=1.0)
    once, thrice = (tacit.guarantee(PROBLEM, agent, 90, participation=n) for n in (1, 3))
    assert thrice.noise == once.noise and thrice.epsilon == once.epsilon
    assert thrice.participations == 3 and thrice.rule.teaches == "first"
    assert "all their participations" in thrice.statement()


def test_the_rule_of_tacit_local_counts_pairs_places_and_steps() -> None:
    """H X (4 + v N H): the noise v of one report about a reward, by the formula of its oracle."""
    e = math.e
    agent, task = tacit.agent("tacit-local", epsilon=1.0), PROBLEM.task(users=50_000)
    X, N, H = 12, 6, 20
    w = 3  # ones among the 2 N cells of a reward
    p = w * e / (w * e + 2 * N - w)
    q = w * (e * (w - 1) + 2 * N - w) / ((2 * N - 1) * (w * e + 2 * N - w))
    v = q * (1 - q) / (p - q) ** 2
    assert agent.users_needed(task) == pytest.approx(H * X * (4 + v * N * H), abs=1)
    staged = tacit.problem("river-swim", inhomogeneous=True).task(users=1)
    assert agent.users_needed(staged) == pytest.approx(H * agent.users_needed(task), abs=H)


def test_too_few_users_are_warned_of_and_others_are_not() -> None:
    agent = tacit.agent("tacit-local", epsilon=1.0)
    said = few_users(PROBLEM.task(users=1000), agent)
    assert said is not None and said.startswith("1,000 users are few for tacit-local at epsilon 1:")
    assert "12 pairs of state and action and 20 steps" in said
    assert few_users(PROBLEM.task(users=10**7), agent) is None
    assert few_users(PROBLEM.task(users=1), tacit.agent("psrl")) is None


def test_terminal_states_ask_for_fewer_users() -> None:
    """Their pairs need not be learned, and all of them are one place."""
    P, R = np.full((6, 2, 6), 1 / 6), np.zeros((6, 2))
    agent = tacit.agent("tacit-local", epsilon=1.0)
    needed = [
        agent.users_needed(tacit.TabularMDP(P, R, 5, terminal=ends).task(users=1))
        for ends in ([], [5], [3, 4, 5])
    ]
    assert needed[0] > needed[1] > 2 * needed[2]


def test_a_table_too_large_for_one_report_is_refused_with_what_to_do() -> None:
    S = 800
    steps = [(s, 0, (s + 1) % S, 1.0) for s in range(S)]
    many = tacit.TabularMDP(steps, np.zeros((S, 1)), 3)
    with pytest.raises(tacit.InvalidInput, match=r"1,280,000 cells.*merge states.*joint agent"):
        bind(many, tacit.agent("tacit-local", epsilon=1.0), 10)
    ends = tacit.TabularMDP(steps, np.zeros((S, 1)), 3, terminal=range(1, S))
    bind(ends, tacit.agent("tacit-local", epsilon=1.0), 10)
