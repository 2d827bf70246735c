"""The shuffler: one-cell reports are held back, then opened together in no order.

See docs/papers/tabular_ldp.md#b8.

What leaves a device is the report of ``OneCell`` and nothing else. The shuffler is trusted to keep
reports until their batch is full and to forget who sent which; everybody else sees batches only
after it. Each user keeps the local guarantee of the report besides, against the shuffler too.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import KINDS, REWARD, STEP
from tacit.kernels.raw import sums
from tacit.privacy.base import LocalPrivatizer, Privatizer, Query, Report, Secret
from tacit.privacy.events import Event
from tacit.privacy.finite.cell_answers import domains
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.local.one_cell import DrawnCell, OneCell
from tacit.privacy.noise import Noise, weakest
from tacit.privacy.shuffle.blanket import Blanket, Crowd, calibrate
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task
from tacit.validate import integer, number


@dataclass(frozen=True, eq=False)
class ShuffledBatch:
    """What the shuffler puts out: the reports of a full batch, sorted.

    Sorting forgets the order of arrival completely, as a random permutation does: what is left is
    how often each report occurs.

    Attributes:
        version: of the publication all its users acted on.
        reports: one row each, in lexicographic order.
    """

    version: int
    reports: IntArray


@dataclass(frozen=True)
class CrowdEvent(Event):
    """Reports of one person, each hidden in a crowd that ran the same randomizer.

    Attributes:
        blankets: what hides a report, for each crowd that differs from the others.
        hidden: users of a crowd who hide each other.
        reports: how many one person sends.
        near: an epsilon near which the search begins.
    """

    blankets: tuple[Blanket, ...]
    hidden: int
    reports: int
    near: float
    needs_delta: ClassVar[bool] = False

    def epsilon(self, delta: float) -> float:
        """Of all reports of a person: what each may cost such that all keep delta together."""
        each, bound = 0.0, self.near / self.reports
        while each < bound:
            each = bound
            share = delta / grouped(self.reports, each)
            near = self.near / self.reports
            bound = max(b.epsilon_at(self.hidden, share, near) for b in self.blankets)
        return self.reports * bound

    def delta(self, epsilon: float) -> float:
        """Of all of them, as a group."""
        each = epsilon / self.reports
        worst = max(blanket.delta(self.hidden, each) for blanket in self.blankets)
        return min(1.0, grouped(self.reports, each) * worst)


class HeldReports(Secret):
    """The sums of opened batches, and the reports that still wait (``held`` of them per crowd).

    ``opened`` is the last batch.
    """

    __slots__ = ("waiting", "held", "version", "opened")

    def __init__(self, size: int, crowds: int) -> None:
        super().__init__(np.zeros(size, dtype=np.int64))
        self.waiting: list[Report] = []
        self.held = [0] * crowds
        self.version = 0
        self.opened: ShuffledBatch | None = None


OPENED = (
    "the shuffler opens a batch only when it is full, and shows nothing but its reports in sorted "
    "order",
    "nothing travels with a report: no name, time, address or order",
)
"""What the guarantee of every shuffled batch rests on."""


class Shuffler(Privatizer[HeldReports]):
    """Holds reports back until a batch is full, and opens it all at once.

    A batch has a fixed size, all under one publication, so many reports of every crowd. A last
    batch that stays short is never opened, and its reports are lost. Reports say in ``public`` in
    which crowd they hide. Whatever makes them adds them up: shuffling changes no sum.
    """

    batch: int
    crowd: int
    """Users of a batch who hide each other."""
    crowds: int
    local: LocalPrivatizer[Secret]
    _crowd_is: ClassVar[tuple[str, str, str]]
    """What a crowd is called, which one is full, and what has to be done about it."""

    def law(self, users: int) -> NoiseLaw:
        """That of the reports."""
        return self.local.law(users)

    def init(self) -> HeldReports:
        """Zero sums, nobody waiting."""
        return HeldReports(len(self.local.init().sums), self.crowds)

    def absorb(self, secret: HeldReports, report: Report, version: int) -> HeldReports:
        """Let a report wait, and open the batch if it was the last one missing."""
        name, which, remedy = self._crowd_is
        crowd = integer(report.public, name, low=0, high=self.crowds - 1)
        if secret.waiting and version != secret.version:
            raise InvalidInput(
                f"the open batch is made under version {secret.version}, this report under "
                f"{version}: only reports under one policy hide each other"
            )
        if secret.held[crowd] >= self.crowd:
            raise InvalidInput(
                f"the open batch already has its {self.crowd:,} reports {which} {crowd}; {remedy}"
            )
        report.take()
        secret.waiting.append(report)
        secret.held[crowd] += 1
        secret.version = version
        if len(secret.waiting) == self.batch:
            secret.opened = open_batch(version, [one.values for one in secret.waiting])
            sums.absorb(secret.sums, secret.opened.reports.sum(axis=0))
            secret.users += self.batch
            secret.source = weakest(secret.source, *(one.source for one in secret.waiting))
            secret.waiting.clear()
            secret.held = [0] * self.crowds
        return secret

    def release(self, secret: HeldReports, query: Query, noise: Noise) -> Release:
        """The sums of opened batches; reports that wait do not move it."""
        return self.local.release(secret, query, noise)


class Shuffled(Shuffler):
    """A shuffler of one-cell reports.

    Where steps are assigned in public only
    users of the same step hide each other: a batch is H crowds of equal size. Where users draw
    their steps in secret (``DrawnCell``) it is a single crowd.

    Args:
        local: makes the reports; its oracles must be subset selection.
        task: the public task.
        crowd: users of a batch who hide each other.
        colluders: users of a batch who may work together with whoever looks at it.
        requested: central epsilon and delta of everything one person sends, the delta being that at
            which the central guarantee is stated.
    """

    _crowd_is = "crowd", "about step", "report ids must take the steps in turn"

    def __init__(
        self,
        local: OneCell,
        task: Task,
        *,
        crowd: int,
        colluders: int = 0,
        requested: tuple[float, float],
    ) -> None:
        self.local: OneCell = local
        self.layout = local.layout
        self.statistic = local.statistic
        self.crowd = integer(crowd, "crowd", low=1)
        self.crowds = self.statistic.horizon if local.public_step else 1
        self.hidden = hidden_among(crowd, colluders)
        self.batch = self.crowd * self.crowds
        self.guarantee = self._account(task, colluders, requested)

    @classmethod
    def calibrated(
        cls,
        statistic: OneStep | EachStep,
        task: Task,
        *,
        epsilon: float,
        delta: float,
        crowd: int,
        colluders: int,
        most: float,
    ) -> Shuffled:
        """With the least noise whose shuffled batches keep the asked central guarantee.

        Args:
            statistic: the assigned step, or each of them for users who draw one.
            task: the public task.
            epsilon: central, over all participations.
            delta: likewise.
            crowd: users of a batch who hide each other.
            colluders: among them.
            most: local epsilon that one report never exceeds.
        """
        times, before = task.participations, statistic.horizon - 1
        whole, unasked, last = domains(statistic.places)
        share = delta / grouped(times, epsilon / times)
        each = Crowd(hidden_among(crowd, colluders), epsilon / times, share)
        make: type[OneCell]
        if isinstance(statistic, EachStep):
            make = DrawnCell
            reports = calibrate(each, (whole,) * before + (last,), most)
            step, reward = reports[0], reports[-1]
        else:
            make = OneCell
            step, reward = (calibrate(each, (cells,), most)[0] for cells in (whole, last))
        spent = times * max(step.epsilon, reward.epsilon)
        never_asked = KaryResponse.calibrate(min(step.epsilon, reward.epsilon), unasked)
        oracles = (step, never_asked, reward)
        return cls(
            make(statistic, task, requested_epsilon=spent, oracles=oracles, kinds=(STEP, REWARD)),
            task,
            crowd=crowd,
            colluders=colluders,
            requested=(epsilon, delta),
        )

    def _account(self, task: Task, colluders: int, requested: tuple[float, float]) -> Guarantee:
        times, view = task.participations, self.local.guarantee
        asked = number(requested[0], "requested_epsilon", low=0.0, low_open=True)
        self.event = CrowdEvent(tuple(self.blankets()), self.hidden, times, asked)
        who = "policy and step, worst step" if self.crowds > 1 else "policy and unknown steps"
        stated = self.event.guarantee(
            task,
            model="shuffle",
            mechanism=f"{view.mechanism}; opened in batches of {self.batch:,} users",
            accountant=f"privacy blanket of {self.hidden:,} users with the same {who}, by tilted "
            "convolution, rounded up"
            + (f"; {times} participations as a group" if times > 1 else ""),
            requested=requested,
            noise=dict(view.noise),
            assumptions=(
                *view.assumptions,
                *OPENED,
                f"at most {colluders:,} other users of a batch work together with whoever looks "
                "at it",
            ),
        )
        return dataclasses.replace(stated, also=(unasked(view),))

    @property
    def device(self) -> OneCell:
        """What makes the reports; each keeps its local guarantee besides."""
        return self.local

    def blankets(self) -> list[Blanket]:
        """What hides a report, for each crowd of a batch that differs from the others."""
        step, last = self.local.oracles[STEP], self.local.oracles[REWARD]
        if not isinstance(step, SubsetSelection) or not isinstance(last, SubsetSelection):
            raise InvalidInput("shuffled reports must be subset selection or k-ary response")
        before = self.statistic.horizon - 1
        if self.crowds > 1 or before == 0:
            return [Blanket((report,)) for report in [*[step][:before], last]]
        return [Blanket((step,) * before + (last,))]

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """On the device: the one-cell report, and in which crowd of its batch it hides.

        The crowd is public: it is the step that the report's id assigns (0 where users draw it).
        """
        if "questions" in publication.context:
            raise InvalidInput("behind a shuffler all steps are asked about alike, jointly")
        report = self.local.encode(contribution, publication, noise)
        crowd = 0
        if self.crowds > 1:
            question = self.statistic.layout.views(contribution)["question"]
            crowd = int(np.argmax(question)) // KINDS
        return Report(report.values, report.source, crowd)

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """That of the reports: shuffling changes no sum."""
        return self.local.relative_shift(first, second, publication)


def open_batch(version: int, reports: list[IntArray]) -> ShuffledBatch:
    """Sort the reports of a batch: all that is kept of it is which ones there are."""
    rows = np.array(reports)
    return ShuffledBatch(version, rows[np.lexsort(rows.T[::-1])])


def hidden_among(crowd: int, colluders: int) -> int:
    """Users who hide each other where some of the crowd may be turned against the rest."""
    colluders = integer(colluders, "colluders", low=0)
    if colluders >= crowd:
        raise InvalidInput(
            f"{colluders:,} colluders among {crowd:,} users leave nobody to hide among; make the "
            "batch larger"
        )
    return crowd - colluders


def grouped(reports: int, epsilon: float) -> float:
    """By how much delta grows when that many reports of one person may sit in the same batch.

    Replacing them one after the other is group privacy: 1 + e^eps + ... + e^((m-1) eps). In
    different batches delta only adds up, which is less.
    """
    return sum(math.exp(i * epsilon) for i in range(reports))


def unasked(view: Guarantee) -> Guarantee:
    """The local view: nobody asked for a particular level of it."""
    return dataclasses.replace(
        view, requested_epsilon=None, requested_delta=None, delta_at_requested_epsilon=None
    )


def useful_crowd(epsilon: float, delta: float) -> int:
    """Users of a batch, for every step, that are neither too few nor too many: a rule of thumb.

    While it explores, a learner loses in proportion to the size of a batch; privacy noise has a
    variance in proportion to ln(1 / delta) / (users epsilon^2). The sum of both is least at a size
    in proportion to sqrt(ln(1 / delta)) / epsilon. The factor 15 was best on eight random problems
    with two states, two actions and two steps at epsilon 1 and 0.2.
    """
    epsilon = number(epsilon, "epsilon", low=0.0, low_open=True)
    delta = number(delta, "delta", low=0.0, high=1.0, low_open=True, high_open=True)
    return math.ceil(15.0 * math.sqrt(math.log(1.0 / delta)) / epsilon)
