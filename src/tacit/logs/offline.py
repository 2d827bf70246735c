"""From a log to a policy with its papers, and the value of any policy: the two public functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.agents.base import Agent
from tacit.agents.catalogue import FROM_A_LOG, PRIVACY_PARAMETERS, make_agent
from tacit.agents.offline import LogAgent
from tacit.errors import InvalidInput, need
from tacit.learned_policy import LearnedPolicy, load_policy
from tacit.learner import Learner
from tacit.logs.budget import DatasetBudget
from tacit.logs.mapping import LogMapping, read_mapping
from tacit.logs.rows import MINARI, Read, in_memory
from tacit.logs.screen import ExactNumbers
from tacit.logs.values import in_log_units, table_of, value_by_release, values_json, values_of
from tacit.planners.evaluation.by_log import CUT_SHARE, begun, weighted_value, whole_share
from tacit.planners.offline import people_of
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.base import Query
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.batched import BatchSecret, BatchSums
from tacit.privacy.noise import Noise, SecureNoise, SimulatedNoise
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.log_sums import LogStatistic, WeightedReturns
from tacit.streams import planner_streams
from tacit.task.participation import Participation
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

MECHANISM = "gaussian noise on sums over all people of a log, released once"

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

SHORTER = (
    "Hardly a first episode was recorded from its first step to its end: either the log is shorter "
    "than the horizon, or the mapping does not number steps as the log does (first_step), and then "
    "values are about other steps than were meant."
)
"""What is said where that share cannot be told from none."""

WEIGHT_POWER, LEAST_WEIGHT, LARGEST_WEIGHT = 0.4, 2.0, 50.0
"""Importance weights are cut at (people times mu) to this power, between these. Not measured:
others; ``tests/logs/test_values.py`` (slow) holds what the intervals cover with them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedResult:
    """What a log taught, as far as it is public: everything in it is made of one private release.

    Attributes:
        policy: the policy with its guarantee, as ``tacit.load_policy`` reads it.
        release: what was released about the log.
        data: what the mapping declared, as plain values.
        values: by name, in the log's own rewards, what the policy is worth, what was done before
            ("behaviour"), and the first above the second ("difference"); None where the release
            does not tell.
        whole: the share of the people whose first episode was recorded from its first step to its
            end; the others' was cut.
    """

    policy: LearnedPolicy
    release: Release
    data: Mapping[str, Any]
    values: Mapping[str, Interval | None]
    whole: Interval

    @property
    def guarantee(self) -> Guarantee:
        """What everybody in the log is guaranteed for this release."""
        return self.policy.guarantee

    @property
    def withheld(self) -> str:
        """Why the policy is not compared with what was done before."""
        transitions = self.release.blocks.get("transitions")
        if transitions is None or transitions.ndim != 2:
            counted = (
                "outcomes, not next states" if transitions is None else "every stage by itself"
            )
            return (
                "The release does not tell what the policy is worth, since it counts "
                f"{counted}; evaluate it by weights."
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
        if cut <= CUT_SHARE:
            return (about,)
        never = self.whole.low <= 0.0
        return (
            about,
            *((SHORTER,) if never else ()),
            f"The first episodes of about {100 * cut:.0f}% of the people are not recorded whole. "
            "What followed is valued as for the others: those who were recorded no further are "
            "taken to be like those who went on, in the same state after the same action. What was "
            "done before is valued as if actions had been chosen by the declared state alone.",
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class OfflineResult(ReleasedResult):
    """The same, and what it was learned with.

    Attributes:
        mapped: the mapping.
        exact_counts: exact numbers about the log, for the screen of whoever holds it only: they
            are in no file.
    """

    mapped: LogMapping
    exact_counts: ExactNumbers = field(default_factory=ExactNumbers, repr=False)

    def value_of(self, policy: Policy | LearnedPolicy, *, beta: float = 0.05) -> Interval | None:
        """What another policy is worth by the same release: costs nothing more."""
        return value_by_release(self.mapped, self.release, policy, beta)

    def to_json(self) -> dict[str, Any]:
        """All that is public about it, without the policy's table."""
        return {
            "data": dict(self.data),
            "agent": dict(self.policy.about),
            "people": self.policy.users,
            "note": "people is a released number, with noise",
            "values": values_json(self.values),
            "whole_first_episodes": values_json({"share": self.whole})["share"],
            "guarantee": self.guarantee.to_json(),
        }


def offline(
    log: str | Path | Log,
    mapping: str | Path | LogMapping,
    agent: Agent | str,
    *,
    ledger: str | Path | None = None,
    noise: str = "secure",
    seed: int = 0,
) -> OfflineResult:
    """Learn a policy from a log under differential privacy, and say what it is worth.

    Example::

        agent = tacit.agent("tacit-offline", epsilon=1.0)
        result = tacit.offline("log.csv", "task.toml", agent)

    Args:
        log: a parquet or CSV file, a folder of them, ``minari:ID``, or rows that are in memory.
        mapping: the file that says what its columns mean.
        agent: one that learns from a log; its privacy is that of a person over all their episodes.
        ledger: file in which the charge is recorded; by default NAME.ledger in the folder of the
            mapping file. One data set must have one ledger: a copy of the mapping elsewhere would
            begin another, and nobody checks that. Simulated noise charges nothing: it protects
            nobody.
        noise: "secure", or "simulated" for studies.
        seed: of simulated noise.
    """
    mapped, learns = _mapping(mapping), make_agent(agent) if isinstance(agent, str) else agent
    if not isinstance(learns, LogAgent):
        raise InvalidInput(
            f"{getattr(learns, 'name', learns)} learns from people who take part, not from a log; "
            f"those that do are {', '.join(FROM_A_LOG)}"
        )
    bound = learns.bind_log(mapped.task, mapped.max_return, mapped.ended)
    parts: tuple[Any, Any] = bound.privatizer, bound.statistic
    budget = _budget(ledger, mapping, mapped, noise)
    held = absorbed(log, *parts, budget, learns.name, noise, seed)
    learner = Learner(bound, held.noise, secret=held.secret, served=mapped.task.users)
    publication = learner.publish(planner_streams(seed, 0))
    release = learner.release
    assert release is not None
    people, labels = round(people_of(release)), mapped.task.labels
    about = {"agent": learns.name, "data": mapped.name, **_chosen(learns)}
    papers = LearnedPolicy.of(
        publication, mapped.task, held.guarantee, people, names=labels, about=about
    )
    return OfflineResult(
        policy=papers,
        release=release,
        data=mapped.to_json(),
        values=values_of(mapped, release, publication.policy),
        whole=whole_share(release),
        mapped=mapped,
        exact_counts=held.exact_counts,
    )


def _chosen(agent: LogAgent) -> dict[str, Any]:
    """Its parameters that are not as they are by default, beside those of privacy."""
    made: Any = agent
    usual = {one.name: one.default for one in dataclasses.fields(made)}
    return {
        name: value
        for name, value in agent.parameters().items()
        if name not in PRIVACY_PARAMETERS and value != usual[name]
    }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a policy is worth by importance weights, and what saying so cost.

    Attributes:
        interval: in the log's own rewards.
        guarantee: of this release alone; the ledger adds it to the others.
        most: where weights were cut.
        exact_counts: as in :class:`OfflineResult`.
    """

    interval: Interval
    guarantee: Guarantee
    most: float
    exact_counts: ExactNumbers = field(default_factory=ExactNumbers, repr=False)

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
    mapping: str | Path | LogMapping,
    *,
    epsilon: float,
    delta: float = 1e-5,
    ledger: str | Path | None = None,
    noise: str = "secure",
    seed: int = 0,
) -> Evaluation:
    """The value of a policy by clipped importance weights: a release of its own, charged.

    The log must have the propensities with which its actions were chosen. By a release that was
    made before, ``OfflineResult.value_of`` says it for nothing.

    Example::

        weighed = tacit.evaluate("log.csv", "result/policy.json", "task.toml", epsilon=0.5)

    Args:
        log: as for :func:`offline`.
        policy: what is evaluated.
        mapping: as for :func:`offline`.
        epsilon: privacy asked for, of a person over all their episodes.
        delta: likewise.
        ledger: as for :func:`offline`.
        noise: likewise.
        seed: likewise.
    """
    mapped = _mapping(mapping)
    if "propensity" not in mapped.columns:
        raise InvalidInput(
            "evaluation by weights needs the chance with which every action was chosen: name its "
            "column as propensity in [columns], or evaluate by the release of tacit offline"
        )
    loaded = load_policy(policy) if isinstance(policy, str | Path) else policy
    table = table_of(loaded, mapped.task)
    most = (mapped.task.users * gaussian_mu(epsilon, delta)) ** WEIGHT_POWER
    most = min(max(most, LEAST_WEIGHT), LARGEST_WEIGHT)
    statistic = WeightedReturns(mapped.task, table, most, mapped.max_return)
    privatizer = BatchSums(statistic, mapped.task, requested=(epsilon, delta))
    budget = _budget(ledger, mapping, mapped, noise)
    held = absorbed(log, privatizer, statistic, budget, "evaluation", noise, seed)
    release = privatizer.release(held.secret, Query(0), held.noise)
    interval = weighted_value(release, most, mapped.max_return)
    return Evaluation(in_log_units(mapped, interval), held.guarantee, most, held.exact_counts)


class Absorbed(NamedTuple):
    """What was added up about a log, paid for and not released yet."""

    secret: BatchSecret
    noise: Noise
    guarantee: Guarantee
    exact_counts: ExactNumbers


def absorbed(
    log: str | Path | Log,
    privatizer: BatchSums,
    statistic: LogStatistic,
    budget: DatasetBudget,
    what: str,
    noise: str,
    seed: int,
) -> Absorbed:
    """The one way from a log to what is released: check its form, charge, read, add up.

    What is refused before the charge is decided by the form of the log alone: whether it is there,
    its columns and their types. After the charge nothing is refused, whatever the rows say: a log
    of which no row counts is released as noise on zeros (proofs/logs.md).

    Args:
        log: as for :func:`offline`.
        privatizer: what adds the noise.
        statistic: what is summed up.
        budget: which is charged.
        what: for the ledger.
        noise: "secure" or "simulated".
        seed: of simulated noise.
    """
    choice(noise, "noise", ("secure", "simulated"))
    simulated, mapped = noise == "simulated", budget.mapped
    whose: dict[str, Any] = {"assumptions": ASSUMES, "rule": Participation(times=None)}
    whose["participations"] = None
    read: Callable[[], Read]
    if isinstance(log, Log):
        held = in_memory(log, mapped.task.users)
        exact = ExactNumbers(int(log.begin[-1]), int(held.begin[-1]), log.people)
        read = partial(Read, held, exact)
    else:
        need("reading a log", "tables")
        from tacit.logs.reading import open_log

        read = open_log(log, mapped).read
        if str(log).startswith(MINARI):
            whose = {"unit": "participation", "assumptions": (ASSUMES[0], EPISODES, *ASSUMES[2:])}
    if not simulated:
        budget.charge(privatizer.event, what)
    rows, exact = read()
    total = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.add(rows, total)
    source: Noise = SimulatedNoise(np.random.default_rng(seed)) if simulated else SecureNoise()
    secret = privatizer.absorb_sums(privatizer.init(), total, mapped.task.users, _NOBODY, source)
    whose |= {"mechanism": MECHANISM, "noise": {"std": privatizer.noise_std}}
    guarantee = dataclasses.replace(privatizer.guarantee, **whose)
    return Absorbed(secret, source, guarantee.as_simulated() if simulated else guarantee, exact)


_NOBODY = Publication(0, TabularPolicy(np.zeros((1, 1), dtype=np.int64)), {})
"""Nobody acted on what is learned here."""


def _mapping(mapping: str | Path | LogMapping) -> LogMapping:
    return mapping if isinstance(mapping, LogMapping) else read_mapping(mapping)


def _budget(
    ledger: str | Path | None, mapping: str | Path | LogMapping, mapped: LogMapping, noise: str
) -> DatasetBudget:
    """The budget of a data set: its ledger lies beside the mapping file unless it is said."""
    if ledger is None and isinstance(mapping, LogMapping) and noise != "simulated":
        raise InvalidInput(
            "say ledger=FILE: a mapping that is not a file has no folder for its ledger, and what "
            "is released about a data set must be charged to one and the same file"
        )
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in mapped.name)
    folder = Path() if isinstance(mapping, LogMapping) else Path(mapping).parent
    return DatasetBudget(ledger or folder / f"{safe}.ledger", mapped)
