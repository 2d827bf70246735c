"""``tacit fleet``: simulated devices against a running service, scored against the truth."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from tacit._version import __version__
from tacit.cli.values import whole
from tacit.errors import InvalidInput
from tacit.validate import integer

if TYPE_CHECKING:
    from tacit.client.fleet import Fleet, Progress
    from tacit.client.population import Population


@dataclass(frozen=True)
class FleetOptions:
    """What was asked for on the command line."""

    users: str
    workers: str
    address: str | None
    tokens: Path | None
    seed: str
    as_json: bool


def run_fleet(path: Path, options: FleetOptions) -> None:
    """Send the people, then say who was counted and how good the policy has become."""
    from tacit.client.fleet import Fleet
    from tacit.client.population import fleet_population
    from tacit.client.transport import Api
    from tacit.service.deployment import Deployment

    deployment = Deployment.load(path)
    users = integer(whole(options.users, "--users"), "--users", low=1)
    workers = integer(whole(options.workers, "--workers"), "--workers", low=1, high=256)
    people = fleet_population(deployment.fleet, deployment.folder, deployment.task)
    own_tokens = deployment.tokens == "per-device"
    tokens = _tokens(options.tokens, path, own_tokens)
    address = options.address or f"http://{deployment.host}:{deployment.port}"
    fleet = Fleet(
        partial(Api, address, keep=60.0),
        people,
        tokens=tokens,
        own_tokens=own_tokens,
        workers=workers,
        seed=integer(whole(options.seed, "--seed"), "--seed", low=0),
    )
    try:
        if fleet.terms.task_id != deployment.task_id:
            raise InvalidInput(
                f"{address} serves {fleet.terms.name!r} on other terms than {path}; restart one of "
                "them"
            )
        began, interrupted = time.monotonic(), False
        with _bar(fleet, users, quiet=options.as_json) as progress:
            try:
                fleet.run(users, progress)
            except KeyboardInterrupt:
                interrupted = True
        seconds = time.monotonic() - began
        said = _result(fleet, people, users, seconds, interrupted)
    finally:
        fleet.close()
    if options.as_json:
        print(json.dumps(said))
    else:
        _say(said, path)


def _tokens(file: Path | None, path: Path, per_device: bool) -> list[str]:
    if file is None:
        kind = "--count N" if per_device else ""
        raise InvalidInput(
            f"the devices need tokens: `tacit tokens {path} issue {kind}".rstrip()
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
def _bar(fleet: Fleet, users: int, *, quiet: bool) -> Iterator[Progress]:
    """A bar on stderr with the time that is left; silent where nobody watches."""
    console = Console(stderr=True)
    bar = Bar(
        TextColumn(fleet.terms.name),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("users counted"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with bar:
        line = bar.add_task("", total=min(users, fleet.terms.task.users))
        bar.update(line, completed=fleet.before)
        yield lambda counted: bar.update(line, completed=counted)


def _result(
    fleet: Fleet, people: Population, users: int, seconds: float, interrupted: bool
) -> dict[str, Any]:
    """The end of it, as JSON says it."""
    numbers = fleet.settle()
    curve = fleet.score(numbers["versions"])
    references = {name: fleet.natural(people.value(p)) for name, p in people.references.items()}
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
        "interrupted": interrupted,
        "version": curve[-1]["version"],
        "value": {
            "newest": curve[-1]["value"],
            **references,
            "best": fleet.natural(people.value(people.best())),
            "ceiling": fleet.natural(people.ceiling()),
        },
        "tenths": tenths,
        "beats": {name: _since(tenths, value) for name, value in references.items()},
        "curve": [{k: row[k] for k in ("version", "users", "value")} for row in curve],
        "timing": {"seconds": seconds, "users_per_second": sent / max(seconds, 1e-9)},
    }


def _tenths(curve: list[dict[str, Any]], users: int) -> list[dict[str, float]]:
    """What every tenth of the users could expect on average: one policy explores, many show it."""
    edges = [*(row["users"] for row in curve[1:]), users]
    tenths = []
    for k in range(10):
        low, high = users * k // 10, users * (k + 1) // 10
        shares = [
            max(0, min(end, high) - max(row["users"], low))
            for row, end in zip(curve, edges, strict=True)
        ]
        total = sum(share * row["value"] for share, row in zip(shares, curve, strict=True))
        tenths.append({"from": low, "value": total / max(1, sum(shares))})
    return tenths


def _since(tenths: list[dict[str, float]], value: float) -> int | None:
    """The user from whom on every tenth did better; None if the last one did not."""
    since = None
    for tenth in tenths:
        if tenth["value"] <= value:
            since = None
        elif since is None:
            since = int(tenth["from"])
    return since


def _say(said: dict[str, Any], path: Path) -> None:
    users, values, timing = said["users"], said["value"], said["timing"]
    console = Console(highlight=False, soft_wrap=True)
    if said["interrupted"]:
        console.print(f"[bold]interrupted[/bold]; the same command goes on with {path}")
    console.print(
        f"[bold]{users['counted']:,} users counted[/bold] of {users['population']:,} planned "
        f"({users['before']:,} before), {timing['seconds']:.1f} s, "
        f"{timing['users_per_second']:,.0f} users/s"
    )
    console.print("  outcomes: " + ", ".join(f"{n:,} {o}" for o, n in said["outcomes"].items()))
    console.print(f"  policy versions: 0 to {said['version']}")
    console.print(f"  value of the newest policy: {values['newest']:.4f} per user (exact)")
    console.print(f"  of the policies of the last tenth: {said['tenths'][-1]['value']:.4f}")
    for name, since in said["beats"].items():
        when = "not beaten yet" if since is None else f"beaten on average from user {since:,} on"
        console.print(f"  {name}: {values[name]:.4f}, {when}")
    console.print(f"  best policy: {values['best']:.4f}; no policy exceeds {values['ceiling']:.4f}")
