"""An agent of your own, in plain Python: explore at random, then commit to the best policy seen.

It plugs a planner of its own into tacit's statistic and privatizer, runs through the same driver
as every other agent, and is scored the same way. Run it: python examples/own_agent.py
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import tacit
from tacit.learner import BoundAgent
from tacit.planners import Ask, Streams
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import Exact
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


class ExploreThenCommit:
    """A planner sees the task and a release, and returns the next publication. Nothing else."""

    def __init__(self, explore: int) -> None:
        self.explore = explore

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Random tables while exploring, then greedy in the empirical model."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        version = 0 if previous is None else previous.version + 1
        if release.users < self.explore:
            table = streams.ties.integers(A, size=(H, S))
            return Publication(version, TabularPolicy(table))
        visits, transitions = release.blocks["visits"][0], release.blocks["transitions"][0]
        reward = release.blocks["reward"][0] / np.maximum(visits, 1)
        seen = np.maximum(transitions.sum(axis=2, keepdims=True), 1)
        value, table = np.zeros(S), np.zeros((H, S), dtype=np.int64)
        for h in reversed(range(H)):
            q = reward + transitions / seen @ value
            table[h] = (q + 1e-9 * streams.ties.random(q.shape)).argmax(axis=1)
            value = q.max(axis=1)
        return Publication(version, TabularPolicy(table))


@dataclass(frozen=True)
class ExploreAgent(tacit.Agent):
    """The recipe: which statistic, which privatizer, which planner."""

    name: ClassVar[str] = "explore-then-commit"
    explore: int = 500

    def bind(self, task: Task) -> BoundAgent:
        """Plug the parts together for one task; the planner adds up the stages."""
        if not task.homogeneous:
            raise tacit.InvalidInput("explore-then-commit needs a homogeneous problem")
        statistic = VisitCounts(task)
        return BoundAgent(task, statistic, Exact(statistic, task), ExploreThenCommit(self.explore))


if __name__ == "__main__":
    problem = tacit.problem("river-swim", states=4, horizon=10)
    mine = tacit.simulate(problem, ExploreAgent(), episodes=2_000, seeds=4)
    psrl = tacit.simulate(problem, tacit.agent("psrl"), episodes=2_000, seeds=4)
    for result in (mine, psrl):
        print(f"{result.agent['name']}: regret {result.regret[:, -1].mean():.0f}")
    print(mine.guarantee.statement().split("\n")[0])

    gap = problem.optimal_value() - problem.baseline()[1]
    assert mine.regret_per_episode(1_800, 2_000).mean() < 0.5 * gap, "it has learned something"
    assert psrl.regret[:, -1].mean() < mine.regret[:, -1].mean(), "and psrl has learned more"
