"""The coach: the table follows the description, and people between the cells behave like it."""

import gymnasium
import numpy as np
import pytest

import tacit
from tacit.policies.tabular import StochasticPolicy
from tacit_lab.cases import coach_world as world


def test_it_has_the_published_size_and_needs_quiet_days() -> None:
    problem = tacit.problem("coach")
    assert (problem.states, problem.actions, problem.horizon) == (121, 4, 50)
    fixed = {
        name: problem.value(StochasticPolicy(table))
        for name, table in world.fixed_messages(problem).items()
    }
    best = problem.optimal_value()
    assert max(fixed.values()) == fixed["any"] < 0.7 * best, "a fixed message is not enough"
    assert fixed["nothing"] == pytest.approx(50 * world.BASE / world.MOST)
    played = problem.optimal_q().argmax(axis=2)
    assert {0, 2, 3} <= set(played[:, :-1].ravel().tolist())


@pytest.mark.parametrize(
    ("message", "fits", "expected"),
    [
        (0, True, (0.45, 0.5)),
        (1, True, (0.55, 0.45)),
        (2, True, (0.55, 0.45)),
        (2, False, (0.55, 0.9)),
    ],
)
def test_a_day_changes_people_as_published(message, fits, expected) -> None:
    assert world.after_message(0.5, 0.5, message, fits) == pytest.approx(expected)


def test_steps_of_a_day() -> None:
    assert world.steps_of(0.5, 0, True) == world.steps_of(0.5, 2, False) == world.BASE
    assert world.steps_of(0.5, 1, True) == world.BASE + 25
    assert world.steps_of(0.5, 3, True) == world.BASE + 100


def test_rounding_to_the_grid_keeps_means() -> None:
    problem = world.coach(uncertainty=0.0)
    shape = (2, len(world.HABITUATION), len(world.RISK))
    s = int(np.ravel_multi_index((0, 4, 2), shape))
    law = problem.P[0, s, 2, :-1].reshape(shape)
    used, risk = world.after_message(float(world.HABITUATION[4]), float(world.RISK[2]), 2, True)
    assert (law.sum(axis=(0, 2)) @ world.HABITUATION) == pytest.approx(used)
    assert (law.sum(axis=(0, 1)) @ world.RISK) == pytest.approx(risk)
    assert law.sum(axis=(1, 2)) == pytest.approx([0.5, 0.5])


def test_without_habituation_messages_keep_working() -> None:
    tireless, usual = world.coach(habituation=False), world.coach()
    table = StochasticPolicy(world.fixed_messages(usual)["any"])
    assert tireless.value(table) == pytest.approx(50 * (world.BASE + world.ANY) / world.MOST)
    assert usual.value(table) < 0.7 * tireless.value(table)


def test_people_earn_about_what_the_table_says() -> None:
    from tacit_lab.cases.coach import on_people

    problem = world.coach()
    table = StochasticPolicy(world.fixed_messages(problem)["any"])
    found = on_people(table, people=60)
    assert found.first.value == pytest.approx(problem.value(table), rel=0.15)
    assert found.later.value < found.first.value  # they are used to messages


def test_people_come_back_used_to_messages_and_days_get_lost() -> None:
    env = gymnasium.make("tacit_lab.cases.coach_world:tacit/coach-people-v0", missing=1.0).unwrapped
    env.reset(seed=1)
    paid = [env.step(1) for _ in range(20)]
    assert all(step[1] == 0.0 and step[4]["missing"] for step in paid)
    used = env._h
    env.reset(options={"return": True})
    assert env._h == used > 0.1
    env.reset()
    assert env._h == 0.0


def test_people_quit_after_wrong_messages() -> None:
    env = world.CoachEnv(uncertainty=0.0)
    for seed in range(20):
        seen, _ = env.reset(seed=seed)
        gone = over = False
        while not (gone or over):
            wrong = 3 if seen < 60 else 2
            seen, _, gone, over, _ = env.step(wrong)
        assert gone and seen == env.observation_space.n - 1
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
