"""Logs that stop: people who leave, who quit, who began last week; and logs that do not fit."""

import json

import numpy as np
import pytest

from logs.worlds import chain, garnet, mapping, rows_of, uniform
from tacit.agents.offline import TacitOffline
from tacit.logs.files import read_release, save
from tacit.logs.mapping import make_mapping
from tacit.logs.offline import offline
from tacit.logs.prior import LogPrior
from tacit.logs.rows import arranged
from tacit.logs.simulated import simulate_log
from tacit.logs.values import value_by_release
from tacit.planners.offline import complete
from tacit.policies.tabular import StochasticPolicy
from tacit.problems import TabularMDP
from tacit_lab.report.log_page import render_page

HORIZON = 10


def quitting(horizon: int, seed: int = 0) -> TabularMDP:
    """A garnet with a last state in which episodes end, entered by up to .15 a step."""
    plain, rng = garnet(8, 2, seed), np.random.default_rng([seed, 7])
    ends = 0.15 * rng.random((8, 2))
    P, R = np.zeros((9, 2, 9)), np.zeros((9, 2))
    P[:8, :, :8] = plain.P * (1.0 - ends[..., np.newaxis])
    P[:8, :, 8], P[8, :, 8] = ends, 1.0
    R[:8] = 0.2 + 0.6 * rng.random((8, 2))
    start = np.append(np.full(8, 1 / 8), 0.0)
    return TabularMDP(P, R, horizon, start, rewards="bernoulli", terminal=[8])


def inert(horizon: int) -> TabularMDP:
    """A garnet in which no action has an effect."""
    rng = np.random.default_rng(3)
    P, R = rng.dirichlet(np.ones(6), 6)[:, np.newaxis].repeat(2, 1), rng.random(6)
    return TabularMDP(P, R[:, np.newaxis].repeat(2, 1), horizon, 0, rewards="bernoulli")


def declared(states: int, ends: bool, people: int = 10**6, horizon: int = HORIZON):
    names = ("person", "step", "reward", *(("ends",) if ends else ()))
    return make_mapping(
        {
            "data": {"name": "made up", "people": people},
            "columns": {name: name for name in names},
            "state": [{"column": "state", "size": states}],
            "action": {"column": "action", "size": 2},
            "task": {"horizon": horizon},
        }
    )


def learned(problem: TabularMDP, mapped, people: int, seed: int, last=None):
    """What comes of a log of so many people, person p recorded for last[p] steps."""
    log = simulate_log(problem, uniform(problem), people, np.random.default_rng(seed))
    rows = rows_of(log, mapped.ended)
    here = slice(None) if last is None else rows["step"] < last[rows["person"]]
    columns = {name: column[here] for name, column in rows.items()}
    if mapped.ended < 0:
        del columns["ends"]
    log = arranged(columns, mapped).log
    return offline(log, mapped, TacitOffline(1.0), noise="simulated", seed=seed)


def test_people_who_leave_are_not_worth_less_than_those_who_stay() -> None:
    # in a log in which no action has any effect, nothing is better than what was done
    problem, truth = inert(20), inert(HORIZON)
    value = truth.value(uniform(truth))
    for seed in range(3):
        last = np.random.default_rng(seed).integers(5, 21, 50_000)
        made = learned(problem, declared(6, ends=False), 50_000, seed, last)
        assert made.values["policy"].low <= value <= made.values["policy"].high
        assert made.values["behaviour"].low <= value <= made.values["behaviour"].high
        assert made.values["difference"].low <= 0.0 <= made.values["difference"].high
        page = render_page(made)
        assert "It is not shown that the policy is better" in page
        assert "first episodes of about 31% of the people are not recorded whole" in page
        assert "shorter than the horizon" not in page
        assert made.whole.value == pytest.approx(11 / 16, abs=0.02)
        assert made.to_json()["whole_first_episodes"]["value"] == made.whole.value


def test_quitting_is_as_likely_at_the_last_step_of_a_log_as_before() -> None:
    # 200,000 people, rows for the steps of the horizon and no further: 1 of 20 logs may miss
    problem = quitting(HORIZON)
    for seed in range(3):
        made = learned(problem, declared(8, ends=True), 200_000, seed)
        value = problem.value(made.policy.policy)
        interval = made.values["policy"]
        assert abs(interval.value - value) < 0.6 * (interval.high - interval.low)
        behaviour = made.values["behaviour"]
        assert behaviour.low <= problem.value(uniform(problem)) <= behaviour.high
        assert made.whole.value > 0.99


def test_the_policy_does_not_depend_on_where_the_log_stops() -> None:
    long, short = (learned(quitting(rows), declared(8, ends=True), 200_000, 0) for rows in (14, 10))
    truth = quitting(HORIZON)
    assert truth.value(long.policy.policy) == pytest.approx(
        truth.value(short.policy.policy), abs=0.1
    )


def test_steps_without_a_next_one_are_spread_over_those_that_went_on() -> None:
    cells = np.array([[60.0, 20.0, 40.0], [3.0, 0.0, 0.0]])
    whole = complete(cells, np.array([40.0, 50.0]), np.array([160.0, 53.0]), 2, std=1.0)
    assert np.allclose(whole[0], [90.0, 30.0, 40.0])
    assert np.allclose(whole[1], cells[1]), "three visits say nothing about fifty"
    whole = complete(cells, np.array([40.0, 0.0]), np.array([160.0, 3.0]), -1, std=1.0)
    assert np.allclose(whole[0], [80.0, 80.0 / 3, 160.0 / 3])


def test_declared_states_that_never_occur_leave_no_value_at_its_own_end() -> None:
    problem, mapped = chain(4, HORIZON), declared(24, ends=False)
    for seed in range(12):
        made = learned(problem, mapped, 5_000, seed)
        for name in ("policy", "behaviour"):
            found = made.values[name]
            assert found.low < found.value and found.high - found.low > 0.05


def test_states_that_leave_out_what_matters_are_noticed() -> None:
    # what people earn depends on how often they acted before, and no column says that
    rng, people = np.random.default_rng(0), 100_000
    action = rng.integers(0, 2, (people, HORIZON))
    tired = np.cumsum(action, axis=1) - action >= 4
    reward = (rng.random(action.shape) < np.where(tired, 0.05, 0.3 + 0.6 * action)).astype(
        np.float32
    )
    columns = {
        "person": np.repeat(np.arange(people), HORIZON),
        "step": np.tile(np.arange(HORIZON), people).astype(np.int16),
        "state": np.zeros(people * HORIZON, dtype=np.int16),
        "action": action.ravel().astype(np.int16),
        "reward": reward.ravel(),
    }
    mapped = declared(1, ends=False)
    made = offline(arranged(columns, mapped).log, mapped, TacitOffline(1.0), noise="simulated")
    assert made.values["policy"] is None and made.values["difference"] is None
    assert made.value_of(made.policy) is None, "nor by the release later"
    assert made.values["behaviour"].value == pytest.approx(reward.sum(axis=1).mean(), abs=0.05)
    assert "something that matters is not in them" in render_page(made)


def test_a_declared_most_below_what_people_earn_is_noticed() -> None:
    problem = chain(4, HORIZON)
    log = simulate_log(problem, uniform(problem), 20_000, np.random.default_rng(0))
    mapped = mapping(problem, 20_000, most=0.01)
    made = offline(log, mapped, TacitOffline(2.0), noise="simulated")
    assert made.values["policy"] is None and made.values["difference"] is None
    assert "declared too low" in render_page(made)


def test_the_difference_holds_where_actions_depend_on_the_step() -> None:
    # so the actions in a state, over all steps, are not what people earned their rewards by.
    # 12 logs at 95%: fewer than 9 with probability 2e-3
    problem = garnet(6, 2, seed=1, horizon=5)
    first = np.linspace(0.7, 0.3, 5)[:, np.newaxis, np.newaxis]
    acts = StochasticPolicy(np.tile(np.concatenate([first, 1 - first], axis=2), (1, 6, 1)))
    held = compared = 0
    for seed in range(12):
        log = simulate_log(problem, acts, 20_000, np.random.default_rng(seed))
        made = offline(
            log, mapping(problem, 20_000), TacitOffline(1.0), noise="simulated", seed=seed
        )
        if (found := made.values["difference"]) is not None:
            truth = problem.value(made.policy.policy) - problem.value(acts)
            held += found.low <= truth <= found.high
            compared += 1
    assert compared >= 8 and held >= compared - 3


def test_without_first_steps_nothing_has_a_value() -> None:
    problem, mapped = inert(HORIZON), declared(6, ends=False)
    log = simulate_log(problem, uniform(problem), 20_000, np.random.default_rng(0))
    rows = rows_of(log)
    late = {name: column[rows["step"] > 0] for name, column in rows.items() if name != "ends"}
    made = offline(arranged(late, mapped).log, mapped, TacitOffline(1.0), noise="simulated")
    assert not any(made.values.values()) and made.value_of(uniform(problem)) is None
    assert "first_step" in render_page(made)


def test_what_is_cut_is_told_where_outcomes_are_counted() -> None:
    problem, mapped = inert(20), declared(6, ends=False)
    log = simulate_log(problem, uniform(problem), 20_000, np.random.default_rng(0))
    rows = rows_of(log)
    here = rows["step"] < np.random.default_rng(1).integers(5, 21, 20_000)[rows["person"]]
    columns = {name: column[here] for name, column in rows.items() if name != "ends"}
    agent = TacitOffline(1.0, counts="outcomes")
    made = offline(arranged(columns, mapped).log, mapped, agent, noise="simulated")
    assert made.values["behaviour"] is None and made.values["policy"] is None
    assert "evaluate it by weights" in render_page(made)


def test_a_result_that_was_saved_gives_the_same_prior_and_values(tmp_path) -> None:
    problem, mapped = quitting(HORIZON), declared(8, ends=True)
    made = learned(problem, mapped, 20_000, 0)
    save(made, tmp_path)
    one, two = LogPrior.of(made), LogPrior.of(tmp_path)
    assert one.digest() == two.digest()
    total = one.release.blocks["transitions"].sum(axis=1)
    assert np.allclose(total, 2 * one.release.blocks["totals"], atol=40 * made.release.law.std)
    assert set(read_release(tmp_path, mapped).blocks) == set(made.release.blocks)


def test_a_folder_of_an_earlier_version_is_read(tmp_path) -> None:
    problem = chain(4, HORIZON)
    mapped = mapping(problem)
    log = simulate_log(problem, uniform(problem), 20_000, np.random.default_rng(0))
    made = offline(log, mapped, TacitOffline(1.0), noise="simulated")
    save(made, tmp_path)
    with np.load(tmp_path / "release.npz") as arrays:
        held = {x: arrays[x] for x in arrays.files if x not in ("censored", "choices", "whole")}
    np.savez_compressed(tmp_path / "release.npz", **held)
    values = json.loads((tmp_path / "values.json").read_text())
    del values["ended"]
    (tmp_path / "values.json").write_text(json.dumps(values))
    earlier = read_release(tmp_path, mapped)
    interval = value_by_release(mapped, earlier, uniform(problem), 0.05)
    assert interval.low < problem.value(uniform(problem)) < interval.high
    assert np.array_equal(LogPrior.of(tmp_path).release.blocks["transitions"], held["transitions"])


def test_a_mapping_without_ends_takes_every_stop_for_a_cut() -> None:
    problem = chain(4, HORIZON)
    made = learned(problem, mapping(problem), 20_000, 0, np.full(20_000, 6))
    assert made.whole.high < 0.01
    assert "shorter than the horizon, or the mapping does not number steps" in render_page(made)
    assert made.values["behaviour"].low <= problem.value(uniform(problem))
    assert made.values["behaviour"].high >= problem.value(uniform(problem))
