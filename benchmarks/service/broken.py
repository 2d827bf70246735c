"""A running service with what it stands on, and ways to break and to repair that."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg

from tacit.util.files import lock_of

sys.path.insert(0, str(Path(__file__).parent))
from running import Postgres, postgres  # noqa: E402
from world import Database, Mode, World  # noqa: E402

Break = Callable[["Scene"], Callable[[], None]]
"""Causes a fault, and returns what repairs it."""


@dataclass
class Scene:
    """A running service under load, and what it stands on."""

    world: World
    folder: Path
    server: Postgres | None

    @property
    def files(self) -> list[Path]:
        """The files of SQLite's database."""
        return [self.folder / f"soak.db{end}" for end in ("", "-wal", "-shm")]

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The service does nothing for a moment."""
        assert self.world.service.process is not None
        process = psutil.Process(self.world.service.process.pid)
        process.suspend()
        try:
            yield
        finally:
            process.resume()

    def copy(self, name: str) -> Path:
        """A copy of the database of a service that is stopped."""
        if self.server is None:
            return Path(shutil.copy(self.files[0], self.folder / name))
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE soak")
        return Path(name)

    def put_back(self, copy: Path) -> None:
        """Let the service find that copy in place of its database."""
        if self.server is None:
            for file in self.files:
                file.unlink(missing_ok=True)
            shutil.copy(copy, self.files[0])
            return
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute("DROP DATABASE soak WITH (FORCE)")
            connection.execute(f"CREATE DATABASE soak TEMPLATE {copy.name}")


@contextlib.contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A small disk of its own."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def false_clock(folder: Path) -> dict[str, str]:
    """Variables that let a program see the wall clock that the file ``clock`` says."""
    (folder / "clock").write_text("+0")
    found = subprocess.run(
        ["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True
    )
    return {
        "LD_PRELOAD": found.stdout.strip(),
        "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@contextlib.contextmanager
def scene(
    folder: Path,
    mode: Mode,
    database: Database,
    environment: dict[str, str],
    witness: Path | None = None,
) -> Iterator[Scene]:
    """A service that runs in a folder, with everything it stands on."""
    with contextlib.ExitStack() as stack:
        server, url = None, "sqlite:///soak.db"
        if database == "postgres":
            server = stack.enter_context(postgres(folder / "postgres"))
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute("CREATE DATABASE soak")
            url = server.url.replace("/postgres?", "/soak?")
        world = World(folder, mode, url, seed=1, witness=witness)
        world.service.options = ("--workers", "2") if server else ()
        world.service.environment = environment
        world.service.start()
        stack.callback(world.service.stop)
        yield Scene(world, folder, server)


def missing_witness(scene: Scene) -> Callable[[], None]:
    """Somebody moved it, while it was not just being replaced by a newer one."""
    witness = scene.world.deployment.witness
    with lock_of(witness):
        hidden = witness.rename(witness.with_suffix(".hidden"))
    return lambda: void(hidden.rename(witness))


def full_disk(scene: Scene) -> Callable[[], None]:
    """Not a byte is left where the database is."""
    ballast = scene.folder / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass

    def repair() -> None:
        ballast.unlink()
        if scene.server is not None:  # it gives up when its log cannot be written
            scene.server.start()

    return repair


def immutable(scene: Scene) -> Callable[[], None]:
    """No file of the database can be written any more, not by those who have it open either."""
    files = [str(file) for file in scene.files if file.exists()]
    subprocess.run(["chattr", "+i", *files], check=True)
    return lambda: void(subprocess.run(["chattr", "-i", *files], check=True))


def read_only(scene: Scene) -> Callable[[], None]:
    """PostgreSQL serves readers only, as after a failover to a standby."""

    def turn(how: str) -> None:
        assert scene.server is not None
        with psycopg.connect(scene.server.url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE soak SET default_transaction_read_only = {how}")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'soak'"
            )

    turn("on")
    return lambda: turn("off")


def garbage(scene: Scene) -> Callable[[], None]:
    """All pages of the file are overwritten; the repair puts back those still spoilt."""
    page, noise = 4096, b"\xa5" * 4096
    database = scene.files[0]
    with scene.paused(), open(database, "r+b") as file:
        before = file.read()
        file.seek(0)
        file.write(noise * (len(before) // page))

    def repair() -> None:
        with scene.paused(), open(database, "r+b") as file:
            for start in range(0, len(before), page):
                file.seek(start)
                if file.read(page) == noise:
                    file.seek(start)
                    file.write(before[start : start + page])

    return repair


def frozen(scene: Scene) -> Callable[[], None]:
    """PostgreSQL is stopped in the middle of whatever it does."""
    assert scene.server is not None
    parent = scene.server.process()
    stopped = [parent, *parent.children(recursive=True)]
    for process in stopped:
        process.suspend()

    def repair() -> None:
        for process in reversed(stopped):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    return repair


def killed(scene: Scene) -> Callable[[], None]:
    """PostgreSQL is gone."""
    assert scene.server is not None
    scene.server.kill()
    return scene.server.start


def clock(jump: str) -> Break:
    """The wall clock of the service is set; its steady clock goes on."""

    def begin(scene: Scene) -> Callable[[], None]:
        (scene.folder / "clock").write_text(jump)
        return lambda: void((scene.folder / "clock").write_text("+0"))

    return begin


def void(_: object) -> None:
    """Nothing."""


class Fault(NamedTuple):
    """One line of the table."""

    name: str
    mode: Mode
    database: Database
    begin: Break
    shows: bool = True


FAULTS = (
    Fault("missing witness", "joint", "sqlite", missing_witness),
    Fault("missing witness", "joint", "postgres", missing_witness),
    Fault("full disk", "local", "sqlite", full_disk),
    Fault("full disk", "joint", "sqlite", full_disk),
    Fault("full disk", "joint", "postgres", full_disk),
    Fault("files write-protected", "joint", "sqlite", immutable),
    Fault("read-only", "joint", "postgres", read_only),
    Fault("file overwritten", "local", "sqlite", garbage),
    Fault("frozen", "local", "postgres", frozen),
    Fault("frozen", "joint", "postgres", frozen),
    Fault("killed", "joint", "postgres", killed),
    Fault("clock a day ahead", "joint", "sqlite", clock("+1d"), shows=False),
    Fault("clock a day ahead", "joint", "postgres", clock("+1d"), shows=False),
    Fault("clock a day behind", "joint", "sqlite", clock("-1d"), shows=False),
    Fault("clock a day behind", "joint", "postgres", clock("-1d"), shows=False),
)
