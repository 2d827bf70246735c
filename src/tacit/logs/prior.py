"""From a log to online learning: a release about a log lets an online learner begin with it.

The log was paid for when it was released, so what the learner makes of it costs its people nothing
more. Whoever is in the log and takes part online too is covered by both statements together.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.logs.files import read_result
from tacit.logs.offline import OfflineResult
from tacit.planners.first_returns import FirstReturnPlanner
from tacit.planners.first_visits import FirstVisitPlanner
from tacit.planners.offline import completed, people_of
from tacit.planners.warm_start import WarmStartPlanner, share_tried
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.merged_release import MergedRelease
from tacit.release import Release
from tacit.task.task import Task

VISITS = {name: name for name in ("transitions", "totals", "gains", "starts")}
RETURNS = {"returns": "outcomes", "totals": "visits"}
"""Blocks of online releases, and what they are called in a release about a log."""


@dataclass(frozen=True, eq=False)
class LogPrior:
    """What an online learner may begin with.

    Attributes:
        name: of the data set.
        release: what was released about it, completed where next states were not recorded.
        task: of its mapping.
        max_return: the most that one episode earns, in rewards of [0, 1] per step.
        guarantee: of everybody in the log.
    """

    name: str
    release: Release
    task: Task
    max_return: float
    guarantee: Guarantee

    @classmethod
    def of(cls, result: OfflineResult | str | Path) -> LogPrior:
        """The result of ``tacit.offline``, or the folder that ``tacit offline --out`` wrote."""
        if not isinstance(result, OfflineResult | str | Path):
            raise InvalidInput(
                "a prior is what tacit.offline returned, or the folder that tacit offline --out "
                f"wrote, not {type(result).__name__}"
            )
        stored = result if isinstance(result, OfflineResult) else read_result(result)
        facts = stored.mapped if isinstance(stored, OfflineResult) else stored
        release = completed(stored.release, facts.ended)
        return cls(stored.data["name"], release, facts.task, facts.max_return, stored.guarantee)

    def begin(self, bound: BoundAgent, name: str) -> BoundAgent:
        """The same agent, whose planner sees the log's release merged with its own.

        Args:
            bound: the agent, fitted to the online task.
            name: what it is called.
        """
        task, planner = bound.task, bound.planner
        if isinstance(planner, FirstVisitPlanner):
            names, learns = VISITS, "next states: make the prior with -A counts=transitions"
        elif isinstance(planner, FirstReturnPlanner):
            names, learns = RETURNS, "returns: make the prior with -A counts=outcomes"
        else:
            raise InvalidInput(
                f"{name} cannot begin with a log here: a prior is for tacit-joint on tables whose "
                "stages are alike"
            )
        self._require_fit(task, returns=names is RETURNS)
        own, nothing = bound.statistic.layout.blocks, np.zeros(0)
        blocks = {x.name: self.release.blocks.get(names[x.name], nothing) for x in own}
        if any(blocks[block.name].shape != block.shape for block in own):
            raise InvalidInput(
                f"the prior counted something else than {name}, which counts {learns}"
            )
        scale = self.release.law.scale("totals")
        merge = MergedRelease(
            blocks=blocks,
            own=scale,
            online=bound.privatizer.law(task.users).scale("totals"),
            people=share_tried(task, blocks["totals"], scale) * people_of(self.release),
            source=self.release.source,
        )
        merged = dataclasses.replace(task, users=merge.users(task.users))
        warm = WarmStartPlanner(inner=planner, merge=merge, task=merged)
        return dataclasses.replace(bound, planner=warm)

    def _require_fit(self, task: Task, *, returns: bool) -> None:
        """Refuse a log of something else; that rewards mean the same nobody can check."""
        own = self.task
        for what, mine, other in (
            ("horizon", own.horizon, task.horizon),
            ("number of states", own.sizes["states"], task.sizes["states"]),
            ("number of actions", own.sizes["actions"], task.sizes["actions"]),
            ("reward after the end", own.end_reward, task.end_reward),
            *([("largest return", self.max_return, task.returns[1])] if returns else []),
        ):
            if mine != other:
                raise InvalidInput(
                    f"the prior does not fit: its log has {what} {mine:g}, the problem {other:g}"
                )
        if not np.array_equal(own.pairs.number, task.pairs.number):
            raise InvalidInput(
                "the prior does not fit: its mapping declares other terminal states or other "
                "allowed actions than the problem"
            )

    def stated(self, online: Guarantee) -> Guarantee:
        """The online statement, and beside it the one for a person who is in the log too."""
        own = self.guarantee.as_simulated() if online.simulated else self.guarantee
        whom = f"a person who is in the log {self.name!r} of the prior too"
        both = online
        if own.unit == "participation":  # what covers a person covers each of their times
            whom = f"one participation, and one episode of the log {self.name!r} of the prior"
            both = dataclasses.replace(online, unit=own.unit)
        both += own
        beside = "other releases about that log are not in this sum, its ledger has them"
        both = dataclasses.replace(both, accountant=f"for {whom}; {beside}; {both.accountant}")
        return dataclasses.replace(online, also=(*online.also, both))

    def to_json(self) -> dict[str, Any]:
        """Which log, and what its people were guaranteed."""
        return {
            "data": self.name,
            "people": round(people_of(self.release)),
            "digest": self.digest(),
            "guarantee": self.guarantee.to_json(),
        }

    def digest(self) -> str:
        """SHA-256 of all that a learner takes from it."""
        sha = hashlib.sha256(self.task.digest().encode() + self.guarantee.digest().encode())
        for name, block in sorted(self.release.blocks.items()):
            sha.update(name.encode() + np.ascontiguousarray(block).tobytes())
        return sha.hexdigest()
