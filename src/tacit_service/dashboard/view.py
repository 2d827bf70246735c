"""The page as data: everything the dashboard says, worked out once, for HTML and JSON alike."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit._version import __version__
from tacit.arrays import Array, IntArray
from tacit.planners.evaluation.by_release import COVERAGE, ValueBand
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.privacy import sentences
from tacit.publication import Publication
from tacit.wire import messages
from tacit_service.dashboard.facts import Facts
from tacit_service.dashboard.outlook import Spending, outlook_of, spending
from tacit_service.dashboard.plots import BandPoint
from tacit_service.dashboard.words import counted, iso, length, percent, real, whole
from tacit_service.planning.publications import Version

if TYPE_CHECKING:
    from tacit_service.config.deployment import Deployment, Ids


LARGE = 0.5
"""Share of hidden steps above which the data do not support an estimate."""

TOLD = 0.01
"""Share of hidden steps from which on it is said beside the band."""

MOST_POINTS = 120
"""Publications drawn or listed; with more, an even choice of them, the newest always."""


@dataclass(frozen=True)
class Counted:
    """Reports counted against the population."""

    accepted: int
    population: int
    unit: str
    in_newest_policy: int
    next_policy_in: int | None


@dataclass(frozen=True)
class Value:
    """Estimated value of policies, in the operator's own reward units.

    Attributes:
        kind: see ``ValueBand``; that of the newest policy.
        supported: whether the data support an estimate of the newest policy; if not, none is shown.
        meaning: what is shown, in plain words.
        band: share of releases whose band holds the truth, None where there is no band.
        span: least and largest value possible.
        points: version, users, low, middle and high of policies, oldest first, where supported.
        states: start state, low, middle and high of the newest policy.
        baselines: name, its middle, and low, middle and high of the gain over it.
        verdict: whether the newest policy is better than each baseline, in sentences.
    """

    kind: str
    supported: bool
    meaning: str
    band: float | None
    span: tuple[float, float]
    points: tuple[BandPoint, ...]
    states: tuple[dict[str, Any], ...]
    baselines: tuple[dict[str, Any], ...]
    verdict: tuple[str, ...]


@dataclass(frozen=True)
class OperatorHealth:
    """What an operator looks at first.

    Attributes:
        state: "good", "waiting" or "trouble".
        summary: one sentence.
        reason: what is wrong in one word, None if nothing is.
        planner_alive: whether somebody plans.
        last_published: time of the newest policy, None before the first.
        schema: version of the database's schema.
        ledger_intact: whether the chain of charges was verified; None where there is none.
    """

    state: str
    summary: str
    reason: str | None
    planner_alive: bool
    last_published: str | None
    schema: str
    ledger_intact: bool | None


@dataclass(frozen=True)
class View:
    """Everything on the page."""

    tacit: str
    generated: str
    task: dict[str, Any]
    progress: Counted
    versions: tuple[dict[str, Any], ...]
    version_count: int
    value: Value
    policy: ActionMap | None
    budget: Spending
    forecast: dict[str, Any]
    guarantee: dict[str, Any]
    health: OperatorHealth
    stamp: str = field(default="")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dataclasses.asdict(self)


def build(facts: Facts) -> View:
    """The view of one moment; ``stamp`` changes exactly when something but the time has changed."""
    d, window = facts.deployment, facts.deployment.settings.window
    ahead = outlook_of(facts)
    guarantee = d.guarantee
    view = View(
        tacit=__version__,
        generated=iso(facts.now),
        task={
            "task_id": d.task_id,
            "name": d.name,
            "model": d.model,
            "agent": d.agent.name,
            "states": d.task.sizes["states"],
            "actions": d.task.sizes.get("actions", d.task.sizes.get("inputs")),
            "horizon": d.task.horizon,
            "duration": d.task.duration,
            "delay": d.delay,
            "grace": d.grace,
            "sending": d.sending,
            "taking": d.taking,
            "returning": d.returning,
            "restoring": d.restoring,
            "dishonest": dishonest(d, facts.status.accepted, facts.ids),
            "reward_range": list(d.reward_range),
            "opens": None if window.opens is None else iso(window.opens),
            "closes": None if window.closes is None else iso(window.closes),
            "state": facts.status.state,
        },
        progress=Counted(
            accepted=facts.status.accepted,
            population=d.task.users,
            unit=d.unit,
            in_newest_policy=facts.versions[-1].users,
            next_policy_in=facts.next_batch,
        ),
        versions=tuple(
            {"version": v.version, "users": v.users, "published": iso(v.published_at)}
            for v in thinned(facts.versions)
        ),
        version_count=len(facts.versions),
        value=_value(facts),
        policy=action_map(d, facts.shown, facts.before),
        budget=spending(facts, ahead.policies_left),
        forecast={
            "users_left": ahead.users_left,
            "policies_left": ahead.policies_left,
            "users_per_day": ahead.users_per_day,
            "pace_since": ahead.since and iso(ahead.since.published_at),
            "next_policy_at": None if ahead.next_policy_at is None else iso(ahead.next_policy_at),
            "finished_at": None if ahead.finished_at is None else iso(ahead.finished_at),
        },
        guarantee={
            "statement": guarantee.statement(),
            "meaning": sentences.meaning(guarantee),
            "digest": guarantee.digest(),
            **guarantee.to_json(),
        },
        health=_health(facts),
    )
    return dataclasses.replace(view, stamp=_stamp(view))


ONE_IN = 100
"""Dishonest reports that the page speaks of: one in so many."""


def dishonest(deployment: Deployment, accepted: int, ids: Ids) -> str:
    """How far dishonest devices can move what is released, in a sentence with its number."""
    n = accepted or deployment.task.users
    f = -(-n // ONE_IN)
    weight = 1.0
    if deployment.model == "local":
        weight = messages.local_privatizer(deployment.bound).max_influence
    if math.isinf(weight):
        return (
            "this mechanism states no bound on how far dishonest reports can move what is released"
        )
    sentence = (
        f"{counted(f, 'dishonest report')} among {whole(n)} can move any one released sum by as "
        f"much as {real_up(f * weight)} honest people can ({real_up(weight)} each), and no further"
    )
    if deployment.model == "joint" or not messages.local_privatizer(deployment.bound).public_step:
        return sentence
    if ids == "token":
        return f"{sentence}; which question a report answers follows from its token"
    return f"{sentence}; senders choose their ids, so all of them can answer the same question"


def real_up(number: float) -> str:
    """A bound in three digits, rounded up."""
    if number <= 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(number)) - 2)
    return real(math.ceil(number / step - 1e-9) * step)


def thinned(versions: Sequence[Version]) -> list[Version]:
    """At most ``MOST_POINTS`` of them, evenly chosen, first and last included."""
    last = len(versions) - 1
    if last < MOST_POINTS:
        return list(versions)
    chosen = {round(k * last / (MOST_POINTS - 1)) for k in range(MOST_POINTS)}
    return [versions[k] for k in sorted(chosen)]


def _value(facts: Facts) -> Value:
    d, task = facts.deployment, facts.deployment.task
    low, high = d.reward_range

    def natural(value: float) -> float:
        return value if d.ticketed else low * task.horizon + (high - low) * value

    names = d.labels["states"] or [str(s) for s in range(task.sizes["states"])]
    users = {v.version: v.users for v in facts.versions}
    known = [(v, e) for v, e in sorted(facts.estimates.items()) if v in users and e.kind != "none"]
    newest = known[-1][1] if known else ValueBand("none")
    supported = bool(known) and newest.hidden <= LARGE
    return Value(
        kind=newest.kind,
        supported=supported,
        meaning=_value_meaning(newest.kind, facts),
        band={"start": COVERAGE, "even": COVERAGE, "played": 0.95}.get(newest.kind),
        span=(low, high) if d.ticketed else (natural(0.0), natural(float(task.horizon))),
        points=tuple(
            BandPoint(users[v], natural(e.low), natural(e.middle), natural(e.high), v)
            for v, e in known
            if e.hidden <= LARGE
        ),
        states=tuple(
            {"state": names[s], "low": natural(a), "middle": natural(b), "high": natural(c)}
            for s, (a, b, c) in enumerate(newest.states if supported else ())
        ),
        baselines=tuple(
            {
                "name": one.name,
                "value": natural(one.value[1]),
                "low": (high - low) * one.gain[0],
                "middle": (high - low) * one.gain[1],
                "high": (high - low) * one.gain[2],
            }
            for one in (newest.baselines if supported else ())
        ),
        verdict=_verdict(newest, users[known[-1][0]], task.users) if known else (),
    )


def _verdict(newest: ValueBand, users: int, population: int) -> tuple[str, ...]:
    """What the bands allow to say, and after how many users more could be said."""
    if newest.hidden > LARGE:
        return (
            f"Noise still hides {percent(newest.hidden)} of the policy's steps, and about those "
            "the release says nothing: the data do not support an estimate yet.",
        )
    lines = []
    if newest.hidden >= TOLD:
        lines.append(
            f"Noise hides {percent(newest.hidden)} of the policy's steps: about those the estimate "
            "and its band are guesses, drawn evenly."
        )
    for one in newest.baselines:
        low, _, high = one.gain
        needed = one.users_needed(users)
        if low > 0.0:
            lines.append(f"Better than {one.name}: the band of the gain lies above 0.")
        elif high < 0.0:
            lines.append(f"Worse than {one.name}: the band of the gain lies below 0.")
        elif needed is None:
            lines.append(
                f"Not told apart from {one.name}, and the estimate is not above it: no number of "
                "reports can be named."
            )
        else:
            beyond = ", more than this task is for" if needed > population else ""
            lines.append(
                f"Not yet told apart from {one.name}. If the estimated gain is right, the band "
                f"excludes 0 after about {whole(needed)} reports{beyond}."
            )
    return tuple(lines)


def _value_meaning(kind: str, facts: Facts) -> str:
    if facts.deployment.ticketed and kind == "none":
        return "Nothing can be said before the first batch has reported."
    steps = counted(facts.deployment.task.horizon, "step")
    what = f"The sum of rewards that one user of the newest policy can expect over {steps}"
    where = {
        "start": ", over the start states that the release tells (noisily)",
        "even": ", if every start state is equally likely: this release does not say where people "
        "start, so do not read it as what your users get; see the table by start state",
    }
    if kind in where:
        return (
            f"{what}{where[kind]}. Estimated from the noisy release and the known law of its noise "
            "alone, by evaluating the policy in many models that both allow, as if a state told "
            f"all that matters about a person. In simulations at least {COVERAGE:.0%} of such "
            "bands held the true value; what noise hides is drawn evenly."
        )
    if kind == "played":
        return (
            "The mean return of the people whose reports led to a policy: what they tried out is "
            "in it, so the policy itself is mostly better. Returns are cut at a window that "
            "follows them, and so is their mean. The band is that of known noise and of chance."
        )
    if kind == "optimistic":
        return (
            f"{what}, as the planner hopes: its optimistic value, averaged over start states. It "
            "is meant to lie above the truth. The releases of this agent do not allow a band."
        )
    if facts.versions[-1].users == 0:
        return "Nothing can be said before the first release with reports in it."
    return (
        "The releases of this agent hold no tables to evaluate a policy in: no estimate is shown."
    )


def _health(facts: Facts) -> OperatorHealth:
    d, window, now = facts.deployment, facts.deployment.settings.window, facts.status
    intact, trouble = now.budget["verified"], now.trouble
    state, summary = "good", "Reports are accepted and policies are planned."
    if intact is False:
        state, summary = "trouble", "The ledger of charges is damaged: stop and restore it."
    elif trouble is not None:
        sentence = trouble.sentence
        state, summary = "trouble", f"{sentence[:1].upper()}{sentence[1:]}."
    elif now.state == "paused":
        state = "waiting"
        summary = "Paused by its operator: devices keep their reports, and no policy is planned."
    elif now.state == "closed":
        state = "waiting"
        summary = "Closed by its operator: no further report is accepted, policies stay up."
    elif now.accepted >= d.task.users:
        summary = "The population is reached: no further report is accepted, policies stay up."
    elif window.opens is not None and facts.now < window.opens:
        state, summary = "waiting", f"Reports are accepted in {length(window.opens - facts.now)}."
    elif window.closes is not None and facts.now >= window.closes:
        state, summary = "waiting", "The validity window is over: no further report is accepted."
    elif now.accepted == 0:
        state, summary = "waiting", "Ready; nobody has taken part yet."
    return OperatorHealth(
        state=state,
        summary=summary,
        reason=None if trouble is None else trouble.reason,
        planner_alive=now.planner_alive,
        last_published=iso(facts.versions[-1].published_at),
        schema=facts.schema,
        ledger_intact=intact,
    )


def _stamp(view: View) -> str:
    """Digest of what is said, times and what follows from them left out."""
    content = view.to_json()
    for moving in ("generated", "stamp", "forecast"):
        del content[moving]
    del content["health"]["summary"]
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ActionMap:
    """A policy as tables.

    Attributes:
        version: of the policy.
        states: names, or numbers.
        actions: names, or numbers.
        letters: short marks of the actions, for small cells.
        table: the (most likely) action of every stage, by state.
        certainty: its probability, where the policy is stochastic.
        changed: cells that differ from the version before, None for the first.
    """

    version: int
    states: tuple[str, ...]
    actions: tuple[str, ...]
    letters: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    certainty: tuple[tuple[float, ...], ...] | None
    changed: int | None


def action_map(
    deployment: Deployment, shown: Publication, before: Publication | None
) -> ActionMap | None:
    """The map of a publication; None where a policy is no table."""
    tables = _table(shown.policy)
    if tables is None:
        return None
    table, certainty = tables
    earlier = None if before is None else _table(before.policy)
    S, A = deployment.task.sizes["states"], deployment.task.sizes["actions"]
    return ActionMap(
        version=shown.version,
        states=tuple(deployment.labels["states"] or map(str, range(S))),
        actions=tuple(deployment.labels["actions"] or (f"action {a}" for a in range(A))),
        letters=tuple(letter(a) for a in range(A)),
        table=tuple(tuple(int(a) for a in row) for row in table),
        certainty=None
        if certainty is None
        else tuple(tuple(round(float(p), 4) for p in row) for row in certainty),
        changed=None if earlier is None else int((earlier[0] != table).sum()),
    )


def letter(action: int) -> str:
    """A, B, ..., Z, A1, B1, ..."""
    turn, place = divmod(action, 26)
    return string.ascii_uppercase[place] + (str(turn) if turn else "")


def _table(policy: Policy) -> tuple[IntArray, Array | None] | None:
    if isinstance(policy, TabularPolicy):
        return policy.actions, None
    if isinstance(policy, StochasticPolicy):
        chances = policy.probabilities
        return chances.argmax(axis=-1).astype(np.int64), chances.max(axis=-1)
    return None
