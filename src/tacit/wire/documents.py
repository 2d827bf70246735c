"""What devices and collectors say to each other: tasks and publications in JSON, and messages.

docs/wire.md is the specification. Everything that arrives is decoded strictly (``wire/strict_json.py``). A
message is base64 of fixed-size numbers; a local one is randomized on the device and inspected
before it leaves and when it arrives.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.policies.parametric import ARRAYS, ScoredPolicy, scoring
from tacit.policies.tabular import (
    LinearPolicy,
    Policy,
    StochasticPolicy,
    TabularPolicy,
    check_allowed,
)
from tacit.publication import Publication
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.trajectory import Trajectory, VectorTrajectory
from tacit.wire.strict_json import (
    array_from_json,
    array_to_json,
    canonical,
    fields,
    named,
    raw_bytes,
    real,
    spelt,
    text,
    truth,
    whole,
)

if TYPE_CHECKING:
    from tacit.learner import BoundAgent
    from tacit.privacy.base import LocalPrivatizer
    from tacit.privacy.noise import Noise

VERSION = 3
"""Of all that docs/wire.md says; a peer that speaks another one is not understood.

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

DECOY = "0" * 64
"""In the place of the rules' hash: no rules have it, and what names it is counted nowhere."""

_ID = re.compile(r"[0-9a-f]{32}")

LONGEST = 2**24
"""Entries of a message that is decoded at all."""


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
    spell = canonical if form == 1 else spelt
    return hashlib.sha256(spell({"wire": form, **terms})).hexdigest()


def task_to_json(task: Task) -> dict[str, Any]:
    """A Task, as JSON. A duration and a participation rule are written where there are some.

    So other tasks keep their ids.
    """
    duration = {"duration": task.duration} if task.duration else {}
    rule = {} if task.rule is None else {"rule": task.rule.to_json()}
    return {
        "family": task.family,
        "horizon": task.horizon,
        "sizes": dict(task.sizes),
        "homogeneous": task.homogeneous,
        "users": task.users,
        "participations": task.participations,
        "known": {name: array_to_json(task.known[name]) for name in task.revealed},
        **duration,
        **rule,
    }


def task_from_json(value: object) -> Task:
    """The Task again."""
    given = fields(
        value,
        "task",
        ("family", "horizon", "sizes", "homogeneous", "users", "participations", "known"),
        ("duration", "rule"),
    )
    rule = given.get("rule")
    return Task(
        family=text(given["family"], "family"),
        horizon=whole(given["horizon"], "horizon", 1),
        sizes={
            name: whole(size, f"the number of {name}", 1)
            for name, size in named(given["sizes"], "sizes").items()
        },
        homogeneous=truth(given["homogeneous"], "homogeneous"),
        users=whole(given["users"], "users", 1),
        known={
            name: array_from_json(fact, name)
            for name, fact in named(given["known"], "known").items()
        },
        participations=whole(given["participations"], "participations", 1),
        duration=real(given.get("duration", 0.0), "duration"),
        rule=None if rule is None else _rule_from_json(rule),
    )


def _rule_from_json(value: object) -> Participation:
    """A rule that leaves nothing open."""
    rule = Participation.from_json(named(value, "rule"))
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
        "context": {
            name: array_to_json(array) for name, array in sorted(publication.context.items())
        },
    }


def publication_hash(body: object) -> str:
    """Names a publication and, as each names the one before, the whole history it stands in."""
    return hashlib.sha256(canonical(body)).hexdigest()


def publication_from_json(value: object, task: Task, task_id: str) -> Publication:
    """The publication again, refused if it is of another task or does not fit this one.

    What a policy file says besides (``tacit.learned_policy``) is passed over, but for its seal.
    """
    given = fields(value, "policy answer", PUBLISHED, (*BESIDES, "previous"))
    if "sha256" in given:
        check_seal(given)
    if text(given["task_id"], "task_id") != task_id:
        raise InvalidInput(
            f"this is a policy of task {given['task_id'][:12]}..., not of {task_id[:12]}..."
        )
    publication = read_publication(given, task.horizon, task.sizes)
    if task.family == "tabular":
        check_allowed(publication.policy, task.pairs)
    return publication


def read_publication(
    given: Mapping[str, Any], horizon: int, sizes: Mapping[str, int]
) -> Publication:
    """The publication in fields that were checked, for a task of these sizes."""
    if "previous" in given:
        text(given["previous"], "previous")
    context = {
        name: array_from_json(array, name)
        for name, array in named(given["context"], "context").items()
    }
    version = whole(given["version"], "version", 0)
    return Publication(version, _policy_from_json(given["policy"], horizon, sizes), context)


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the SHA-256 of its canonical JSON in it: what was damaged is noticed."""
    return {**value, "sha256": hashlib.sha256(canonical(value)).hexdigest()}


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
        return {"kind": "stochastic", "probabilities": array_to_json(policy.probabilities)}
    if isinstance(policy, LinearPolicy):
        return {
            "kind": "linear",
            "gains": array_to_json(policy.gains),
            "offsets": array_to_json(policy.offsets),
            "amplitude": policy.amplitude,
            "key": policy.key,
        }
    if isinstance(policy, ScoredPolicy):
        return {
            "kind": "scored",
            "theta": array_to_json(policy.theta),
            "form": {name: array_to_json(array) for name, array in policy.arrays().items()},
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
        table = fields(value, "policy", ("kind", "probabilities"))["probabilities"]
        return StochasticPolicy(array_from_json(table, "probabilities", (H, S, A)))
    table = fields(value, "policy", ("kind", "actions"))["actions"]
    if not isinstance(table, list) or len(table) != H:
        raise InvalidInput(f"the policy must have {H} rows, one for each step")
    for row in table:
        if not isinstance(row, list) or len(row) != S:
            raise InvalidInput(f"every row of the policy must have {S} actions")
    actions = [[whole(action, "an action", 0, A - 1) for action in row] for row in table]
    return TabularPolicy(np.array(actions, dtype=np.int64))


def _linear_from_json(value: object, horizon: int, sizes: Mapping[str, int]) -> LinearPolicy:
    given = fields(value, "policy", ("kind", "gains", "offsets", "amplitude", "key"))
    H, d, n = horizon, sizes["inputs"], sizes["states"]
    return LinearPolicy(
        array_from_json(given["gains"], "gains", (H, d, n)),
        array_from_json(given["offsets"], "offsets", (H, d)),
        amplitude=real(given["amplitude"], "amplitude"),
        key=whole(given["key"], "key", 0, 2**63 - 1),
    )


def _scored_from_json(value: object, horizon: int, sizes: Mapping[str, int]) -> ScoredPolicy:
    given = fields(value, "policy", ("kind", "theta", "form", "sigma", "key"), ("shared",))
    arrays = {
        name: array_from_json(array, name)
        for name, array in fields(given["form"], "form", ARRAYS).items()
    }
    return ScoredPolicy(
        scoring(sizes, arrays),
        array_from_json(given["theta"], "theta"),
        horizon,
        sigma=real(given["sigma"], "sigma"),
        key=whole(given["key"], "key", 0, 2**62 - 1),
        shared=whole(given.get("shared", 0), "shared", 0),
    )


def new_report_id() -> str:
    """128 random bits from the operating system: nobody else has it, and it says nothing."""
    return secrets.token_hex(16)


def seat(token: str, task_id: str) -> bytes:
    """What a device's ids are made of: known to who holds its token, and the token stays hidden."""
    return hmac.digest(token.encode(), f"tacit ids of {task_id}".encode(), "sha256")


def assigned_id(seat: bytes, number: int) -> str:
    """The id of a device's report of that number, counted from 0: nobody can choose it.

    Where budgets renew, period n has the numbers from n times what is counted in a period.
    """
    return hmac.digest(seat, b"%d" % number, "sha256")[:16].hex()


def report_id(value: object) -> str:
    """A report's id, if it is one."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidInput("a report id is 32 lower-case hexadecimal digits")
    return value


def coin(task_id: str, report_id: str) -> int:
    """The public coin of a report: 63 bits of SHA-256 over both ids.

    The id is fixed before the user does anything, so the coin says nothing about them.
    """
    digest = hashlib.sha256(f"{task_id}:{report_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def pack_message(message: IntArray) -> str:
    """Base64 of little-endian 64-bit integers."""
    if message.ndim != 1 or message.dtype != np.int64:
        raise InvalidInput("a message is one row of 64-bit integers")
    return base64.b64encode(message.astype("<i8").tobytes()).decode()


def unpack_message(value: object) -> IntArray:
    """The integers again; the privatizer judges how many there must be and what they may say."""
    if not isinstance(value, str):
        raise InvalidInput("the message must be base64 text")
    size = len(value) // 4 * 3 - (value[-2:].count("=") if value else 0)
    if size % 8 or size > 8 * LONGEST:
        raise InvalidInput("the message must be base64 of whole 64-bit integers")
    raw = raw_bytes(value, "the message", size)
    return np.frombuffer(raw, dtype="<i8").astype(np.int64, copy=False)


def pack_trajectory(trajectory: Trajectory, horizon: int) -> str:
    """Raw data for a trusted curator, always of one length: the length of a life says nothing."""
    states, actions, rewards = trajectory.states, trajectory.actions, trajectory.rewards
    if (states.shape, actions.shape, rewards.shape) != ((horizon + 1,), (horizon,), (horizon,)):
        raise InvalidInput(f"a trajectory must be padded to {horizon} steps before it is sent")
    raw = states.astype("<i4").tobytes() + actions.astype("<i4").tobytes()
    return base64.b64encode(raw + rewards.astype("<f8").tobytes()).decode()


def unpack_trajectory(value: object, horizon: int) -> Trajectory:
    """The trajectory again. Only its length is judged: what it says is clipped, never refused."""
    H = horizon
    raw = raw_bytes(value, "the message", 4 * (H + 1) + 4 * H + 8 * H)
    numbers = np.frombuffer(raw, dtype="<i4", count=2 * H + 1)
    rewards = np.frombuffer(raw, dtype="<f8", offset=4 * (2 * H + 1))
    return Trajectory(numbers[: H + 1], numbers[H + 1 :], rewards)


def pack_return(found: float) -> str:
    """A clipped return for a trusted curator: 8 bytes, whatever it is."""
    return base64.b64encode(np.array([found], dtype="<f8").tobytes()).decode()


def unpack_return(value: object) -> Trajectory:
    """The return as a trajectory that holds nothing else; what it says is clipped, not judged."""
    rewards = np.frombuffer(raw_bytes(value, "the message", 8), dtype="<f8")
    nothing = np.zeros((0, 1))
    return VectorTrajectory(nothing, nothing, rewards)


def local_privatizer(bound: BoundAgent) -> LocalPrivatizer[Any]:
    """The agent's privatizer, if devices can report to it over a network.

    Sums must hold whatever devices may send, not only what honest ones do.
    """
    device, users = bound.privatizer.device, bound.task.users
    if bound.guarantee.model != "local" or device is None:
        raise InvalidInput(
            f"the agent's mechanism ({bound.guarantee.mechanism}) sends no local reports of one "
            "message; choose tacit-local, ldp-obi, ldp-psrl or tacit-search"
        )
    if users * device.largest >= 2**63:
        raise InvalidInput(
            f"the sums of {users:,} reports could leave the 64-bit integers if devices misbehave; "
            "plan for fewer users, or choose a larger epsilon"
        )
    return device


def device_message(
    bound: BoundAgent, contribution: IntArray, publication: Publication, coin: int, noise: Noise
) -> IntArray:
    """On the device: the randomized message about a contribution that was made with this coin.

    It is inspected as the collector will: a contribution made with another coin is caught here.
    """
    privatizer = local_privatizer(bound)
    message = privatizer.randomize(contribution, publication, noise)
    privatizer.inspect(message, publication, coin)
    return message
