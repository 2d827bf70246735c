"""``tacit admin rehearse``: simulated devices against a service, scored against the truth."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tacit._version import __version__
from tacit.cli import options
from tacit.cli.display import Line, Told, bar, tell
from tacit.errors import InvalidInput, suggestion
from tacit.util.durations import DAY

if TYPE_CHECKING:
    from tacit_service.rehearsal.fleet import Fleet, Watch
    from tacit_service.rehearsal.people import SearchPeople, TablePeople
    from tacit_service.rehearsal.returning_fleet import ReturnPattern

    People = TablePeople | SearchPeople


_VIRTUAL = "No service: people come at the file's pace, in virtual time, in this process."
_RETURNING = (
    "With --virtual: people come back. times: how often they want to, on average; "
    "law: when (tacit list attendance); decoys: whether who does not report sends one."
)


@dataclass(frozen=True)
class RehearseOptions:
    """What ``tacit admin rehearse`` takes."""

    deployment: options.DeploymentFile
    users: Annotated[
        int, options.count("Stop at so many reports, all told; with -R: so many people.")
    ] = 1000
    workers: Annotated[int, options.count("People on their way at the same time.")] = 8
    address: Annotated[
        str | None, options.file("Of the service, instead of the file's.", None, "URL")
    ] = None
    tokens: Annotated[Path | None, options.file("Tokens, one per line.", None)] = None
    virtual: Annotated[bool, options.flag("--virtual", _VIRTUAL)] = False
    returning: Annotated[options.Pairs, options.pairs("-R", _RETURNING, None)] = None
    seed: options.Seed = 0
    as_json: options.Json = False


@options.command(RehearseOptions)
def rehearse(request: RehearseOptions) -> None:
    """Send simulated devices to a service; score its policies.

    They are scored against the truth.

    Stopped and started again, it goes on with the people who were not counted yet. To a running
    service they come as fast as it takes them: its clock is real. With --virtual a collector of its
    own, with a database that is deleted at the end, lives through the weeks that the file states.
    With -R the same people come back, each with one token and one device.

    Example: tacit admin rehearse coach.toml --users 1e4 --tokens tokens.txt
    """
    from tacit.client.transport import Api
    from tacit.validate import integer
    from tacit_service.config.deployment import Deployment
    from tacit_service.rehearsal.fleet import Fleet
    from tacit_service.rehearsal.people import fleet_population

    d, address = Deployment.load(request.deployment), request.address
    users, tokens = integer(request.users, "--users", low=1), request.tokens
    people = fleet_population(d.settings.fleet, d.folder, d.task)
    if request.virtual:
        from tacit_service.rehearsal import in_process

        if address is not None or tokens is not None:
            raise InvalidInput("--virtual needs no service: leave --address and --tokens out")
        often = _returns(request.returning)
        root = integer(request.seed, "--seed", low=0)
        with in_process.rehearse(d, people, users, root, often) as fleet:
            _run(fleet, people, request)
        return
    if request.returning:
        raise InvalidInput("-R needs --virtual: days of a running service are real")
    address = address or f"http://{d.settings.server.host}:{d.settings.server.port}"
    sent = Fleet(
        partial(Api, address, keep=60.0),
        people,
        tokens=_tokens(tokens, request.deployment, d.unit == "user"),
        workers=integer(request.workers, "--workers", low=1, high=256),
        seed=integer(request.seed, "--seed", low=0),
    )
    try:
        if sent.terms.task_id != d.as_recorded(sent.terms.task_id).task_id:
            raise InvalidInput(
                f"{address} serves {sent.terms.name!r} on other terms than {request.deployment}; "
                "restart one of them"
            )
        _run(sent, people, request)
    finally:
        sent.close()


def _returns(pairs: options.Pairs) -> ReturnPattern | None:
    """How people come back, from ``-R`` pairs."""
    from tacit.validate import integer
    from tacit_service.rehearsal.returning_fleet import ReturnPattern

    if not pairs:
        return None
    kinds: dict[str, type] = {"times": int, "law": str, "decoys": bool}
    texts = options.assignments(pairs, "-R")
    for key in texts.keys() - kinds.keys():
        raise InvalidInput(f"-R {key} is not known{suggestion(key, kinds)}")
    values = {key: options.read(text, key, kinds[key]) for key, text in texts.items()}
    integer(values.get("times", 1), "times", low=1)
    return ReturnPattern(**values)


def _run(fleet: Fleet, people: People, request: RehearseOptions) -> None:
    """Send them, and say what came of it."""
    began, interrupted = time.monotonic(), False
    with _bar(fleet, request.users, quiet=request.as_json) as watch:
        try:
            fleet.run(request.users, watch)
        except KeyboardInterrupt:
            interrupted = True
    result = _result(fleet, people, request.users, time.monotonic() - began, interrupted)
    tell(Told(result, _lines(result, request.deployment)), as_json=request.as_json)


def _tokens(file: Path | None, path: Path, per_device: bool) -> list[str]:
    if file is None:
        kind = "--count N" if per_device else ""
        raise InvalidInput(
            f"the devices need tokens: `tacit admin tokens {path} issue {kind}".rstrip()
            + " --out tokens.txt`, then --tokens tokens.txt"
        )
    try:
        tokens = file.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
    if not tokens or (not per_device and len(tokens) != 1):
        wanted = "one token per line" if per_device else "the one shared token"
        raise InvalidInput(f"{file} holds {len(tokens)} tokens, but it must hold {wanted}")
    return tokens


@contextmanager
def _bar(fleet: Fleet, users: int, *, quiet: bool) -> Iterator[Watch]:
    """Reports counted, and the time that is left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("reports counted")
    with bar(TextColumn(fleet.terms.name), *columns, TimeRemainingColumn(), quiet=quiet) as drawn:
        line = drawn.add_task("", total=min(users, fleet.terms.task.users))
        drawn.update(line, completed=fleet.before)
        yield lambda counted: drawn.update(line, completed=counted)


def _result(
    fleet: Fleet, people: People, users: int, seconds: float, interrupted: bool
) -> dict[str, Any]:
    """The end of it, as JSON says it."""
    numbers = fleet.settle()
    curve = fleet.score(numbers["versions"])
    references = {name: people.earned(p, fleet.terms) for name, p in people.references.items()}
    tenths = _tenths(curve, numbers["progress"]["accepted"])
    sent = sum(fleet.tally.outcomes.values())
    return {
        "tacit": __version__,
        "task_id": fleet.terms.task_id,
        "model": fleet.terms.model,
        "users": {
            "asked": users,
            "before": fleet.before,
            "counted": numbers["progress"]["accepted"],
            "population": numbers["progress"]["population"],
        },
        "outcomes": dict(fleet.tally.outcomes),
        **_visits(fleet, users),
        "interrupted": interrupted,
        "version": curve[-1]["version"],
        "value": {"newest": curve[-1]["value"], **references, **people.limits(fleet.terms)},
        "measured": people.measured,
        "tenths": tenths,
        "beats": {name: _since(tenths, value) for name, value in references.items()},
        "curve": [{k: row[k] for k in ("version", "users", "value")} for row in curve],
        "timing": {
            "seconds": seconds,
            "users_per_second": sent / max(seconds, 1e-9),
            "virtual_days": fleet.passed / DAY,
        },
    }


def _visits(fleet: Fleet, people: int) -> dict[str, Any]:
    """Of people who come back: how often they took part, and how often that was reported."""
    from tacit_service.rehearsal.returning_fleet import ReturningFleet

    if not isinstance(fleet, ReturningFleet):
        return {}
    visits = fleet.visits
    return {
        "visits": {
            "people": people,
            "law": fleet.returns.law,
            "participations": visits.begun,
            "reported": visits.begun - visits.free,
            "free_rides": visits.free,
            "decoys": fleet.tally.outcomes["decoy"],
            "refused_by_rule": visits.refused,
        }
    }


def _tenths(curve: list[dict[str, Any]], users: int) -> list[dict[str, float]]:
    """What every tenth of the users could expect on average: one policy explores, many show it."""
    ends = [*(row["users"] for row in curve[1:]), users]
    tenths = []
    for k in range(10):
        low, high = users * k // 10, users * (k + 1) // 10
        shares = [
            max(0, min(end, high) - max(row["users"], low))
            for row, end in zip(curve, ends, strict=True)
        ]
        total = sum(share * row["value"] for share, row in zip(shares, curve, strict=True))
        tenths.append({"from": low, "value": total / max(1, sum(shares))})
    return tenths


def _since(tenths: list[dict[str, float]], value: float) -> int | None:
    """The report from which on every tenth did better; None if the last one did not."""
    better = itertools.takewhile(lambda tenth: tenth["value"] > value, reversed(tenths))
    return min((int(tenth["from"]) for tenth in better), default=None)


def _lines(result: dict[str, Any], path: Path) -> Iterator[str | Line]:
    users, values, timing = result["users"], result["value"], result["timing"]
    if result["interrupted"]:
        yield Line(f"interrupted; the same command goes on with {path}", style="bold")
    yield Line(
        f"{users['counted']:,} reports counted of {users['population']:,} planned "
        f"({users['before']:,} before), {timing['seconds']:.1f} s, "
        f"{timing['users_per_second']:,.0f} reports/s",
        style="bold",
    )
    if timing["virtual_days"]:
        yield f"  {timing['virtual_days']:.1f} days of virtual time"
    if "visits" in result:
        v = result["visits"]
        yield (
            f"  {v['people']:,} people by the law {v['law']}: {v['participations']:,} "
            f"participations, {v['reported']:,} reported, {v['free_rides']:,} free rides, "
            f"{v['decoys']:,} decoys; {v['refused_by_rule']:,} times the rule did not allow it"
        )
    yield "  outcomes: " + ", ".join(f"{n:,} {o}" for o, n in result["outcomes"].items())
    yield f"  policy versions: 0 to {result['version']}"
    yield f"  value of the newest policy: {values['newest']:.4f} per episode ({result['measured']})"
    yield f"  of the policies of the last tenth: {result['tenths'][-1]['value']:.4f}"
    for name, since in result["beats"].items():
        when = "not beaten yet" if since is None else f"beaten on average from report {since:,} on"
        yield f"  {name}: {values[name]:.4f}, {when}"
    if "best" in values:
        yield f"  best policy: {values['best']:.4f}; no policy exceeds {values['ceiling']:.4f}"
