"""Where rewards are rare some plans that would exploit doubt what is known; elsewhere none does."""

import numpy as np
import pytest

import tacit
from tacit.planners import first_visits
from tacit.planners.first_visits import RARE_REWARD, FirstVisitPlanner

PLAIN = FirstVisitPlanner._choose


def walk() -> tacit.TabularMDP:
    """Four places in a row: the way on slips, and who leaves the last one is paid once."""
    rows = [(s, a, s + a if a else 0, 0.8) for s in range(4) for a in (0, 1)]
    rows += [(s, a, s, 0.2) for s in range(4) for a in (0, 1)]
    rewards = [[0.0, 0.0]] * 3 + [[0.0, 0.8]] + [[0.0, 0.0]]
    return tacit.TabularMDP(np.array(rows), rewards, 40, 0, terminal=[4], rewards="bernoulli")


@pytest.mark.parametrize(
    ("problem", "rare"),
    [
        (walk(), True),
        (tacit.problem("random-mdp", states=4, actions=2, horizon=5, seed=3), False),
    ],
    ids=["walk", "random-mdp"],
)
def test_plans_doubt_where_rewards_are_rare(problem, rare: bool, monkeypatch) -> None:
    seen: list[tuple[float, float]] = []

    def watched(self, task, model, width, rate, streams):
        seen.append((width, rate))
        return PLAIN(self, task, model, width, rate, streams)

    monkeypatch.setattr(first_visits.FirstVisitPlanner, "_choose", watched)
    tacit.simulate(problem, tacit.agent("tacit-joint", epsilon=1.0), 30000, runs=1, seed=1)
    doubting = [rate for width, rate in seen if width == 1.0]
    assert len(doubting) >= 3 if rare else not doubting
    assert all(rate < RARE_REWARD for rate in doubting)
    assert any(width == 0.0 for width, _ in seen) and any(0.0 < w < 1.0 for w, _ in seen)
