"""From a log to a policy with its papers, and the value of any policy: the two public functions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.learned_policy import LearnedPolicy, load_policy
from tacit.logs.agents import offline_agent
from tacit.logs.budget import Account
from tacit.logs.encoding import Column
from tacit.logs.mapping import Mapped, read_mapping
from tacit.logs.reading import MINARI, open_log
from tacit.logs.screen import Exact
from tacit.planners.evaluation.by_log import (
    CUT,
    Models,
    Values,
    begun,
    recorded_value,
    weighted_worth,
    whole_share,
)
from tacit.planners.offline import completed, people_of
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, check_allowed
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.base import Query
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.noise import Noise, SecureNoise, SimulatedNoise
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.log_sums import LogStatistic, WeightedReturns
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.trajectory import Log
from tacit.util.intervals import Interval
from tacit.validate import choice

ASSUMES = (
    "whoever holds the log is trusted with it",
    "the person column names a person in the same way in all of their rows, so that all their "
    "episodes are covered together",
    "the mapping was written without looking at what people did",
)
"""What the guarantee of a release about a log rests on."""

EPISODES = (
    "every episode is treated as a person of its own, because a Minari data set does not say whose "
    "it is: nothing is promised about a person with several episodes"
)
"""In place of the second, where nobody knows whose episodes these are."""

NOT_FOR_OTHERS = (
    "The noise was simulated: it protects nobody, whoever knows the seed takes it away. If the "
    "people of the log are real, do not pass these files on."
)
"""What files with simulated noise say."""

CLIP, LEAST, MOST = 0.4, 2.0, 50.0
"""Importance weights are cut at (people times mu) to this power, between these."""


@dataclass(frozen=True, eq=False)
class OfflineResult:
    """What a log taught: everything in it is made of one private release.

    Attributes:
        policy: the policy with its guarantee, as ``tacit.load_policy`` reads it.
        release: what was released about the log.
        mapped: the mapping.
        values: by name, in the log's own rewards, what the policy is worth, what was done before
            ("behaviour"), and the first above the second ("difference"); None where the release
            does not tell.
        whole: the share of the people whose first episode was recorded from its first step to its
            end; the others' was cut.
        told: exact numbers about the log, for the screen of whoever holds it only: they are in no
            file.
    """

    policy: LearnedPolicy
    release: Release
    mapped: Mapped
    values: Mapping[str, Interval | None]
    whole: Interval
    told: Exact = field(default_factory=Exact, repr=False)

    @property
    def guarantee(self) -> Guarantee:
        """What everybody in the log is guaranteed for this release."""
        return self.policy.guarantee

    @property
    def withheld(self) -> str:
        """Why the policy is not compared with what was done before."""
        if "transitions" not in self.release.blocks:
            return (
                "The release does not tell what the policy is worth, since it counts outcomes, not "
                "next states; evaluate it by weights."
            )
        if self.release.blocks["transitions"].ndim != 2:
            return (
                "The release does not tell what the policy is worth, since it counts every stage "
                "by itself; evaluate it by weights."
            )
        if not begun(self.release):
            return (
                "The release does not tell what the policy is worth: beside the noise hardly a "
                "first step of an episode was recorded. Either the people are too few for this "
                "epsilon, or the mapping does not number steps as the log does (first_step)."
            )
        return (
            "The policy is not compared with what was done before: by the declared states people "
            "would have earned something else than they did, so something that matters is not in "
            "them, or the most that an episode earns is declared too low."
        )

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the values are about, and what they take for granted, as sentences."""
        cut = 1.0 - self.whole.value
        about = "Values are about the rows that count: what the others say is not known."
        if cut <= CUT:
            return (about,)
        return (
            about,
            f"The first episodes of about {100 * cut:.0f}% of the people are not recorded whole. "
            "What followed is valued as for the others: those who were recorded no further are "
            "taken to be like those who went on, in the same state after the same action. What was "
            "done before is valued as if actions had been chosen by the declared state alone.",
        )

    def worth(self, policy: Policy | LearnedPolicy, *, beta: float = 0.05) -> Interval | None:
        """What another policy is worth by the same release: costs nothing more."""
        bare = policy.policy if isinstance(policy, LearnedPolicy) else policy
        return worth_by_release(self.mapped, self.release, bare, beta)

    def to_json(self) -> dict[str, Any]:
        """All that is public about it, without the policy's table."""
        return {
            "data": self.mapped.to_json(),
            "agent": dict(self.policy.about),
            "people": self.policy.users,
            "note": "people is a released number, with noise",
            "values": values_json(self.values),
            "whole_first_episodes": values_json({"share": self.whole})["share"],
            "guarantee": self.guarantee.to_json(),
        }


def offline(
    log: str | Path | Log,
    task: str | Path | Mapped,
    agent: str = "tacit-offline",
    *,
    epsilon: float,
    delta: float = 1e-5,
    ledger: str | Path | None = None,
    noise: str = "secure",
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> OfflineResult:
    """Learn a policy from a log under differential privacy, and say what it is worth.

    Args:
        log: a parquet or CSV file, a folder of them, ``minari:ID``, or rows that are in memory.
        task: the mapping file.
        agent: "tacit-offline", "dp-apvi" or "dp-vapvi".
        epsilon: privacy asked for, of a person over all their episodes.
        delta: likewise.
        ledger: file in which the charge is recorded; by default NAME.ledger in the folder of the
            mapping file. One data set must have one ledger: a copy of the mapping elsewhere would
            begin another, and nobody checks that. Simulated noise charges nothing: it protects
            nobody.
        noise: "secure", or "simulated" for studies.
        seed: of simulated noise.
        parameters: of the agent.
    """
    mapped, recipe = _mapping(task), offline_agent(agent, parameters)
    account = _account(ledger, task, mapped, noise)
    release, guarantee, told = released(
        log, mapped, recipe.statistic(mapped), (epsilon, delta), agent, account, noise, seed
    )
    policy = recipe.policy(mapped.task, completed(release, mapped.ended))
    papers = LearnedPolicy.of(
        Publication(0, policy, {}),
        mapped.task,
        guarantee,
        round(people_of(release)),
        names=mapped.task.labels,
        about={"agent": agent, "data": mapped.name, **(parameters or {})},
    )
    values = values_of(mapped, release, policy)
    return OfflineResult(papers, release, mapped, values, whole_share(release), told)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a policy is worth by importance weights, and what saying so cost.

    Attributes:
        interval: in the log's own rewards.
        guarantee: of this release alone; the ledger adds it to the others.
        most: where weights were cut.
        told: as in :class:`OfflineResult`.
    """

    interval: Interval
    guarantee: Guarantee
    most: float
    told: Exact = field(default_factory=Exact, repr=False)

    def to_json(self) -> dict[str, Any]:
        """All that is public about it."""
        return {
            "by": "weights",
            "values": values_json({"policy": self.interval}),
            "weights_cut_at": self.most,
            "guarantee": self.guarantee.to_json(),
        }


def evaluate(
    log: str | Path | Log,
    policy: str | Path | LearnedPolicy | Policy,
    task: str | Path | Mapped,
    *,
    epsilon: float,
    delta: float = 1e-5,
    ledger: str | Path | None = None,
    noise: str = "secure",
    seed: int = 0,
) -> Evaluation:
    """The value of a policy by clipped importance weights: a release of its own, charged.

    The log must have the propensities with which its actions were chosen. By a release that was
    made before, ``OfflineResult.worth`` says it for nothing.

    Args:
        log: as for :func:`offline`.
        policy: what is evaluated.
        task: the mapping file.
        epsilon: privacy asked for, of a person over all their episodes.
        delta: likewise.
        ledger: as for :func:`offline`.
        noise: likewise.
        seed: likewise.
    """
    mapped = _mapping(task)
    if "propensity" not in mapped.columns:
        raise InvalidInput(
            "evaluation by weights needs the chance with which every action was chosen: name its "
            "column as propensity in [columns], or evaluate by the release of tacit offline"
        )
    bare = load_policy(policy) if isinstance(policy, str | Path) else policy
    table = table_of(bare.policy if isinstance(bare, LearnedPolicy) else bare, mapped.task)
    most = (mapped.task.users * gaussian_mu(epsilon, delta)) ** CLIP
    most = min(max(most, LEAST), MOST)
    statistic = WeightedReturns(mapped.task, table, most, mapped.top)
    account = _account(ledger, task, mapped, noise)
    release, guarantee, told = released(
        log, mapped, statistic, (epsilon, delta), "evaluation", account, noise, seed
    )
    interval = weighted_worth(release, most, mapped.top)
    return Evaluation(_original(mapped, interval), guarantee, most, told)


def released(
    log: str | Path | Log,
    mapped: Mapped,
    statistic: LogStatistic,
    asked: tuple[float, float],
    what: str,
    account: Account,
    noise: str,
    seed: int,
) -> tuple[Release, Guarantee, Exact]:
    """The one way from a log to a release: check its form, charge, read, add up, noise, release.

    What is refused before the charge is decided by the form of the log alone: whether it is there,
    its columns and their types. After the charge nothing is refused, whatever the rows say: a log
    of which no row counts is released as noise on zeros (proofs/logs.md).

    Args:
        log: as for :func:`offline`.
        mapped: the mapping.
        statistic: what is summed up.
        asked: epsilon and delta.
        what: for the ledger.
        account: which is charged.
        noise: "secure" or "simulated".
        seed: of simulated noise.
    """
    choice(noise, "noise", ("secure", "simulated"))
    privatizer = BatchSums(
        statistic, mapped.task, requested_epsilon=asked[0], requested_delta=asked[1]
    )
    simulated, whose = noise == "simulated", _whose(log)
    held = _cut(log, mapped.task.users) if isinstance(log, Log) else open_log(log, mapped)
    if not simulated:
        account.charge(privatizer.event, what)
    if isinstance(held, Log):
        assert isinstance(log, Log)
        rows, told = held, Exact(int(log.begin[-1]), int(held.begin[-1]), log.people)
    else:
        rows, told = held.read()
    total = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.add(rows, total)
    source: Noise = SimulatedNoise(np.random.default_rng(seed)) if simulated else SecureNoise()
    secret = privatizer.absorb_sums(
        privatizer.init(), total, mapped.task.users, Publication(0, _NOBODY, {}), source
    )
    release = privatizer.release(secret, Query(0), source)
    guarantee = dataclasses.replace(
        privatizer.guarantee,
        mechanism="gaussian noise on sums over all people of a log, released once",
        noise={"std": privatizer.noise_std},
        **whose,
    )
    return release, guarantee.as_simulated() if simulated else guarantee, told


def _whose(log: str | Path | Log) -> dict[str, Any]:
    """Whose data a guarantee is about: all rows of a person, or of one episode of a data set."""
    if not isinstance(log, Log) and str(log).startswith(MINARI):
        return {"unit": "participation", "assumptions": (ASSUMES[0], EPISODES, *ASSUMES[2:])}
    return {"assumptions": ASSUMES, "participations": None, "rule": Participation(times=None)}


def _cut(log: Log, most: int) -> Log:
    """The log without people beyond the declared number; rows must be those of one person each.

    What it refuses for is the form of the columns and where people begin, not what rows say.
    """
    log = Log(*(_column(name, column) for name, column in log._asdict().items()))
    begin = log.begin.astype(np.int64)
    rows = min(len(column) for column in log[1:])
    if not len(begin) or begin[0] < 0 or begin[-1] > rows or (np.diff(begin) < 0).any():
        raise InvalidInput(
            "the rows of a log in memory must lie person by person: begin must not decrease, and "
            "must end within the rows"
        )
    return log._replace(begin=begin[: most + 1])


def _column(name: str, column: Any) -> Column:
    """A column of a log in memory, of a type that kernels read.

    Only arrays have a type of their own: that of a list, or of a column of a data frame, may follow
    from what one person did, and a refusal would tell.
    """
    if not isinstance(column, np.ndarray):
        raise InvalidInput(
            f"the column {name!r} of a log in memory must be a numpy array, not a "
            f"{type(column).__name__}, which has no type before its values are looked at"
        )
    real, kind = name in ("reward", "chance"), column.dtype
    if column.ndim != 1 or kind.kind not in ("biuf" if real else "biu") or kind.itemsize > 8:
        raise InvalidInput(
            f"the column {name!r} of a log in memory must be one row of "
            f"{'numbers' if real else 'whole numbers'} of at most 64 bits, but it is {kind} of "
            f"shape {list(column.shape)}"
        )
    plain = np.dtype({"?": "i1", "e": "f4"}.get(kind.char, kind)).newbyteorder("=")
    with np.errstate(all="ignore"):  # a warning would tell of a signalling NaN
        held: Column = column.astype(plain, copy=False)
    return held


_NOBODY = TabularPolicy(np.zeros((1, 1), dtype=np.int64))
"""Nobody acted on what is learned here."""


def values_of(mapped: Mapped, release: Release, policy: Policy) -> dict[str, Interval | None]:
    """What a policy is worth, what was done before, and the difference, by one release.

    Both are valued in the same models, so that what is wrong with the models is wrong with both.
    What people earned themselves is read off their returns where these were recorded whole.
    """
    recorded = recorded_value(release, mapped.top)
    behaviour = None if recorded is None else _original(mapped, recorded)
    models = _models(mapped, release)
    before = None if models is None else models.values(None)
    if models is None or before is None or not _agree(mapped, recorded, before):
        return {"policy": None, "behaviour": behaviour, "difference": None}
    learned = models.values(table_of(policy, mapped.task))
    top, (low, high) = mapped.top, mapped.reward_range
    by_models, difference = before.interval(0.0, top), (learned - before).interval(-top, top)
    if recorded is not None:
        difference = _stretched(difference, by_models.value - recorded.value)
    return {
        "policy": _original(mapped, learned.interval(0.0, top)),
        "behaviour": behaviour or _original(mapped, by_models),
        "difference": Interval(*((high - low) * x for x in vars(difference).values())),
    }


def _agree(mapped: Mapped, recorded: Interval | None, before: Values) -> bool:
    """Whether the models give what people earned, as far as that was recorded.

    The models do not know of a declared most: where it is too low, they are far above it.
    """
    by_models = before.interval(0.0, mapped.task.horizon)
    return recorded is None or (recorded.low <= by_models.high and by_models.low <= recorded.high)


def _stretched(difference: Interval, shift: float) -> Interval:
    """An interval and the same moved by ``shift``, in one.

    By the models people chose actions by the declared state alone. Where they did not, what was
    done before is worth something else than that, and the returns show how much.
    """
    low, high = difference.low + min(shift, 0.0), difference.high + max(shift, 0.0)
    return Interval(difference.value, low, high)


def worth_by_release(
    mapped: Mapped, release: Release, policy: Policy, beta: float
) -> Interval | None:
    """What a policy is worth by released transitions, in the log's rewards.

    None without them, and where they do not give what people earned.
    """
    table, models = table_of(policy, mapped.task), _models(mapped, release)
    if models is None:
        return None
    recorded = recorded_value(release, mapped.top)
    if recorded is not None and not _agree(mapped, recorded, models.values(None)):
        return None
    return _original(mapped, models.values(table).interval(0.0, mapped.top, beta))


def _models(mapped: Mapped, release: Release) -> Models | None:
    """Models by released transitions that are alike in all stages; None where no value follows."""
    if release.blocks.get("transitions", np.zeros(0)).ndim != 2 or not begun(release):
        return None
    return Models(mapped.task, release, mapped.ended, np.random.default_rng(0))


def table_of(policy: Policy, task: Task) -> Array:
    """Action probabilities [H, S, A] of a policy that fits the task."""
    shape = (task.horizon, task.sizes["states"], task.sizes["actions"])
    table: Array = np.zeros(0)
    if isinstance(policy, TabularPolicy) and policy.actions.shape == shape[:2]:
        table = np.eye(shape[2])[np.clip(policy.actions, 0, shape[2] - 1)]
    elif isinstance(policy, StochasticPolicy):
        table = policy.probabilities
    if table.shape != shape:
        raise InvalidInput(
            "the policy does not fit the mapping, which has [horizon, states, actions] = "
            f"{list(shape)}"
        )
    check_allowed(policy, task.pairs)
    return table


def _mapping(task: str | Path | Mapped) -> Mapped:
    return task if isinstance(task, Mapped) else read_mapping(task)


def _account(
    ledger: str | Path | None, task: str | Path | Mapped, mapped: Mapped, noise: str
) -> Account:
    """The account of a data set: its ledger lies beside the mapping file unless it is said."""
    if ledger is None and isinstance(task, Mapped) and noise != "simulated":
        raise InvalidInput(
            "say ledger=FILE: a mapping that is not a file has no folder for its ledger, and what "
            "is released about a data set must be charged to one and the same file"
        )
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in mapped.name)
    folder = Path() if isinstance(task, Mapped) else Path(task).parent
    return Account(ledger or folder / f"{safe}.ledger", mapped)


def _original(mapped: Mapped, interval: Interval) -> Interval:
    return Interval(*(mapped.original(x) for x in (interval.value, interval.low, interval.high)))


def values_json(values: Mapping[str, Interval | None]) -> dict[str, Any]:
    """Intervals as plain values."""
    return {
        name: None if found is None else {"value": found.value, "ci95": [found.low, found.high]}
        for name, found in values.items()
        if found is None or math.isfinite(found.value)
    }
