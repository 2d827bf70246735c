"""Policies from logs are worth something, and their intervals hold what they are worth."""

import numpy as np
import pytest

from logs.worlds import (
    chain,
    garnet,
    inventory,
    mapping,
    queue,
    survival,
    towards_best,
    uniform,
)
from tacit.logs.offline import evaluate, offline
from tacit.logs.simulated import simulate_log
from tacit.planners.apvi import on_simplex

WORLDS = {"chain": chain, "garnet": garnet, "inventory": inventory, "queue": queue}


def covered(name: str, people: int, epsilon: float, logs: int) -> dict[str, list[float]]:
    """Shares of logs whose intervals hold the truth, and mean widths."""
    problem = WORLDS[name]()
    mapped, behaviour, other = mapping(problem, people), uniform(problem), towards_best(problem)
    truth = {"behaviour": problem.value(behaviour), "other": problem.value(other)}
    truth["weights"] = truth["other"]
    found: dict[str, list[list[float]]] = {name: [] for name in (*truth, "policy", "difference")}
    for k in range(logs):
        log = simulate_log(problem, behaviour, people, np.random.default_rng(1000 + k))
        made = offline(log, mapped, epsilon=epsilon, noise="simulated", seed=k)
        truth["policy"] = problem.value(made.policy.policy)
        truth["difference"] = truth["policy"] - truth["behaviour"]
        weighed = evaluate(log, other, mapped, epsilon=epsilon, noise="simulated", seed=k)
        told = {**made.values, "other": made.worth(other), "weights": weighed.interval}
        for what, interval in told.items():
            if interval is not None:  # withheld by luck
                holds = interval.low <= truth[what] <= interval.high
                found[what].append([holds, interval.high - interval.low])
    assert len(found["policy"]) >= 0.98 * logs
    return {what: np.mean(rows, axis=0).tolist() for what, rows in found.items()}


@pytest.mark.parametrize("name", ["garnet", "queue"])
def test_intervals_hold_the_value(name) -> None:
    # 60 logs at 95%: fewer than 51 of them with probability 1e-3
    for what, (share, _) in covered(name, 20_000, 2.0, 60).items():
        assert share >= 51 / 60, what


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WORLDS))
def test_intervals_hold_the_value_in_93_of_100_logs(name) -> None:
    private = covered(name, 100_000, 4.0, 400)
    exact = covered(name, 100_000, 1000.0, 20)
    for what, (share, width) in private.items():
        assert share >= 0.93, what
        assert width <= 3 * exact[what][1], what


@pytest.mark.parametrize("name", list(WORLDS))
def test_a_policy_from_a_log_closes_most_of_the_gap(name) -> None:
    problem = WORLDS[name]()
    behaviour, best = problem.value(uniform(problem)), problem.optimal_value()
    log = simulate_log(problem, uniform(problem), 100_000, np.random.default_rng(0))
    made = offline(log, mapping(problem), epsilon=1.0, noise="simulated")
    assert problem.value(made.policy.policy) > behaviour + 0.8 * (best - behaviour)


@pytest.mark.parametrize("agent", ["dp-apvi", "dp-vapvi"])
def test_published_pessimism_learns_with_a_small_penalty(agent) -> None:
    problem = garnet()
    log = simulate_log(problem, uniform(problem), 100_000, np.random.default_rng(0))
    made = offline(
        log,
        mapping(problem),
        agent,
        epsilon=1.0,
        noise="simulated",
        parameters={"bonus_scale": 1e-3},
    )
    assert made.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    assert problem.value(made.policy.policy) > problem.value(uniform(problem)) + 0.5


def test_published_pessimism_at_full_size_knows_nothing_of_a_small_log() -> None:
    problem = garnet()
    log = simulate_log(problem, uniform(problem), 2_000, np.random.default_rng(0))
    for agent in ("dp-apvi", "dp-vapvi"):
        made = offline(log, mapping(problem), agent, epsilon=1.0, noise="simulated")
        assert made.values["policy"] is None
        assert (made.policy.policy.actions == 0).all()


def test_large_tables_are_learned_by_outcomes() -> None:
    problem, paid = survival()
    behaviour = uniform(problem)
    before = problem.value(behaviour)
    log = simulate_log(problem, behaviour, 100_000, np.random.default_rng(0), paid)
    made = offline(log, mapping(problem, most=1.0), epsilon=1.0, noise="simulated")
    assert set(made.release.blocks) == {"outcomes", "visits", "people", "whole", "returns"}
    assert problem.value(made.policy.policy) > before + 0.3 * (problem.optimal_value() - before)
    interval = made.values["behaviour"]
    assert interval.low <= before <= interval.high and interval.high - interval.low < 0.05
    assert made.values["policy"] is None


def test_pairs_that_nobody_saw_widen_the_interval_and_are_not_chosen() -> None:
    problem = chain(4, 5)
    never = np.zeros((5, 4, 2))
    never[..., 0] = 1.0
    from tacit.policies.tabular import StochasticPolicy

    log = simulate_log(problem, StochasticPolicy(never), 50_000, np.random.default_rng(0))
    made = offline(log, mapping(problem), epsilon=4.0, noise="simulated")
    other = made.worth(StochasticPolicy(never[..., ::-1].copy()))
    assert other.high - other.low > 4.0
    assert made.policy.policy.actions[0, 0] == 0


def test_rewards_are_told_in_the_units_of_the_log(tmp_path) -> None:
    problem = chain(4, 5)
    log = simulate_log(problem, uniform(problem), 50_000, np.random.default_rng(0))
    plain = offline(log, mapping(problem), epsilon=4.0, noise="simulated").values["behaviour"]
    mapped = mapping(problem, range=[-2.0, 8.0])
    scaled = offline(log, mapped, epsilon=4.0, noise="simulated").values["behaviour"]
    assert scaled.value == pytest.approx(-2.0 * 5 + 10.0 * plain.value)


def test_rows_on_the_simplex() -> None:
    rows = np.array([[0.2, 0.9, -0.3], [0.3, 0.3, 0.4], [-1.0, -1.0, -1.0]])
    nearest = on_simplex(rows)
    assert np.allclose(nearest, [[0.15, 0.85, 0.0], [0.3, 0.3, 0.4], [1 / 3] * 3])
