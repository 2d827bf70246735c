"""The agent: its batches, its guarantee, and its compiled loop beside the stepwise driver."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import tacit
from tacit.agents import ShuffleOBI
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import REWARD, STEP
from tacit.privacy.shuffle.blanket import Blanket
from tacit.privacy.shuffle.shuffled import Shuffled, useful_crowd
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.loops.one_cell import OneCellRun

tight = partial(ShuffleOBI, calibration="tight")
PROBLEM = tacit.problem("random-mdp", seed=21)


def bound(agent: ShuffleOBI, users: int = 1000):
    return agent.bind(PROBLEM.task(users=users))


def test_the_guarantee_is_central_and_shows_the_local_view() -> None:
    said = tacit.guarantee(PROBLEM, tight(1.0, 1e-6, batch=200), 10_000)
    assert said.model == "shuffle" and said.epsilon == pytest.approx(1.0) and said.delta == 1e-6
    assert said.delta_at_requested_epsilon <= 1e-6
    assert [view.model for view in said.also] == ["local"]
    assert 2.0 < said.also[0].epsilon < 3.0 and said.also[0].delta == 0.0
    again = tacit.privacy.guarantee.Guarantee.from_json(json.loads(json.dumps(said.to_json())))
    assert again == said


def test_larger_batches_buy_less_noise_and_colluders_cost_some() -> None:
    local = [
        tacit.guarantee(PROBLEM, tight(0.5, 1e-6, batch=b), 10_000).also[0].epsilon
        for b in (1, 100, 1000)
    ]
    assert local[0] == pytest.approx(0.5, rel=1e-3) and local[0] < local[1] < local[2]
    spied = tacit.guarantee(PROBLEM, tight(0.5, 1e-6, batch=1000, colluders=900), 10_000)
    assert local[0] < spied.also[0].epsilon < local[1] * 1.1 < local[2]
    capped = tacit.guarantee(PROBLEM, tight(0.5, 1e-6, batch=1000, local_epsilon=1.0), 10_000)
    assert capped.also[0].epsilon == pytest.approx(1.0) and capped.epsilon < 0.5
    assert "stronger than asked" in str(capped)


@pytest.mark.parametrize("reward_bits", [1, 4])
@pytest.mark.parametrize(("epsilon", "horizon"), [(0.5, 1), (2.0, 2), (8.0, 5)])
def test_corrected_bits_share_what_is_asked_for(epsilon, horizon, reward_bits) -> None:
    """One replaced trajectory moves 2H(m + 2) - 2 bits, and the shuffler hides none of them."""
    problem = tacit.problem("random-mdp", horizon=horizon)
    agent = ShuffleOBI(epsilon, reward_bits=reward_bits)
    task = problem.task(users=1000)
    said, H = agent.bind(task).guarantee, horizon
    bits = 2 * H * (reward_bits + 2) - 2
    assert said.noise["epsilon per bit"] == pytest.approx(epsilon / bits, rel=1e-9)
    assert said.epsilon == pytest.approx(epsilon) and said.epsilon <= epsilon and said.delta == 0.0
    paper = ShuffleOBI(epsilon, calibration="paper", reward_bits=reward_bits).bind(task).guarantee
    assert paper.epsilon == pytest.approx(min(bits * epsilon, 64.0))  # no report is ever wrong
    often = agent.bind(replace(task, participations=3)).guarantee
    assert 0.99 * epsilon < often.epsilon <= epsilon
    notes = " ".join(agent.notes(task))
    assert all(f"tabular_ldp.md#{place}" in notes for place in ("e8", "e12", "e13"))
    assert agent.parameters()["width"] == "bernstein"


def test_corrected_bits_teach_something_where_bits_are_true() -> None:
    result = tacit.simulate(PROBLEM, ShuffleOBI(2000.0), 10_000)
    assert result.regret_per_episode(9000, 10_000).max() < 0.1


def test_sizes_of_batches() -> None:
    few, many = PROBLEM.task(users=1000), PROBLEM.task(users=10**6)
    turns = tight(1.0, steps="assigned", batch=7)
    assert turns.crowd(few) == 3 and bound(turns).schedule(0) == 6
    assert tight(1.0, batch=7).crowd(few) == 7 and bound(tight(1.0, batch=7)).schedule(5) == 7
    assert tight(1.0, steps="assigned", batch=1).crowd(few) == 1
    wanted = useful_crowd(1.0, 1e-6)
    assert tight(1.0).crowd(many) == 2 * wanted
    assert tight(1.0, colluders=5).crowd(many) == 2 * wanted + 5
    assert tight(1.0, steps="assigned").crowd(many) == wanted
    assert tight(1.0).crowd(few) == 20  # a fiftieth
    assert tight(1.0, steps="assigned").crowd(few) == 10


def test_the_accounting_uses_the_crowd_of_one_step_where_steps_are_public() -> None:
    mechanism = bound(tight(1.0, 1e-6, steps="assigned", batch=400)).privatizer
    assert isinstance(mechanism, Shuffled) and mechanism.hidden == 200
    for oracle in (mechanism.local.oracles[STEP], mechanism.local.oracles[REWARD]):
        assert Blanket((oracle,)).delta(200, 1.0) <= 1e-6 < Blanket((oracle,)).delta(199, 1.0)
    drawn = bound(tight(1.0, 1e-6, batch=400)).privatizer
    assert isinstance(drawn, Shuffled) and drawn.hidden == 400
    (blanket,) = drawn.blankets()
    assert blanket.delta(400, 1.0) <= 1e-6 < blanket.delta(399, 1.0)


def test_without_noise_the_compiled_loop_is_the_driver() -> None:
    """At epsilon 60 no report is ever randomized, so even the aggregated loop is bit-equal."""
    agent = tight(60.0, 1e-6, steps="assigned", batch=10, local_epsilon=60.0)
    assert type(compiled_run(PROBLEM, bound(agent), 0, 0, np.array([10]))) is OneCellRun
    runs = [
        tacit.Experiment(problem=PROBLEM, agent=agent, episodes=407, compiled=c, runs=2).run()
        for c in (True, False)
    ]
    assert np.array_equal(runs[0].regret, runs[1].regret)
    assert np.array_equal(runs[0].reward, runs[1].reward)


@pytest.mark.parametrize("steps", ["own", "assigned"])
def test_with_noise_both_loops_have_one_law(steps) -> None:
    """Mean regret of 24 short runs either way, 5 standard errors apart at most."""
    agent = tight(2.0, 1e-6, steps=steps, batch=10)
    means, errors = [], []
    for compiled in (True, False):
        last = (
            tacit.Experiment(problem=PROBLEM, agent=agent, episodes=200, compiled=compiled, runs=24)
            .run()
            .regret[:, -1]
        )
        means.append(last.mean())
        errors.append(last.std(ddof=1) / math.sqrt(24))
    assert abs(means[0] - means[1]) <= 5 * math.hypot(*errors)
    assert min(errors) > 0.0


def test_it_learns_where_the_local_agent_at_the_same_epsilon_does_not() -> None:
    """Per-episode regret of the last tenth of 60,000 users, both asked for epsilon 1."""
    shuffled = tacit.simulate(PROBLEM, tight(1.0), 60000, runs=2)
    local = tacit.simulate(PROBLEM, tacit.agent("ldp-obi", epsilon=1.0), 60000, runs=2)
    one, other = (r.regret_per_episode(54_000, 60_000).mean() for r in (shuffled, local))
    assert one < 0.2 * other
    assert shuffled.guarantee.simulated and shuffled.guarantee.also[0].simulated


def test_stage_dependent_problems_are_learned_too() -> None:
    problem = tacit.problem("river-swim", states=3, horizon=3, inhomogeneous=True)
    result = tacit.simulate(problem, tight(2.0, batch=30), 300, runs=1)
    assert np.isfinite(result.regret).all()


def test_the_notes_say_who_is_never_opened() -> None:
    for steps in ("own", "assigned"):
        (note,) = tight(1.0, steps=steps, batch=400).notes(PROBLEM.task(users=1000))
        assert "batches of 400 users" in note and "last 200 of 1,000" in note


def test_audits_of_the_report_and_of_an_opened_batch() -> None:
    agent = tight(1.0, 1e-2, batch=6)
    found = tacit.audit(PROBLEM, agent, trials=6000, confidence=0.999, seconds=1e6)
    assert found.verdict != "violated"
    assert [report.source for report in found.reports] == ["simulated", "simulated", "secure"]
    after, before, _ = found.reports
    assert before.delta == 0.0 and after.delta == 1e-2
    assert before.claimed_epsilon == pytest.approx(bound(agent).guarantee.also[0].epsilon)
    assert after.claimed_epsilon == pytest.approx(1.0) and "opened batch of 6" in after.target
    assert 0.7 * before.claimed_epsilon < before.lower_bound <= before.claimed_epsilon


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "shuffle-obi is private and needs an epsilon"),
        ({"epsilon": 0.0}, "epsilon = 0"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta = 0"),
        ({"epsilon": 1.0, "batch": -1}, "batch = -1"),
        ({"epsilon": 1.0, "steps": "all"}, "one of own, assigned"),
        ({"epsilon": 1.0, "calibration": "loose"}, "one of corrected, paper, tight"),
        ({"epsilon": 1.0, "colluders": 0.5}, "colluders = 0.5"),
        ({"epsilon": 1.0, "local_epsilon": 0.0}, "local_epsilon = 0"),
        ({"epsilon": 1.0, "bonus_scale": math.nan}, "bonus_scale = nan"),
        ({"epsilon": 1.0, "beta": 0.0}, "beta = 0"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.agent("shuffle-obi", **parameters)


def test_a_batch_of_colluders_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nobody to hide among"):
        bound(tight(1.0, steps="assigned", batch=10, colluders=5))
