"""``tacit serve`` (write, check, verify, explain, run) and ``tacit tokens``."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit._version import __version__
from tacit.cli.options import DeploymentFile, Json, count, one_of, whole, write_new
from tacit.errors import InvalidInput
from tacit_service.cli.tasks import IN_THE_CLEAR, check_planner, serve_folder, until_told

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment
    from tacit_service.responses import Role

MOST_TOKENS = 1_000_000
"""In one call."""


def serve(
    deployment: DeploymentFile,
    init: Annotated[bool, typer.Option("--init", help="Write a commented example here.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Say what would run and be guaranteed; run nothing.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Work out every policy again from kept reports.")
    ] = False,
    consent: Annotated[
        bool, typer.Option("--consent", help="Print what to tell people who take part.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Instead of the file's.")
    ] = None,
    port: Annotated[
        int | None, count("Instead of the file's; 0 takes a free one. Lets a planner be watched.")
    ] = None,
    workers: Annotated[int, count("Processes that take uploads (PostgreSQL only).")] = 1,
    log: Annotated[
        Any,
        typer.Option(
            metavar="FORM", parser=one_of("text", "json"), help="Log lines: text or json."
        ),
    ] = "text",
    show_tokens: Annotated[
        bool,
        typer.Option("--show-tokens", help="Print first tokens instead of writing them to files."),
    ] = False,
    role: Annotated[
        Any,
        typer.Option(
            metavar="WORD",
            parser=one_of("both", "server", "planner"),
            help="server (answers), planner (plans) or both.",
        ),
    ] = "both",
    as_json: Json = False,
) -> None:
    """Collect reports over HTTP and learn from them, as one TOML file describes.

    A folder serves every TOML file in it, each under /t/NAME/, with an API for its operator.

    Example: tacit serve coach.toml --init && tacit serve coach.toml
    """
    from tacit.privacy import sentences
    from tacit.validate import integer
    from tacit_service.config.deployment import Deployment
    from tacit_service.log_lines import configure

    if port is not None:
        integer(port, "--port", low=0, high=65535)
    workers = integer(workers, "--workers", low=1, high=256)
    if init + check + verify + consent > 1:
        raise InvalidInput("--init, --check, --verify and --consent exclude each other; choose one")
    if as_json and not (check or verify):
        raise InvalidInput("--json goes with --check or --verify")
    if init:
        write_new(deployment, Deployment.example())
        print(f"wrote {deployment}; read it, then start: tacit serve {deployment}")
        return
    if deployment.is_dir() and not (check or verify or consent):
        configure(log)
        serve_folder(deployment, host, port, workers, role)
        return
    read = Deployment.load(deployment, stored=not consent)
    if check:
        _check(deployment, read, as_json=as_json)
    elif verify:
        _verify(read, as_json=as_json)
    elif consent:
        print(
            sentences.consent(
                read.guarantee,
                name=read.name,
                steps=read.task.horizon,
                kept=read.settings.storage.keep_reports,
                searched=read.ticketed,
            )
        )
    else:
        configure(log)
        if role == "planner":
            _plan(read, host, port, workers)
        else:
            _serve(
                deployment,
                read,
                host,
                port,
                workers,
                plans=role == "both",
                show_tokens=show_tokens,
            )


def _check(path: Path, deployment: Deployment, *, as_json: bool) -> None:
    """Say what would run, what it would guarantee and what to expect; touch nothing."""
    from tacit.cli.guarantee import lines_of
    from tacit.cli.size import outlook
    from tacit.forecast import forecast
    from tacit_service.config.arrival_rate import nonsense, pacing, sentences

    if wrong := nonsense(deployment):
        raise InvalidInput(f"{path}: " + "; and ".join(wrong))
    expected, paced = forecast(deployment.bound), pacing(deployment)
    said, planned = outlook(path, deployment)
    if as_json:
        checked = {
            "task_id": deployment.task_id,
            "model": deployment.model,
            "guarantee": deployment.guarantee.to_json(),
            "returning": deployment.returning,
            "timing": {
                "duration": deployment.task.duration,
                "delay": deployment.delay,
                "grace": deployment.grace,
                "accepted_versions": deployment.accepted_versions,
                "sending": deployment.sending,
                "taking": deployment.taking,
            },
            "pace": None if paced is None else asdict(paced),
            "restoring": deployment.restoring,
            "forecast": expected.to_json(),
            "plan": planned,
        }
        print(json.dumps(checked))
        return
    print(f"{path} is a valid deployment; it would run:")
    at_pace = [] if paced is None else sentences(paced, deployment.task.users)
    lines = [*_facts(deployment), *(f"{line}." for line in at_pace)]
    for line in [*lines, *lines_of(deployment.guarantee, expected), said]:
        print(f"  {line}")


def _verify(deployment: Deployment, *, as_json: bool) -> None:
    """Work every policy out again from kept reports; status 1 if one of them differs."""
    from tacit_service.collector import Collector

    with Collector.open(deployment) as collector:
        verdict = collector.verify()
    print(json.dumps(verdict.to_json()) if as_json else str(verdict))
    if not verdict.sound:
        raise typer.Exit(1)


def _serve(
    path: Path,
    deployment: Deployment,
    host: str | None,
    port: int | None,
    workers: int,
    *,
    plans: bool,
    show_tokens: bool,
) -> None:
    """Run it until it is told to stop."""
    from tacit_service.collector import Collector
    from tacit_service.http.server import bind, run, run_workers

    if workers > 1 and deployment.database.startswith("sqlite"):
        raise InvalidInput(
            f"--workers {workers} needs PostgreSQL, because SQLite has one writer; leave it "
            "out, or set database in [storage]"
        )
    server = deployment.settings.server
    host = host or server.host
    with bind(host, server.port if port is None else port) as listening:
        collector = Collector.open(deployment)
        try:
            tokens = _first_tokens(path, deployment, collector, show=show_tokens)
            _announce(path, deployment, tokens, host, listening.getsockname()[1])
            _log_start(deployment, collector, workers)
            if workers == 1:
                from tacit_service.http.app import create_app
                from tacit_service.planning.loop import PlannerLoop

                planner = PlannerLoop(collector) if plans else None
                run(create_app(collector, planner), listening)
        finally:
            collector.close()
        if workers > 1:
            run_workers(path, workers, listening, plans)


def _plan(deployment: Deployment, host: str | None, port: int | None, workers: int) -> None:
    """Plan, and take no reports, until told to stop; with a port it can be watched."""
    from tacit_service.collector import Collector
    from tacit_service.http.app import monitor_app
    from tacit_service.http.server import bind, run
    from tacit_service.planning.loop import PlannerLoop

    check_planner(host, port, workers)
    with Collector.open(deployment) as collector:
        planner = PlannerLoop(collector)
        print(f"tacit {__version__} plans {deployment.name}; stop with Ctrl-C", flush=True)
        if port is None:
            until_told(planner.start, planner.stop)
            return
        with bind(host or deployment.settings.server.host, port) as listening:
            run(monitor_app(collector, planner), listening)


def _facts(deployment: Deployment) -> list[str]:
    """The deployment in a few lines."""
    from sqlalchemy import make_url

    task = deployment.task
    updates = deployment.settings.updates
    seconds = f", at most one policy every {updates.cadence:g} s" if updates.cadence else ""
    tokens = "one token per device" if deployment.unit == "user" else "one shared token"
    database = make_url(deployment.database).render_as_string(hide_password=True)
    sizes = f"{task.sizes['states']} states, {task.sizes.get('actions', 0)} actions"
    batches = f"at least {updates.minimum_batch:,}"
    if deployment.ticketed:
        choice = " and ".join(f"{n} {kind}" for kind, n in task.sizes.items() if kind != "states")
        sizes = f"a search: observations of {task.sizes['states']}, {choice}"
        batches = f"{deployment.bound.schedule(0):,}"
    return [
        f"Task: {deployment.name}, {sizes}, horizon {task.horizon}",
        f"Agent: {deployment.agent.name}, {deployment.model} model",
        f"Population: {task.users:,} reports, {tokens}",
        f"{deployment.returning}.",
        f"Updates: batches of {batches}{seconds}",
        f"{deployment.sending}.",
        f"{deployment.taking}.",
        f"{deployment.restoring}.",
        f"Database: {database}",
    ]


def _first_tokens(
    path: Path, deployment: Deployment, collector: Collector, *, show: bool
) -> list[str]:
    """On the first start: tokens, in files that only their owner can read, or shown this once."""
    if collector.tokens.list():
        return []
    said: list[str] = []
    roles: list[Role] = ["operator"]
    if deployment.unit == "participation":
        roles.append("device")
    for role in roles:
        if show:
            (token,) = collector.tokens.issue(role, 1, "first")
            said.append(f"{role.capitalize()} token, shown once: {token}")
            continue
        # where the key file is: the deployment file's own folder may be read-only
        file = deployment.key_file.with_name(f"{path.stem}.{role}-token")
        _write_tokens(collector, role, 1, "first", file)
        said.append(f"{role.capitalize()} token: in {file}, for your eyes only")
    return said


def _log_start(deployment: Deployment, collector: Collector, workers: int) -> None:
    from tacit_service.log_lines import event

    stated = deployment.guarantee
    event(
        "started",
        "the service starts",
        tacit=__version__,
        task_id=collector.deployment.task_id,
        version=collector.status().version,
        model=stated.model,
        epsilon=stated.epsilon,
        delta=stated.delta,
        guarantee=stated.digest(),
        workers=workers,
    )


def _announce(path: Path, deployment: Deployment, tokens: list[str], host: str, port: int) -> None:
    """Where it is, what it guarantees, and on the first start where the tokens are."""
    from tacit.client.transport import this_machine

    shown = f"[{host}]" if ":" in host else host
    say = sys.stdout.write
    say(f"tacit {__version__} serves {deployment.name} at http://{shown}:{port} (dashboard: /)\n")
    for line in [*_facts(deployment), *deployment.guarantee.statement().split("\n")[:3]]:
        say(f"  {line}\n")
    if not this_machine(host):
        say(f"  {IN_THE_CLEAR}\n")
    for line in tokens:
        say(f"  {line}\n")
    if deployment.unit == "user":
        say(f"  Device tokens: tacit tokens {path} issue --count 1000 --out tokens.txt\n")
    say("  Stop with Ctrl-C; uploads under way are finished first\n")
    sys.stdout.flush()


def tokens(
    deployment: DeploymentFile,
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            parser=one_of("issue", "list", "revoke"),
            help="issue, list or revoke",
        ),
    ],
    number: Annotated[
        int | None,
        typer.Argument(metavar="[NUMBER]", parser=whole, help="Of the token to revoke, see list."),
    ] = None,
    role: Annotated[
        Any,
        typer.Option(
            metavar="WORD", parser=one_of("device", "operator"), help="device or operator."
        ),
    ] = "device",
    count: Annotated[int, count("How many to issue.")] = 1,
    label: Annotated[str, typer.Option(metavar="TEXT", help="A note kept with them.")] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write them here, one per line.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print them instead.")] = False,
    as_json: Json = False,
) -> None:
    """Issue, list or revoke tokens. A token is shown once; the database keeps its digest.

    A running service notices at once.

    Example: tacit tokens coach.toml issue --role device --count 1000 --out tokens.txt
    """
    from tacit.validate import integer
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment

    with Collector.open(Deployment.load(deployment)) as collector:
        if action == "list":
            _list_tokens(collector, as_json=as_json)
        elif action == "revoke":
            _revoke_token(collector, number, as_json=as_json)
        else:
            integer(count, "--count", low=1, high=MOST_TOKENS)
            if (out is None) != show:
                raise InvalidInput(
                    "say where new tokens go: --out FILE, which only you can read, or --show"
                )
            _issue_tokens(collector, role, count, label, out, as_json=as_json)


def _issue_tokens(
    collector: Collector,
    role: Role,
    count: int,
    label: str,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    if out is None:
        issued = collector.tokens.issue(role, count, label)
        print(json.dumps({"role": role, "tokens": issued}) if as_json else "\n".join(issued))
        return
    _write_tokens(collector, role, count, label, out)
    wrote = {"role": role, "count": count, "file": str(out)}
    print(json.dumps(wrote) if as_json else f"wrote {count:,} tokens to {out}")


def _write_tokens(collector: Collector, role: Role, count: int, label: str, out: Path) -> None:
    """New tokens in a new file that its owner alone can read."""
    try:  # before anything is issued
        file = os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise InvalidInput(f"{out} is there already; choose another name or remove it") from None
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {error.strerror}") from None
    with file:
        file.writelines(f"{token}\n" for token in collector.tokens.issue(role, count, label))


def _list_tokens(collector: Collector, *, as_json: bool) -> None:
    known = collector.tokens.list()
    if as_json:
        print(json.dumps({"tokens": [asdict(token) for token in known]}))
        return
    for token in known:
        state = f"{token.used:,} reports" if token.revoked_at is None else "revoked"
        print(f"{token.id:>8}  {token.role:<8}  {state:<12}  {token.label}".rstrip())


def _revoke_token(collector: Collector, number: int | None, *, as_json: bool) -> None:
    from tacit.validate import integer

    if number is None:
        raise InvalidInput("say which token: tacit tokens FILE revoke NUMBER (see list)")
    integer(number, "NUMBER", low=0, high=2**31 - 1)
    if not collector.tokens.revoke(number):
        raise InvalidInput(f"there is no token {number}; see: tacit tokens FILE list")
    print(json.dumps({"revoked": number}) if as_json else f"token {number} is revoked")
