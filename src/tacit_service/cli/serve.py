"""``tacit serve``: collect reports over HTTP and learn from them, as one file describes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tacit._version import __version__
from tacit.cli.options import DeploymentFile, count, file, flag, word, write_new
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment
    from tacit_service.responses import Role


def serve(
    deployment: DeploymentFile,
    init: Annotated[bool, flag("--init", "Write a commented example here.")] = False,
    host: Annotated[str | None, file("Instead of the file's.", None, "ADDRESS")] = None,
    port: Annotated[
        int | None, count("Instead of the file's; 0 takes a free one. Lets a planner be watched.")
    ] = None,
    workers: Annotated[int, count("Processes that take uploads (PostgreSQL only).")] = 1,
    role: Annotated[
        Any, word("server (answers), planner (plans) or both.", "both", "server", "planner")
    ] = "both",
    log: Annotated[Any, word("Log lines: text or json.", "text", "json", metavar="FORM")] = "text",
    show_tokens: Annotated[
        bool, flag("--show-tokens", "Print first tokens instead of writing them to files.")
    ] = False,
) -> None:
    """Collect reports over HTTP and learn from them.

    One TOML file says how. What else an operator does is in tacit admin.

    Example: tacit serve coach.toml --init && tacit serve coach.toml
    """
    from tacit.validate import integer
    from tacit_service.config.deployment import Deployment

    if port is not None:
        integer(port, "--port", low=0, high=65535)
    workers = integer(workers, "--workers", low=1, high=256)
    if init:
        write_new(deployment, Deployment.example())
        print(f"wrote {deployment}; read it, then start: tacit serve {deployment}")
        return
    from tacit_service.collector import Collector
    from tacit_service.http.server import bind, run, run_workers
    from tacit_service.log_lines import configure, event

    read = Deployment.load(deployment)
    configure(log)
    if role == "planner":
        _plan(read, host, port, workers)
        return
    if workers > 1 and read.database.startswith("sqlite"):
        raise InvalidInput(
            f"--workers {workers} needs PostgreSQL, because SQLite has one writer; leave it "
            "out, or set database in [storage]"
        )
    server, plans, stated = read.settings.server, role == "both", read.guarantee
    host = host or server.host
    with bind(host, server.port if port is None else port) as listening:
        with Collector.open(read) as collector:
            tokens = _first_tokens(deployment, read, collector, show=show_tokens)
            _announce(deployment, read, tokens, host, listening.getsockname()[1])
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
            if workers == 1:
                from tacit_service.http.app import create_app
                from tacit_service.planning.loop import PlannerLoop

                planner = PlannerLoop(collector) if plans else None
                run(create_app(collector, planner), listening)
        if workers > 1:
            run_workers(deployment, workers, listening, plans)


def _plan(deployment: Deployment, host: str | None, port: int | None, workers: int) -> None:
    """Plan, and take no reports, until told to stop; with a port it can be watched."""
    from tacit_service.collector import Collector
    from tacit_service.http.app import monitor_app
    from tacit_service.http.server import bind, run
    from tacit_service.planning.loop import PlannerLoop

    if workers > 1 or (host is not None and port is None):
        raise InvalidInput(
            "a planner takes no reports: leave --workers out, and give --host with --port only, "
            "where /livez, /readyz and /metrics then are"
        )
    with Collector.open(deployment) as collector:
        planner = PlannerLoop(collector)
        print(f"tacit {__version__} plans {deployment.name}; stop with Ctrl-C", flush=True)
        if port is None:
            _until_told(planner.start, planner.stop)
            return
        with bind(host or deployment.settings.server.host, port) as listening:
            run(monitor_app(collector, planner), listening)


def facts_of(deployment: Deployment) -> list[str]:
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
    lines: list[str] = []
    roles: list[Role] = ["operator"]
    if deployment.unit == "participation":
        roles.append("device")
    for role in roles:
        if show:
            (token,) = collector.tokens.issue(role, 1, "first")
            lines.append(f"{role.capitalize()} token, shown once: {token}")
            continue
        # where the key file is: the deployment file's own folder may be read-only
        file = deployment.key_file.with_name(f"{path.stem}.{role}-token")
        write_tokens(collector, role, 1, "first", file)
        lines.append(f"{role.capitalize()} token: in {file}, for your eyes only")
    return lines


def _announce(path: Path, deployment: Deployment, tokens: list[str], host: str, port: int) -> None:
    """Where it is, what it guarantees, and on the first start where the tokens are."""
    from tacit.client.transport import this_machine

    shown = f"[{host}]" if ":" in host else host
    lines = [
        f"tacit {__version__} serves {deployment.name} at http://{shown}:{port} (dashboard: /)",
        *facts_of(deployment),
        *deployment.guarantee.statement().split("\n")[:3],
    ]
    if not this_machine(host):
        lines.append(
            "Others can reach this address: put TLS in front of it, tokens travel in the clear"
        )
    lines += tokens
    if deployment.unit == "user":
        lines.append(
            f"Device tokens: tacit admin tokens {path} issue --count 1000 --out tokens.txt"
        )
    print(*lines, "Stop with Ctrl-C; uploads under way are finished first", sep="\n  ", flush=True)


def write_tokens(collector: Collector, role: Role, count: int, label: str, out: Path) -> None:
    """New tokens in a new file that its owner alone can read."""
    try:  # before anything is issued
        file = os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise InvalidInput(f"{out} is there already; choose another name or remove it") from None
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {error.strerror}") from None
    with file:
        file.writelines(f"{token}\n" for token in collector.tokens.issue(role, count, label))


def _until_told(start: Callable[[], None], stop: Callable[[], None]) -> None:
    """Work in threads until the process is told to stop."""
    if sys.platform == "win32":
        raise InvalidInput(
            "a planner of its own waits for signals that Windows does not have; let tacit serve "
            "plan as well, or run this in WSL or a container"
        )
    signals = (signal.SIGTERM, signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before threads start: they inherit it
    start()
    signal.sigwait(signals)
    stop()
