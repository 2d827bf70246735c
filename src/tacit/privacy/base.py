"""What a privatizer is: the one door between contributions and releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, NamedTuple, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput, RawDataLeak
from tacit.kernels.raw import sums as sums
from tacit.privacy.events import Event
from tacit.privacy.finite.channel import Pair
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import SOURCES, Noise, Source, weakest
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release, ValueQuery
from tacit.statistics.base import Bounded, Layout, Relation
from tacit.task.task import Task
from tacit.validate import choice

_NOISE_SPREAD = 50.0
"""Standard deviations of summed noise to leave room for."""

TRUSTED = (
    "the curator is trusted with trajectories and keeps its secret state secret",
    "each participation falls into one batch",
)
"""What the guarantee of every curator rests on."""


@dataclass(frozen=True)
class Query:
    """What is asked of the privatizer; ``id`` counts the releases of a learner."""

    id: int


class Report:
    """What leaves a user, on the integer grid of the statistic's layout.

    Under local privacy it is already randomized; under joint privacy (and in ``exact``) it is the
    contribution itself, and travels to the curator only. ``public`` is what its privatizer has to
    know besides and everybody may: weights that the publication gave it, or its step.
    """

    __slots__ = ("values", "source", "public", "_taken")

    def __init__(self, values: IntArray, source: Source = "none", public: Any = None) -> None:
        self.values = values
        self.source: Source = source
        self.public = public
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
    stored: ClassVar[tuple[str, ...]] = ("sums", "users", "source")
    """What can be stored as it is. Every kind of state says so itself, or cannot be stored."""

    def __init__(self, sums: IntArray, users: int = 0) -> None:
        self.sums = sums
        self.users = users
        self.source: Source = "none"

    def __repr__(self) -> str:
        return "Secret(content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak("Secret state holds exact user data and cannot be pickled or copied")


@dataclass(frozen=True)
class BlockLaw:
    """The law of noise that differs from block to block.

    Attributes:
        name: what kind of noise.
        scales: by block, scale of one draw.
        variances: by block, variance of every entry, with all that is in the release.
    """

    name: str
    scales: Mapping[str, float]
    variances: Mapping[str, Array]

    def scale(self, block: str) -> float:
        """Of one draw."""
        return self.scales[block]

    def variance(self, block: str) -> Array:
        """Of every entry."""
        return self.variances[block]


S = TypeVar("S", bound=Secret)


def require_room(statistic: Bounded, task: Task, step: float, noise_std: float = 0.0) -> None:
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


@dataclass(eq=False)
class AuditRecord:
    """One run as only an audit knows it: what was released, beside the exact data of two worlds.

    Attributes:
        first: what each batch of users contributed, one vector per batch, if the audited person
            lived the first of two lives.
        second: the same if it was the second one.
        released: what was released after each batch but perhaps the last, flat, in natural units.
        answers: every answered question, how many batches it was about, and the answer.
        sent: in the local model the audited person's messages, each with the contributions of both
            lives and the publication it was made under.
    """

    first: list[IntArray] = field(default_factory=list)
    second: list[IntArray] = field(default_factory=list)
    released: list[Array] = field(default_factory=list)
    answers: list[tuple[ValueQuery, int, Array]] = field(default_factory=list)
    sent: list[tuple[IntArray, IntArray, IntArray, Publication]] = field(default_factory=list)


def flat(release: Release) -> Array:
    """All numbers of a release, in the order of its blocks."""
    return np.concatenate([block.ravel() for block in release.blocks.values()])


class LogLikelihoodRatio(NamedTuple):
    """How much a record speaks for the second world, under the law of noise that is claimed.

    Attributes:
        log_ratio: of the densities of everything released: second world over first.
        mu_squared: squared distance of the two worlds; the log ratio is Gaussian of this variance,
            with mean plus or minus half of it. Not a number where noise is not Gaussian.
    """

    log_ratio: float
    mu_squared: float = math.nan


class Privatizer(ABC, Generic[S]):
    """Contribution -> report -> secret state -> release, with a guarantee computed from the noise.

    Local mechanisms add noise in ``encode`` (on the device), joint ones in ``release`` (at the
    curator); ``Exact`` adds none. Charge before noise, noise before release; a value once released
    is never drawn again.

    A new mechanism sets ``layout``, ``event`` and ``guarantee`` when it is made, and says
    ``encode``, ``law``, ``release`` and ``relative_shift``. Everything else has a default that is
    right for it, or that refuses. One with a state of its own (``S``) says ``init``, ``state`` and
    ``restore`` too. Most have a class method ``calibrated`` that finds the least noise for an
    epsilon and a delta.
    """

    layout: Layout
    """Blocks of a release."""

    event: Event
    """What one person's data goes into, over everything that may ever be released."""

    guarantee: Guarantee
    """What is guaranteed to one user for it."""

    # Learning.

    def init(self) -> S:
        """State before the first user: zero sums."""
        return Secret(np.zeros(self.layout.size, dtype=np.int64))  # type: ignore[return-value]

    @abstractmethod
    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """On the device: the message about one contribution."""

    def absorb(self, secret: S, report: Report, version: int) -> S:
        """At the collector: fold one report in, made under that version of the publication."""
        sums.absorb(secret.sums, report.take())
        secret.users += 1
        if secret.source != report.source:  # comparing is quick, and this runs for every user
            secret.source = weakest(secret.source, report.source)
        return secret

    batch: int | None = None
    """Users of one batch (at most), where the guarantee counts on it."""

    absorbs_sums: bool = False
    """Whether ``absorb_sums`` is known."""

    def absorb_sums(
        self, secret: S, total: IntArray, users: int, publication: Publication, noise: Noise
    ) -> S:
        """The same for what several users of one publication contributed, added up before."""
        raise InvalidInput(
            f"{self.guarantee.mechanism}: these reports cannot be absorbed as one sum"
        )

    def renew(self, secret: S) -> None:
        """The next batch is the first of a new period: what was absorbed before is not shown again.

        Nothing to do where every report or every batch has noise of its own.
        """

    @abstractmethod
    def law(self, users: int) -> NoiseLaw:
        """The law of the noise in a release that sums up that many users."""

    @abstractmethod
    def release(self, secret: S, query: Query, noise: Noise) -> Release:
        """Publish. Asked again in the same state, the same query gives the same value."""

    # The service.

    served: Literal["local", "joint"] | None = None
    """Which half of the service can run it: the one that devices send noise to, or the curator."""

    secure: bool = True
    """Whether there is an exact sampler for its noise, so that it can protect people."""

    @property
    def device(self) -> LocalPrivatizer[Any] | None:
        """What runs on devices, where they randomize what they send."""
        return None

    def draw(self, secret: S, noise: Noise) -> IntArray:
        """Draw the noise of the next release [nodes, cells] now, so that it can be stored first."""
        raise InvalidInput(f"{self.guarantee.mechanism}: this noise cannot be drawn ahead")

    def replay(self, secret: S, drawn: IntArray) -> None:
        """Make the next release use noise that was drawn and stored before."""
        raise InvalidInput(f"{self.guarantee.mechanism}: this noise cannot be drawn ahead")

    def state(self, secret: S) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to go on, as plain arrays. Secret: store encrypted, or noisy sums only.

        A mechanism whose state has further parts says so itself; by default it cannot be stored.
        """
        if "stored" not in vars(type(secret)):
            raise InvalidInput(f"{self.guarantee.mechanism}: this state cannot be stored")
        return {name: np.asarray(getattr(secret, name)) for name in secret.stored}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> S:
        """The state that was stored; goes on bit for bit as if never stopped."""
        secret = self.init()
        for name in secret.stored:
            if isinstance(own := getattr(secret, name), np.ndarray):
                own[:] = arrays[name]
            elif name != "source":
                setattr(secret, name, int(arrays[name]))
        secret.source = choice(str(arrays["source"]), "source", SOURCES)  # type: ignore[assignment]
        return secret

    # Audits.

    @abstractmethod
    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """How far one contribution in place of another moves things, over what is paid for.

        1 where the two are as far apart as the declared sensitivity allows.
        """

    has_likelihood: bool = False
    """Whether ``log_likelihood_ratio`` is known in closed form."""

    def audit_view(self, secret: S, release: Release) -> Array:
        """What ``log_likelihood_ratio`` reads of a release that was just made, flat."""
        return flat(release)

    def log_likelihood_ratio(self, record: AuditRecord) -> LogLikelihoodRatio:
        """The log-likelihood ratio of a whole record, under the noise that the guarantee claims."""
        raise InvalidInput(f"{self.guarantee.mechanism}: this likelihood is not known")

    def channels(self) -> tuple[Pair, ...]:
        """The output laws of a worst pair, for each kind of report with finitely many outputs."""
        return ()

    answer_size: int = 0
    """How many numbers all answers to a planner's questions have at most."""

    def open_queries(self, secret: S) -> list[tuple[str, int]]:
        """Questions (target, stage) that would still be answered."""
        return []

    def worst_query(self, first: IntArray, second: IntArray, stage: int) -> Array:
        """The V [S] to ask about that tells two contributions apart best at a stage."""
        raise InvalidInput(f"{self.guarantee.mechanism}: no questions are answered")


class Sent(NamedTuple):
    """Messages made under one publication, as they came to the collector.

    Attributes:
        messages: one per report.
        publication: the entry they were made under.
        coins: the public ids of the reports.
        source: of the noise in them.
    """

    messages: Sequence[IntArray]
    publication: Publication
    coins: Sequence[int]
    source: Source = "secure"


class LocalPrivatizer(Privatizer[S]):
    """A local privatizer: ``encode`` is cut in two where the message crosses the network.

    ``encode`` is ``collect`` after ``randomize``, bit for bit. What a collector adds to the message
    follows from the publication and the report's public coin alone: by default nothing, the message
    is what is added up. Then ``message_bounds`` says which messages are possible.
    """

    served: Literal["local", "joint"] | None = "local"
    has_likelihood = True

    public_step: bool = False
    """Whether the report's id decides which step it is about, so that everybody knows it."""

    max_increment: int
    """The most that one report adds to one of the collector's sums, in absolute value."""

    @property
    def max_influence(self) -> float:
        """As how many honest people one dishonest report can count in one released sum, at most.

        Infinite for a mechanism that states no bound.
        """
        return math.inf

    @property
    def device(self) -> LocalPrivatizer[S]:
        """Itself."""
        return self

    def rules(self) -> dict[str, Any]:
        """How a device makes its message, as JSON of whole numbers and texts.

        By default a row of noisy numbers, which only a device that can fit the agent itself makes.
        """
        noise = {name: repr(value) for name, value in self.guarantee.noise.items()}
        return {"report": "numbers", "length": self.layout.size, "noise": noise}

    @abstractmethod
    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: everything that is sent."""

    @abstractmethod
    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """Log of P(message | second) / P(message | first), one per row, as claimed. For audits."""

    def log_likelihood_ratio(self, record: AuditRecord) -> LogLikelihoodRatio:
        """Of the messages: all that anybody sees follows from them."""
        ratios = [
            float(self.log_ratio(message[None], first, second, publication)[0])
            for message, first, second, publication in record.sent
        ]
        return LogLikelihoodRatio(sum(ratios))

    def message_bounds(self, publication: Publication) -> IntArray:
        """Largest size of every entry of an honest message, but for chances below 1e-27."""
        raise NotImplementedError("say which messages are possible, here or in inspect")

    def report(self, message: IntArray, publication: Publication, source: Source) -> Report:
        """The message as it is absorbed."""
        return Report(message, source)

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """The device's half; the collector's leaves the message as it is."""
        message = self.randomize(contribution, publication, noise)
        return self.report(message, publication, noise.source)

    def inspect(self, message: IntArray, publication: Publication, coin: int) -> None:
        """At the collector: refuse a message that no device of ours can have made."""
        reach = self.message_bounds(publication)
        if message.shape != reach.shape:
            raise InvalidInput(
                f"the report has shape {list(message.shape)}, but it must have {len(reach)} entries"
            )
        beyond = (message > reach) | (message < -reach)
        if beyond.any():
            where = int(np.argmax(beyond))
            raise InvalidInput(
                f"entry {where} of the report is {message[where]}, but no report of this "
                f"randomizer goes beyond {reach[where]}"
            )

    def inspect_all(self, sent: Sent) -> None:
        """The same of many messages."""
        for message, coin in zip(sent.messages, sent.coins, strict=True):
            self.inspect(message, sent.publication, coin)

    def collect(
        self, message: IntArray, publication: Publication, coin: int, source: Source = "secure"
    ) -> Report:
        """At the collector: the report, in the terms of its sums; inspected first."""
        self.inspect(message, publication, coin)
        return self.report(message, publication, source)

    def fold(self, secret: S, sent: Sent) -> S:
        """Collect and absorb many messages, in their order."""
        for message, coin in zip(sent.messages, sent.coins, strict=True):
            report = self.collect(message, sent.publication, coin, sent.source)
            secret = self.absorb(secret, report, sent.publication.version)
        return secret
