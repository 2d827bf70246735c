"""``tacit serve FOLDER``: several tasks in one server; and how planners are run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tacit._version import __version__
from tacit.errors import InvalidInput

IN_THE_CLEAR = "Others can reach this address: put TLS in front of it, tokens travel in the clear"


def serve_folder(path: Path, host: str | None, port: int | None, workers: int, role: str) -> None:
    """Serve every task of a folder until told to stop."""
    from tacit.client.transport import this_machine
    from tacit_service.config.sections import server_settings
    from tacit_service.folder import Folder
    from tacit_service.http.operator import first_token
    from tacit_service.http.server import bind, run, run_workers

    if role == "planner":
        check_planner(host, port, workers)
    made = first_token(path)
    folder = Folder(path, plans=role != "server", sqlite=workers == 1)
    if role == "planner" and port is None:
        print(f"tacit {__version__} plans the tasks of {path}; stop with Ctrl-C", flush=True)
        until_told(folder.start, folder.stop)
        return
    server = server_settings(os.environ)
    host = host or server.host
    with bind(host, server.port if port is None else port) as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}"
        print(f"tacit {__version__} serves the tasks of {path} at {address} (tasks: /)")
        if not this_machine(host):
            print(f"  {IN_THE_CLEAR}")
        if made is not None:
            print(f"  Operator token: in {made}, for your eyes only")
        print("  Stop with Ctrl-C; uploads under way are finished first", flush=True)
        if workers > 1:
            run_workers(path, workers, listening, role != "server")
            return
        from tacit_service.http.host import Host  # its metrics look at what workers set

        app = Host(folder, serves=role != "planner")
        try:
            folder.start()
            run(app, listening)
        finally:
            folder.stop()


def check_planner(host: str | None, port: int | None, workers: int) -> None:
    """Refuse what a planner has no use for."""
    if workers > 1 or (host is not None and port is None):
        raise InvalidInput(
            "a planner takes no reports: leave --workers out, and give --host with --port only, "
            "where /livez, /readyz and /metrics then are"
        )


def until_told(start: Callable[[], None], stop: Callable[[], None]) -> None:
    """Work in threads until the process is told to stop."""
    if sys.platform == "win32":
        raise InvalidInput(
            "a planner of its own waits for signals that Windows does not have; let tacit serve "
            "plan as well, or run this in WSL or a container"
        )
    told = (signal.SIGTERM, signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, told)  # before threads start: they inherit it
    start()
    signal.sigwait(told)
    stop()
