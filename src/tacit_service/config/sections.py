"""The sections of a deployment file: which keys there are, what each may hold, and its default."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from tacit.errors import InvalidInput, suggestion
from tacit.task.participation import ANY, MOST, Attendance, Teaches
from tacit.util.durations import DAY, HOUR, seconds
from tacit.validate import choice, flag, integer, number

_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?")


def text(value: object, name: str) -> str:
    """A short printable line."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"{name} = {value!r}, but it must be 1 to 200 printable characters")
    return value


def labels(value: object, name: str) -> tuple[str, ...] | int:
    """A number of things, or a list of their names."""
    if not isinstance(value, list):
        return integer(value, name, low=1, high=1_000_000)
    names = tuple(text(label, f"{name}: a name") for label in value)
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
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*/\s*(day|hour|minute)", str(value).strip())
    if found is None or not float(found[1]):
        raise InvalidInput(
            f'{name} = {value!r}, but it must be people per time, like "150/day" or "20/hour"'
        )
    return float(found[1]) / {"day": DAY, "hour": HOUR, "minute": 60.0}[found[2]]


def moment(value: object, name: str) -> float:
    """Unix time of a date and time with an offset."""
    given = value
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            given = None
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise InvalidInput(
            f"{name} = {value!r}, but it must be a time with an offset, like 2026-05-01T08:00:00Z"
        )
    return given.timestamp()


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


def _read(check: Callable[..., Any], **bounds: Any) -> PlainValidator:
    """A value read by one of the checks above; where it stands is said by :func:`_sentence`."""
    return PlainValidator(lambda value: check(value, "", **bounds))


Text = Annotated[str, _read(text)]
Labels = Annotated[tuple[str, ...] | int, _read(labels)]
Duration = Annotated[float, _read(seconds)]
Pace = Annotated[float, _read(pace)]
Moment = Annotated[float, _read(moment)]
Span = Annotated[tuple[float, float], _read(span)]
Flag = Annotated[bool, _read(flag)]
Numbers = Annotated[tuple[float, ...], _read(numbers)]


class Section(BaseModel):
    """One section of the file: unknown keys are refused, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskSection(Section):
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

    name: Text
    states: Labels
    actions: Labels
    horizon: Annotated[int, _read(integer, low=1, high=100_000)]
    duration: Duration = 0.0
    reward_range: Span = (0.0, 1.0)
    returns: Span | None = None
    homogeneous: Flag = False
    absorbing_state: Annotated[int, _read(integer, low=0)] = 0
    terminal: Annotated[tuple[Any, ...], _read(listed)] | None = None
    allowed: Annotated[tuple[Any, ...], _read(listed)] | None = None
    start: Any = None
    features: Text | None = None
    theta_norm: Annotated[float, _read(number, low=0.0)] | None = None


class SearchSection(Section):
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

    returns: Span
    scale: Numbers = ()
    shift: Numbers | None = None
    features: Text = "identity"
    order: Annotated[int, _read(integer, low=0, high=1024)] = 2
    table: Text | None = None
    width: Annotated[float, _read(number, low=0.0)] | None = None
    head: Text | None = None
    hidden: Annotated[int, _read(integer, low=0, high=1024)] = 0
    least: Numbers = ()
    most: Numbers = ()


class PopulationSection(Section):
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

    users: Annotated[int, _read(integer, low=1, high=10**12)]
    participations: Annotated[int | None, _read(times)] = 1
    teaches: (
        Annotated[Literal["first", "lifetime", "every"], _read(choice, options=get_args(Teaches))]
        | None
    ) = None
    apart: Duration = 0.0
    renews: Duration = 0.0
    attendance: Annotated[
        Literal["public", "private"], _read(choice, options=get_args(Attendance))
    ] = "public"
    tokens: Annotated[
        Literal["per-device", "shared"], _read(choice, options=("per-device", "shared"))
    ] = "per-device"
    pace: Pace | None = None


class UpdatesSection(Section):
    """When there is a new policy, and until when a report about an old one is taken.

    Attributes:
        minimum_batch: least number of reports between two policies.
        cadence: least number of seconds between two policies.
        accepted_versions: how many of the newest versions reports may name, without a duration.
        delay: most seconds for which a device holds its report after the episode, at random.
        grace: seconds for which a report is taken after the last moment it can be due.
    """

    minimum_batch: Annotated[int, _read(integer, low=1)] = 100
    cadence: Duration = 0.0
    accepted_versions: Annotated[int, _read(integer, low=1, high=1000)] | None = None
    delay: Duration | None = None
    grace: Duration | None = None


class WindowSection(Section):
    """Unix times before which and from which on reports are refused."""

    opens: Moment | None = None
    closes: Moment | None = None


class StorageSection(Section):
    """What is kept, and where; names of files are relative to the deployment file.

    Attributes:
        database: SQLAlchemy URL; a file beside the deployment file unless given.
        key_file: keys of the encrypted table (joint only).
        witness: file that notices a database restored from before a release (joint only).
        witness_on_same_disk: the witness may lie on the disk of the database, where both can be
            restored together; everybody is told (joint only).
        keep_reports: keep what was absorbed, so that every policy can be worked out again.
    """

    database: Text | None = Field(default=None, repr=False)  # it may hold a password
    key_file: Text | None = None
    witness: Text | None = None
    witness_on_same_disk: Flag = False
    keep_reports: Flag = False


class ServerSection(Section):
    """Where it listens, how much it reads at once, and pages of which origins may talk to it."""

    host: Text = "127.0.0.1"
    port: Annotated[int, _read(integer, low=1, high=65535)] = 8080
    max_body_bytes: Annotated[int, _read(integer, low=1024)] = 4_000_000
    max_batch: Annotated[int, _read(integer, low=1, high=100_000)] = 1000
    origins: Annotated[tuple[str, ...], _read(web_origins)] = ()


class AgentSection(Section):
    """The learner; its other keys are checked by the agent itself."""

    model_config = ConfigDict(extra="allow")
    name: Any


class Settings(Section):
    """The whole file."""

    task: TaskSection
    search: SearchSection | None = None
    agent: AgentSection
    population: PopulationSection
    updates: UpdatesSection = UpdatesSection()
    window: WindowSection = WindowSection()
    storage: StorageSection = StorageSection()
    server: ServerSection = ServerSection()
    fleet: dict[str, Any] = {}


def from_environment(data: dict[str, Any], environ: Mapping[str, str], stem: str) -> list[str]:
    """Let ``TACIT_<SECTION>_<KEY>`` override a file that was parsed; which ones did.

    A value is read as TOML (numbers, lists, true), else as text. ``TACIT_<SECTION>_<KEY>_FILE``
    names a file that holds it, for secrets. ``{task}`` in any of them stands for the stem, so that
    tasks of one server can have databases and witnesses of their own. Unknown keys are refused
    later, with the file's own.
    """
    used = []
    for name in sorted(environ):
        lead, _, rest = name.partition("_")
        section, _, key = rest.lower().partition("_")
        holds = _sections().get(section)
        if lead != "TACIT" or holds is None or not key:
            continue
        value, plain = environ[name].replace("{task}", stem), key.removesuffix("_file")
        if key not in holds.model_fields and plain in holds.model_fields:
            value, key = _content(name, value).replace("{task}", stem), plain
        if not isinstance(data.setdefault(section, {}), dict):
            continue  # refused later: it must be a section
        data[section][key] = _toml(value)
        used.append(name)
    return used


def server_settings(environ: Mapping[str, str]) -> ServerSection:
    """Where a server of several tasks listens: as the environment says, or by default."""
    data: dict[str, Any] = {}
    from_environment(data, {k: v for k, v in environ.items() if k.startswith("TACIT_SERVER_")}, "")
    try:
        return ServerSection.model_validate(data.get("server", {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = _sentence(first["type"], ("server", *first["loc"]), first.get("ctx"))
        raise InvalidInput(f"the environment: {said}") from None


def _sections() -> dict[str, type[Section]]:
    """Sections by name; that of a search may be left out."""
    fields = {name: field.annotation for name, field in Settings.model_fields.items()}
    sections = {n: a for n, a in fields.items() if isinstance(a, type) and issubclass(a, Section)}
    return {**sections, "search": SearchSection}


def _toml(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def _content(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            f"{name} names a file that cannot be read; check path and mode"
        ) from None


_RANK = ("extra_forbidden", "model_type", "dict_type", "value_error", "missing")
"""Which mistake is told first: a misspelt key explains why the right one is missing."""


def read_settings(data: dict[str, Any]) -> Settings:
    """Check a file that was parsed; the first mistake is told in a sentence."""
    needed: dict[str, Any] = {"task": {}, "agent": {}, "population": {}}
    try:
        return Settings.model_validate(needed | data)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        first = min(problems, key=lambda one: (_RANK.index(one["type"]), len(one["loc"])))
        raise InvalidInput(_sentence(first["type"], first["loc"], first.get("ctx"))) from None


def _sentence(kind: str, where: tuple[int | str, ...], context: dict[str, Any] | None) -> str:
    section, *keys = map(str, where)
    if kind in ("model_type", "dict_type"):
        return f"{section} must be a section, written [{section}] on a line of its own"
    if not keys:
        return f"unknown section [{section}]{suggestion(section, Settings.model_fields)}"
    if kind == "missing":
        return f"[{section}] needs the key {keys[0]!r}"
    if kind == "extra_forbidden":
        holds = _sections()[section]
        return f"[{section}] has no key {keys[0]!r}{suggestion(keys[0], holds.model_fields)}"
    return f"{keys[0]} in [{section}]{context['error'] if context else ''}"
