"""What devices and collectors say to each other: tasks, publications and policies in JSON.

docs/reference/wire.md is the specification. Everything that arrives is decoded strictly
(``wire/strict_json.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.errors import InvalidInput
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.policies.parametric import ARRAYS, ParametricPolicy, scoring
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, check_allowed
from tacit.publication import Publication
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.wire import strict_json

VERSION = 3
"""Of all that docs/reference/wire.md says; a peer that speaks another one is not understood.

1 had no hashes of publications, no question whether a report would be taken, and ids that every
device drew for itself; 2 did not say by which rules a report is made. Devices still follow an
episode that they began under an older version.
"""

READABLE = (1, 2, VERSION)
"""Versions of a description that a device stored and can go on with."""

TERMS_FORMS = (2, 1)
"""How the terms are spelt when they are hashed, the newest first; a task keeps its own.

In form 2 as RFC 8785 says, so that every language can; form 1 is Python's spelling of numbers.
"""

PLACES_FORM = 3
"""Spelt as form 2: of tacit-local on a table with terminal states, since all of these are one
answer now. In earlier forms each had answers of its own, and the two do not add up."""

TERMS = ("name", "task", "agent", "reward_range", "absorbing_state", "unit")
"""What a user agrees to: one of them changed is another task."""

PUBLISHED = ("task_id", "version", "policy", "context")
"""What is said about a policy wherever it goes."""

BESIDES: tuple[str, ...] = ("format", "format_version", "family", "horizon", "sizes", "users")
BESIDES += ("guarantee", "names", "about", "sha256")
"""What a policy file says besides."""


def terms_forms(description: Mapping[str, Any]) -> tuple[int, ...]:
    """Forms that the terms in a task's description may have, the newest first."""
    agent, task = description["agent"], description["task"]
    known = task.get("known") if isinstance(task, Mapping) else None
    ends = isinstance(known, Mapping) and "terminal" in known
    name = agent.get("name") if isinstance(agent, Mapping) else None
    return (PLACES_FORM,) if ends and name == "tacit-local" else TERMS_FORMS


def task_id(description: Mapping[str, Any], form: int | None = None) -> str:
    """SHA-256 of the terms in a task's description (see ``TERMS``; other fields do not count).

    In the newest form that they may have, or in the one that is given.
    """
    for name in TERMS:
        if name not in description:
            raise InvalidInput(f"a task without {name!r} has no id")
    terms = {name: description[name] for name in TERMS}
    form = form or terms_forms(description)[0]
    spell = strict_json.canonical if form == 1 else strict_json.spelt
    return hashlib.sha256(spell({"wire": form, **terms})).hexdigest()


def task_to_json(task: Task) -> dict[str, Any]:
    """A Task, as JSON. A duration and a participation rule are written where there are some.

    So other tasks keep their ids.
    """
    return {
        "family": task.family,
        "horizon": task.horizon,
        "sizes": dict(task.sizes),
        "homogeneous": task.homogeneous,
        "users": task.users,
        "participations": task.participations,
        "known": strict_json.arrays_to_json({name: task.known[name] for name in task.revealed}),
        **({"duration": task.duration} if task.duration else {}),
        **({} if task.rule is None else {"rule": task.rule.to_json()}),
    }


def task_from_json(value: object) -> Task:
    """The Task again."""
    always = ("family", "horizon", "sizes", "homogeneous", "users", "participations", "known")
    entries = strict_json.fields(value, "task", always, ("duration", "rule"))
    rule = entries.get("rule")
    return Task(
        family=strict_json.text(entries["family"], "family"),
        horizon=strict_json.whole(entries["horizon"], "horizon", 1),
        sizes=strict_json.sizes_from_json(entries["sizes"]),
        homogeneous=strict_json.truth(entries["homogeneous"], "homogeneous"),
        users=strict_json.whole(entries["users"], "users", 1),
        known=strict_json.arrays_from_json(strict_json.named(entries["known"], "known")),
        participations=strict_json.whole(entries["participations"], "participations", 1),
        duration=strict_json.real(entries.get("duration", 0.0), "duration"),
        rule=None if rule is None else _rule_from_json(rule),
    )


def _rule_from_json(value: object) -> Participation:
    """A rule that leaves nothing open."""
    rule = Participation.from_json(strict_json.named(value, "rule"))
    if rule.teaches is None and rule.times != 1:
        raise InvalidInput("the rule of participations does not say which of them teach")
    return rule


def publication_to_json(
    publication: Publication, task_id: str, previous: str | None = None
) -> dict[str, Any]:
    """What a policy file and the answer to a policy request say about the policy itself.

    ``previous`` is the hash of the publication before; those made before there were hashes name
    none.
    """
    return {
        "task_id": task_id,
        **({} if previous is None else {"previous": previous}),
        "version": publication.version,
        "policy": _policy_to_json(publication.policy),
        "context": strict_json.arrays_to_json(dict(sorted(publication.context.items()))),
    }


def publication_hash(body: object) -> str:
    """Names a publication and, as each names the one before, the whole history it stands in."""
    return hashlib.sha256(strict_json.canonical(body)).hexdigest()


def publication_from_json(value: object, task: Task, task_id: str) -> Publication:
    """The publication again, refused if it is of another task or does not fit this one.

    What a policy file says besides (``tacit.learned_policy``) is passed over, but for its seal.
    """
    entries = strict_json.fields(value, "policy answer", PUBLISHED, (*BESIDES, "previous"))
    if "sha256" in entries:
        check_seal(entries)
    if strict_json.text(entries["task_id"], "task_id") != task_id:
        raise InvalidInput(
            f"this is a policy of task {entries['task_id'][:12]}..., not of {task_id[:12]}..."
        )
    publication = read_publication(entries, task.horizon, task.sizes)
    if task.family == "tabular":
        check_allowed(publication.policy, task.pairs)
    return publication


def read_publication(
    entries: Mapping[str, Any], horizon: int, sizes: Mapping[str, int]
) -> Publication:
    """The publication in fields that were checked, for a task of these sizes."""
    if "previous" in entries:
        strict_json.text(entries["previous"], "previous")
    context = strict_json.arrays_from_json(strict_json.named(entries["context"], "context"))
    version = strict_json.whole(entries["version"], "version", 0)
    return Publication(version, _policy_from_json(entries["policy"], horizon, sizes), context)


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the SHA-256 of its canonical JSON in it: what was damaged is noticed."""
    return {**value, "sha256": hashlib.sha256(strict_json.canonical(value)).hexdigest()}


def check_seal(value: Mapping[str, Any]) -> None:
    """Refuse an object whose content is not what was sealed."""
    content = {name: entry for name, entry in value.items() if name != "sha256"}
    if sealed(content)["sha256"] != value["sha256"]:
        raise InvalidInput(
            "the policy is damaged or was changed: its content does not have the SHA-256 that it "
            "states; get it again from where it came from"
        )


def _policy_to_json(policy: Policy) -> dict[str, Any]:
    if isinstance(policy, TabularPolicy):
        return {"kind": "table", "actions": policy.actions.tolist()}
    if isinstance(policy, StochasticPolicy):
        table = strict_json.array_to_json(policy.probabilities)
        return {"kind": "stochastic", "probabilities": table}
    if isinstance(policy, LinearPolicy):
        arrays = strict_json.arrays_to_json({"gains": policy.gains, "offsets": policy.offsets})
        return {"kind": "linear", **arrays, "amplitude": policy.amplitude, "key": policy.key}
    if isinstance(policy, ParametricPolicy):
        return {
            "kind": "scored",
            "theta": strict_json.array_to_json(policy.theta),
            "form": strict_json.arrays_to_json(policy.arrays()),
            "sigma": policy.sigma,
            "key": policy.key,
            **({"shared": policy.shared} if policy.shared else {}),
        }
    raise InvalidInput(f"a {type(policy).__name__} has no form in which it can be sent or saved")


def _policy_from_json(value: object, horizon: int, sizes: Mapping[str, int]) -> Policy:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if kind == "linear" and "inputs" in sizes:
        return _linear_from_json(value, horizon, sizes)
    if kind == "scored":
        return _scored_from_json(value, horizon, sizes)
    if kind not in ("table", "stochastic") or "actions" not in sizes:
        raise InvalidInput("the kind of the policy must be table, stochastic, linear or scored")
    H, S, A = horizon, sizes["states"], sizes["actions"]
    if kind == "stochastic":
        table = strict_json.fields(value, "policy", ("kind", "probabilities"))["probabilities"]
        return StochasticPolicy(strict_json.array_from_json(table, "probabilities", (H, S, A)))
    table = strict_json.fields(value, "policy", ("kind", "actions"))["actions"]
    if not isinstance(table, list) or len(table) != H:
        raise InvalidInput(f"the policy must have {H} rows, one for each step")
    for row in table:
        if not isinstance(row, list) or len(row) != S:
            raise InvalidInput(f"every row of the policy must have {S} actions")
    actions = [
        [strict_json.whole(action, "an action", 0, A - 1) for action in row] for row in table
    ]
    return TabularPolicy(np.array(actions, dtype=np.int64))


def _linear_from_json(value: object, horizon: int, sizes: Mapping[str, int]) -> LinearPolicy:
    entries = strict_json.fields(value, "policy", ("kind", "gains", "offsets", "amplitude", "key"))
    H, d, n = horizon, sizes["inputs"], sizes["states"]
    return LinearPolicy(
        strict_json.array_from_json(entries["gains"], "gains", (H, d, n)),
        strict_json.array_from_json(entries["offsets"], "offsets", (H, d)),
        amplitude=strict_json.real(entries["amplitude"], "amplitude"),
        key=strict_json.whole(entries["key"], "key", 0, 2**63 - 1),
    )


def _scored_from_json(value: object, horizon: int, sizes: Mapping[str, int]) -> ParametricPolicy:
    always = ("kind", "theta", "form", "sigma", "key")
    entries = strict_json.fields(value, "policy", always, ("shared",))
    arrays = strict_json.arrays_from_json(strict_json.fields(entries["form"], "form", ARRAYS))
    return ParametricPolicy(
        scoring(sizes, arrays),
        strict_json.array_from_json(entries["theta"], "theta"),
        horizon,
        sigma=strict_json.real(entries["sigma"], "sigma"),
        key=strict_json.whole(entries["key"], "key", 0, 2**62 - 1),
        shared=strict_json.whole(entries.get("shared", 0), "shared", 0),
    )
