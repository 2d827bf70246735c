"""The sections of a deployment file: which keys there are, what each may hold, and its default."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from tacit.config import anything, key, keys, section
from tacit.errors import InvalidInput, suggestion
from tacit.privacy.ledger_lines import printable
from tacit.task.participation import ANY, MOST, Attendance, Teaches
from tacit.util.durations import DAY, HOUR, seconds
from tacit.validate import choice, flag, integer, number

TokenUse = Literal["per-device", "shared"]
_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?")


def labels(value: object, name: str) -> tuple[str, ...] | int:
    """A number of things, or a list of their names."""
    if not isinstance(value, list):
        return integer(value, name, low=1, high=1_000_000)
    names = tuple(printable(label, f"{name}: a name") for label in value)
    if not names or len(set(names)) < len(names):
        raise InvalidInput(f"{name} must list at least one name, and each name once")
    return names


def times(value: object, name: str) -> int | None:
    """How often, at most; None for "any", as often as they like."""
    if isinstance(value, str) and value != ANY:
        raise InvalidInput(f'{name} = {value!r}, but it must be a whole number >= 1, or "{ANY}"')
    return None if value == ANY else integer(value, name, low=1, high=MOST)


def pace(value: object, name: str) -> float:
    """People per second, given as text like "150/day", "20/hour" or "3/minute".

    >>> pace("86400/day", "pace")
    1.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*/\s*(day|hour|minute)", str(value).strip())
    if match is None or not float(match[1]):
        raise InvalidInput(
            f'{name} = {value!r}, but it must be people per time, like "150/day" or "20/hour"'
        )
    return float(match[1]) / {"day": DAY, "hour": HOUR, "minute": 60.0}[match[2]]


def moment(value: object, name: str) -> float:
    """Unix time of a date and time with an offset."""
    time = value
    if isinstance(time, str):
        with contextlib.suppress(ValueError):
            time = datetime.fromisoformat(time)
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise InvalidInput(
            f"{name} = {value!r}, but it must be a time with an offset, like 2026-05-01T08:00:00Z"
        )
    return time.timestamp()


def iso(unix: float | None) -> str | None:
    """The same moment as text, in UTC."""
    if unix is None:
        return None
    return datetime.fromtimestamp(unix, UTC).isoformat().replace("+00:00", "Z")


def span(value: object, name: str) -> tuple[float, float]:
    """Two numbers, the first below the second."""
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidInput(f"{name} = {value!r}, but it must be two numbers, like [0.0, 1.0]")
    low, high = (number(x, name) for x in value)
    if not (low < high and math.isfinite(high - low)):
        raise InvalidInput(f"{name} = [{low:g}, {high:g}], but the first must be below the second")
    return low, high


def listed(value: object, name: str) -> tuple[Any, ...]:
    """A list; what is in it is checked where states and actions are known."""
    if not isinstance(value, list):
        raise InvalidInput(f"{name} = {value!r}, but it must be a list")
    return tuple(value)


def numbers(value: object, name: str) -> tuple[float, ...]:
    """A list of finite numbers."""
    return tuple(number(x, name) for x in listed(value, name))


def web_origins(value: object, name: str) -> tuple[str, ...]:
    """Where pages come from that may talk to the service: scheme, host and port, as browsers say.

    >>> web_origins(["https://coach.example.org"], "origins")
    ('https://coach.example.org',)
    """
    for one in listed(value, name):
        if not isinstance(one, str) or not _ORIGIN.fullmatch(one):
            raise InvalidInput(
                f'{name} = {one!r}, but an origin is written like "https://coach.example.org", in '
                "small letters, without a path; every one of them must be named"
            )
    return listed(value, name)


@dataclass(frozen=True, kw_only=True)
class TaskSection:
    """What is learned.

    Attributes:
        name: what the operator calls the task.
        states: how many, or their names.
        actions: likewise.
        horizon: steps of one episode.
        duration: seconds that an episode takes, 0 if that is not declared.
        reward_range: what devices scale to [0, 1].
        returns: the least and the largest return of an episode, where that is known.
        homogeneous: the law of a step is the same at every step.
        absorbing_state: where users are who leave before an end, without reward.
        terminal: states that end an episode, by number or name; nothing more is paid or counted.
        allowed: for every state the actions that may be played; all of them unless given.
        start: the start state, or the chances of all states, where that is known.
        features: file of declared features phi(s'|s,a).
        theta_norm: the bound on their parameter.
    """

    name: str = key(printable)
    states: tuple[str, ...] | int = key(labels)
    actions: tuple[str, ...] | int = key(labels)
    horizon: int = key(integer, low=1, high=100_000)
    duration: float = key(seconds, default=0.0)
    reward_range: tuple[float, float] = key(span, default=(0.0, 1.0))
    returns: tuple[float, float] | None = key(span, default=None)
    homogeneous: bool = key(flag, default=False)
    absorbing_state: int = key(integer, default=0, low=0)
    terminal: tuple[Any, ...] | None = key(listed, default=None)
    allowed: tuple[Any, ...] | None = key(listed, default=None)
    start: Any = key(anything, default=None)
    features: str | None = key(printable, default=None)
    theta_norm: float | None = key(number, default=None, low=0.0)


@dataclass(frozen=True, kw_only=True)
class SearchSection:
    """Makes the task a policy search: what is reported, and how observations are scored.

    ``states`` of [task] are then the numbers of an observation ("one-hot": how many there are),
    ``actions`` those of a choice, or of a point of the box.

    Attributes:
        returns: least and largest sum of rewards of an episode; what lies outside is clipped.
        scale: what counts as large in each number of an observation; not for "one-hot".
        shift: what counts as its middle, 0 unless given.
        features: "identity", "affine", "quadratic", "fourier", "rbf", "one-hot", "tiles" or
            "projection".
        order: of "fourier", "rbf" and "tiles".
        table: .npy file with the arrays of a transformer fitted on public data.
        width: of the bumps of "rbf" around such centres.
        head: "argmax" or "softmax"; of a box "tanh" or "clipped".
        hidden: units of a hidden layer.
        least: least action of a box in each direction; left out where actions are a choice.
        most: likewise the largest.
    """

    returns: tuple[float, float] = key(span)
    scale: tuple[float, ...] = key(numbers, default=())
    shift: tuple[float, ...] | None = key(numbers, default=None)
    features: str = key(printable, default="identity")
    order: int = key(integer, default=2, low=0, high=1024)
    table: str | None = key(printable, default=None)
    width: float | None = key(number, default=None, low=0.0)
    head: str | None = key(printable, default=None)
    hidden: int = key(integer, default=0, low=0, high=1024)
    least: tuple[float, ...] = key(numbers, default=())
    most: tuple[float, ...] = key(numbers, default=())


@dataclass(frozen=True, kw_only=True)
class PopulationSection:
    """Who takes part.

    Attributes:
        users: reports that the budget is for.
        participations: how often one person may take part, in a period if budgets are renewed; None
            for any number.
        teaches: which of these are reported and counted: "first", "lifetime" or "every"; None
            leaves it to the agent (see ``tacit.task.participation``).
        apart: seconds from the beginning of one to that of the next, at least; devices keep to it.
        renews: seconds after which everybody's budget is whole again; 0 for never.
        attendance: "public": when people take part is not hidden.
        tokens: "per-device" makes the unit "user", "shared" makes it "participation".
        pace: people per second who are expected to begin; a guess, which nobody is told.
    """

    users: int = key(integer, low=1, high=10**12)
    participations: int | None = key(times, default=1)
    teaches: Teaches | None = key(choice, default=None, options=get_args(Teaches))
    apart: float = key(seconds, default=0.0)
    renews: float = key(seconds, default=0.0)
    attendance: Attendance = key(choice, default="public", options=get_args(Attendance))
    tokens: TokenUse = key(choice, default="per-device", options=get_args(TokenUse))
    pace: float | None = key(pace, default=None)


@dataclass(frozen=True, kw_only=True)
class UpdatesSection:
    """When there is a new policy, and until when a report about an old one is taken.

    Attributes:
        minimum_batch: least number of reports between two policies.
        cadence: least number of seconds between two policies.
        accepted_versions: how many of the newest versions reports may name, without a duration.
        delay: most seconds for which a device holds its report after the episode, at random.
        grace: seconds for which a report is taken after the last moment it can be due.
    """

    minimum_batch: int = key(integer, default=100, low=1)
    cadence: float = key(seconds, default=0.0)
    accepted_versions: int | None = key(integer, default=None, low=1, high=1000)
    delay: float | None = key(seconds, default=None)
    grace: float | None = key(seconds, default=None)


@dataclass(frozen=True, kw_only=True)
class WindowSection:
    """When reports are taken at all.

    Attributes:
        opens: time with an offset before which they are refused.
        closes: time from which on they are refused.
    """

    opens: float | None = key(moment, default=None)
    closes: float | None = key(moment, default=None)


@dataclass(frozen=True, kw_only=True)
class StorageSection:
    """What is kept, and where; names of files are relative to the deployment file.

    Attributes:
        database: SQLAlchemy URL; a file beside the deployment file unless given.
        key_file: keys of the encrypted table (joint only).
        witness: file that notices a database restored from before a release (joint only).
        witness_on_same_disk: the witness may lie on the disk of the database, where both can be
            restored together; everybody is told (joint only).
        keep_reports: keep what was absorbed, so that every policy can be worked out again.
    """

    database: str | None = key(printable, default=None, secret=True)  # it may hold a password
    key_file: str | None = key(printable, default=None)
    witness: str | None = key(printable, default=None)
    witness_on_same_disk: bool = key(flag, default=False)
    keep_reports: bool = key(flag, default=False)


@dataclass(frozen=True, kw_only=True)
class ServerSection:
    """Where it listens, how much it reads at once, and pages of which origins may talk to it.

    Attributes:
        host: the address.
        port: likewise.
        max_body_bytes: of one request.
        max_batch: reports in one request.
        origins: of pages that may talk to it.
    """

    host: str = key(printable, default="127.0.0.1")
    port: int = key(integer, default=8080, low=1, high=65535)
    max_body_bytes: int = key(integer, default=4_000_000, low=1024)
    max_batch: int = key(integer, default=1000, low=1, high=100_000)
    origins: tuple[str, ...] = key(web_origins, default=())


TABLES_ONLY = {
    *("reward_range", "homogeneous", "absorbing_state", "terminal", "allowed", "start"),
    *("features", "theta_norm"),
}
"""Keys of [task] that say nothing about a search."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The whole file; what [agent] and [fleet] hold is checked by whom it is for."""

    task: TaskSection = key(TaskSection)
    search: SearchSection | None = key(SearchSection, default=None)
    agent: dict[str, Any] = key(dict)
    population: PopulationSection = key(PopulationSection)
    updates: UpdatesSection = key(UpdatesSection)
    window: WindowSection = key(WindowSection)
    storage: StorageSection = key(StorageSection)
    server: ServerSection = key(ServerSection)
    fleet: dict[str, Any] = key(dict)


_KINDS = {one.name: one.metadata["check"] for one in fields(Settings)}

SECTIONS = {name: keys(kind) for name, kind in _KINDS.items() if kind is not dict}
SECTIONS["agent"] = ("name",)
"""Keys of the sections that the environment may override; an agent has others besides."""


def read_settings(data: dict[str, Any]) -> Settings:
    """Check a file that was parsed; the first mistake is told in a sentence."""
    for name in data:
        if name not in _KINDS:
            raise InvalidInput(f"unknown section [{name}]{suggestion(name, _KINDS)}")
    every: dict[str, Any] = {name: {} for name in _KINDS if name != "search"}
    settings = section(Settings, every | data, "the file")
    if "name" not in settings.agent:
        raise InvalidInput("[agent] needs the key 'name'")
    if settings.search is not None:
        for name in sorted(TABLES_ONLY & data["task"].keys()):
            raise InvalidInput(
                f"{name} in [task] is said of tables, and [search] makes this a search"
            )
    return settings
