"""Running the application: a socket, uvicorn with limits, one process or several."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
import uvicorn._subprocess
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from tacit.errors import InvalidInput, TacitError
from tacit_service.responses import Unavailable

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger("tacit.service")

RETRY_SECONDS = 1.0
"""Pause of a worker that cannot open the database, before it is started again."""
FOLLOW_SECONDS = 0.5
"""Time between two looks of a worker whether its parent is still there."""
TURN_SECONDS = 0.001
"""How long a thread back from the database waits for a busy one; Python's default is 5 ms."""
HEADER_SECONDS, IDLE_SECONDS = 10.0, 20
"""Time in which the whole head of a request must arrive: of the first one on a connection, and of
the next one after an answer. Bytes that trickle in do not make it longer."""
HEAD_BYTES = 16_384
MOST_WAITING = 512
"""Connections without a request; with more of them the one that waits longest is closed. So sockets
that send nothing, or one byte at a time, keep nobody else out."""
MOST_FILES = 65_536
"""Open files that are asked for, within what the system grants."""


class Patient(HttpToolsProtocol):
    """HTTP/1.1 that waits for the head of a request only so long, and only on so many lines."""

    _deadline: asyncio.TimerHandle | None = None
    _head = 0

    @property
    def _waiting(self) -> dict[Patient, None]:
        """All connections of this server without a request, the longest waiting first."""
        connections: dict[Patient, None] = self.server_state.__dict__.setdefault("waiting", {})
        return connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of a new connection."""
        super().connection_made(transport)
        self._wait(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._served()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, but no head without end."""
        self._head += len(data)
        super().data_received(data)
        if self._head > HEAD_BYTES and self in self._waiting and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_headers_complete(self) -> None:
        """The request is there; from here on the limits of its body hold."""
        self._served()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next one."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self._wait(IDLE_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._served()
        self._head, waiting = 0, self._waiting
        waiting[self] = None
        self._deadline = self.loop.call_later(seconds, self.transport.close)
        if len(waiting) > MOST_WAITING:
            longest = next(iter(waiting))
            longest._served()
            longest.transport.abort()

    def _served(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address, or a sentence about why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
        except BaseException:
            listening.close()
            raise
    except socket.gaierror:
        raise InvalidInput(f"there is no address {host!r} on this machine; see --host") from None
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(
            f"cannot listen on {host} port {port}: {reason}; stop what uses it or choose another "
            "with --port"
        ) from None
    listening.set_inheritable(True)
    return listening


def run(app: ASGIApp, listening: socket.socket) -> None:
    """Serve in this process until it is told to stop; uploads under way are finished first."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn repeats the signal when it is done
    _prepare()
    try:
        uvicorn.Server(settings(app)).run(sockets=[listening])
    except KeyboardInterrupt:
        pass


def run_workers(
    deployment: Path, workers: int, listening: socket.socket, plans: bool = True
) -> None:
    """Serve in several processes; each opens the collector itself, one of them plans at a time.

    They are forked off this process, which has read all code and holds no connection and no thread:
    to start anew they would read the code again, each by itself.
    """
    with tempfile.TemporaryDirectory(prefix="tacit-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        # not before: the library looks at the variable once, when it is loaded
        import tacit_service.http.app  # noqa: F401

        uvicorn._subprocess.spawn = multiprocessing.get_context("fork")  # type: ignore[assignment]
        config = settings(
            partial(open_app, deployment, plans, os.getpid()), factory=True, workers=workers
        )
        supervisor = Multiprocess(config, sockets=[listening])
        os.register_at_fork(after_in_child=_leave_signals)
        supervisor.run()


def open_app(path: Path, plans: bool, parent: int) -> ASGIApp:
    """What each worker of a parent process runs: its own collector, and the app."""
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment
    from tacit_service.http.app import create_app
    from tacit_service.planning.loop import PlannerLoop

    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    try:
        collector = Collector.open(Deployment.load(path))
    except TacitError as error:  # a database that is away may come back; anything else stays wrong
        log.error("%s", error)
        time.sleep(RETRY_SECONDS)
        sys.exit(1 if isinstance(error, Unavailable) else STARTUP_FAILURE)
    _prepare()
    return create_app(collector, PlannerLoop(collector) if plans else None)


def _leave_signals() -> None:
    """In a worker that was just forked: the parent's way of noting signals is not its own."""
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, signal.SIG_DFL)


def _follow(parent: int) -> None:
    """Stop, in good order, when the process that started this worker is gone."""
    while os.getppid() == parent:
        time.sleep(FOLLOW_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _prepare() -> None:
    """What a process that serves needs: many open files, and threads that yield soon."""
    sys.setswitchinterval(TURN_SECONDS)
    if sys.platform == "win32":  # which has no such limit
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if most == resource.RLIM_INFINITY else min(MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def settings(app: Any, **more: Any) -> uvicorn.Config:
    """Limits and silence: no access log, nothing but warnings from uvicorn itself."""
    return uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=1024,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=30,
        **more,
    )
