"""One-cell privatizers with one thing wrong each: tests must notice."""

import numpy as np

from privacy.local.cells import LEAST
from tacit.grid import STEPS
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, WEIGHT_STEPS
from tacit.policies.tabular import TabularPolicy
from tacit.privacy.base import Report
from tacit.privacy.finite import best_oracle
from tacit.privacy.local.one_cell import OneCell
from tacit.publication import Publication
from tacit.statistics import Block, Layout
from tacit.statistics.one_step import OneStep
from tacit.task.task import Task


class Louder(OneCell):
    """Half the noise behind an unchanged guarantee."""

    def __init__(self, statistic, of, *, requested_epsilon) -> None:
        super().__init__(statistic, of, requested_epsilon=requested_epsilon)
        self.oracles = tuple(best_oracle(2 * requested_epsilon, o.domain) for o in self.oracles)


class OneIsLouder(OneCell):
    """Half the noise for one kind of question only."""

    def __init__(self, statistic, of, *, requested_epsilon) -> None:
        super().__init__(statistic, of, requested_epsilon=requested_epsilon)
        joint, move, reward = self.oracles
        self.oracles = joint, best_oracle(2 * requested_epsilon, move.domain), reward


class WrongDomain(OneCell):
    """All questions go through the oracle of joint cells."""

    def encode(self, contribution, publication, noise) -> Report:
        keep, self.oracles = self.oracles, (self.oracles[STEP],) * KINDS
        try:
            return super().encode(contribution, publication, noise)
        finally:
            self.oracles = keep


class DropsTheCoin(OneCell):
    """Reports rewards above 1/2 as 1: another law, not a mixture."""

    def encode(self, contribution, publication, noise) -> Report:
        cell = self.statistic.layout.views(contribution)["cell"]
        rounded = contribution.copy()
        self.statistic.layout.views(rounded)["cell"][:] = np.rint(cell / STEPS)
        self.statistic.layout.views(rounded)["cell"][:] *= STEPS
        return super().encode(rounded, publication, noise)


class WithActions(OneStep):
    """Also tells which action was taken."""

    def __init__(self, of: Task) -> None:
        super().__init__(of)
        self.layout = Layout([*self.layout.blocks, Block("action", (of.sizes["actions"],))])

    def contribute(self, trajectory, publication, coin, out) -> None:
        super().contribute(trajectory, publication, coin, out)
        h, _ = self.question(publication, coin)
        taken = trajectory.actions[h] if h < len(trajectory.actions) else 0
        self.layout.views(out)["action"][taken] = 1


class ByAction(OneCell):
    """Addresses the report by the action taken instead of the action advised."""

    def encode(self, contribution, publication, noise) -> Report:
        taken = int(np.argmax(self.statistic.layout.views(contribution)["action"]))
        table = np.full_like(publication.policy.actions, taken)
        return super().encode(
            contribution, Publication(0, TabularPolicy(table), publication.context), noise
        )


class StepByData(OneStep):
    """Whoever was in state 1 reports about the last step."""

    def question(self, publication, coin) -> tuple[int, int]:
        return (self.horizon - 1, REWARD) if self.late else super().question(publication, coin)

    def contribute(self, trajectory, publication, coin, out) -> None:
        self.late = len(trajectory.states) > 0 and trajectory.states[0] == 1
        super().contribute(trajectory, publication, coin, out)


class KindByData(OneStep):
    """Whoever got nothing is not asked about rewards."""

    def question(self, publication, coin) -> tuple[int, int]:
        h, kind = super().question(publication, coin)
        return (h, MOVE) if self.poor and h < self.horizon - 1 else (h, kind)

    def contribute(self, trajectory, publication, coin, out) -> None:
        self.poor = not np.any(trajectory.rewards)
        super().contribute(trajectory, publication, coin, out)


class OwnWeights(OneCell):
    """Weights chosen after the batch: large where the report itself points."""

    def address(self, report, step, kind, publication) -> np.ndarray:
        H, S = publication.policy.actions.shape
        pointed = report.reshape(S, -1).sum(axis=1) > 0
        occupancy = np.where(pointed, WEIGHT_STEPS, LEAST)[None].repeat(H, axis=0)
        chosen = Publication(0, publication.policy, {"occupancy": occupancy})
        return super().address(report, step, kind, chosen)


def mutant(name: str, of: Task, epsilon: float = 1.0) -> OneCell:
    statistic = {
        "by action": WithActions,
        "step by data": StepByData,
        "kind by data": KindByData,
    }.get(name, OneStep)(of)
    make = {
        "louder": Louder,
        "one is louder": OneIsLouder,
        "wrong domain": WrongDomain,
        "drops the coin": DropsTheCoin,
        "by action": ByAction,
        "own weights": OwnWeights,
    }.get(name, OneCell)
    return make(statistic, of, requested_epsilon=epsilon)
