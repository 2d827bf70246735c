"""``tacit serve``: write, check, verify, explain or run a deployment."""

from __future__ import annotations

import ipaddress
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit._version import __version__
from tacit.cli.values import whole
from tacit.errors import InvalidInput
from tacit.validate import integer

if TYPE_CHECKING:
    from socket import socket

    from tacit.service.collector import Collector
    from tacit.service.deployment import Deployment


@dataclass(frozen=True)
class ServeOptions:
    """What was asked for on the command line."""

    init: bool
    check: bool
    verify: bool
    consent: bool
    host: str | None
    port: str | None
    workers: str
    as_json: bool


def serve_or_say(path: Path, options: ServeOptions) -> None:
    """Do the one thing that was asked for."""
    if options.init + options.check + options.verify + options.consent > 1:
        raise InvalidInput("--init, --check, --verify and --consent exclude each other; choose one")
    if options.as_json and not (options.check or options.verify):
        raise InvalidInput("--json goes with --check or --verify")
    if options.init:
        write_example(path)
    elif options.check:
        check_and_print(path, as_json=options.as_json)
    elif options.verify:
        verify_and_print(path, as_json=options.as_json)
    elif options.consent:
        print_consent(path)
    else:
        port = None if options.port is None else whole(options.port, "--port")
        if port is not None:
            integer(port, "--port", low=0, high=65535)
        workers = integer(whole(options.workers, "--workers"), "--workers", low=1, high=256)
        serve(path, options.host, port, workers)


def write_example(path: Path) -> None:
    """Write the commented example, never over a file that is there."""
    from tacit.service.deployment import Deployment

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(Deployment.example())
    except FileExistsError:
        raise InvalidInput(f"{path} is there already; choose another name") from None
    print(f"wrote {path}; read it, then start: tacit serve {path}")


def check_and_print(path: Path, *, as_json: bool) -> None:
    """Say what would run, what it would guarantee and what to expect; touch nothing."""
    from tacit.cli.guarantee import lines_of
    from tacit.foretell import forecast
    from tacit.service.deployment import Deployment

    deployment = Deployment.load(path)
    expected = forecast(deployment.bound)
    if as_json:
        checked = {
            "task_id": deployment.task_id,
            "model": deployment.model,
            "guarantee": deployment.guarantee.to_json(),
            "timing": {
                "duration": deployment.task.duration,
                "delay": deployment.delay,
                "grace": deployment.grace,
                "accepted_versions": deployment.accepted_versions,
                "sending": deployment.sending,
                "taking": deployment.taking,
            },
            "forecast": expected.to_json(),
        }
        print(json.dumps(checked))
        return
    print(f"{path} is a valid deployment; it would run:")
    for line in [*_facts(deployment), *lines_of(deployment.guarantee, expected)]:
        print(f"  {line}")


def verify_and_print(path: Path, *, as_json: bool) -> None:
    """Work every policy out again from kept reports; status 1 if one of them differs."""
    import typer

    from tacit.service.collector import Collector
    from tacit.service.deployment import Deployment

    with Collector.open(Deployment.load(path)) as collector:
        verdict = collector.verify()
    print(json.dumps(verdict.to_json()) if as_json else str(verdict))
    if not verdict.sound:
        raise typer.Exit(1)


def print_consent(path: Path) -> None:
    """What to tell people before they take part, with the numbers of this deployment."""
    from tacit.privacy.sentences import consent
    from tacit.service.deployment import Deployment

    d = Deployment.load(path)
    print(consent(d.guarantee, name=d.name, steps=d.task.horizon, kept=d.keep_reports))


def serve(path: Path, host: str | None, port: int | None, workers: int) -> None:
    """Run it until it is told to stop."""
    from tacit.service.deployment import Deployment
    from tacit.service.http.server import bind

    deployment = Deployment.load(path)
    if host is not None:
        deployment = replace(deployment, host=host)
    if workers > 1 and deployment.database.startswith("sqlite"):
        raise InvalidInput(
            f"--workers {workers} needs PostgreSQL, because SQLite has one writer; leave it "
            "out, or set database in [storage]"
        )
    with bind(deployment.host, deployment.port if port is None else port) as listening:
        _run(path, deployment, workers, listening)


def _run(path: Path, deployment: Deployment, workers: int, listening: socket) -> None:
    from tacit.service.collector import Collector
    from tacit.service.http.app import create_app
    from tacit.service.http.server import configure_logging, run, run_workers
    from tacit.service.planning import PlannerLoop

    configure_logging()
    collector = Collector.open(deployment)
    try:
        _announce(path, deployment, collector, listening.getsockname()[1])
        if workers == 1:
            run(create_app(collector, PlannerLoop(collector)), listening)
    finally:
        collector.close()
    if workers > 1:
        run_workers(path, workers, listening)


def _facts(deployment: Deployment) -> list[str]:
    """The deployment in a few lines."""
    task = deployment.task
    seconds = f", at most one policy every {deployment.cadence:g} s" if deployment.cadence else ""
    tokens = "one token per device" if deployment.tokens == "per-device" else "one shared token"
    return [
        f"Task: {deployment.name}, {task.sizes['states']} states, {task.sizes['actions']} actions, "
        f"horizon {task.horizon}",
        f"Agent: {deployment.agent.name}, {deployment.model} model",
        f"Population: {task.users:,} reports, {tokens}",
        f"Updates: batches of at least {deployment.minimum_batch:,}{seconds}",
        f"{deployment.sending}.",
        f"{deployment.taking}.",
        f"Database: {_without_password(deployment.database)}",
    ]


def _without_password(url: str) -> str:
    from sqlalchemy import make_url

    return make_url(url).render_as_string(hide_password=True)


def _announce(path: Path, deployment: Deployment, collector: Collector, port: int) -> None:
    """Where it is, what it guarantees, and on the first start the tokens, shown this once."""
    host = f"[{deployment.host}]" if ":" in deployment.host else deployment.host
    say = sys.stdout.write
    say(f"tacit {__version__} serves {deployment.name} at http://{host}:{port} (dashboard: /)\n")
    for line in [*_facts(deployment), *deployment.guarantee.statement().split("\n")[:3]]:
        say(f"  {line}\n")
    if not _is_loopback(deployment.host):
        say("  Others can reach this address: put TLS in front of it, tokens travel in the clear\n")
    if not collector.tokens.list():
        say(f"  Operator token, shown once: {collector.tokens.issue('operator', 1, 'first')[0]}\n")
        if deployment.tokens == "shared":
            say(f"  Device token, shown once: {collector.tokens.issue('device', 1, 'shared')[0]}\n")
    if deployment.tokens == "per-device":
        say(f"  Device tokens: tacit tokens {path} issue --count 1000 --out tokens.txt\n")
    say("  Stop with Ctrl-C; uploads under way are finished first\n")
    sys.stdout.flush()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
