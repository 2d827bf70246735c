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
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from tacit.errors import InvalidInput, TacitError
from tacit.service.answers import Unavailable

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger("tacit.service")

RETRY_SECONDS = 1.0
"""Pause of a worker that cannot open the database, before it is started again."""
TURN_SECONDS = 0.001
"""How long a thread back from the database waits for a busy one; Python's default is 5 ms."""
HEADER_SECONDS = 10.0
"""Time a client has to send the head of a request, from the connection or the last byte of it."""
LIMITS: dict[str, Any] = {
    "backlog": 1024,
    "limit_concurrency": 1000,
    "timeout_keep_alive": 20,
    "timeout_graceful_shutdown": 30,
    "h11_max_incomplete_event_size": 16_384,
}


class Patient(H11Protocol):
    """HTTP/1.1 that waits for the head of a request only so long."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of a new connection."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Go on waiting while there is no request yet."""
        super().data_received(data)
        answered = self.cycle is None or self.cycle.response_complete
        if answered and not self.transport.is_closing():
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            HEADER_SECONDS, self.timeout_keep_alive_handler
        )


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


def run(app: FastAPI, listening: socket.socket) -> None:
    """Serve in this process until it is told to stop; uploads under way are finished first."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn repeats the signal when it is done
    sys.setswitchinterval(TURN_SECONDS)
    try:
        uvicorn.Server(settings(app)).run(sockets=[listening])
    except KeyboardInterrupt:
        pass


def run_workers(
    deployment: Path, workers: int, listening: socket.socket, plans: bool = True
) -> None:
    """Serve in several processes; each opens the collector itself, one of them plans at a time."""
    with tempfile.TemporaryDirectory(prefix="tacit-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        config = settings(partial(open_app, deployment, plans), factory=True, workers=workers)
        Multiprocess(config, sockets=[listening]).run()


def open_app(path: Path, plans: bool = True) -> FastAPI:
    """What each worker runs: its own collector, with the application on it."""
    from tacit.service.collector import Collector
    from tacit.service.deployment import Deployment
    from tacit.service.http.app import create_app
    from tacit.service.planning import PlannerLoop

    configure_logging()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()
    try:
        collector = Collector.open(Deployment.load(path))
    except TacitError as error:  # a database that is away may come back; anything else stays wrong
        log.error("%s", error)
        time.sleep(RETRY_SECONDS)
        sys.exit(1 if isinstance(error, Unavailable) else STARTUP_FAILURE)
    sys.setswitchinterval(TURN_SECONDS)
    return create_app(collector, PlannerLoop(collector) if plans else None)


def _follow(sentinel: int) -> None:
    """Stop, in good order, when the process that started this worker is gone."""
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def configure_logging() -> None:
    """Lines on stderr: what the service says itself, and uvicorn only when something is wrong."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("tacit").setLevel(logging.INFO)


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
        **LIMITS,
        **more,
    )
