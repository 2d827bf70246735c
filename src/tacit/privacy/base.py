"""What a privatizer is: the one door between contributions and releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import Blind, InvalidInput
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise, Source
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release, ValueQuery
from tacit.statistics.base import Layout, Relation, Statistic
from tacit.task import Task

_NOISE_SPREAD = 50.0
"""Standard deviations of summed noise to leave room for."""


@dataclass(frozen=True)
class Query:
    """What is asked of the privatizer; ``id`` counts the releases of a learner."""

    id: int


class Report:
    """What leaves a user, on the integer grid of the statistic's layout.

    Under local privacy it is already randomized; under joint privacy (and in ``exact``) it is the
    contribution itself, and travels to the curator only.
    """

    __slots__ = ("values", "source", "_taken")

    def __init__(self, values: IntArray, source: Source = "none") -> None:
        self.values = values
        self.source: Source = source
        self._taken = False

    def take(self) -> IntArray:
        """The values, once: a report that was already absorbed is refused."""
        if self._taken:
            raise InvalidInput(
                "this report was already absorbed; a contribution counts once, so make a new report"
            )
        self._taken = True
        return self.values

    def __repr__(self) -> str:
        return f"Report(cells={self.values.size})"


class Secret:
    """State behind the wall: exact accumulators, stored noise. Never printed, never pickled.

    A service that must keep it across restarts stores its parts on purpose, in its encrypted table.
    """

    __slots__ = ("sums", "users", "source")

    def __init__(self, sums: IntArray, users: int = 0) -> None:
        self.sums = sums
        self.users = users
        self.source: Source = "none"

    def __repr__(self) -> str:
        return "Secret(content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise Blind("Secret state holds exact user data and cannot be pickled or copied")


def require_room(statistic: Statistic, task: Task, step: float, noise_std: float = 0.0) -> None:
    """Refuse a task whose sums could leave the 64-bit integers and so become meaningless.

    Args:
        statistic: bounds what one user can add to a cell.
        task: for how many users.
        step: size of one grid step.
        noise_std: standard deviation of one user's noise in a cell, natural units.
    """
    most = statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE) * task.users
    spread = _NOISE_SPREAD * noise_std * math.sqrt(task.users)
    if (most + spread) / step >= 2.0**63:
        raise InvalidInput(
            f"the sums of {task.users:,} users could leave the 64-bit integers; plan for fewer "
            "users, or for less noise"
        )


def inspect_entries(message: IntArray, reach: IntArray) -> None:
    """Refuse a message with another number of entries, or with one beyond its reach."""
    if message.shape != reach.shape:
        raise InvalidInput(
            f"the report has shape {list(message.shape)}, but it must have {len(reach)} entries"
        )
    beyond = (message > reach) | (message < -reach)
    if beyond.any():
        where = int(np.argmax(beyond))
        raise InvalidInput(
            f"entry {where} of the report is {message[where]}, but no report of this randomizer "
            f"goes beyond {reach[where]}"
        )


@dataclass(eq=False)
class Record:
    """One run as only an audit knows it: what was released, beside the exact data of two worlds.

    Attributes:
        first: what each batch of users contributed, one vector per batch, if the audited person
            lived the first of two lives.
        second: the same if it was the second one.
        released: what was released after each batch but perhaps the last, flat, in natural units.
        answers: every answered question, how many batches it was about, and the answer.
    """

    first: list[IntArray] = field(default_factory=list)
    second: list[IntArray] = field(default_factory=list)
    released: list[Array] = field(default_factory=list)
    answers: list[tuple[ValueQuery, int, Array]] = field(default_factory=list)


class Likelihood(NamedTuple):
    """How much a record speaks for the second world, under the law of noise that is claimed.

    Attributes:
        log_ratio: of the densities of everything released: second world over first.
        mu_squared: squared distance of the two worlds; the log ratio is Gaussian of this variance,
            with mean plus or minus half of it.
    """

    log_ratio: float
    mu_squared: float


class Privatizer(Protocol):
    """Contribution -> report -> secret state -> release, with a guarantee computed from the noise.

    Local mechanisms add noise in ``encode`` (on the device), joint ones in ``release`` (at the
    curator); ``exact`` adds none. Charge before noise, noise before release; a value once released
    is never drawn again.
    """

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed to one user, over everything this privatizer may release."""

    @property
    def layout(self) -> Layout:
        """Blocks of a release."""

    def law(self, users: int) -> NoiseLaw:
        """The law of the noise in a release that sums up that many users."""

    def init(self) -> Secret:
        """State before the first user."""

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """On the device: the message about one contribution."""

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """At the collector: fold one report in, made under that version of the publication."""

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """Publish. Asked again in the same state, the same query gives the same value."""

    def moved(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """How far one contribution in place of another moves things, over what is paid for.

        1 where the two are as far apart as the declared sensitivity allows. For audits.
        """


class Curated(ABC):
    """A joint privatizer whose releases have Gaussian noise: an audit reads them in closed form."""

    @abstractmethod
    def evidence(self, record: Record) -> Likelihood:
        """The log-likelihood ratio of a whole record, under the noise that the guarantee claims."""


class TwoHalves(ABC):
    """A local privatizer whose ``encode`` is cut in two where the message crosses the network.

    ``encode`` is ``collect`` after ``randomize``, bit for bit. What a collector adds to the message
    follows from the publication and the report's public coin alone.
    """

    largest: int
    """The most that one report adds to one of the collector's sums, in absolute value."""

    @abstractmethod
    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: everything that is sent."""

    @abstractmethod
    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """Log of P(message | second) / P(message | first), one per row, as claimed. For audits."""

    @abstractmethod
    def inspect(self, message: IntArray, publication: Publication, coin: int) -> None:
        """At the collector: refuse a message that no device of ours can have made."""

    @abstractmethod
    def inspect_all(
        self, messages: Sequence[IntArray], publication: Publication, coins: Sequence[int]
    ) -> None:
        """The same of many messages made under one publication."""

    @abstractmethod
    def collect(
        self, message: IntArray, publication: Publication, coin: int, source: Source = "secure"
    ) -> Report:
        """At the collector: the report, in the terms of its sums; inspected first."""

    @abstractmethod
    def fold(
        self,
        secret: Secret,
        messages: Sequence[IntArray],
        publication: Publication,
        coins: Sequence[int],
        source: Source = "secure",
    ) -> Secret:
        """Collect and absorb many messages made under one publication, in their order."""
